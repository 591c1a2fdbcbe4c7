"""Convolutions of float32 images that lie in rows, each channel by itself; None for all others."""

cimport numpy as np
from libc.limits cimport INT_MAX
from libc.string cimport memset

from .layouts cimport ROWS, dense
from .allocator cimport new_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_F32, TP_U8, descriptors, type_of
from .convolution_sizes cimport window_positions

np.import_array()

cdef extern from "c/convolution_depthwise.h":
    enum:
        TP_DEPTHWISE_SIDE
    ctypedef struct tp_depthwise:
        Py_ssize_t samples, channels
        Py_ssize_t size[2]
        Py_ssize_t where[2]
        Py_ssize_t kernel[2]
        Py_ssize_t stride[2]
        Py_ssize_t before[2]
        Py_ssize_t dilation[2]
        int threads
    ctypedef struct tp_depthwise_kernels:
        Py_ssize_t (*space)(const tp_depthwise *) noexcept nogil
        void (*forward)(
            const tp_depthwise *, const float *, const float *, const float *, float *, float *
        ) noexcept nogil
        void (*input)(const tp_depthwise *, const float *, const float *, float *, float *) noexcept nogil
        void (*weight)(const tp_depthwise *, const float *, const float *, float *, float *) noexcept nogil

cdef extern from *:
    """
    #define tp_depthwise_kernels_of(level) TP_CHOOSE(tp_depthwise_table, level)
    """
    const tp_depthwise_kernels *tp_depthwise_kernels_of(int)

cdef const tp_depthwise_kernels *kernels = tp_depthwise_kernels_of(simd_level)

cdef enum:
    GRAIN = 16384  # results


cdef bint fill(
    tp_depthwise *p, int count, const np.npy_intp *image, const np.npy_intp *where, const np.npy_intp *window,
    tuple stride, tuple padding, tuple dilation,
):
    """Describe a problem by the shapes of its arrays; return whether the kernels can do it."""
    cdef int i, at
    cdef Py_ssize_t results = 1
    memset(p, 0, sizeof(tp_depthwise))
    p.samples, p.channels = image[0], image[1]
    if not 1 <= count <= 2 or not p.samples or not p.channels:
        return False
    p.size[0] = p.where[0] = p.kernel[0] = p.stride[0] = p.dilation[0] = 1
    for i in range(count):
        at = 2 - count + i
        p.size[at], p.where[at], p.kernel[at] = image[i + 2], where[i + 2], window[i + 2]
        p.stride[at], p.before[at], p.dilation[at] = stride[i], padding[i], dilation[i]
        if not (0 < p.size[at] < INT_MAX // 2 and 0 < p.where[at] < INT_MAX // 2):
            return False
        if not 0 < p.kernel[at] <= TP_DEPTHWISE_SIDE:
            return False
        results *= p.where[at]
    p.threads = threads_for(p.samples * p.channels * results, GRAIN)
    return True


cdef np.ndarray space(const tp_depthwise *p):
    cdef np.npy_intp size = kernels.space(p) * p.threads * sizeof(float)
    return new_array(<np.dtype> descriptors[TP_U8], 1, &size, NULL)


cdef np.ndarray by_channel(object value, object groups, int at):
    """Return an array in rows if it has as many channels, in dimension `at`, as there are groups; else None."""
    cdef int layout
    cdef np.ndarray array
    if not isinstance(value, np.ndarray) or type_of(value) != TP_F32 or np.PyArray_NDIM(value) <= at:
        return None
    array = dense(value, &layout)
    return array if layout == ROWS and np.PyArray_DIM(array, at) == <Py_ssize_t> groups else None


def convolution(input, weight, bias, tuple stride, tuple padding, tuple dilation, groups):
    """Return the cross-correlation of each channel with its window."""
    cdef np.ndarray x = by_channel(input, groups, 1), w = by_channel(weight, groups, 0), y, b, work
    cdef np.npy_intp shape[64]
    cdef int dims
    cdef tp_depthwise p
    cdef const float *start = NULL
    if x is None or w is None or 0 in stride:
        return None
    dims = np.PyArray_NDIM(x)
    shape[0], shape[1] = np.PyArray_DIM(x, 0), np.PyArray_DIM(x, 1)
    window_positions(shape, x, w, stride, padding, dilation)
    if not fill(&p, dims - 2, np.PyArray_DIMS(x), shape, np.PyArray_DIMS(w), stride, padding, dilation):
        return None
    if bias is not None:
        b = np.PyArray_GETCONTIGUOUS(bias)
        start = <const float *> np.PyArray_DATA(b)
    y = new_array(<np.dtype> descriptors[TP_F32], dims, shape, NULL)
    work = space(&p)
    with nogil:
        kernels.forward(
            &p, <float *> np.PyArray_DATA(x), <float *> np.PyArray_DATA(w), start, <float *> np.PyArray_DATA(y),
            <float *> np.PyArray_DATA(work),
        )
    return y


def convolution_input(gradient, weight, size, tuple stride, tuple padding, tuple dilation, groups):
    """Return the adjoint with respect to the input."""
    cdef np.ndarray g = by_channel(gradient, groups, 1), w = by_channel(weight, groups, 0), x, work
    cdef np.npy_intp shape[64]
    cdef int dims, i
    cdef tp_depthwise p
    if g is None or w is None or np.PyArray_DIM(w, 1) != 1:
        return None
    dims = np.PyArray_NDIM(g)
    shape[0], shape[1] = np.PyArray_DIM(g, 0), np.PyArray_DIM(g, 1)
    for i in range(2, dims):
        shape[i] = size[i - 2]
    if not fill(&p, dims - 2, shape, np.PyArray_DIMS(g), np.PyArray_DIMS(w), stride, padding, dilation):
        return None
    x = new_array(<np.dtype> descriptors[TP_F32], dims, shape, NULL)
    work = space(&p)
    with nogil:
        kernels.input(
            &p, <float *> np.PyArray_DATA(g), <float *> np.PyArray_DATA(w), <float *> np.PyArray_DATA(x),
            <float *> np.PyArray_DATA(work),
        )
    return x


def convolution_weight(input, gradient, kernel, tuple stride, tuple padding, tuple dilation, groups):
    """Return the adjoint with respect to the weight."""
    cdef np.ndarray x = by_channel(input, groups, 1), g = by_channel(gradient, groups, 1), w, work
    cdef np.npy_intp shape[64]
    cdef int dims, i
    cdef tp_depthwise p
    if x is None or g is None:
        return None
    dims = np.PyArray_NDIM(x)
    shape[0], shape[1] = np.PyArray_DIM(g, 1), 1
    for i in range(2, dims):
        shape[i] = kernel[i - 2]
    if not fill(&p, dims - 2, np.PyArray_DIMS(x), np.PyArray_DIMS(g), shape, stride, padding, dilation):
        return None
    w = new_array(<np.dtype> descriptors[TP_F32], dims, shape, NULL)
    work = space(&p)
    with nogil:
        kernels.weight(
            &p, <float *> np.PyArray_DATA(x), <float *> np.PyArray_DATA(g), <float *> np.PyArray_DATA(w),
            <float *> np.PyArray_DATA(work),
        )
    return w
