"""Least squares, and factors of matrices with far more rows than columns, by blocks of rows."""

import numpy

cimport numpy as np
from cython cimport floating
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from . import pointwise

from .allocator cimport new_array
from .cpu_features cimport simd_level
from .linalg_lapack cimport (
    call11, call13, contiguous, copied, empty_like, is_tall, last_size, matrices, matrices_of, none_of, per_matrix, room,
    routine, same_batch, transpose_into
)

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


cdef void take_signs(const floating *q, floating *above, floating *signs, floating *r, int n) noexcept nogil:
    """Find the signs that reflections lead to, from the first rows of an orthogonal matrix, and give them to R."""
    cdef int i, j, k
    memcpy(above, q, n * n * sizeof(floating))
    for j in range(n):
        signs[j] = -1 if above[j * n + j] >= 0 else 1
        above[j * n + j] -= signs[j]
        for i in range(j + 1, n):
            above[i * n + j] /= above[j * n + j]
            for k in range(j + 1, n):
                above[i * n + k] -= above[i * n + j] * above[j * n + k]
        for k in range(n):
            r[j * n + k] *= signs[j]


cdef tuple very_tall_factors(A):
    """Return Q and R of a matrix, with LAPACK's signs; None for what is left to LAPACK.

    Reflections that begin with the first columns take those to multiples of unit vectors, away from them; what
    other reflections lead to differs in signs (Ballard, Demmel, Grigori, Jacquelin, Nguyen and Solomonik, 2014).
    """
    cdef np.ndarray own = contiguous(A), R, Q, kept, factor, signs
    cdef int columns = last_size(own)
    cdef np.npy_intp count = tp_tall_kept(np.PyArray_DIM(own, 0), columns)
    kept = new_array(own.descr, 1, &count, NULL)
    R = reduced(own, None, kept)
    if R is None:
        return None
    signs = new_array(own.descr, 1, np.PyArray_DIMS(own) + 1, NULL)
    Q = new_array(own.descr, 2, np.PyArray_DIMS(own), NULL)
    factor = numpy.eye(columns, dtype=own.dtype)
    expanded(kept, factor, Q)
    if np.PyArray_TYPE(own) == np.NPY_DOUBLE:
        take_signs(<double *> np.PyArray_DATA(Q), <double *> np.PyArray_DATA(factor), <double *> np.PyArray_DATA(signs),
                   <double *> np.PyArray_DATA(R), columns)
    else:
        take_signs(<float *> np.PyArray_DATA(Q), <float *> np.PyArray_DATA(factor), <float *> np.PyArray_DATA(signs),
                   <float *> np.PyArray_DATA(R), columns)
    return multiply(Q, signs, Q), R


cdef void columns_of(const char *data, char *sides, char *spare, int m, int rows, int k, int size) noexcept nogil:
    """Write right sides as columns of `rows`, of which the last are left free."""
    cdef int c
    transpose_into(data, spare if rows > m else sides, m, k, size)
    if rows > m:
        for c in range(k):
            memcpy(sides + <Py_ssize_t> c * rows * size, spare + <Py_ssize_t> c * m * size, m * size)


cdef void solutions_of(const char *sides, char *data, int n, int rows, int k, int size) noexcept nogil:
    """Write the first of the elements of columns as rows."""
    cdef int i, c
    for i in range(n):
        for c in range(k):
            memcpy(data + (<Py_ssize_t> i * k + c) * size, sides + (<Py_ssize_t> c * rows + i) * size, size)


cdef tuple least_squares(A, B, double rcond, bint ranked):
    """Return solutions and ranks by ``gelsy``, or by ``gels``, which takes all ranks to be full."""
    cdef np.ndarray own = contiguous(A), given = contiguous(B), solution, ranks = per_matrix(own, np.NPY_INT64)
    cdef matrices batch = matrices_of(own), right = matrices_of(given)
    cdef int m = batch.rows, n = batch.columns, k = right.columns, size = np.PyArray_ITEMSIZE(own), rank = 0, info = 0
    cdef int rows = max(m, n), least = min(m, n), lwork = 3 * least + 34 * (n + 1) + 32 * max(least, k)
    cdef Py_ssize_t i, of_sides = <Py_ssize_t> rows * k * size
    cdef np.npy_int64 *found = <np.npy_int64 *> np.PyArray_DATA(ranks)
    cdef float single = rcond
    cdef void *limit = &single if size == 4 else <void *> &rcond
    cdef call13 gelsy = <call13> routine("gelsy", A.dtype.char)
    cdef call11 gels = <call11> routine("gels", A.dtype.char)
    cdef char *memory = <char *> room(batch.bytes + 2 * of_sides + <Py_ssize_t> lwork * size + n * sizeof(int))
    cdef char *sides = memory + batch.bytes
    cdef char *spare = sides + of_sides
    cdef char *work = spare + of_sides
    cdef int *pivots = <int *> (work + <Py_ssize_t> lwork * size)
    solution = empty_like(own, n, k)
    cdef char *out = <char *> np.PyArray_DATA(solution)
    with nogil:
        for i in range(batch.count):
            transpose_into(batch.data + i * batch.bytes, memory, m, n, size)
            columns_of(right.data + i * right.bytes, sides, spare, m, rows, k, size)
            if ranked:
                memset(pivots, 0, n * sizeof(int))
                gelsy(&m, &n, &k, memory, &m, sides, &rows, pivots, limit, &rank, work, &lwork, &info)
                found[i] = rank
            else:
                gels(<char *> "N", &m, &n, &k, memory, &m, sides, &rows, work, &lwork, &info)
            solutions_of(sides, out + i * n * k * size, n, rows, k, size)
    free(memory)
    return solution, ranks


cdef np.ndarray least_norm(A, B):
    """Return the least of the solutions of one wide system of full rank; None for what is left to LAPACK.

    With Q R of the adjoint it is Q times the solution of the triangular system of R's, many right sides at once.
    """
    cdef np.ndarray own = contiguous(A.T), R, Q, kept
    cdef int columns = last_size(own), i
    cdef np.npy_intp count = tp_tall_kept(np.PyArray_DIM(own, 0), columns)
    kept = new_array(own.descr, 1, &count, NULL)
    R = reduced(own, None, kept)
    if R is None or not R.diagonal().all():
        return None
    Q = new_array(own.descr, 2, np.PyArray_DIMS(own), NULL)
    expanded(kept, numpy.eye(columns, dtype=own.dtype), Q)
    sides = copied(B)
    for i in range(columns):
        if i:
            sides[i] -= R[:i, i] @ sides[:i]
        sides[i] /= R[i, i]
    return Q @ sides


def kernels(below):
    """Return the kernels by op; `below` gives the kernel beneath that of an op, for what these leave to it."""
    lstsq_below = below("linalg_lstsq")

    def solved(A, B, rcond, driver):
        cdef np.ndarray own = A
        if (
            driver not in ("gels", "gelsy") or not A.size or not B.size or not same_batch(A, 2, B, 2)
            or np.PyArray_TYPE(own) not in (np.NPY_FLOAT, np.NPY_DOUBLE)
        ):
            return lstsq_below(A, B, rcond, driver)
        solution, ranks = least_squares(A, B, rcond, driver == "gelsy")
        nothing = none_of(own)
        if driver == "gelsy":
            return solution, nothing, ranks, nothing
        residuals = nothing
        if is_tall(own):
            residuals = numpy.square(B - A @ solution).sum(-2)
        return solution, residuals, numpy.zeros((0,), numpy.int64), nothing

    def linalg_lstsq(A, B, rcond, driver):
        cdef np.ndarray both
        cdef int n = last_size(A), k = last_size(B)
        if driver == "gels" and k and is_very_tall(A.mT, 0) and (least := least_norm(A, B)) is not None:
            return least, none_of(A), numpy.zeros((0,), numpy.int64), none_of(A)
        if not k or k > TALL_COLUMNS or not is_very_tall(A, k):
            return solved(A, B, rcond, driver)
        both = reduced(contiguous(A), contiguous(B), None)
        if both is None:
            return solved(A, B, rcond, driver)
        # R of both has that of A, then Q^T B, and below it what no solution reaches.
        solution, residuals, ranks, values = solved(both[:n, :n], both[:n, n:], rcond, driver)
        if driver == "gels" or (driver != "gelsy" and bool((ranks == n).all())):
            residuals = numpy.square(both[n:, n:]).sum(0)
        return solution, residuals, ranks, values

    return {
        function.__name__: function
        for function in (
            linalg_lstsq,
        )
    }
