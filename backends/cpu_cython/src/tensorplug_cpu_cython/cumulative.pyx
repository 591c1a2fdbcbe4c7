"""Running sums, products, extremes and log-sum-exps."""

cimport numpy as np
from libc.stdint cimport int64_t

from . import pointwise

from .allocator cimport new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BF16, TP_F16, TP_F32, TP_F64, TP_I64, descriptors, type_of

np.import_array()

cdef extern from "c/cumulative.h":
    ctypedef void (*tp_cumulative)(
        const void *, void *, int64_t *, Py_ssize_t, Py_ssize_t, Py_ssize_t, int) noexcept nogil
    ctypedef struct tp_cumulatives:
        tp_cumulative sum[10]
        tp_cumulative product[10]
        tp_cumulative maximum[10]
        tp_cumulative minimum[10]
        tp_cumulative logarithm[10]
        void (*product_gradient[2])(
            const void *, const void *, const void *, void *, Py_ssize_t, Py_ssize_t, Py_ssize_t, int) noexcept nogil

cdef extern from *:
    """
    #define tp_cumulatives_of(level) TP_CHOOSE(tp_cumulative_table, level)
    """
    const tp_cumulatives *tp_cumulatives_of(int)

cdef const tp_cumulatives *kernels = tp_cumulatives_of(simd_level)

cdef enum:
    GRAIN = 16384, HOLD = 2048


cdef void around(np.ndarray array, int dim, Py_ssize_t *sizes) noexcept:
    """Find how many elements there are before a dimension, along it, and after it."""
    cdef int i
    sizes[0] = sizes[1] = sizes[2] = 1
    for i in range(np.PyArray_NDIM(array)):
        sizes[0 if i < dim else 1 if i == dim else 2] *= np.PyArray_DIM(array, i)


cdef object run(const tp_cumulative *functions, np.ndarray array, int dim, bint with_indices):
    cdef np.ndarray result, places = None
    cdef int number = type_of(array)
    cdef Py_ssize_t sizes[3]
    cdef Py_ssize_t total
    cdef int64_t *met = NULL
    if number == TP_F16 or number == TP_BF16:
        found = run(functions, pointwise.cast(array, descriptors[TP_F32]), dim, with_indices)
        if with_indices:
            return pointwise.cast(found[0], descriptors[number]), found[1]
        return pointwise.cast(found, descriptors[number])
    if not np.PyArray_IS_C_CONTIGUOUS(array):
        array = pointwise.clone(array)
    result = new_like(array, number)
    if with_indices:
        places = new_like(array, TP_I64)
        met = <int64_t *> np.PyArray_DATA(places)
    total = np.PyArray_SIZE(array)
    if total:
        around(array, dim, sizes)
        if total < HOLD:
            functions[number](np.PyArray_DATA(array), np.PyArray_DATA(result), met, sizes[0], sizes[1], sizes[2], 1)
        else:
            with nogil:
                functions[number](
                    np.PyArray_DATA(array), np.PyArray_DATA(result), met, sizes[0], sizes[1], sizes[2],
                    threads_for(total, GRAIN),
                )
    return (result, places) if with_indices else result


def cumsum(input, int dim):
    """Return the sums of each element and all before it along `dim`."""
    return run(kernels.sum, plain_array(input), dim, False)


def cumprod(input, int dim):
    """Return the products of each element and all before it along `dim`."""
    return run(kernels.product, plain_array(input), dim, False)


cdef np.ndarray contiguous(object value):
    cdef np.ndarray array = plain_array(value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


def cumprod_backward(grad, input, int dim, output):
    """Return the gradient of products along `dim` of an input, of which they are the output; float32 or float64."""
    cdef np.ndarray g = contiguous(grad), x = contiguous(input), products = contiguous(output), result
    cdef Py_ssize_t sizes[3]
    cdef int wide = type_of(x) == TP_F64
    result = new_like(x, type_of(x))
    around(x, dim, sizes)
    with nogil:
        kernels.product_gradient[wide](
            np.PyArray_DATA(g), np.PyArray_DATA(x), np.PyArray_DATA(products), np.PyArray_DATA(result),
            sizes[0], sizes[1], sizes[2], threads_for(np.PyArray_SIZE(x), GRAIN),
        )
    return result


def cummax(input, int dim):
    """Return the largest so far along `dim`, and where it was last met; NaN wins."""
    return run(kernels.maximum, plain_array(input), dim, True)


def cummin(input, int dim):
    """Return the smallest so far along `dim`, and where it was last met; NaN wins."""
    return run(kernels.minimum, plain_array(input), dim, True)


def logcumsumexp(input, int dim):
    """Return the logarithms of the cumulative sums of the exponentials along `dim`."""
    return run(kernels.logarithm, plain_array(input), dim, False)
