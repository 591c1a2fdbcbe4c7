"""Scaled dot-product attention, forward and backward, of float32 arrays."""

import numpy

cimport numpy as np

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .onednn cimport raise_status
from .types cimport TP_F32, descriptors

np.import_array()

cdef extern from "c/attention.h":
    ctypedef int (*tp_gemm)(
        int, int, Py_ssize_t, Py_ssize_t, Py_ssize_t, float, const float *, Py_ssize_t, const float *,
        Py_ssize_t, float, float *, Py_ssize_t) noexcept nogil
    enum:
        TP_HEAD_DIMS
    ctypedef struct tp_head_rows:
        float *data
        Py_ssize_t row
        Py_ssize_t heads[8]
    ctypedef struct tp_attention:
        int dims
        Py_ssize_t shape[8]
        Py_ssize_t length, source, size, value_size
        tp_head_rows query, key, value, output, g_output, g_query, g_key, g_value
        float *logsumexp
        const float *g_logsumexp
        const float *added
        const unsigned char *allowed
        Py_ssize_t mask_heads[8]
        Py_ssize_t mask_row, mask_column
        int causal
        float scale
        tp_gemm gemm
    ctypedef struct tp_attention_kernels:
        Py_ssize_t (*workspace)(const tp_attention *, int) noexcept nogil
        int (*forward)(const tp_attention *, float *, int) noexcept nogil
        int (*backward)(const tp_attention *, float *, int) noexcept nogil

cdef extern from "c/onednn.h":
    int tp_dnn_gemm(
        int, int, Py_ssize_t, Py_ssize_t, Py_ssize_t, float, const float *, Py_ssize_t, const float *,
        Py_ssize_t, float, float *, Py_ssize_t) noexcept nogil

cdef extern from *:
    """
    #define tp_attention_of(level) TP_CHOOSE(tp_attention_table, level)
    """
    const tp_attention_kernels *tp_attention_of(int)

cdef const tp_attention_kernels *kernels = tp_attention_of(simd_level)

cdef np.dtype FLOAT = <np.dtype> descriptors[TP_F32]


cdef np.ndarray with_rows(object value):
    """Return an array of rows that lie apart by at least their length, each without gaps."""
    cdef np.ndarray array = plain_array(value)
    cdef int dims = np.PyArray_NDIM(array)
    cdef bint right = (
        (np.PyArray_DIM(array, dims - 1) == 1 or np.PyArray_STRIDE(array, dims - 1) == 4)
        and (np.PyArray_DIM(array, dims - 2) == 1
             or np.PyArray_STRIDE(array, dims - 2) >= 4 * np.PyArray_DIM(array, dims - 1))
    )
    return array if right else numpy.ascontiguousarray(array)


cdef void place(tp_head_rows *rows, np.ndarray array) noexcept:
    cdef int dims = np.PyArray_NDIM(array), i
    rows.data = <float *> np.PyArray_DATA(array)
    rows.row = np.PyArray_STRIDE(array, dims - 2) // 4
    if np.PyArray_DIM(array, dims - 2) == 1:
        rows.row = np.PyArray_DIM(array, dims - 1)
    for i in range(dims - 2):
        rows.heads[i] = np.PyArray_STRIDE(array, i) // 4


cdef np.ndarray new_rows(np.ndarray like, Py_ssize_t length, Py_ssize_t size):
    """Return an array of (*batch, length, size), with the heads of a position beside each other."""
    cdef int dims = np.PyArray_NDIM(like), i
    cdef np.npy_intp shape[10]
    cdef np.npy_intp strides[10]
    for i in range(dims - 2):
        shape[i] = np.PyArray_DIM(like, i)
    shape[dims - 2] = length
    shape[dims - 1] = size
    if dims != 4:
        return new_array(FLOAT, dims, shape, NULL)
    strides[3] = 4
    strides[1] = 4 * size
    strides[2] = strides[1] * shape[1]
    strides[0] = strides[2] * length
    return new_array(FLOAT, dims, shape, strides)


cdef object fill(tp_attention *a, np.ndarray q, np.ndarray k, np.ndarray v, object mask, bint causal, double scale):
    """Describe the problem; return what has to be kept alive."""
    cdef int dims = np.PyArray_NDIM(q), i, lead
    cdef np.ndarray m
    cdef object kept = None
    a.dims = dims - 2
    for i in range(dims - 2):
        a.shape[i] = np.PyArray_DIM(q, i)
        a.mask_heads[i] = 0
    a.length = np.PyArray_DIM(q, dims - 2)
    a.source = np.PyArray_DIM(k, dims - 2)
    a.size = np.PyArray_DIM(q, dims - 1)
    a.value_size = np.PyArray_DIM(v, dims - 1)
    place(&a.query, q)
    place(&a.key, k)
    place(&a.value, v)
    a.causal = causal
    a.scale = scale
    a.gemm = tp_dnn_gemm
    a.added = NULL
    a.allowed = NULL
    a.mask_row = a.mask_column = 0
    if mask is not None:
        kept = numpy.broadcast_to(plain_array(mask), (*[a.shape[i] for i in range(a.dims)], a.length, a.source))
        m = kept
        lead = np.PyArray_ITEMSIZE(m)
        if lead == 1:
            a.allowed = <unsigned char *> np.PyArray_DATA(m)
        else:
            a.added = <float *> np.PyArray_DATA(m)
        for i in range(dims - 2):
            a.mask_heads[i] = np.PyArray_STRIDE(m, i) // lead
        a.mask_row = np.PyArray_STRIDE(m, dims - 2) // lead
        a.mask_column = np.PyArray_STRIDE(m, dims - 1) // lead
    return kept


cdef int run(const tp_attention *a, np.ndarray like, bint backward) except -1:
    cdef double work = <double> np.PyArray_SIZE(like) * a.source
    cdef int threads = threads_for(<Py_ssize_t> work, 200000), failed
    cdef Py_ssize_t heads = 1
    cdef int i
    cdef np.npy_intp size
    cdef np.ndarray space
    cdef float *memory
    for i in range(a.dims):
        heads *= a.shape[i]
    if backward and threads > heads:
        threads = <int> heads
    size = kernels.workspace(a, backward) * threads
    space = new_array(FLOAT, 1, &size, NULL)
    memory = <float *> np.PyArray_DATA(space)
    with nogil:
        if backward:
            failed = kernels.backward(a, memory, threads)
        else:
            failed = kernels.forward(a, memory, threads)
    if failed:
        raise_status(failed, "sgemm, for attention")
    return 0


def attention(inputs, mask, bint is_causal, double scale):
    """Return the attended values and the logarithms of the softmax's divisors."""
    cdef np.ndarray q = with_rows(inputs[0]), k = with_rows(inputs[1]), v = with_rows(inputs[2]), output, total
    cdef tp_attention a
    cdef object kept = fill(&a, q, k, v, mask, is_causal, scale)
    output = new_rows(q, a.length, a.value_size)
    total = new_array(FLOAT, np.PyArray_NDIM(q) - 1, np.PyArray_DIMS(q), NULL)
    place(&a.output, output)
    a.logsumexp = <float *> np.PyArray_DATA(total)
    if np.PyArray_SIZE(total):
        run(&a, q, False)
    return output, total


def attention_backward(g_output, g_logsumexp, inputs, mask, output, logsumexp, bint is_causal, double scale):
    """Return the gradients of query, key and value."""
    cdef np.ndarray q = with_rows(inputs[0]), k = with_rows(inputs[1]), v = with_rows(inputs[2])
    cdef np.ndarray g = with_rows(g_output), o = with_rows(output), g_q, g_k, g_v
    cdef np.ndarray total = numpy.ascontiguousarray(logsumexp), g_total = numpy.ascontiguousarray(g_logsumexp)
    cdef tp_attention a
    cdef object kept = fill(&a, q, k, v, mask, is_causal, scale)
    g_q = new_rows(q, a.length, a.size)
    g_k = new_rows(q, a.source, a.size)
    g_v = new_rows(q, a.source, a.value_size)
    place(&a.output, o)
    place(&a.g_output, g)
    place(&a.g_query, g_q)
    place(&a.g_key, g_k)
    place(&a.g_value, g_v)
    a.logsumexp = <float *> np.PyArray_DATA(total)
    a.g_logsumexp = <float *> np.PyArray_DATA(g_total)
    if np.PyArray_SIZE(k):
        if np.PyArray_SIZE(total):
            run(&a, q, True)
        else:
            g_k[...] = 0
            g_v[...] = 0
    return g_q, g_k, g_v
