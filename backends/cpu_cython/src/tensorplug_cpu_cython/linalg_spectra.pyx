"""Eigenvalues and singular values, with their vectors."""

import numpy

cimport numpy as np
from cython cimport floating
from libc.stdlib cimport free

from .allocator cimport new_array
from .linalg_lapack cimport (
    call11, call13, call14, call15, contiguous, copied, empty_like, is_nan, is_tall, last_size, matrices, matrices_of,
    per_matrix, room, routine, transpose_into
)
from .linalg_small cimport many_small, small_eigh, small_svd
from .linalg_tall cimport is_very_tall, very_tall_singular

np.import_array()


cdef tuple small_symmetric(A, str UPLO, bint vectors):
    """Return eigenvalues of many small matrices, and vectors if wanted; None for what is left to LAPACK."""
    cdef np.ndarray own, values, found = None
    if not many_small(A):
        return None
    own = contiguous(A)
    values = per_matrix(own, np.PyArray_TYPE(own), last_size(own))
    if vectors:
        found = empty_like(own, last_size(own), last_size(own))
    return (values, found) if small_eigh(own, values, found, UPLO == "U") else None


cdef tuple small_singular(A, str job):
    """Return U, S and V^H, or None, S and None, of many small matrices; None for what is left to LAPACK."""
    cdef np.ndarray own, values, U = None, Vh = None
    cdef int rows, columns, least
    if not many_small(A):
        return None
    own = contiguous(A)
    rows, columns = <int> np.PyArray_DIM(own, np.PyArray_NDIM(own) - 2), last_size(own)
    least = min(rows, columns)
    values = per_matrix(own, np.PyArray_TYPE(own), least)
    if job != "N":
        U = empty_like(own, rows, rows if job == "A" else least)
        Vh = empty_like(own, columns if job == "A" else least, columns)
    return (U, values, Vh) if small_svd(own, U, values, Vh) else None


cdef void put_together(
    const floating *real, const floating *imag, const floating *parts, floating *values, floating *vectors, int n
) noexcept nogil:
    """Write eigenvalues, and vectors unless that is NULL, as complex numbers; of a pair LAPACK gives the first's parts."""
    cdef Py_ssize_t i, j = 0
    cdef floating *to
    for i in range(n):
        values[2 * i], values[2 * i + 1] = real[i], imag[i]
    while vectors != NULL and j < n:
        if imag[j] == 0:
            for i in range(n):
                to = vectors + 2 * (i * n + j)
                to[0], to[1] = parts[j * n + i], 0
            j += 1
            continue
        for i in range(n):
            to = vectors + 2 * (i * n + j)
            to[0] = to[2] = parts[j * n + i]
            to[1] = parts[(j + 1) * n + i]
            to[3] = -to[1]
        j += 2


cdef tuple general(A, bint wanted):
    """Return complex eigenvalues, and the vectors or None; None where LAPACK failed."""
    cdef np.ndarray own = contiguous(A), values, vectors = None
    cdef matrices batch = matrices_of(own)
    cdef str letter = A.dtype.char
    cdef bint of_complex = letter in "FD", single = letter in "fF"
    cdef call14 geev = <call14> routine("geev", letter)
    cdef int n = batch.rows, size = np.PyArray_ITEMSIZE(own), info = 0, lwork = -1
    cdef int real = 4 if single else 8
    cdef Py_ssize_t k, number = 2 * real
    cdef char answer[16]
    cdef char *never = "N"
    cdef char *job = "V" if wanted else "N"
    values = per_matrix(own, np.NPY_CFLOAT if single else np.NPY_CDOUBLE, n)
    if wanted:
        vectors = new_array(<np.dtype> np.PyArray_DESCR(values), np.PyArray_NDIM(own), np.PyArray_DIMS(own), NULL)
    cdef char *w = <char *> np.PyArray_DATA(values)
    cdef char *v = <char *> np.PyArray_DATA(vectors) if wanted else NULL
    if of_complex:
        geev(never, job, &n, answer, &n, w, answer, &n, answer, &n, answer, &lwork, answer, &info)
    else:
        geev(never, job, &n, answer, &n, answer, answer, answer, &n, answer, &n, answer, &lwork, &info)
    lwork = <int> ((<float *> answer)[0] if single else (<double *> answer)[0]) + 1
    cdef char *matrix = <char *> room(2 * batch.bytes + 2 * n * real + <Py_ssize_t> lwork * size)
    cdef char *found = matrix + batch.bytes  # the vectors as columns
    cdef char *work = found + batch.bytes
    cdef char *parts = work + <Py_ssize_t> lwork * size  # of the values; room for as many reals, where they are complex
    with nogil:
        for k in range(batch.count):
            transpose_into(batch.data + k * batch.bytes, matrix, n, n, size)
            if of_complex:
                geev(never, job, &n, matrix, &n, w, found, &n, found, &n, work, &lwork, parts, &info)
            else:
                geev(
                    never, job, &n, matrix, &n, parts, parts + n * real, found, &n, found, &n, work, &lwork, &info)
            if info:
                break
            if of_complex:
                if wanted:
                    transpose_into(found, v, n, n, size)
            elif single:
                put_together[float](
                    <float *> parts, <float *> parts + n, <float *> found, <float *> w, <float *> v, n)
            else:
                put_together[double](
                    <double *> parts, <double *> parts + n, <double *> found, <double *> w, <double *> v, n)
            w += n * number
            if wanted:
                v += n * n * number
    free(matrix)
    return None if info else (values, vectors)


def kernels(below):
    """Return the kernels by op; `below` gives the kernel beneath that of an op, for what these leave to it."""
    eigh_below, eigvalsh_below = below("linalg_eigh"), below("linalg_eigvalsh")
    svd_below, svdvals_below = below("linalg_svd"), below("linalg_svdvals")
    eig_below, eigvals_below = below("linalg_eig"), below("linalg_eigvals")

    def linalg_eig(A):
        found = general(A, True) if A.size and numpy.isfinite(A).all() else None
        return eig_below(A) if found is None else found

    def linalg_eigvals(A):
        found = general(A, False) if A.size and numpy.isfinite(A).all() else None
        return eigvals_below(A) if found is None else found[0]

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
        found = small_symmetric(A, UPLO, True) or eigh(A, UPLO, True) if A.size else None
        return eigh_below(A, UPLO) if found is None else found

    def linalg_eigvalsh(A, UPLO):
        found = small_symmetric(A, UPLO, False) or eigh(A, UPLO, False) if A.size else None
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
        elif (small := small_singular(A, job)) is not None:
            return small
        elif not full_matrices and is_very_tall(A, 0) and (quick := very_tall_singular(A, svd, True)) is not None:
            return quick
        elif not full_matrices and is_very_tall(A.mT, 0) and (quick := very_tall_singular(A.mT, svd, True)) is not None:
            V, S, Uh = quick
            return copied(Uh.mT), S, copied(V.mT)
        elif not is_tall(A):
            found = svd(A, job)
        else:  # LAPACK is quicker with more rows than columns, as it sees them
            found = svd(A.mT, job)
            if found is not None:
                V, S, Uh = found
                found = copied(Uh.mT), S, copied(V.mT)
        return svd_below(A, full_matrices) if found is None else found

    def linalg_svdvals(A):
        if A.size and (small := small_singular(A, "N")) is not None:
            return small[1]
        higher = A if is_tall(A) else A.mT
        if is_very_tall(higher, 0) and (quick := very_tall_singular(higher, svd, False)) is not None:
            return quick[1]
        found = svd(higher.mT, "N") if A.size else None
        return svdvals_below(A) if found is None else found[1]

    return {
        function.__name__: function
        for function in (
            linalg_eig, linalg_eigvals, linalg_eigh, linalg_eigvalsh, linalg_svd, linalg_svdvals,
        )
    }
