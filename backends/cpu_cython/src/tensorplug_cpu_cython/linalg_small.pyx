"""Equations and spectra of small matrices, as they lie in C's order: LAPACK's calls take longer than their work."""

cimport numpy as np
from libc.float cimport DBL_MIN, FLT_MIN
from libc.math cimport fabs, sqrt

from .cpu_features cimport simd_level

np.import_array()

cdef extern from "c/linalg_small.h":
    ctypedef struct tp_equations:
        void (*factor[2])(void *, int *, int *, int, int, Py_ssize_t) noexcept nogil
        void (*solve[2])(const void *, const int *, void *, int, Py_ssize_t, Py_ssize_t) noexcept nogil

cdef extern from "c/linalg_spectra.h":
    ctypedef struct tp_spectra:
        int (*eigh[2])(const void *, void *, void *, int, int, Py_ssize_t) noexcept nogil
        int (*svd[2])(const void *, void *, void *, void *, int, int, int, Py_ssize_t) noexcept nogil

cdef extern from *:
    """
    #define tp_equations_of(level) TP_CHOOSE(tp_equation_table, level)
    #define tp_spectra_of(level) TP_CHOOSE(tp_spectrum_table, level)
    """
    const tp_equations *tp_equations_of(int)
    const tp_spectra *tp_spectra_of(int)

cdef const tp_equations *kernels = tp_equations_of(simd_level)
cdef const tp_spectra *spectra = tp_spectra_of(simd_level)

cdef enum:
    MANY = 8  # matrices, from which vectors run over them

ctypedef fused number:
    float
    double
    float complex
    double complex


cdef int width(np.ndarray array) noexcept:
    """Return the size of the last dimension."""
    return <int> np.PyArray_DIM(array, np.PyArray_NDIM(array) - 1)


cdef inline double size_of(number value) noexcept nogil:
    """Return what LAPACK compares pivots by."""
    if number is float or number is double:
        return -value if value < 0 else value
    else:
        return fabs(value.real) + fabs(value.imag)


cdef int factor(number *a, int *pivots, int rows, int n) noexcept nogil:
    """Factor into L and U, with rows exchanged; return the first pivot that is zero, from 1, or 0."""
    cdef int i, j, k, chosen, info = 0
    cdef double most, other, least
    cdef number scale, held
    least = FLT_MIN if number is float else DBL_MIN
    for k in range(min(rows, n)):
        chosen = k
        most = size_of(a[k * n + k])
        for i in range(k + 1, rows):
            other = size_of(a[i * n + k])
            if other > most:
                most = other
                chosen = i
        pivots[k] = chosen + 1
        if a[chosen * n + k] == 0:
            if not info:
                info = k + 1
            continue
        if chosen != k:
            for j in range(n):
                held = a[k * n + j]
                a[k * n + j] = a[chosen * n + j]
                a[chosen * n + j] = held
        # The reciprocal of a subnormal number is infinite.
        scale = 1 / a[k * n + k] if most >= least else a[k * n + k]
        for i in range(k + 1, rows):
            held = a[i * n + k] = a[i * n + k] * scale if most >= least else a[i * n + k] / scale
            for j in range(k + 1, n):
                a[i * n + j] = a[i * n + j] - held * a[k * n + j]
    return info


cdef void substitute(
    const number *a, number *b, int n, int row, int count, bint upper, bint unit
) noexcept nogil:
    """Solve equations of a triangular matrix, for some columns of the rows of `b`."""
    cdef int step, i, j, k
    cdef number scale
    for step in range(n):
        i = n - 1 - step if upper else step
        for k in range(i + 1 if upper else 0, n if upper else i):
            scale = a[i * n + k]
            for j in range(count):
                b[i * row + j] = b[i * row + j] - scale * b[k * row + j]
        if not unit:
            for j in range(count):
                b[i * row + j] = b[i * row + j] / a[i * n + i]


cdef void by_parts(
    const number *a, number *b, int n, int count, bint upper, bint unit
) noexcept nogil:
    """Solve equations, some columns at a time, which the caches hold."""
    cdef int first
    for first in range(0, count, 128):
        substitute(a, b + first, n, count, min(128, count - first), upper, unit)


cdef void exchange(number *b, const int *pivots, int n, int count) noexcept nogil:
    """Exchange rows as the factors' were."""
    cdef int i, j, other
    cdef number held
    for i in range(n):
        other = pivots[i] - 1
        if other != i:
            for j in range(count):
                held = b[i * count + j]
                b[i * count + j] = b[other * count + j]
                b[other * count + j] = held


cdef int cholesky(number *a, int n) noexcept nogil:
    """Factor Hermitian matrices from their lower triangle; return the first minor that is not positive."""
    cdef int i, j, k
    cdef number total, diagonal
    for j in range(n):
        for i in range(j, n):
            total = a[i * n + j]
            for k in range(j):
                if number is float or number is double:
                    total = total - a[i * n + k] * a[j * n + k]
                else:
                    total = total - a[i * n + k] * a[j * n + k].conjugate()
            if i > j:
                a[i * n + j] = total / diagonal
            else:
                if number is float or number is double:
                    if not total > 0:
                        a[i * n + j] = total
                        return j + 1
                    diagonal = <number> sqrt(total)
                else:
                    if not total.real > 0:
                        a[i * n + j] = total.real
                        return j + 1
                    diagonal = <number> sqrt(total.real)
                a[i * n + j] = diagonal
        for i in range(j):
            a[i * n + j] = 0
    return 0


cdef void factor_each(number *a, int *pivots, int *info, int rows, int n, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(count):
        info[k] = factor(a + k * rows * n, pivots + k * min(rows, n), rows, n)


cdef void solve_each(
    const number *a, const int *pivots, number *b, int n, int columns, Py_ssize_t count
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(count):
        exchange(b + k * n * columns, pivots + k * n, n, columns)
        by_parts(a + k * n * n, b + k * n * columns, n, columns, False, True)
        by_parts(a + k * n * n, b + k * n * columns, n, columns, True, False)


cdef void cholesky_each(number *a, int *info, int n, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(count):
        info[k] = cholesky(a + k * n * n, n)


cdef void substitute_each(
    const number *a, number *b, int n, int columns, Py_ssize_t count, bint upper, bint unit
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(count):
        by_parts(a + k * n * n, b + k * n * columns, n, columns, upper, unit)


cpdef small_factor(np.ndarray A, np.ndarray pivots, np.ndarray info):
    """Factor into L and U, in the place of the matrices."""
    cdef void *a = np.PyArray_DATA(A)
    cdef int *p = <int *> np.PyArray_DATA(pivots)
    cdef int *i = <int *> np.PyArray_DATA(info)
    cdef int rows = <int> np.PyArray_DIM(A, np.PyArray_NDIM(A) - 2), n = width(A), kind = np.PyArray_TYPE(A)
    cdef Py_ssize_t count = np.PyArray_SIZE(info)
    with nogil:
        if count >= MANY and (kind == np.NPY_FLOAT or kind == np.NPY_DOUBLE):
            kernels.factor[kind == np.NPY_DOUBLE](a, p, i, rows, n, count)
        elif kind == np.NPY_FLOAT:
            factor_each(<float *> a, p, i, rows, n, count)
        elif kind == np.NPY_DOUBLE:
            factor_each(<double *> a, p, i, rows, n, count)
        elif kind == np.NPY_CFLOAT:
            factor_each(<float complex *> a, p, i, rows, n, count)
        else:
            factor_each(<double complex *> a, p, i, rows, n, count)


cpdef small_solve(np.ndarray A, np.ndarray pivots, np.ndarray B):
    """Solve equations by the factors of :func:`small_factor`, in the place of `B`."""
    cdef void *a = np.PyArray_DATA(A)
    cdef void *b = np.PyArray_DATA(B)
    cdef const int *p = <const int *> np.PyArray_DATA(pivots)
    cdef int n = width(A), columns = width(B), kind = np.PyArray_TYPE(A)
    cdef Py_ssize_t count = np.PyArray_SIZE(pivots) // n
    with nogil:
        if count >= MANY and (kind == np.NPY_FLOAT or kind == np.NPY_DOUBLE):
            kernels.solve[kind == np.NPY_DOUBLE](a, p, b, n, columns, count)
        elif kind == np.NPY_FLOAT:
            solve_each(<const float *> a, p, <float *> b, n, columns, count)
        elif kind == np.NPY_DOUBLE:
            solve_each(<const double *> a, p, <double *> b, n, columns, count)
        elif kind == np.NPY_CFLOAT:
            solve_each(<const float complex *> a, p, <float complex *> b, n, columns, count)
        else:
            solve_each(<const double complex *> a, p, <double complex *> b, n, columns, count)


cpdef small_cholesky(np.ndarray A, np.ndarray info):
    """Factor Hermitian matrices, in their place."""
    cdef void *a = np.PyArray_DATA(A)
    cdef int *i = <int *> np.PyArray_DATA(info)
    cdef int n = width(A), kind = np.PyArray_TYPE(A)
    cdef Py_ssize_t count = np.PyArray_SIZE(info)
    with nogil:
        if kind == np.NPY_FLOAT:
            cholesky_each(<float *> a, i, n, count)
        elif kind == np.NPY_DOUBLE:
            cholesky_each(<double *> a, i, n, count)
        elif kind == np.NPY_CFLOAT:
            cholesky_each(<float complex *> a, i, n, count)
        else:
            cholesky_each(<double complex *> a, i, n, count)


cpdef small_triangular(np.ndarray A, np.ndarray B, bint upper, bint unit):
    """Solve equations of triangular matrices, in the place of `B`."""
    cdef void *a = np.PyArray_DATA(A)
    cdef void *b = np.PyArray_DATA(B)
    cdef int n = width(A), columns = width(B), kind = np.PyArray_TYPE(A)
    cdef Py_ssize_t count = np.PyArray_SIZE(A) // n // n
    with nogil:
        if kind == np.NPY_FLOAT:
            substitute_each(<const float *> a, <float *> b, n, columns, count, upper, unit)
        elif kind == np.NPY_DOUBLE:
            substitute_each(<const double *> a, <double *> b, n, columns, count, upper, unit)
        elif kind == np.NPY_CFLOAT:
            substitute_each(<const float complex *> a, <float complex *> b, n, columns, count, upper, unit)
        else:
            substitute_each(<const double complex *> a, <double complex *> b, n, columns, count, upper, unit)


cdef bint many_small(np.ndarray A) noexcept:
    """Return whether these are real matrices whose spectra are found several at a time."""
    cdef int dims = np.PyArray_NDIM(A), kind = np.PyArray_TYPE(A)
    cdef Py_ssize_t rows = np.PyArray_DIM(A, dims - 2), columns = np.PyArray_DIM(A, dims - 1)
    return (
        (kind == np.NPY_FLOAT or kind == np.NPY_DOUBLE)
        and 0 < min(rows, columns) and max(rows, columns) <= SPECTRUM
        and np.PyArray_SIZE(A) >= MANY * rows * columns
    )


cpdef bint small_eigh(np.ndarray A, np.ndarray values, np.ndarray vectors, bint upper):
    """Fill in eigenvalues and, unless None, vectors; return False for what is LAPACK's."""
    cdef void *a = np.PyArray_DATA(A)
    cdef void *w = np.PyArray_DATA(values)
    cdef void *v = NULL if vectors is None else np.PyArray_DATA(vectors)
    cdef int n = width(A), kind = np.PyArray_TYPE(A)
    cdef Py_ssize_t count = np.PyArray_SIZE(values) // n
    cdef bint found
    with nogil:
        found = spectra.eigh[kind == np.NPY_DOUBLE](a, w, v, n, upper, count)
    return found


cpdef bint small_svd(np.ndarray A, np.ndarray U, np.ndarray values, np.ndarray Vh):
    """Fill in singular values and, unless None, vectors; return False for what is LAPACK's."""
    cdef void *a = np.PyArray_DATA(A)
    cdef void *s = np.PyArray_DATA(values)
    cdef void *u = NULL if U is None else np.PyArray_DATA(U)
    cdef void *v = NULL if U is None else np.PyArray_DATA(Vh)
    cdef int rows = <int> np.PyArray_DIM(A, np.PyArray_NDIM(A) - 2), columns = width(A), kind = np.PyArray_TYPE(A)
    cdef Py_ssize_t count = np.PyArray_SIZE(values) // min(rows, columns)
    cdef bint found
    cdef bint whole = U is not None and width(U) == rows and np.PyArray_DIM(Vh, np.PyArray_NDIM(Vh) - 2) == columns
    with nogil:
        found = spectra.svd[kind == np.NPY_DOUBLE](a, u, s, v, rows, columns, whole, count)
    return found
