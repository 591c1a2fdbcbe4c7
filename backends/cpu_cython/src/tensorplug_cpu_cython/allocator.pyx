"""New arrays, in memory of the caching allocator, and its figures."""

import numpy

cimport numpy as np
from cpython.pycapsule cimport PyCapsule_New

from .types cimport descriptors

np.import_array()

cdef extern from "c/allocator.h":
    ctypedef struct tp_memory_stats:
        size_t allocated, peak_allocated, reserved, peak_reserved, allocations, hits, active, limit
    void tp_memory(tp_memory_stats *stats)
    void tp_memory_reset_peak()
    void tp_memory_set_limit(size_t bytes)
    void tp_memory_empty_cache()

cdef extern from "c/arrays.h":
    np.ndarray tp_new_array(np.dtype, int, const np.npy_intp *, const np.npy_intp *, object)
    ctypedef struct PyDataMem_Handler:
        pass
    PyDataMem_Handler tp_handler

cdef object handler = PyCapsule_New(<void *> &tp_handler, "mem_handler", NULL)


cdef np.ndarray new_array(np.dtype descriptor, int dims, const np.npy_intp *shape, const np.npy_intp *strides):
    return tp_new_array(descriptor, dims, shape, strides, handler)


cdef np.ndarray new_like(np.ndarray array, int type_number):
    return tp_new_array(
        <np.dtype> descriptors[type_number], np.PyArray_NDIM(array), np.PyArray_DIMS(array), NULL, handler
    )


cdef np.ndarray plain_array(object value):
    cdef np.ndarray array
    if np.PyArray_CheckExact(value):
        array = <np.ndarray> value
    else:
        array = numpy.asarray(value)
    if not np.PyArray_ISBEHAVED_RO(array):
        array = numpy.array(array, dtype=array.dtype.newbyteorder("="), copy=True)
    return array


def empty(tuple shape, np.dtype descriptor):
    """Return a new array with arbitrary contents."""
    cdef np.npy_intp sizes[64]
    cdef int i
    for i in range(len(shape)):
        sizes[i] = shape[i]
    return new_array(descriptor, <int> len(shape), sizes, NULL)


def memory_stats():
    """Return the allocator's figures, in bytes but for the counts of allocations."""
    cdef tp_memory_stats stats
    tp_memory(&stats)
    return {
        "allocated": stats.allocated,
        "peak_allocated": stats.peak_allocated,
        "reserved": stats.reserved,
        "peak_reserved": stats.peak_reserved,
        "allocations": stats.allocations,
        "allocations_from_cache": stats.hits,
        "active": stats.active,
        "limit": stats.limit,
    }


def reset_peak_memory_stats():
    """Make the peak figures start again from the present."""
    tp_memory_reset_peak()


def set_memory_limit(Py_ssize_t bytes):
    """Let the allocator hold at most so many bytes, cached ones included; 0 for no limit.

    Beyond it an op raises MemoryError.
    """
    if bytes < 0:
        raise ValueError(f"set_memory_limit(): expected a number of bytes, or 0, got {bytes}")
    tp_memory_set_limit(<size_t> bytes)


def empty_cache():
    """Give cached memory back to the system."""
    tp_memory_empty_cache()
