"""Softmax and its kin, of floating-point arrays."""

import numpy

cimport numpy as np

from . import pointwise

from .allocator cimport new_array, new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BF16, TP_F16, TP_F32, TP_F64, descriptors, type_of

np.import_array()

cdef extern from "c/softmax.h":
    ctypedef void (*tp_softmax)(
        const void *, const void *, void *, Py_ssize_t, Py_ssize_t, Py_ssize_t, int) noexcept nogil
    ctypedef struct tp_softmax_kernels:
        tp_softmax softmax[2]
        tp_softmax log_softmax[2]
        tp_softmax softmax_gradient[2]
        tp_softmax log_softmax_gradient[2]
        tp_softmax logsumexp[2]

cdef extern from *:
    """
    #define tp_softmax_kernels_of(level) TP_CHOOSE(tp_softmax_table, level)
    """
    const tp_softmax_kernels *tp_softmax_kernels_of(int)

cdef const tp_softmax_kernels *kernels = tp_softmax_kernels_of(simd_level)

cdef enum:
    GRAIN = 16384, HOLD = 2048


cdef np.ndarray contiguous(object value):
    cdef np.ndarray array = plain_array(value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef bint is_half(np.ndarray array) noexcept:
    cdef int number = type_of(array)
    return number == TP_F16 or number == TP_BF16


def through_float32(function, arrays, *rest):
    """Return what a kernel makes of half-precision arrays, computed in float32."""
    wide = descriptors[TP_F32]
    result = function(*[pointwise.cast(array, wide) for array in arrays], *rest)
    return pointwise.cast(result, arrays[0].dtype)


cdef np.ndarray along_rows(const tp_softmax *functions, np.ndarray a, np.ndarray b, int dim):
    cdef np.ndarray result = new_like(a, type_of(a))
    cdef Py_ssize_t before = 1, n = 1, after = 1, total = np.PyArray_SIZE(a)
    cdef int i
    cdef tp_softmax function = functions[0 if type_of(a) == TP_F32 else 1]
    for i in range(np.PyArray_NDIM(a)):
        if i < dim:
            before *= np.PyArray_DIM(a, i)
        elif i == dim:
            n = np.PyArray_DIM(a, i)
        else:
            after *= np.PyArray_DIM(a, i)
    if not total:
        return result
    if total < HOLD:
        function(np.PyArray_DATA(a), np.PyArray_DATA(b), np.PyArray_DATA(result), before, n, after, 1)
    else:
        with nogil:
            function(
                np.PyArray_DATA(a), np.PyArray_DATA(b), np.PyArray_DATA(result), before, n, after,
                threads_for(total, GRAIN),
            )
    return result


def softmax(input, int dim):
    """Return the exponentials along `dim`, divided by their sum."""
    cdef np.ndarray array = contiguous(input)
    if is_half(array):
        return through_float32(softmax, (array,), dim)
    return along_rows(kernels.softmax, array, array, dim)


def log_softmax(input, int dim):
    """Return the logarithm of the softmax along `dim`."""
    cdef np.ndarray array = contiguous(input)
    if is_half(array):
        return through_float32(log_softmax, (array,), dim)
    return along_rows(kernels.log_softmax, array, array, dim)


def softmax_gradient(g, result, int dim):
    """Return the gradient of softmax's input."""
    cdef np.ndarray a = contiguous(g), b = contiguous(result)
    if is_half(a):
        return through_float32(softmax_gradient, (a, b), dim)
    return along_rows(kernels.softmax_gradient, a, b, dim)


def log_softmax_gradient(g, result, int dim):
    """Return the gradient of log_softmax's input."""
    cdef np.ndarray a = contiguous(g), b = contiguous(result)
    if is_half(a):
        return through_float32(log_softmax_gradient, (a, b), dim)
    return along_rows(kernels.log_softmax_gradient, a, b, dim)


def logsumexp(input, dim, bint keepdim):
    """Return the logarithm of the sum of the exponentials over `dim`."""
    cdef np.ndarray array = plain_array(input), result
    cdef int i, dims = np.PyArray_NDIM(array), state = 0, out = 0
    cdef bint reduced
    cdef Py_ssize_t before = 1, n = 1, after = 1, size
    cdef np.npy_intp shape[64]
    cdef tp_softmax function
    if is_half(array):
        return through_float32(logsumexp, (array,), dim, keepdim)
    for i in range(dims):
        size = np.PyArray_DIM(array, i)
        reduced = i in dim
        if not reduced or keepdim:
            shape[out] = 1 if reduced else size
            out += 1
        if reduced:
            n *= size
            if state == 2 and size != 1:
                state = 3
            elif state == 0:
                state = 1
        elif state:
            after *= size
            if size != 1:
                state = 2 if state < 3 else 3
        else:
            before *= size
    if state == 3:  # what is reduced does not lie together
        array = array.transpose([i for i in range(dims) if i not in dim] + list(dim))
        before, after = before * after, 1
    array = contiguous(array)
    result = new_array(<np.dtype> descriptors[type_of(array)], out, shape, NULL)
    if not n:
        result[...] = -numpy.inf
    elif before * after:
        function = kernels.logsumexp[type_of(array) != TP_F32]
        with nogil:
            function(
                np.PyArray_DATA(array), NULL, np.PyArray_DATA(result), before, n, after,
                threads_for(before * n * after, GRAIN),
            )
    return result
