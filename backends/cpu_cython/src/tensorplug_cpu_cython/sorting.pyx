"""Sorting and selecting along a dimension."""

cimport numpy as np
from libc.stdint cimport int64_t

from . import pointwise

from .allocator cimport new_array, new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_I64, TP_TYPES, descriptors, type_of

np.import_array()

cdef extern from "c/sorting.h":
    ctypedef struct tp_sort:
        const void *x
        void *values
        int64_t *places
        Py_ssize_t before, n, after, k
        int descending
    ctypedef int (*tp_sort_function)(const tp_sort *, int) noexcept nogil
    ctypedef struct tp_sorts:
        tp_sort_function sort[10]
        tp_sort_function top[10]

cdef extern from *:
    """
    #define tp_sorts_of(level) TP_CHOOSE(tp_sort_table, level)
    """
    const tp_sorts *tp_sorts_of(int)

cdef const tp_sorts *kernels = tp_sorts_of(simd_level)

cdef enum:
    GRAIN = 16384, HOLD = 256

# Places are kept in 32 bits.
cdef Py_ssize_t MOST = 0xFFFFFFFF


cdef object run(object input, int dim, Py_ssize_t k, bint top, bint descending, bint with_values):
    """Return the values (or None) and places, or None for what is left to NumPy."""
    cdef np.ndarray array = plain_array(input), places, values = None
    cdef int number = type_of(array), i, done
    cdef tp_sort o
    cdef tp_sort_function function
    cdef np.npy_intp shape[64]
    cdef Py_ssize_t total
    if number < 0 or not np.PyArray_NDIM(array):
        return None
    if not np.PyArray_IS_C_CONTIGUOUS(array):
        array = pointwise.clone(array)
    o.before = o.after = 1
    for i in range(np.PyArray_NDIM(array)):
        shape[i] = np.PyArray_DIM(array, i)
        if i < dim:
            o.before *= shape[i]
        elif i > dim:
            o.after *= shape[i]
    o.n = shape[dim]
    o.k = k if top else o.n
    shape[dim] = o.k
    o.descending = descending
    if o.n > MOST:
        return None
    places = new_array(<np.dtype> descriptors[TP_I64], np.PyArray_NDIM(array), shape, NULL)
    if with_values:
        values = new_array(<np.dtype> descriptors[number], np.PyArray_NDIM(array), shape, NULL)
    if not np.PyArray_SIZE(places):
        return values, places
    o.x = np.PyArray_DATA(array)
    o.values = NULL if values is None else np.PyArray_DATA(values)
    o.places = <int64_t *> np.PyArray_DATA(places)
    function = kernels.top[number] if top else kernels.sort[number]
    total = np.PyArray_SIZE(array)
    if total < HOLD:
        done = function(&o, 1)
    else:
        with nogil:
            done = function(&o, threads_for(total, GRAIN))
    if not done:
        raise MemoryError()
    return values, places


def argsort(input, int dim, bint descending, fallback):
    """Return the indices that sort along `dim`."""
    found = run(input, dim, 0, False, descending, False)
    return fallback(input, dim, descending) if found is None else found[1]


def sort(input, int dim, bint descending):
    """Return the sorted values and where they stood; the input has at least one dimension."""
    return run(input, dim, 0, False, descending, True)


def top(input, Py_ssize_t k, int dim, bint largest):
    """Return the best values and where they are, best first; the input has at least one dimension."""
    return run(input, dim, k, True, largest, True)
