"""Convolutions of float32 images of few channels by wide windows; None for all others.

oneDNN has no layout for these but with AVX-512, and takes them as products of matrices, which first spreads the images.
"""

cimport numpy as np
from libc.limits cimport INT_MAX
from libc.string cimport memset

from . import cpu_features

from .allocator cimport new_array
from .convolution_sizes cimport window_positions
from .cpu_features cimport simd_level, threads_for
from .layouts cimport ROWS, dense, laid_out
from .types cimport TP_F32, descriptors, type_of

np.import_array()

cdef extern from "c/convolution_few_channels.h":
    ctypedef struct tp_few:
        Py_ssize_t samples, channels, filters
        Py_ssize_t size[2]
        Py_ssize_t where[2]
        Py_ssize_t kernel[2]
        Py_ssize_t stride[2]
        Py_ssize_t before[2]
        Py_ssize_t dilation[2]
        Py_ssize_t image_channel, image_place, result_filter, result_place
        int threads
    ctypedef struct tp_few_kernels:
        Py_ssize_t (*space)(const tp_few *) noexcept nogil
        void (*run)(const tp_few *, const float *, const float *, const float *, float *, float *) noexcept nogil

cdef extern from *:
    """
    #define tp_few_kernels_of(level) TP_CHOOSE(tp_few_table, level)
    """
    const tp_few_kernels *tp_few_kernels_of(int)

cdef const tp_few_kernels *kernels = tp_few_kernels_of(simd_level)

cdef enum:
    # Where oneDNN has no layout: images of less channels by windows that are wider.
    CHANNELS = 8, WIDE = 7
    LEAST_CHANNELS = 2  # of one it has
    FILTERS = 8  # of less, most lanes of the vectors would be idle
    GRAIN = 65536  # products


def is_without_layout(shape):
    """Return whether oneDNN has no layout for weights (filters, channels, ...) of a shape on this processor."""
    return shape[1] < CHANNELS and max(shape[2:]) > WIDE and cpu_features.level() != "v4"


cdef bint fill(
    tp_few *p, int layout, np.ndarray x, np.ndarray w, const np.npy_intp *where, tuple stride, tuple padding,
    tuple dilation,
):
    """Describe a problem; return whether the kernel can do it."""
    cdef int count = np.PyArray_NDIM(x) - 2, i, at
    cdef Py_ssize_t places = 1, pixels = 1
    memset(p, 0, sizeof(tp_few))
    p.samples, p.channels, p.filters = np.PyArray_DIM(x, 0), np.PyArray_DIM(x, 1), np.PyArray_DIM(w, 0)
    if not 1 <= count <= 2 or not p.samples or not p.channels or p.channels != np.PyArray_DIM(w, 1):
        return False
    p.size[0] = p.where[0] = p.kernel[0] = p.stride[0] = p.dilation[0] = 1
    for i in range(count):
        at = 2 - count + i
        p.size[at], p.where[at], p.kernel[at] = np.PyArray_DIM(x, i + 2), where[i + 2], np.PyArray_DIM(w, i + 2)
        p.stride[at], p.before[at], p.dilation[at] = stride[i], padding[i], dilation[i]
        if not (0 < p.size[at] < INT_MAX // 2 and 0 < p.where[at] < INT_MAX // 2 and p.kernel[at]):
            return False
        places *= p.size[at]
        pixels *= p.where[at]
    if layout == ROWS:
        p.image_channel, p.image_place, p.result_filter, p.result_place = places, 1, pixels, 1
    else:
        p.image_channel, p.image_place, p.result_filter, p.result_place = 1, p.channels, 1, p.filters
    p.threads = threads_for(p.samples * pixels * np.PyArray_SIZE(w), GRAIN)
    return True


def convolution(input, weight, bias, tuple stride, tuple padding, tuple dilation, groups):
    """Return the cross-correlation; channels last where the input is."""
    cdef np.ndarray x, w = weight, y, b, work
    cdef np.npy_intp shape[64]
    cdef np.npy_intp size
    cdef int layout
    cdef tp_few p
    cdef const float *start = NULL
    if groups != 1 or 0 in stride or not is_without_layout((<object> w).shape):
        return None
    if np.PyArray_DIM(w, 0) < FILTERS or np.PyArray_DIM(w, 1) < LEAST_CHANNELS:
        return None
    x, w = dense(input, &layout), np.PyArray_GETCONTIGUOUS(w)
    if type_of(x) != TP_F32 or type_of(w) != TP_F32:
        return None
    shape[0], shape[1] = np.PyArray_DIM(x, 0), np.PyArray_DIM(w, 0)
    window_positions(shape, x, w, stride, padding, dilation)
    if not fill(&p, layout, x, w, shape, stride, padding, dilation):
        return None
    if bias is not None:
        b = np.PyArray_GETCONTIGUOUS(bias)
        if type_of(b) != TP_F32 or np.PyArray_SIZE(b) != p.filters:
            return None
        start = <const float *> np.PyArray_DATA(b)
    y = laid_out(<np.dtype> descriptors[TP_F32], np.PyArray_NDIM(x), shape, layout)
    size = kernels.space(&p)
    work = new_array(<np.dtype> descriptors[TP_F32], 1, &size, NULL)
    with nogil:
        kernels.run(
            &p, <float *> np.PyArray_DATA(x), <float *> np.PyArray_DATA(w), start, <float *> np.PyArray_DATA(y),
            <float *> np.PyArray_DATA(work),
        )
    return y
