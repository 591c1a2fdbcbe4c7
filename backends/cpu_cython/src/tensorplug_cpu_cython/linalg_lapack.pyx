"""Matrices of a batch, one after the other, by the LAPACK that SciPy brings: without Python between calls.

LAPACK wants columns where these arrays have rows. A routine for which a transposed matrix does as well gets the
memory as it is, others a transposed copy.
"""

import numpy
from tensorplug.plugin import renew_thread_limit

cimport numpy as np
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.stdlib cimport malloc
from libc.string cimport memcpy, memset

from .allocator cimport new_array

np.import_array()

cdef dict _LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
cdef dict _FOUND = {}


cdef void *routine(str name, str letter) except NULL:
    """Return the address of a routine for a dtype, which has another name for complex ones."""
    key = (name, letter)
    capsule = _FOUND.get(key)
    if capsule is None:
        from scipy.linalg import cython_blas, cython_lapack

        if not _FOUND:
            renew_thread_limit("cpu")  # SciPy brings a BLAS of its own
        complex_names = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd"}
        own = complex_names.get(name, name) if letter in "FD" else name
        full = _LETTERS[letter] + own
        capsule = _FOUND[key] = (cython_blas if own in ("trsm", "trsv") else cython_lapack).__pyx_capi__[full]
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


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
    cdef np.ndarray array = value if np.PyArray_CheckExact(value) else numpy.asarray(value)
    cdef np.ndarray result = new_array(<np.dtype> np.PyArray_DESCR(array), np.PyArray_NDIM(array), np.PyArray_DIMS(array), NULL)
    np.PyArray_CopyInto(result, array)
    return result


cdef np.ndarray empty_like(np.ndarray array, int rows, int columns):
    """Return a new array with matrices of another size."""
    cdef np.npy_intp shape[64]
    cdef int dims = np.PyArray_NDIM(array), d
    for d in range(dims - 2):
        shape[d] = np.PyArray_DIM(array, d)
    shape[dims - 2] = rows
    shape[dims - 1] = columns
    return new_array(<np.dtype> np.PyArray_DESCR(array), dims, shape, NULL)


cdef np.ndarray zeros_like(np.ndarray array, int rows, int columns):
    """Return zeros in matrices of another size."""
    cdef np.ndarray result = empty_like(array, rows, columns)
    memset(np.PyArray_DATA(result), 0, np.PyArray_NBYTES(result))
    return result


cdef np.ndarray none_of(np.ndarray array):
    """Return a new array without elements."""
    cdef np.npy_intp nothing = 0
    return np.PyArray_EMPTY(1, &nothing, np.PyArray_TYPE(array), 0)


cdef void exchange_rows(int *order, int rows, const int *others, Py_ssize_t exchanges) noexcept nogil:
    """Write which row comes to stand in each place, after LAPACK's exchanges."""
    cdef int i, held
    for i in range(rows):
        order[i] = i
    for i in range(exchanges):
        held = order[i]
        order[i] = order[others[i] - 1]
        order[others[i] - 1] = held


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


cdef np.ndarray order_of(np.ndarray pivots, int rows):
    """Return which row comes to stand in each place, after the exchanges of one matrix."""
    cdef np.npy_intp count = rows
    cdef np.ndarray order = np.PyArray_EMPTY(1, &count, np.NPY_INT32, 0)
    exchange_rows(
        <int *> np.PyArray_DATA(order), rows, <const int *> np.PyArray_DATA(pivots), np.PyArray_SIZE(pivots))
    return order
