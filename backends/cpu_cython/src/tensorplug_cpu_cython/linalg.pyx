"""Matrices of a batch, one after the other, by the LAPACK that SciPy brings: without Python between calls.

LAPACK wants columns where these arrays have rows. A routine for which a transposed matrix does as well gets the
memory as it is, others a transposed copy.
"""

import numpy

cimport numpy as np
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from .linalg_small cimport SMALL, small_cholesky, small_factor, small_solve, small_triangular

np.import_array()

ctypedef void (*call5)(void *, void *, void *, void *, void *) noexcept nogil
ctypedef void (*call6)(void *, void *, void *, void *, void *, void *) noexcept nogil
ctypedef void (*call7)(void *, void *, void *, void *, void *, void *, void *) noexcept nogil
ctypedef void (*call8)(void *, void *, void *, void *, void *, void *, void *, void *) noexcept nogil
ctypedef void (*call9)(void *, void *, void *, void *, void *, void *, void *, void *, void *) noexcept nogil
ctypedef void (*call11)(
    void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *
) noexcept nogil
ctypedef void (*call13)(
    void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *
) noexcept nogil
ctypedef void (*call14)(
    void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *
) noexcept nogil
ctypedef void (*call15)(
    void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
    void *,
) noexcept nogil

cdef dict _LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
cdef dict _FOUND = {}


cdef void *routine(str name, str letter) except NULL:
    """Return the address of a routine for a dtype, which has another name for complex ones."""
    key = (name, letter)
    capsule = _FOUND.get(key)
    if capsule is None:
        from scipy.linalg import cython_blas, cython_lapack

        complex_names = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd"}
        own = complex_names.get(name, name) if letter in "FD" else name
        full = _LETTERS[letter] + own
        capsule = _FOUND[key] = (cython_blas if own in ("trsm", "trsv") else cython_lapack).__pyx_capi__[full]
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


cdef struct matrices:
    # A batch of matrices.
    char *data
    int rows, columns
    Py_ssize_t count, bytes


cdef matrices matrices_of(np.ndarray array):
    cdef matrices found
    cdef int dims = np.PyArray_NDIM(array), d
    found.data = <char *> np.PyArray_DATA(array)
    found.rows = <int> np.PyArray_DIM(array, dims - 2)
    found.columns = <int> np.PyArray_DIM(array, dims - 1)
    found.count = 1
    for d in range(dims - 2):
        found.count *= np.PyArray_DIM(array, d)
    found.bytes = <Py_ssize_t> found.rows * found.columns * np.PyArray_ITEMSIZE(array)
    return found


cdef np.ndarray contiguous(object value):
    cdef np.ndarray array = value if np.PyArray_CheckExact(value) else numpy.asarray(value)
    return array if np.PyArray_ISCARRAY_RO(array) else np.PyArray_GETCONTIGUOUS(array)


cdef np.ndarray copied(object value):
    return np.PyArray_NewCopy(value if np.PyArray_CheckExact(value) else numpy.asarray(value), np.NPY_CORDER)


cdef np.ndarray empty_like(np.ndarray array, int rows, int columns):
    """Return a new array with matrices of another size."""
    cdef np.npy_intp shape[64]
    cdef int dims = np.PyArray_NDIM(array), d
    for d in range(dims - 2):
        shape[d] = np.PyArray_DIM(array, d)
    shape[dims - 2] = rows
    shape[dims - 1] = columns
    return np.PyArray_EMPTY(dims, shape, np.PyArray_TYPE(array), 0)


cdef np.ndarray zeros_like(np.ndarray array, int rows, int columns):
    """Return zeros in matrices of another size."""
    cdef np.ndarray result = empty_like(array, rows, columns)
    memset(np.PyArray_DATA(result), 0, np.PyArray_NBYTES(result))
    return result


cdef np.ndarray none_of(np.ndarray array):
    """Return a new array without elements."""
    cdef np.npy_intp nothing = 0
    return np.PyArray_EMPTY(1, &nothing, np.PyArray_TYPE(array), 0)


cdef inline void exchange_rows(int *order, int rows, const int *others, Py_ssize_t exchanges) noexcept nogil:
    """Write which row comes to stand in each place, after LAPACK's exchanges."""
    cdef int i, held
    for i in range(rows):
        order[i] = i
    for i in range(exchanges):
        held = order[i]
        order[i] = order[others[i] - 1]
        order[others[i] - 1] = held


cdef void permute(
    char *to, const int *others, int *order, int rows, Py_ssize_t exchanges, const char *one, Py_ssize_t size
) noexcept nogil:
    """Write ones into zeros, a permutation matrix: column i has its 1 in the row that came to be row i."""
    cdef int i
    exchange_rows(order, rows, others, exchanges)
    for i in range(rows):
        memcpy(to + (<Py_ssize_t> order[i] * rows + i) * size, one, size)


cdef void take_apart(
    const char *row, char *lower, char *upper, Py_ssize_t i, Py_ssize_t least, Py_ssize_t columns, const char *one,
    Py_ssize_t size
) noexcept nogil:
    """Write row i of two factors that lie in one matrix into zeros, the lower one's diagonal of ones as well."""
    memcpy(lower, row, min(i, least) * size)
    if i < least:
        memcpy(lower + i * size, one, size)
        memcpy(upper + i * size, row + i * size, (columns - i) * size)


cdef np.ndarray per_matrix(np.ndarray array, int type_number, Py_ssize_t length=-1):
    """Return zeros, one for each matrix of a batch, or as many as `length`."""
    cdef np.npy_intp shape[64]
    cdef int dims = np.PyArray_NDIM(array) - 2, d
    for d in range(dims):
        shape[d] = np.PyArray_DIM(array, d)
    if length >= 0:
        shape[dims] = length
        dims += 1
    return np.PyArray_ZEROS(dims, shape, type_number, 0)


cdef bint same_batch(np.ndarray one, int one_dims, np.ndarray other, int other_dims):
    """Return whether two arrays agree in batch but some last dimensions."""
    cdef int dims = np.PyArray_NDIM(one) - one_dims, d
    if dims != np.PyArray_NDIM(other) - other_dims:
        return False
    for d in range(dims):
        if np.PyArray_DIM(one, d) != np.PyArray_DIM(other, d):
            return False
    return True


cdef int last_size(np.ndarray array):
    return <int> np.PyArray_DIM(array, np.PyArray_NDIM(array) - 1)


ctypedef fused element:
    float
    double
    double complex


cdef void transposed(const element *source, element *target, Py_ssize_t rows, Py_ssize_t columns) noexcept nogil:
    """Write a transpose by tiles of 16, which the caches hold."""
    cdef Py_ssize_t i, j, first, other
    for first in range(0, columns, 16):
        for other in range(0, rows, 16):
            for j in range(first, min(first + 16, columns)):
                for i in range(other, min(other + 16, rows)):
                    target[j * rows + i] = source[i * columns + j]


cdef void transpose_into(const void *source, void *target, int rows, int columns, int itemsize) noexcept nogil:
    """Write the transpose of a matrix in C order."""
    if rows == 1 or columns == 1:
        memcpy(target, source, <size_t> rows * columns * itemsize)
    elif itemsize == 4:
        transposed(<const float *> source, <float *> target, rows, columns)
    elif itemsize == 8:
        transposed(<const double *> source, <double *> target, rows, columns)
    else:
        transposed(<const double complex *> source, <double complex *> target, rows, columns)


cdef void clear_above(char *matrix, int n, int itemsize) noexcept nogil:
    """Set what lies right of the diagonal to zero."""
    cdef Py_ssize_t i, j
    for i in range(n):
        for j in range((i * n + i + 1) * itemsize, (i + 1) * n * itemsize):
            matrix[j] = 0


cdef bint is_tall(np.ndarray array):
    """Return whether matrices have more rows than columns."""
    cdef int dims = np.PyArray_NDIM(array)
    return np.PyArray_DIM(array, dims - 2) > np.PyArray_DIM(array, dims - 1)


cdef void *room(Py_ssize_t bytes) except NULL:
    cdef void *memory = malloc(max(bytes, 16))
    if memory == NULL:
        raise MemoryError
    return memory


cdef bint is_nan(const char *number, bint single) noexcept:
    """Return whether a number, or the real part of one, is NaN."""
    cdef double value = (<const float *> number)[0] if single else (<const double *> number)[0]
    return value != value


cdef np.ndarray small_solved(A, np.ndarray result):
    """Overwrite right sides with solutions of small matrices, and return the first zero pivots."""
    cdef np.ndarray factors = copied(A), info = per_matrix(factors, np.NPY_INT32), pivots
    pivots = per_matrix(factors, np.NPY_INT32, last_size(factors))
    small_factor(factors, pivots, info)
    small_solve(factors, pivots, result)
    return info


cdef np.ndarray identities(np.ndarray A):
    """Return as many identities as there are matrices."""
    cdef np.ndarray result = np.PyArray_ZEROS(np.PyArray_NDIM(A), np.PyArray_DIMS(A), np.PyArray_TYPE(A), 0)
    cdef np.ndarray one = numpy.ones(1, A.dtype)
    cdef matrices batch = matrices_of(result)
    cdef int size = np.PyArray_ITEMSIZE(result), i
    cdef Py_ssize_t k
    for k in range(batch.count):
        for i in range(batch.rows):
            memcpy(batch.data + k * batch.bytes + i * (batch.rows + 1) * size, np.PyArray_DATA(one), size)
    return result


def kernels(below):
    """Return the kernels by op; `below` gives the kernel beneath that of an op, for what these leave to it."""
    cholesky_below, lu_below, lu_solve_below = (
        below("linalg_cholesky_ex"), below("linalg_lu_factor_ex"), below("linalg_lu_solve"))
    ldl_below, geqrf_below, product_below = (
        below("linalg_ldl_factor_ex"), below("geqrf"), below("linalg_householder_product"))
    ormqr_below, qr_below, triangular_below = below("ormqr"), below("linalg_qr"), below("linalg_solve_triangular")
    det_below, slogdet_below = below("linalg_det"), below("linalg_slogdet")
    solve_below, inverse_below, errors_below = (
        below("linalg_solve_ex"), below("linalg_inv_ex"), below("linalg_check_errors"))
    eigh_below, eigvalsh_below = below("linalg_eigh"), below("linalg_eigvalsh")
    svd_below, svdvals_below = below("linalg_svd"), below("linalg_svdvals")
    order_below, unpack_below = below("pivots_to_permutation"), below("lu_unpack")

    def linalg_cholesky_ex(A):
        cdef np.ndarray factor, info
        cdef matrices batch
        cdef call5 potrf
        cdef Py_ssize_t k
        cdef int n, size, d
        cdef str letter = A.dtype.char
        cdef bint single = letter in "fF"
        if not A.size:
            return cholesky_below(A)
        potrf = <call5> routine("potrf", letter)
        factor = copied(A)
        info = per_matrix(factor, np.NPY_INT32)
        batch = matrices_of(factor)
        n, size = batch.rows, np.PyArray_ITEMSIZE(factor)
        cdef int *failed = <int *> np.PyArray_DATA(info)
        if n <= SMALL:
            small_cholesky(factor, info)
        for k in range(batch.count):
            with nogil:  # our lower half is the upper one of the transpose, which has the same factor
                if n > SMALL:
                    potrf(<char *> "U", &n, batch.data + k * batch.bytes, &n, failed + k)
                    clear_above(batch.data + k * batch.bytes, n, size)
            if not failed[k]:
                for d in range(n):  # not every LAPACK notices a NaN
                    if is_nan(batch.data + k * batch.bytes + d * (n + 1) * size, single):
                        failed[k] = d + 1
                        break
        return factor, info

    def linalg_lu_factor_ex(A, pivot):
        cdef np.ndarray factors, pivots, info
        cdef matrices batch
        cdef call6 getrf
        cdef Py_ssize_t k
        cdef int m, n, least, size
        if not A.size or not pivot:
            return lu_below(A, pivot)
        getrf = <call6> routine("getrf", A.dtype.char)
        factors = copied(A)
        batch = matrices_of(factors)
        m, n, size = batch.rows, batch.columns, np.PyArray_ITEMSIZE(factors)
        least = min(m, n)
        info = per_matrix(factors, np.NPY_INT32)
        pivots = per_matrix(factors, np.NPY_INT32, least)
        cdef int *chosen = <int *> np.PyArray_DATA(pivots)
        if m <= SMALL and n <= SMALL:
            small_factor(factors, pivots, info)
            return factors, pivots, info
        cdef int *failed = <int *> np.PyArray_DATA(info)
        cdef char *matrix = <char *> room(batch.bytes)
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, m, n, size)
                getrf(&m, &n, matrix, &m, chosen + k * least, failed + k)
                transpose_into(matrix, batch.data + k * batch.bytes, n, m, size)
        free(matrix)
        return factors, pivots, info

    def linalg_lu_solve(LU, pivots, B, left, adjoint):
        cdef np.ndarray factors, chosen, result
        cdef matrices batch, right
        cdef call9 getrs
        cdef Py_ssize_t k
        cdef int n, columns, size, info, i
        if not (left and B.size and same_batch(LU, 2, B, 2) and same_batch(LU, 2, pivots, 1)):
            return lu_solve_below(LU, pivots, B, left, adjoint)
        chosen = contiguous(pivots)
        cdef const int *rows = <const int *> np.PyArray_DATA(chosen)
        factors, result = contiguous(LU), copied(B)
        batch, right = matrices_of(factors), matrices_of(result)
        n, columns, size = batch.rows, right.columns, np.PyArray_ITEMSIZE(factors)
        if np.PyArray_TYPE(chosen) != np.NPY_INT32:
            return lu_solve_below(LU, pivots, B, left, adjoint)
        for k in range(np.PyArray_SIZE(chosen)):
            if not 1 <= rows[k] <= n:  # LAPACK would exchange other memory
                return lu_solve_below(LU, pivots, B, left, adjoint)
        if n <= SMALL and not adjoint:
            small_solve(factors, chosen, result)
            return result
        getrs = <call9> routine("getrs", LU.dtype.char)
        cdef char *way = "C" if adjoint else "N"
        cdef char *matrix = <char *> room(batch.bytes + right.bytes)
        cdef char *sides = matrix + batch.bytes
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, n, n, size)
                transpose_into(right.data + k * right.bytes, sides, n, columns, size)
                getrs(way, &n, &columns, matrix, &n, <void *> (rows + k * n), sides, &n, &info)
                transpose_into(sides, right.data + k * right.bytes, columns, n, size)
        free(matrix)
        return result

    def solved(A, np.ndarray result, bint inverse):
        """Overwrite right sides with solutions, or `A` itself with the inverse; return whether one is singular."""
        cdef np.ndarray own = result if inverse else A.swapaxes(-1, -2)
        cdef bint turned = not inverse and np.PyArray_IS_C_CONTIGUOUS(own)  # as LAPACK wants it
        if not (inverse or turned):
            own = contiguous(A)
        cdef matrices batch = matrices_of(own), right = matrices_of(result)
        cdef str letter = A.dtype.char
        cdef call6 getrf = <call6> routine("getrf", letter)
        cdef call9 getrs = <call9> routine("getrs", letter)
        cdef call7 getri = <call7> routine("getri", letter)
        cdef int n = batch.rows, columns = right.columns, size = np.PyArray_ITEMSIZE(own), info = 0
        cdef int lwork = 32 * n
        cdef Py_ssize_t k
        cdef char *matrix = <char *> room(batch.bytes + n * 16 + (lwork * size if inverse else right.bytes))
        cdef int *pivots = <int *> (matrix + batch.bytes)
        cdef char *sides = matrix + batch.bytes + n * 16
        with nogil:
            for k in range(batch.count):
                if turned:
                    memcpy(matrix, batch.data + k * batch.bytes, batch.bytes)
                else:
                    transpose_into(batch.data + k * batch.bytes, matrix, n, n, size)
                getrf(&n, &n, matrix, &n, pivots, &info)
                if info:
                    break
                if inverse:
                    getri(&n, matrix, &n, pivots, sides, &lwork, &info)
                    transpose_into(matrix, batch.data + k * batch.bytes, n, n, size)
                else:
                    transpose_into(right.data + k * right.bytes, sides, n, columns, size)
                    getrs(<char *> "N", &n, &columns, matrix, &n, pivots, sides, &n, &info)
                    transpose_into(sides, right.data + k * right.bytes, columns, n, size)
        free(matrix)
        return info != 0

    def linalg_solve_ex(A, B):
        cdef np.ndarray result
        if not (B.size and same_batch(A, 2, B, 2)):
            return solve_below(A, B)
        result = copied(B)
        if last_size(A) <= SMALL:
            return result, small_solved(A, result)
        if solved(A, result, False):
            return solve_below(A, B)
        return result, per_matrix(result, np.NPY_INT32)

    def linalg_inv_ex(A):
        cdef np.ndarray result
        if not A.size:
            return inverse_below(A)
        if last_size(A) <= SMALL:
            result = identities(A)
            return result, small_solved(A, result)
        result = copied(A)
        if solved(A, result, True):
            return inverse_below(A)
        return result, per_matrix(result, np.NPY_INT32)

    def pivots_of(A):
        """Return what determinants are products of, in double precision, which holds the products."""
        cdef np.ndarray factors = copied(A), info = per_matrix(factors, np.NPY_INT32), chosen
        cdef matrices batch = matrices_of(factors)
        cdef call6 getrf
        cdef int n = batch.rows
        cdef Py_ssize_t k
        chosen = per_matrix(factors, np.NPY_INT32, n)
        cdef int *rows = <int *> np.PyArray_DATA(chosen)
        cdef int *failed = <int *> np.PyArray_DATA(info)
        if n <= SMALL:
            small_factor(factors, chosen, info)
        else:  # the transpose has the same
            getrf = <call6> routine("getrf", A.dtype.char)
            with nogil:
                for k in range(batch.count):
                    getrf(&n, &n, batch.data + k * batch.bytes, &n, rows + k * n, failed + k)
        found = numpy.diagonal(factors, axis1=-2, axis2=-1).astype("D" if A.dtype.kind == "c" else "d")
        swaps = chosen != numpy.arange(1, n + 1, dtype=numpy.int32)
        found[..., 0] *= 1 - 2 * (swaps.sum(-1) % 2)
        return found

    def few(A):
        """Return whether NumPy's call takes less than what comes after the factors here."""
        return not A.size or (A.ndim == 2 and last_size(A) < 32)

    def linalg_det(A):
        return det_below(A) if few(A) else pivots_of(A).prod(-1).astype(A.dtype)

    def linalg_slogdet(A):
        if few(A):
            return slogdet_below(A)
        found = pivots_of(A)
        with numpy.errstate(divide="ignore"):
            logarithm = numpy.log(numpy.abs(found)).sum(-1)
        return numpy.sign(found).prod(-1).astype(A.dtype), logarithm.astype(A.dtype.char.lower())

    def linalg_solve_triangular(A, B, upper, unitriangular):
        cdef np.ndarray factors, result
        cdef matrices batch, right
        cdef call11 trsm
        cdef call8 trsv
        cdef Py_ssize_t k
        cdef int n, columns, one_step = 1
        cdef bint turned
        cdef float one_single[2]
        cdef double one_double[2]
        if not (B.size and same_batch(A, 2, B, 2)):
            return triangular_below(A, B, upper, unitriangular)
        n = last_size(A)
        result = copied(B)
        if n <= SMALL:
            small_triangular(contiguous(A), result, upper, unitriangular)
            return result
        # BLAS sees the transpose of what lies in rows, and a transposed matrix as it is.
        factors = A.swapaxes(-1, -2)
        turned = np.PyArray_IS_C_CONTIGUOUS(factors)
        if not turned:
            factors = contiguous(A)
        batch, right = matrices_of(factors), matrices_of(result)
        columns = right.columns
        one_single[0], one_single[1] = 1, 0
        one_double[0], one_double[1] = 1, 0
        cdef void *one = <void *> one_single if A.dtype.char in "fF" else <void *> one_double
        cdef char *half = "U" if upper == turned else "L"
        cdef char *diagonal = "U" if unitriangular else "N"
        if columns == 1:
            trsv = <call8> routine("trsv", A.dtype.char)
            with nogil:
                for k in range(batch.count):
                    trsv(
                        half, <char *> "N" if turned else <char *> "T", diagonal, &n, batch.data + k * batch.bytes, &n,
                        right.data + k * right.bytes, &one_step,
                    )
            return result
        trsm = <call11> routine("trsm", A.dtype.char)
        with nogil:  # the transposes: X^T A^T = B^T
            for k in range(batch.count):
                trsm(
                    <char *> "R", half, <char *> "T" if turned else <char *> "N", diagonal, &columns, &n, one,
                    batch.data + k * batch.bytes, &n, right.data + k * right.bytes, &columns,
                )
        return result

    def linalg_ldl_factor_ex(A, hermitian):
        cdef np.ndarray factors, pivots, info
        cdef matrices batch
        cdef call8 sytrf
        cdef Py_ssize_t k
        cdef int n, size, lwork
        if not A.size:
            return ldl_below(A, hermitian)
        sytrf = <call8> routine("hetrf" if hermitian and A.dtype.kind == "c" else "sytrf", A.dtype.char)
        factors = copied(A)
        batch = matrices_of(factors)
        n, size = batch.rows, np.PyArray_ITEMSIZE(factors)
        lwork = 32 * n
        info = per_matrix(factors, np.NPY_INT32)
        pivots = per_matrix(factors, np.NPY_INT32, n)
        cdef int *chosen = <int *> np.PyArray_DATA(pivots)
        cdef int *failed = <int *> np.PyArray_DATA(info)
        cdef char *matrix = <char *> room(batch.bytes + lwork * size)
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, n, n, size)
                sytrf(
                    <char *> "L", &n, matrix, &n, chosen + k * n, matrix + batch.bytes, &lwork, failed + k,
                )
                transpose_into(matrix, batch.data + k * batch.bytes, n, n, size)
                clear_above(batch.data + k * batch.bytes, n, size)
        free(matrix)
        return factors, pivots, info

    def geqrf(A):
        cdef np.ndarray compact, tau
        cdef matrices batch
        cdef call8 factor
        cdef Py_ssize_t k
        cdef int m, n, least, size, lwork, info
        if not A.size:
            return geqrf_below(A)
        factor = <call8> routine("geqrf", A.dtype.char)
        compact = copied(A)
        batch = matrices_of(compact)
        m, n, size = batch.rows, batch.columns, np.PyArray_ITEMSIZE(compact)
        least, lwork = min(m, n), 32 * n
        tau = per_matrix(compact, np.PyArray_TYPE(compact), least)
        cdef char *factors = <char *> np.PyArray_DATA(tau)
        cdef char *matrix = <char *> room(batch.bytes + lwork * size)
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, m, n, size)
                factor(
                    &m, &n, matrix, &m, factors + k * least * size, matrix + batch.bytes, &lwork, &info,
                )
                transpose_into(matrix, batch.data + k * batch.bytes, n, m, size)
        free(matrix)
        return compact, tau

    def linalg_householder_product(A, tau):
        cdef np.ndarray result, factors
        cdef matrices batch
        cdef call9 orgqr
        cdef Py_ssize_t k
        cdef int m, n, reflectors, size, lwork, info
        if not (A.size and tau.size and same_batch(A, 2, tau, 1)):
            return product_below(A, tau)
        orgqr = <call9> routine("orgqr", A.dtype.char)
        result, factors = copied(A), contiguous(tau)
        batch = matrices_of(result)
        m, n, size = batch.rows, batch.columns, np.PyArray_ITEMSIZE(result)
        reflectors, lwork = last_size(factors), 32 * n
        cdef char *numbers = <char *> np.PyArray_DATA(factors)
        cdef char *matrix = <char *> room(batch.bytes + lwork * size)
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, m, n, size)
                orgqr(
                    &m, &n, &reflectors, matrix, &m, numbers + k * reflectors * size, matrix + batch.bytes, &lwork,
                    &info,
                )
                transpose_into(matrix, batch.data + k * batch.bytes, n, m, size)
        free(matrix)
        return result

    def ormqr(input, tau, other, left, transpose):
        cdef np.ndarray compact, factors, result
        cdef matrices batch, right
        cdef call13 multiply
        cdef Py_ssize_t k
        cdef int m, n, rows, reflectors, size, lwork, info
        if not (tau.size and other.size and same_batch(input, 2, tau, 1) and same_batch(input, 2, other, 2)):
            return ormqr_below(input, tau, other, left, transpose)
        multiply = <call13> routine("ormqr", input.dtype.char)
        compact, factors, result = contiguous(input), contiguous(tau), copied(other)
        batch, right = matrices_of(compact), matrices_of(result)
        rows, m, n, size = batch.rows, right.rows, right.columns, np.PyArray_ITEMSIZE(compact)
        reflectors, lwork = last_size(factors), 32 * max(m, n)
        cdef char *side = "L" if left else "R"
        cdef char *way = "N" if not transpose else "T" if input.dtype.kind == "f" else "C"
        cdef char *numbers = <char *> np.PyArray_DATA(factors)
        cdef char *matrix = <char *> room(batch.bytes + right.bytes + lwork * size)
        cdef char *sides = matrix + batch.bytes
        cdef char *work = sides + right.bytes
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, batch.rows, batch.columns, size)
                transpose_into(right.data + k * right.bytes, sides, m, n, size)
                multiply(
                    side, way, &m, &n, &reflectors, matrix, &rows, numbers + k * reflectors * size, sides, &m, work,
                    &lwork, &info,
                )
                transpose_into(sides, right.data + k * right.bytes, n, m, size)
        free(matrix)
        return result

    def linalg_qr(A, mode):
        cdef np.ndarray own, Q, R
        cdef matrices batch
        cdef call8 factor
        cdef call9 orgqr
        cdef Py_ssize_t k, i
        cdef int m, n, least, columns, size, lwork, info, j
        if not A.size:
            return qr_below(A, mode)
        factor, orgqr = <call8> routine("geqrf", A.dtype.char), <call9> routine("orgqr", A.dtype.char)
        own = contiguous(A)
        batch = matrices_of(own)
        m, n, size = batch.rows, batch.columns, np.PyArray_ITEMSIZE(own)
        least = min(m, n)
        columns = m if mode == "complete" else least
        lwork = 32 * max(n, columns)
        R = empty_like(own, columns, n)
        Q = empty_like(own, m, columns) if mode != "r" else numpy.empty((0,), A.dtype)
        cdef bint wanted = mode != "r"
        cdef char *q = <char *> np.PyArray_DATA(Q)
        cdef char *r = <char *> np.PyArray_DATA(R)
        cdef Py_ssize_t wide = max(n, columns)
        cdef char *matrix = <char *> room((m * wide + least + lwork + m * wide) * size)
        cdef char *rows = matrix + m * wide * size  # for R, which has at most m rows
        cdef char *tau = rows + m * wide * size
        cdef char *work = tau + least * size
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * batch.bytes, matrix, m, n, size)
                factor(&m, &n, matrix, &m, tau, work, &lwork, &info)
                transpose_into(matrix, rows, n, m, size)
                for i in range(columns):
                    memcpy(r, rows + i * n * size, n * size)
                    for j in range(<int> min(i, n) * size):
                        r[j] = 0
                    r += n * size
                if wanted:
                    orgqr(&m, &columns, &least, matrix, &m, tau, work, &lwork, &info)
                    transpose_into(matrix, q, columns, m, size)
                    q += <Py_ssize_t> m * columns * size
        free(matrix)
        return Q, R

    def eigh(A, UPLO, bint vectors):
        """Return eigenvalues, and the vectors if they are wanted; None where LAPACK failed."""
        cdef np.ndarray result = copied(A), values
        cdef matrices batch = matrices_of(result)
        cdef str letter = A.dtype.char
        cdef bint of_complex = letter in "FD", single = letter in "fF"
        cdef void *found = routine("syevd", letter)
        cdef int n = batch.rows, size = np.PyArray_ITEMSIZE(result), info = 0
        cdef int lwork = 2 * n + n * n if of_complex else 1 + 6 * n + 2 * n * n
        cdef int lrwork = 1 + 5 * n + 2 * n * n, liwork = 3 + 5 * n
        cdef int real = 4 if single else 8
        cdef Py_ssize_t k
        cdef char *job = "V" if vectors else "N"
        cdef char *half = "U" if UPLO == "U" else "L"
        values = per_matrix(result, np.NPY_FLOAT if single else np.NPY_DOUBLE, n)
        cdef char *numbers = <char *> np.PyArray_DATA(values)
        cdef Py_ssize_t bytes = batch.bytes
        cdef char *matrix = <char *> room(bytes + <Py_ssize_t> lwork * size + lrwork * real + liwork * 4 + 64)
        cdef char *work = matrix + bytes
        cdef char *rwork = work + <Py_ssize_t> lwork * size
        cdef char *iwork = rwork + (<Py_ssize_t> lrwork * real + 7) // 8 * 8
        with nogil:
            for k in range(batch.count):
                transpose_into(batch.data + k * bytes, matrix, n, n, size)
                if of_complex:
                    (<call13> found)(
                        job, half, &n, matrix, &n, numbers + k * n * real, work, &lwork, rwork, &lrwork, iwork,
                        &liwork, &info,
                    )
                else:
                    (<call11> found)(
                        job, half, &n, matrix, &n, numbers + k * n * real, work, &lwork, iwork, &liwork, &info,
                    )
                if info:
                    break
                if vectors:
                    transpose_into(matrix, batch.data + k * bytes, n, n, size)
        free(matrix)
        return None if info else (values, result)

    def linalg_eigh(A, UPLO):
        found = eigh(A, UPLO, True) if A.size else None
        return eigh_below(A, UPLO) if found is None else found

    def linalg_eigvalsh(A, UPLO):
        found = eigh(A, UPLO, False) if A.size else None
        return eigvalsh_below(A, UPLO) if found is None else found[0]

    def svd(A, str job):
        """Return U, S and V^H, or S alone; None where LAPACK failed.

        The memory holds A^T = conj(V) S U^T, so what LAPACK takes for U is V^H in C order, and the other way.
        """
        cdef np.ndarray own = copied(A), U, S, Vh
        cdef matrices batch = matrices_of(own)
        cdef str letter = A.dtype.char
        cdef bint of_complex = letter in "FD", single = letter in "fF"
        cdef void *found = routine("gesdd", letter)
        cdef int m = batch.rows, n = batch.columns, size = np.PyArray_ITEMSIZE(own), info = 0, asked = -1
        cdef int least = min(m, n), most = max(m, n), lwork, rows, columns
        cdef int real = 4 if single else 8
        cdef char answer[16]
        cdef char *way
        cdef Py_ssize_t k, u_bytes, v_bytes
        columns = m if job == "A" else least  # of U
        rows = n if job == "A" else least  # of V^H
        encoded = job.encode()
        way = encoded
        S = per_matrix(own, np.NPY_FLOAT if single else np.NPY_DOUBLE, least)
        if job == "N":
            U = Vh = own
        else:
            U, Vh = empty_like(own, m, columns), empty_like(own, rows, n)
        u_bytes, v_bytes = <Py_ssize_t> m * columns * size, <Py_ssize_t> rows * n * size
        cdef char *u = <char *> np.PyArray_DATA(U)
        cdef char *s = <char *> np.PyArray_DATA(S)
        cdef char *v = <char *> np.PyArray_DATA(Vh)
        if of_complex:
            (<call15> found)(
                way, &n, &m, batch.data, &n, s, v, &n, u, &columns, answer, &asked, answer, answer, &info)
        else:
            (<call14> found)(way, &n, &m, batch.data, &n, s, v, &n, u, &columns, answer, &asked, answer, &info)
        lwork = <int> ((<float *> answer)[0] if single else (<double *> answer)[0]) + 1
        cdef Py_ssize_t of_reals = least * max(5 * least + 7, 2 * most + 2 * least + 1)
        cdef char *work = <char *> room(<Py_ssize_t> lwork * size + of_reals * real + 8 * least * 4 + 64)
        cdef char *rwork = work + <Py_ssize_t> lwork * size
        cdef char *iwork = rwork + (of_reals * real + 7) // 8 * 8
        with nogil:
            for k in range(batch.count):
                if of_complex:
                    (<call15> found)(
                        way, &n, &m, batch.data + k * batch.bytes, &n, s + k * least * real, v + k * v_bytes, &n,
                        u + k * u_bytes, &columns, work, &lwork, rwork, iwork, &info,
                    )
                else:
                    (<call14> found)(
                        way, &n, &m, batch.data + k * batch.bytes, &n, s + k * least * real, v + k * v_bytes, &n,
                        u + k * u_bytes, &columns, work, &lwork, iwork, &info,
                    )
                if info:
                    break
        free(work)
        if info:
            return None
        for k in range(batch.count):  # some LAPACKs return NaN where others fail; it is in the largest
            if is_nan(s + k * least * real, single):
                return None
        return U, S, Vh

    def linalg_svd(A, full_matrices):
        job = "A" if full_matrices else "S"
        if not A.size:
            found = None
        elif not is_tall(A):
            found = svd(A, job)
        else:  # LAPACK is quicker with more rows than columns, as it sees them
            found = svd(A.mT, job)
            if found is not None:
                V, S, Uh = found
                found = copied(Uh.mT), S, copied(V.mT)
        return svd_below(A, full_matrices) if found is None else found

    def linalg_svdvals(A):
        found = svd(A.mT if is_tall(A) else A, "N") if A.size else None
        return svdvals_below(A) if found is None else found[1]

    def linalg_check_errors(info, name, what):
        cdef np.ndarray numbers = contiguous(info)
        cdef const int *each = <const int *> np.PyArray_DATA(numbers)
        cdef Py_ssize_t k
        if np.PyArray_TYPE(numbers) != np.NPY_INT32:
            return errors_below(info, name, what)
        for k in range(np.PyArray_SIZE(numbers)):
            if each[k]:
                return errors_below(info, name, what)
        return np.PyArray_NewCopy(numbers, np.NPY_CORDER)

    def lu_unpack(LU, pivots, bint data, bint exchanges):
        cdef np.ndarray packed, chosen, permutation, lower, upper, ones
        cdef matrices batch
        cdef Py_ssize_t k, least, size
        cdef int i
        packed, chosen = contiguous(LU), contiguous(pivots)
        batch = matrices_of(packed)
        least, size = min(batch.rows, batch.columns), np.PyArray_ITEMSIZE(packed)
        cdef const int *others = <const int *> np.PyArray_DATA(chosen)
        if not np.PyArray_SIZE(packed) or exchanges and not (
            np.PyArray_TYPE(chosen) == np.NPY_INT32 and same_batch(packed, 2, chosen, 1) and last_size(chosen) == least
        ):
            return unpack_below(LU, pivots, data, exchanges)
        permutation = lower = upper = none_of(packed)
        ones = numpy.ones(1, packed.dtype)
        cdef const char *one = <const char *> np.PyArray_DATA(ones)
        if exchanges:
            for k in range(np.PyArray_SIZE(chosen)):
                if not 1 <= others[k] <= batch.rows:
                    return unpack_below(LU, pivots, data, exchanges)
            permutation = zeros_like(packed, batch.rows, batch.rows)
            order = <int *> room(batch.rows * sizeof(int))
            for k in range(batch.count):
                permute(
                    <char *> np.PyArray_DATA(permutation) + k * batch.rows * batch.rows * size, others + k * least,
                    order, batch.rows, least, one, size,
                )
            free(order)
        if data:
            lower, upper = zeros_like(packed, batch.rows, least), zeros_like(packed, least, batch.columns)
            for k in range(batch.count):
                for i in range(batch.rows):
                    take_apart(
                        batch.data + k * batch.bytes + i * batch.columns * size,
                        <char *> np.PyArray_DATA(lower) + (k * batch.rows + i) * least * size,
                        <char *> np.PyArray_DATA(upper) + (k * least + i) * batch.columns * size,
                        i, least, batch.columns, one, size,
                    )
        return permutation, lower, upper

    def pivots_to_permutation(pivots, Py_ssize_t m):
        cdef np.ndarray chosen = contiguous(pivots), order
        cdef const int *others = <const int *> np.PyArray_DATA(chosen)
        cdef int dims = np.PyArray_NDIM(chosen), d
        cdef Py_ssize_t length, count, k
        cdef np.npy_intp shape[64]
        if np.PyArray_TYPE(chosen) != np.NPY_INT32 or not np.PyArray_SIZE(chosen):
            return order_below(pivots, m)
        length = np.PyArray_DIM(chosen, dims - 1)
        count = np.PyArray_SIZE(chosen) // length
        for k in range(np.PyArray_SIZE(chosen)):
            if not 1 <= others[k] <= m:
                return order_below(pivots, m)
        for d in range(dims):
            shape[d] = np.PyArray_DIM(chosen, d)
        shape[dims - 1] = m
        order = np.PyArray_EMPTY(dims, shape, np.NPY_INT32, 0)
        cdef int *rows = <int *> np.PyArray_DATA(order)
        for k in range(count):
            exchange_rows(rows, <int> m, others, length)
            rows += m
            others += length
        return order

    return {
        function.__name__: function
        for function in (
            linalg_cholesky_ex, linalg_lu_factor_ex, linalg_lu_solve, linalg_solve_ex, linalg_inv_ex,
            linalg_det, linalg_slogdet, linalg_solve_triangular, linalg_ldl_factor_ex, geqrf, linalg_householder_product, ormqr, linalg_qr,
            linalg_eigh, linalg_eigvalsh, linalg_svd, linalg_svdvals, linalg_check_errors, pivots_to_permutation, lu_unpack,
        )
    }
