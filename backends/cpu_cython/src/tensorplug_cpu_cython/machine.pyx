"""The machine as the kernels see it: SIMD level, threads, and memory for new arrays."""

import os

import ml_dtypes
import numpy

cimport numpy as np
from cpython.pycapsule cimport PyCapsule_New
from libc.string cimport memset

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

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define tp_most_threads() omp_get_max_threads()
    #else
    #define tp_most_threads() 1
    #endif
    #if defined(TP_LEVELS) && !defined(_MSC_VER)
    static int tp_best_level(void) {
        __builtin_cpu_init();
        #if __GNUC__ >= 12 || defined(__clang__)
        if (__builtin_cpu_supports("x86-64-v4")) return 4;
        if (__builtin_cpu_supports("x86-64-v3")) return 3;
        return __builtin_cpu_supports("x86-64-v2") ? 2 : 1;
        #else
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl")) return 4;
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi2")) return 3;
        return __builtin_cpu_supports("sse4.2") ? 2 : 1;
        #endif
    }
    #else
    static int tp_best_level(void) { return 0; }
    #endif
    """
    int tp_most_threads()
    int tp_best_level()

LEVEL_VARIABLE = "TENSORPLUG_CPU_SIMD"


def _choose_level():
    best = tp_best_level()
    if best == 1:
        raise ImportError(
            "tensorplug-cpu-cython needs an x86-64 processor with SSE4.2; uninstall it to use NumPy's kernels"
        )
    wanted = os.environ.get(LEVEL_VARIABLE, "")
    if not wanted or not best:
        return best
    if wanted not in ("v2", "v3", "v4"):
        raise ValueError(f"{LEVEL_VARIABLE} must be v2, v3 or v4, got {wanted!r}")
    if int(wanted[1]) > best:
        raise ValueError(f"{LEVEL_VARIABLE} is {wanted}, but this processor has x86-64-v{best}")
    return int(wanted[1])


simd_level = _choose_level()


def level():
    """Return the SIMD level in use: "v2", "v3", "v4", or "plain" where there is one only."""
    return f"v{simd_level}" if simd_level else "plain"


# --- threads ---------------------------------------------------------------------------------------

cdef int threads = tp_most_threads()
cdef bint forked = False


def set_num_threads(int number):
    """Set how many threads kernels use; a forked child stays with one."""
    global threads
    if not forked:
        threads = number


def get_num_threads():
    """Return how many threads kernels use."""
    return threads


def _after_fork():
    global threads, forked
    # GOMP's threads are gone, but its notes of them are not: the next parallel region would wait forever.
    forked = True
    threads = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


GRAIN_VARIABLE = "TENSORPLUG_CPU_GRAIN"


def _choose_grain():
    text = os.environ.get(GRAIN_VARIABLE, "")
    if text and not (text.isascii() and text.isdigit() and 1 <= int(text) < 1 << 60):
        raise ValueError(f"{GRAIN_VARIABLE} must be a number of elements from 1 on, got {text!r}")
    return int(text or 1 << 60)


# No kernel wants more elements per thread than this: tests set it to 1, to have small arrays shared out.
cdef Py_ssize_t largest_grain = _choose_grain()


cdef int threads_for(Py_ssize_t count, Py_ssize_t grain) noexcept nogil:
    if threads == 1:
        return 1
    if grain > largest_grain:
        grain = largest_grain
    if count < 2 * grain:
        return 1
    cdef Py_ssize_t wanted = count // grain
    return threads if wanted > threads else <int> wanted


# --- types -----------------------------------------------------------------------------------------

cdef int numbers[32]
memset(numbers, -1, sizeof(numbers))
descriptors = [
    numpy.dtype(name)
    for name in ("f4", "f8", "i8", "i4", "i2", "i1", "u1", "?", "f2", ml_dtypes.bfloat16)
]
cdef int bfloat16_number = numpy.dtype(ml_dtypes.bfloat16).num


def _number_types():
    for number, descriptor in enumerate(descriptors):
        if descriptor.num < 32:
            numbers[descriptor.num] = number
    for other in ("q", "l", "i"):  # two C types have eight or four bytes
        numbers[numpy.dtype(other).num] = TP_I64 if numpy.dtype(other).itemsize == 8 else TP_I32


_number_types()


cdef int type_of(np.ndarray array) noexcept:
    return by_type(np.PyArray_TYPE(array))


cdef int number_of(np.dtype descriptor) noexcept:
    return by_type(descriptor.type_num)


cdef inline int by_type(int number) noexcept:
    if number < 32:
        return numbers[number]
    return TP_BF16 if number == bfloat16_number else -1


# --- arrays ----------------------------------------------------------------------------------------

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


# --- figures ---------------------------------------------------------------------------------------


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
