"""New arrays made of numbers."""

import numpy

cimport numpy as np
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from . import pointwise

from .allocator cimport new_array, plain_array
from .types cimport TP_I64, descriptors

np.import_array()


ctypedef fused floating:
    float
    double


cdef void spaced(floating *to, double start, double end, double gap, Py_ssize_t count) noexcept nogil:
    """Write evenly spaced numbers, the second half of which is counted back from the end."""
    cdef Py_ssize_t i, half = count // 2
    for i in range(half):
        to[i] = <floating> (i * gap + start)
    for i in range(half, count):
        to[i] = <floating> ((count - 1 - i) * -gap + end)


def linspace(start, end, Py_ssize_t count, np.dtype descriptor):
    """Return `count` evenly spaced numbers, of float or double."""
    cdef np.npy_intp shape[1]
    cdef np.ndarray result
    cdef double first = start, last = end, gap = (last - first) / (count - 1)
    shape[0] = count
    result = new_array(descriptor, 1, shape, NULL)
    with nogil:
        if np.PyArray_ITEMSIZE(result) == sizeof(float):
            spaced(<float *> np.PyArray_DATA(result), first, last, gap, count)
        else:
            spaced(<double *> np.PyArray_DATA(result), first, last, gap, count)
    return result


cdef dict _ones = {}


def eye(Py_ssize_t rows, Py_ssize_t columns, np.dtype descriptor):
    """Return a matrix with ones on the diagonal, else zeros, of any dtype."""
    cdef np.npy_intp shape[2]
    cdef np.ndarray result
    cdef np.ndarray one = _ones.get(descriptor)
    cdef const char *value
    cdef Py_ssize_t size, i
    cdef char *to
    if one is None:
        one = _ones[descriptor] = numpy.ones((), descriptor)
    value = <const char *> np.PyArray_DATA(one)
    size = np.PyArray_ITEMSIZE(one)
    shape[0], shape[1] = rows, columns
    result = new_array(descriptor, 2, shape, NULL)
    to = <char *> np.PyArray_DATA(result)
    memset(to, 0, np.PyArray_NBYTES(result))
    for i in range(min(rows, columns)):
        memcpy(to + i * (columns + 1) * size, value, size)
    return result


def one_hot(indices, Py_ssize_t classes):
    """Return rows with a one at the class and zeros elsewhere, for one class more than the largest if -1."""
    cdef np.ndarray array = plain_array(indices), result
    cdef Py_ssize_t count, i, least, most
    cdef int d, dims = np.PyArray_NDIM(array)
    cdef np.npy_intp shape[64]
    cdef const int64_t *x
    cdef int64_t *to
    if not np.PyArray_IS_C_CONTIGUOUS(array):
        array = pointwise.clone(array)
    count = np.PyArray_SIZE(array)
    x = <const int64_t *> np.PyArray_DATA(array)
    least = most = x[0]
    for i in range(count):
        least = min(least, x[i])
        most = max(most, x[i])
    if least < 0:
        raise RuntimeError("Class values must be non-negative.")
    if classes == -1:
        classes = most + 1
    elif most >= classes:
        raise RuntimeError(f"Class values must be smaller than num_classes. {most} is not below {classes}")
    for d in range(dims):
        shape[d] = np.PyArray_DIM(array, d)
    shape[dims] = classes
    result = new_array(<np.dtype> descriptors[TP_I64], dims + 1, shape, NULL)
    to = <int64_t *> np.PyArray_DATA(result)
    memset(to, 0, np.PyArray_NBYTES(result))
    for i in range(count):
        to[i * classes + x[i]] = 1
    return result
