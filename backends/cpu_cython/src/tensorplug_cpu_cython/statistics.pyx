"""Variances, standard deviations and norms."""

cimport numpy as np
from libc.stdlib cimport free, malloc

from . import pointwise

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BF16, TP_F16, TP_F32, descriptors, type_of

np.import_array()

cdef extern from "c/statistics.h":
    enum:
        TP_VARIANCE, TP_DEVIATION, TP_NORM1, TP_NORM2
    Py_ssize_t tp_variance_room(Py_ssize_t, int) noexcept nogil
    ctypedef void (*tp_variance_function)(
        const void *, void *, double *, double, Py_ssize_t, Py_ssize_t, Py_ssize_t, int) noexcept nogil
    ctypedef struct tp_variances:
        tp_variance_function reduce[4][10]

cdef extern from *:
    """
    #define tp_variances_of(level) TP_CHOOSE(tp_variance_table, level)
    """
    const tp_variances *tp_variances_of(int)

cdef const tp_variances *kernels = tp_variances_of(simd_level)

cdef enum:
    GRAIN = 32768, HOLD = 4096

VARIANCE, DEVIATION, NORM1, NORM2 = TP_VARIANCE, TP_DEVIATION, TP_NORM1, TP_NORM2


def reduce(input, int kind, tuple dim, double correction, bint keepdim):
    """Return a variance or norm over `dim`, or None for what is left to NumPy."""
    cdef np.ndarray array = plain_array(input), result
    cdef int number = type_of(array), i, d, dims = np.PyArray_NDIM(array), out_dims = 0, state = 0, threads
    cdef Py_ssize_t sizes[3]
    cdef Py_ssize_t size, count = 1, total = np.PyArray_SIZE(array), outer = 1, at
    cdef np.npy_intp shape[64]
    cdef bint reduced[64], half = number == TP_F16 or number == TP_BF16
    cdef double divisor
    cdef double *partial
    cdef tp_variance_function function
    if not total or not dim:
        return None
    for i in range(dims):
        reduced[i] = False
    for i in range(len(dim)):
        d = dim[i]
        reduced[d] = True
    sizes[0] = sizes[1] = sizes[2] = 1
    for i in range(dims):
        size = np.PyArray_DIM(array, i)
        if not reduced[i] or keepdim:
            shape[out_dims] = 1 if reduced[i] else size
            out_dims += 1
        if reduced[i]:
            count *= size
        if size == 1:
            continue
        # Kept dimensions, each of which is worth a call, then reduced, kept and reduced ones.
        if not reduced[i]:
            if state == 0:
                outer *= size
                continue
            if state == 3:
                return None
            state = 2
        else:
            state = 1 if state < 2 else 3
        sizes[state - 1] *= size
    if state < 2:  # nothing is kept behind: the outer ones need no calls of their own
        sizes[2], sizes[1], sizes[0], outer = sizes[0], outer, 1, 1
    elif state == 3 and outer > 1:
        return None
    if not np.PyArray_IS_C_CONTIGUOUS(array):
        array = pointwise.clone(array)
    divisor = max(count - correction, 0.0)
    result = new_array(<np.dtype> descriptors[TP_F32 if half else number], out_dims, shape, NULL)
    threads = threads_for(total // outer, GRAIN)
    partial = <double *> malloc(tp_variance_room(sizes[1], threads) * sizeof(double))
    if partial == NULL:
        raise MemoryError()
    function = kernels.reduce[kind][number]
    if total < HOLD:
        for at in range(outer):
            function(
                <char *> np.PyArray_DATA(array) + at * (np.PyArray_NBYTES(array) // outer),
                <char *> np.PyArray_DATA(result) + at * (np.PyArray_NBYTES(result) // outer),
                partial, divisor, sizes[0], sizes[1], sizes[2], 1,
            )
    else:
        with nogil:
            for at in range(outer):
                function(
                    <char *> np.PyArray_DATA(array) + at * (np.PyArray_NBYTES(array) // outer),
                    <char *> np.PyArray_DATA(result) + at * (np.PyArray_NBYTES(result) // outer),
                    partial, divisor, sizes[0], sizes[1], sizes[2], threads,
                )
    free(partial)
    return pointwise.cast(result, descriptors[number]) if half else result


cdef class Norm:
    """Norms of vectors; `fallback` serves other orders than 1 and 2, and what :func:`reduce` leaves."""

    cdef object fallback

    def __init__(self, fallback):
        self.fallback = fallback

    def call(self, input, ord, dim, bint keepdim):
        """Return the norm of order `ord` over the dimensions `dim`."""
        found = None
        if ord == 2:
            found = reduce(input, TP_NORM2, tuple(dim), 0, keepdim)
        elif ord == 1:
            found = reduce(input, TP_NORM1, tuple(dim), 0, keepdim)
        return self.fallback(input, ord, tuple(dim), keepdim) if found is None else found
