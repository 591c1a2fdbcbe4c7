"""Factors and solutions of matrices with far more rows than columns, by blocks of rows."""

import numpy

cimport numpy as np

from . import pointwise

from .allocator cimport new_array
from .cpu_features cimport simd_level
from .linalg_lapack cimport contiguous, copied, last_size

np.import_array()

cdef extern from "c/linalg_tall.h":
    enum:
        TALL_COLUMNS "TP_TALL_COLUMNS", TALL_ROWS "TP_TALL_ROWS"
    ctypedef struct tp_tall_pair:
        const void *data[2]
        int columns[2]
        Py_ssize_t rows
    ctypedef struct tp_tall:
        int (*reduce[2])(const tp_tall_pair *, void *, void *) noexcept nogil
        void (*expand[2])(const void *, Py_ssize_t, int, void *, void *) noexcept nogil
    Py_ssize_t tp_tall_kept(Py_ssize_t, int) nogil

cdef extern from *:
    """
    #define tp_tall_of(level) TP_CHOOSE(tp_tall_table, level)
    """
    const tp_tall *tp_tall_of(int)

cdef const tp_tall *tall = tp_tall_of(simd_level)
cdef object multiply = pointwise.Binary("mul", numpy.multiply).call


cdef bint is_very_tall(A, int more) noexcept:
    """Return whether this is one real matrix that blocks of rows serve, beside which `more` columns stand."""
    cdef np.ndarray array = <np.ndarray> A
    cdef Py_ssize_t columns
    if np.PyArray_NDIM(array) != 2 or np.PyArray_TYPE(array) not in (np.NPY_FLOAT, np.NPY_DOUBLE):
        return False
    columns = np.PyArray_DIM(array, 1) + more
    return 0 < columns <= TALL_COLUMNS and np.PyArray_DIM(array, 0) >= max(TALL_ROWS, 16 * columns)


cdef np.ndarray reduced(np.ndarray one, np.ndarray other, np.ndarray kept):
    """Return R of matrices beside each other, of which the other may be None; None for what is left to LAPACK."""
    cdef tp_tall_pair pair
    cdef np.ndarray R
    cdef np.npy_intp shape[2]
    cdef int fits
    cdef void *memory = NULL if kept is None else np.PyArray_DATA(kept)
    pair.rows = np.PyArray_DIM(one, 0)
    pair.data[0], pair.columns[0] = np.PyArray_DATA(one), last_size(one)
    pair.data[1], pair.columns[1] = NULL, 0
    if other is not None:
        pair.data[1], pair.columns[1] = np.PyArray_DATA(other), last_size(other)
    shape[0] = shape[1] = pair.columns[0] + pair.columns[1]
    R = new_array(one.descr, 2, shape, NULL)
    with nogil:
        fits = tall.reduce[np.PyArray_ITEMSIZE(one) == 8](&pair, np.PyArray_DATA(R), memory)
    return R if fits else None


cdef void expanded(np.ndarray kept, np.ndarray factor, np.ndarray out) noexcept:
    """Write the orthogonal matrix, of which what is wanted was kept, times a square one, which is overwritten."""
    cdef int columns = last_size(out)
    with nogil:
        tall.expand[np.PyArray_ITEMSIZE(out) == 8](
            np.PyArray_DATA(kept), np.PyArray_DIM(out, 0), columns, np.PyArray_DATA(factor), np.PyArray_DATA(out))


cdef tuple very_tall_singular(A, svd, bint vectors):
    """Return U, S and V^H, or None, S and None, of a matrix by those of R; None for what is left to LAPACK."""
    cdef np.ndarray own = contiguous(A), R, U, kept = None
    cdef int columns = last_size(own)
    cdef np.npy_intp count
    if vectors:
        count = tp_tall_kept(np.PyArray_DIM(own, 0), columns)
        kept = new_array(own.descr, 1, &count, NULL)
    R = reduced(own, None, kept)
    found = None if R is None else svd(R, "S" if vectors else "N")
    if found is None:
        return None
    if not vectors:
        return None, found[1], None
    U = new_array(own.descr, 2, np.PyArray_DIMS(own), NULL)
    expanded(kept, copied(found[0]), U)
    return U, found[1], found[2]


cdef tuple very_tall_factors(A):
    """Return Q and R of a matrix, with LAPACK's signs; None for what is left to LAPACK.

    Reflections that begin with the first columns take those to multiples of unit vectors, away from them; what
    other reflections lead to differs in signs (Ballard, Demmel, Grigori, Jacquelin, Nguyen and Solomonik, 2014).
    """
    cdef np.ndarray own = contiguous(A), R, Q, kept, above
    cdef int columns = last_size(own), j
    cdef np.npy_intp count = tp_tall_kept(np.PyArray_DIM(own, 0), columns)
    kept = new_array(own.descr, 1, &count, NULL)
    R = reduced(own, None, kept)
    if R is None:
        return None
    signs = numpy.empty(columns, own.dtype)
    Q = new_array(own.descr, 2, np.PyArray_DIMS(own), NULL)
    factor = numpy.eye(columns, dtype=own.dtype)
    expanded(kept, factor, Q)
    above = copied(Q[:columns])
    for j in range(columns):
        signs[j] = -1 if above[j, j] >= 0 else 1
        above[j, j] -= signs[j]
        above[j + 1:, j] /= above[j, j]
        above[j + 1:, j + 1:] -= numpy.outer(above[j + 1:, j], above[j, j + 1:])
    return multiply(Q, signs, Q), signs[:, None] * R


def kernels(below):
    """Return the kernels by op; `below` gives the kernel beneath that of an op, for what these leave to it."""
    lstsq_below = below("linalg_lstsq")

    def linalg_lstsq(A, B, rcond, driver):
        cdef np.ndarray both
        cdef int n = last_size(A), k = last_size(B)
        if not k or k > TALL_COLUMNS or not is_very_tall(A, k):
            return lstsq_below(A, B, rcond, driver)
        both = reduced(contiguous(A), contiguous(B), None)
        if both is None:
            return lstsq_below(A, B, rcond, driver)
        # R of both has that of A, then Q^T B, and below it what no solution reaches.
        solution, residuals, ranks, values = lstsq_below(both[:n, :n], both[:n, n:], rcond, driver)
        if driver == "gels" or (driver != "gelsy" and bool((ranks == n).all())):
            residuals = numpy.square(both[n:, n:]).sum(0)
        return solution, residuals, ranks, values

    return {
        function.__name__: function
        for function in (
            linalg_lstsq,
        )
    }
