"""Exponentials of small matrices, several beside each other."""

cimport numpy as np

from .cpu_features cimport simd_level
from .linalg_lapack cimport contiguous, empty_like, last_size

np.import_array()

cdef extern from "c/linalg_exponential.h":
    enum:
        EXPONENTIAL "TP_EXPONENTIAL"  # rows and columns at most
    ctypedef struct tp_exponentials:
        int (*exponential[4])(const void *, void *, int, Py_ssize_t) noexcept nogil

cdef extern from *:
    """
    #define tp_exponentials_of(level) TP_CHOOSE(tp_exponential_table, level)
    """
    const tp_exponentials *tp_exponentials_of(int)

cdef const tp_exponentials *table = tp_exponentials_of(simd_level)


def kernels(below):
    """Return the kernels by op; `below` gives the kernel beneath that of an op, for what these leave to it."""
    exponential_below = below("matrix_exp")

    def matrix_exp(A):
        cdef np.ndarray own = contiguous(A), result
        cdef int n = last_size(own), kind = np.PyArray_TYPE(own)
        cdef Py_ssize_t count
        cdef bint finite
        if not np.PyArray_SIZE(own) or n > EXPONENTIAL or kind not in (
            np.NPY_FLOAT, np.NPY_DOUBLE, np.NPY_CFLOAT, np.NPY_CDOUBLE
        ):
            return exponential_below(A)
        cdef int which = 2 * np.PyArray_ISCOMPLEX(own) + (kind == np.NPY_DOUBLE or kind == np.NPY_CDOUBLE)
        result = empty_like(own, n, n)
        count = np.PyArray_SIZE(own) // n // n
        with nogil:
            finite = table.exponential[which](
                np.PyArray_DATA(own), np.PyArray_DATA(result), n, count)
        return result if finite else exponential_below(A)

    return {"matrix_exp": matrix_exp}
