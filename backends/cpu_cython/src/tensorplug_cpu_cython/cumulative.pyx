"""Running sums, products, extremes and log-sum-exps."""

import numpy

cimport numpy as np
from libc.stdint cimport int64_t

from . import pointwise

from .allocator cimport new_array, new_like, plain_array
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
        tp_cumulative pair_sum[2]
        tp_cumulative pair_product[2]
        tp_cumulative pair_logarithm[2]
        tp_cumulative pair_total[2]
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


cdef np.ndarray contiguous(object value):
    cdef np.ndarray array = plain_array(value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef void call(tp_cumulative function, np.ndarray array, np.ndarray result, Py_ssize_t *sizes) noexcept:
    cdef Py_ssize_t total = np.PyArray_SIZE(array)
    with nogil:
        function(
            np.PyArray_DATA(array), np.PyArray_DATA(result), NULL, sizes[0], sizes[1], sizes[2],
            threads_for(total, GRAIN) if total >= HOLD else 1,
        )


cdef object run_pairs(const tp_cumulative *functions, object input, int dim):
    """Run a kernel of complex numbers, for which the arrays are contiguous."""
    cdef np.ndarray array = contiguous(input), result
    cdef Py_ssize_t sizes[3]
    result = new_array(array.descr, np.PyArray_NDIM(array), np.PyArray_DIMS(array), NULL)
    if np.PyArray_SIZE(array):
        around(array, dim, sizes)
        call(functions[np.PyArray_ITEMSIZE(array) == 16], array, result, sizes)
    return result


def cumsum(input, int dim):
    """Return the sums of each element and all before it along `dim`."""
    if np.PyArray_ISCOMPLEX(plain_array(input)):
        return run_pairs(kernels.pair_sum, input, dim)
    return run(kernels.sum, plain_array(input), dim, False)


def cumprod(input, int dim):
    """Return the products of each element and all before it along `dim`."""
    if np.PyArray_ISCOMPLEX(plain_array(input)):
        return run_pairs(kernels.pair_product, input, dim)
    return run(kernels.product, plain_array(input), dim, False)


def complex_prod(input, tuple dim, bint keepdim):
    """Return the products of complex numbers over the dimensions `dim`."""
    cdef np.ndarray array = plain_array(input), result
    cdef int dims = np.PyArray_NDIM(array), i, out_dims = 0, found = 0
    cdef bint is_reduced[64]
    cdef np.npy_intp shape[64]
    cdef Py_ssize_t sizes[3]
    for i in range(dims):
        is_reduced[i] = False
    for d in dim:
        is_reduced[<int> d] = True
    sizes[0] = sizes[1] = sizes[2] = 1
    for i in range(dims):
        # Those that are reduced are one behind the other, or come to lie so.
        if is_reduced[i]:
            found = max(found, 1)
            if found == 2:
                break
            sizes[1] *= np.PyArray_DIM(array, i)
        else:
            if found:
                found = 2
            sizes[2 if found else 0] *= np.PyArray_DIM(array, i)
        if keepdim or not is_reduced[i]:
            shape[out_dims] = 1 if is_reduced[i] else np.PyArray_DIM(array, i)
            out_dims += 1
    else:
        array = contiguous(array)
        result = new_array(array.descr, out_dims, shape, NULL)
        if np.PyArray_SIZE(result):
            call(kernels.pair_total[np.PyArray_ITEMSIZE(array) == 16], array, result, sizes)
        return result
    kept = [i for i in range(dims) if not is_reduced[i]]
    moved = complex_prod(input.transpose([*kept, *dim]), tuple(range(len(kept), dims)), False)
    return moved.reshape([1 if is_reduced[i] else input.shape[i] for i in range(dims)]) if keepdim else moved


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


cdef bint is_tame(np.ndarray array) noexcept:
    """Return whether complex numbers are finite and their angles can be reduced by products with parts of pi."""
    cdef Py_ssize_t i, n = np.PyArray_SIZE(array)
    cdef const float *single = <float *> np.PyArray_DATA(array)
    cdef const double *wide = <double *> np.PyArray_DATA(array)
    cdef bint found = True
    if np.PyArray_ITEMSIZE(array) == 8:
        for i in range(n):
            found &= (single[2 * i] - single[2 * i] == 0) & (-1e6 < single[2 * i + 1]) & (single[2 * i + 1] < 1e6)
    else:
        for i in range(n):
            found &= (wide[2 * i] - wide[2 * i] == 0) & (-1e6 < wide[2 * i + 1]) & (wide[2 * i + 1] < 1e6)
    return found


def complex_logcumsumexp(below):
    """Return the kernel of complex numbers; `below` takes those that are not finite, or huge."""

    def logcumsumexp(input, int dim):
        cdef np.ndarray rows
        if not input.ndim:
            return below(input, dim)
        rows = contiguous(input.swapaxes(dim, -1))
        if not is_tame(rows):
            return below(input, dim)
        found = run_pairs(kernels.pair_logarithm, rows, input.ndim - 1)
        return contiguous(found.swapaxes(dim, -1))

    return logcumsumexp


def logcumsumexp(input, int dim):
    """Return the logarithms of the cumulative sums of the exponentials along `dim`."""
    return run(kernels.logarithm, plain_array(input), dim, False)
