"""Matrix products and linear layers by oneDNN."""

import numpy

cimport numpy as np
from libc.stdint cimport int64_t

from .machine cimport TP_F32, descriptors, new_array, plain_array, threads_for

np.import_array()

cdef extern from "c/onednn.h":
    ctypedef struct tp_sgemm:
        int transposed_a, transposed_b
        int64_t m, n, k, lda, ldb
        const float *bias
    ctypedef struct tp_sgemm_batch:
        int dims
        Py_ssize_t shape[64]
        Py_ssize_t strides_a[64]
        Py_ssize_t strides_b[64]
    int tp_dnn_sgemm(const tp_sgemm *, const float *, const float *, float *, int) noexcept nogil
    int tp_dnn_sgemm_batch(
        const tp_sgemm *, const tp_sgemm_batch *, const float *, const float *, float *, int
    ) noexcept nogil

# Below so many multiplications the interpreter's lock is kept, or one thread does the work.
cdef double HOLD = 1e5
cdef double SERIAL = 1e6


cdef int all_threads() noexcept:
    return threads_for(1 << 40, 1)


cdef bint lies(np.ndarray array, int *transposed, int64_t *ld) noexcept:
    """Say how the matrices in the last two dimensions lie; False if they have to be copied."""
    cdef int dims = np.PyArray_NDIM(array)
    cdef int64_t rows = np.PyArray_DIM(array, dims - 2), columns = np.PyArray_DIM(array, dims - 1)
    cdef int64_t down = np.PyArray_STRIDE(array, dims - 2) // 4, along = np.PyArray_STRIDE(array, dims - 1) // 4
    if along == 1 or columns == 1:
        transposed[0] = 0
        ld[0] = columns if rows == 1 else down
        if ld[0] >= columns and (columns > 1 or along >= 1):
            return True
    if down == 1 or rows == 1:
        transposed[0] = 1
        ld[0] = rows if columns == 1 else along
        return ld[0] >= rows
    return False


cdef int run_product(tp_sgemm *g, np.ndarray a, np.ndarray b, np.ndarray c) except -1:
    cdef double flops = <double> g.m * g.n * g.k
    cdef int threads = all_threads() if flops > SERIAL else 1, failed
    cdef float *x = <float *> np.PyArray_DATA(a)
    cdef float *y = <float *> np.PyArray_DATA(b)
    cdef float *z = <float *> np.PyArray_DATA(c)
    if flops < HOLD:
        failed = tp_dnn_sgemm(g, x, y, z, threads)
    else:
        with nogil:
            failed = tp_dnn_sgemm(g, x, y, z, threads)
    if failed:
        raise RuntimeError("oneDNN's sgemm failed")
    return 0


cdef np.ndarray product(np.ndarray a, np.ndarray b, bint flip, const float *bias):
    """Return the product of two matrices, the second transposed if `flip`; plus the bias in each row."""
    cdef tp_sgemm g
    cdef np.npy_intp shape[2]
    cdef np.ndarray c
    if not lies(a, &g.transposed_a, &g.lda):
        a = numpy.ascontiguousarray(a)
        lies(a, &g.transposed_a, &g.lda)
    if not lies(b, &g.transposed_b, &g.ldb):
        b = numpy.ascontiguousarray(b)
        lies(b, &g.transposed_b, &g.ldb)
    g.bias = bias
    g.m = shape[0] = np.PyArray_DIM(a, 0)
    g.k = np.PyArray_DIM(a, 1)
    g.n = shape[1] = np.PyArray_DIM(b, 0 if flip else 1)
    if flip:
        g.transposed_b = not g.transposed_b
    if g.k != np.PyArray_DIM(b, 1 if flip else 0):
        raise ValueError(f"matmul: {list((<object> a).shape)} and {list((<object> b).shape)} do not fit")
    c = new_array(<np.dtype> descriptors[TP_F32], 2, shape, NULL)
    if g.m and g.n:
        if g.k:
            run_product(&g, a, b, c)
        else:
            c[...] = 0
    return c


cdef np.ndarray batches(np.ndarray a, np.ndarray b):
    """Return the products of matrices in batches that broadcast."""
    cdef tp_sgemm g
    cdef tp_sgemm_batch s
    cdef np.npy_intp shape[64]
    cdef int left = np.PyArray_NDIM(a) - 2, right = np.PyArray_NDIM(b) - 2, i, j, threads, failed
    cdef int64_t m, n
    cdef double flops
    cdef np.ndarray c
    cdef float *x
    cdef float *y
    cdef float *z
    if not lies(a, &g.transposed_a, &g.lda):
        a = numpy.ascontiguousarray(a)
        lies(a, &g.transposed_a, &g.lda)
    if not lies(b, &g.transposed_b, &g.ldb):
        b = numpy.ascontiguousarray(b)
        lies(b, &g.transposed_b, &g.ldb)
    s.dims = max(left, right)
    for i in range(s.dims):
        s.shape[i] = 1
        s.strides_a[i] = s.strides_b[i] = 0
        j = i - (s.dims - left)
        if j >= 0 and np.PyArray_DIM(a, j) != 1:
            s.shape[i] = np.PyArray_DIM(a, j)
            s.strides_a[i] = np.PyArray_STRIDE(a, j) // 4
        j = i - (s.dims - right)
        if j >= 0 and np.PyArray_DIM(b, j) != 1:
            s.shape[i] = np.PyArray_DIM(b, j)
            s.strides_b[i] = np.PyArray_STRIDE(b, j) // 4
        shape[i] = s.shape[i]
    g.bias = NULL
    g.m = shape[s.dims] = np.PyArray_DIM(a, left)
    g.k = np.PyArray_DIM(a, left + 1)
    g.n = shape[s.dims + 1] = np.PyArray_DIM(b, right + 1)
    c = new_array(<np.dtype> descriptors[TP_F32], s.dims + 2, shape, NULL)
    if not np.PyArray_SIZE(c):
        return c
    if not g.k:
        c[...] = 0
        return c
    x = <float *> np.PyArray_DATA(a)
    y = <float *> np.PyArray_DATA(b)
    z = <float *> np.PyArray_DATA(c)
    flops = <double> np.PyArray_SIZE(c) * g.k
    threads = all_threads() if flops > SERIAL else 1
    with nogil:
        failed = tp_dnn_sgemm_batch(&g, &s, x, y, z, threads)
    if failed:
        raise RuntimeError("oneDNN's sgemm failed")
    return c


cdef np.ndarray rows_of(np.ndarray array):
    """Return (..., k) as a matrix."""
    cdef np.npy_intp last = np.PyArray_DIM(array, np.PyArray_NDIM(array) - 1)
    return array.reshape((np.PyArray_SIZE(array) // last if last else -1, last))


def matmul(input, other):
    """Return the matrix product of two float32 arrays."""
    cdef np.ndarray a = plain_array(input), b = plain_array(other)
    cdef int left = np.PyArray_NDIM(a), right = np.PyArray_NDIM(b)
    if left == 2 and right == 2:
        return product(a, b, False, NULL)
    if right == 1:
        if left == 1:
            return product(a.reshape(1, -1), b.reshape(-1, 1), False, NULL).reshape(())
        if left == 2:
            return product(a, b.reshape(-1, 1), False, NULL).reshape(-1)
        return matmul(a, b.reshape(-1, 1)).reshape((<object> a).shape[:-1])
    if left == 1:
        return matmul(a.reshape(1, -1), b).reshape((<object> b).shape[:-2] + (<object> b).shape[-1:])
    if right == 2 and np.PyArray_IS_C_CONTIGUOUS(a) and np.PyArray_DIM(a, left - 1):
        return product(rows_of(a), b, False, NULL).reshape(
            (<object> a).shape[:-1] + (<object> b).shape[1:]
        )
    return batches(a, b)


def linear(input, weight, bias):
    """Return ``input @ weight.T + bias`` of float32 arrays."""
    cdef np.ndarray a = plain_array(input), b = plain_array(weight), c, c_bias
    cdef int dims = np.PyArray_NDIM(a)
    cdef const float *start = NULL
    if np.PyArray_NDIM(b) != 2 or not dims or not np.PyArray_DIM(b, 1):
        c = plain_array(matmul(a, b if np.PyArray_NDIM(b) == 1 else b.T))
        return c if bias is None else numpy.asarray(c + bias)
    if bias is not None:
        c_bias = numpy.ascontiguousarray(bias)
        if np.PyArray_NDIM(c_bias) != 1 or np.PyArray_DIM(c_bias, 0) != np.PyArray_DIM(b, 0):
            c_bias = numpy.ascontiguousarray(numpy.broadcast_to(c_bias, (np.PyArray_DIM(b, 0),)))
        start = <const float *> np.PyArray_DATA(c_bias)
    if dims == 2:
        return product(a, b, True, start)
    return product(rows_of(a), b, True, start).reshape((<object> a).shape[:-1] + (<object> b).shape[:1])
