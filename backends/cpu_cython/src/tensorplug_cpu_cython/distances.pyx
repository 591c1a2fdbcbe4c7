"""Distances between vectors, and their gradients."""

cimport numpy as np
from libc.string cimport memset

from . import pointwise

from .allocator cimport new_array, new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_F64, descriptors, type_of

np.import_array()

cdef extern from "c/distances.h":
    ctypedef struct tp_distances:
        Py_ssize_t batch, rows, others, length
        double p
        int triangle, threads
    ctypedef struct tp_distance_kernels:
        void (*forward[2])(const tp_distances *, const void *, const void *, void *) noexcept nogil
        void (*backward[2])(
            const tp_distances *, const void *, const void *, const void *, const void *, void *, void *
        ) noexcept nogil

cdef extern from *:
    """
    #define tp_distances_of(level) TP_CHOOSE(tp_distance_table, level)
    """
    const tp_distance_kernels *tp_distances_of(int)

cdef const tp_distance_kernels *kernels = tp_distances_of(simd_level)

cdef enum:
    GRAIN = 16384


cdef np.ndarray contiguous(object value):
    cdef np.ndarray array = plain_array(value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef tp_distances described(np.ndarray x1, np.ndarray x2, double p, bint triangle):
    cdef tp_distances s
    cdef int d, dims = np.PyArray_NDIM(x1)
    s.batch = 1
    for d in range(dims - 2):
        s.batch *= np.PyArray_DIM(x1, d)
    s.rows, s.others = np.PyArray_DIM(x1, dims - 2), np.PyArray_DIM(x2, dims - 2)
    s.length = np.PyArray_DIM(x1, dims - 1)
    s.p, s.triangle = p, triangle
    s.threads = threads_for(s.batch * s.rows * s.others * s.length, GRAIN)
    return s


def pairs(x1, x2, double p, bint triangle):
    """Return the distances (*batch, P, R) of vectors (*batch, P, M) and (*batch, R, M); of a triangle, as a row."""
    cdef np.ndarray rows = contiguous(x1), columns = contiguous(x2.swapaxes(-1, -2)), result
    cdef tp_distances s = described(rows, x2, p, triangle)
    cdef np.npy_intp shape[64]
    cdef int d, dims = np.PyArray_NDIM(rows), wide = type_of(rows) == TP_F64
    if triangle:
        dims, shape[0] = 1, s.rows * (s.rows - 1) // 2
    else:
        for d in range(dims - 2):
            shape[d] = np.PyArray_DIM(rows, d)
        shape[dims - 2], shape[dims - 1] = s.rows, s.others
    result = new_array(descriptors[type_of(rows)], dims, shape, NULL)
    with nogil:
        kernels.forward[wide](
            &s, np.PyArray_DATA(rows), np.PyArray_DATA(columns), np.PyArray_DATA(result)
        )
    return result


def pairs_backward(g, x1, x2, double p, result, bint triangle):
    """Return the gradients of the rows, and of the others as columns (*batch, M, R)."""
    cdef np.ndarray rows = contiguous(x1), columns = contiguous(x2.swapaxes(-1, -2)), given = contiguous(g)
    cdef np.ndarray distances = contiguous(result), g_rows, g_columns
    cdef tp_distances s = described(rows, x2, p, triangle)
    cdef int wide = type_of(rows) == TP_F64
    g_rows, g_columns = new_like(rows, type_of(rows)), new_like(columns, type_of(rows))
    with nogil:
        memset(np.PyArray_DATA(g_rows), 0, np.PyArray_NBYTES(g_rows))
        memset(np.PyArray_DATA(g_columns), 0, np.PyArray_NBYTES(g_columns))
        kernels.backward[wide](
            &s, np.PyArray_DATA(given), np.PyArray_DATA(distances), np.PyArray_DATA(rows),
            np.PyArray_DATA(columns), np.PyArray_DATA(g_rows), np.PyArray_DATA(g_columns),
        )
    return g_rows, g_columns
