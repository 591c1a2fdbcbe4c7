"""Batch normalisation of floating-point arrays (N, C, *), in rows or channels last, without copies of either."""

cimport numpy as np

from . import pointwise

from .layouts cimport CHANNELS_LAST, OTHER, ROWS, dense, laid_out, layout_of
from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BF16, TP_F16, TP_F32, descriptors, type_of

np.import_array()

cdef extern from "c/normalization_batch.h":
    ctypedef struct tp_images:
        Py_ssize_t samples, channels, positions
        int channels_last, threads
        double *workspace
    ctypedef struct tp_batch_forward:
        const void *x
        const void *weight
        const void *bias
        void *y
        void *mean
        void *rstd
        double eps
    ctypedef struct tp_batch_backward:
        const void *g
        const void *g_mean
        const void *g_rstd
        const void *x
        const void *weight
        const void *mean
        const void *rstd
        void *g_x
        void *g_weight
        void *g_bias
    ctypedef struct tp_batch_kernels:
        void (*forward[2])(const tp_images *, const tp_batch_forward *) noexcept nogil
        void (*backward[2])(const tp_images *, const tp_batch_backward *) noexcept nogil

cdef extern from *:
    """
    #define tp_batch_kernels_of(level) TP_CHOOSE(tp_batch_table, level)
    """
    const tp_batch_kernels *tp_batch_kernels_of(int)

cdef const tp_batch_kernels *kernels = tp_batch_kernels_of(simd_level)

cdef enum:
    GRAIN = 16384

cdef np.dtype DOUBLE = descriptors[1]


cdef np.ndarray begin(tp_images *s, np.ndarray x, int layout):
    """Say how images lie; return the array that holds the workspace."""
    cdef Py_ssize_t total = np.PyArray_SIZE(x)
    cdef np.npy_intp room
    cdef np.ndarray workspace
    s.samples = np.PyArray_DIM(x, 0)
    s.channels = np.PyArray_DIM(x, 1)
    s.positions = total // (s.samples * s.channels)
    # Rows of single elements are rows of channels as well, and those are longer.
    s.channels_last = layout == CHANNELS_LAST or s.positions == 1
    s.threads = threads_for(total, GRAIN)
    room = (3 * s.threads + 3) * s.channels
    workspace = new_array(DOUBLE, 1, &room, NULL)
    s.workspace = <double *> np.PyArray_DATA(workspace)
    return workspace


cdef np.ndarray numbers(object value):
    """Return one number per channel, without gaps."""
    cdef np.ndarray array = plain_array(value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef np.ndarray per_channel(np.ndarray x):
    return new_array(<np.dtype> descriptors[type_of(x)], 1, np.PyArray_DIMS(x) + 1, NULL)


cdef np.ndarray like(np.ndarray x, int layout):
    return laid_out(<np.dtype> descriptors[type_of(x)], np.PyArray_NDIM(x), np.PyArray_DIMS(x), layout)


cdef bint is_half(np.ndarray array) noexcept:
    cdef int number = type_of(array)
    return number == TP_F16 or number == TP_BF16


def narrowed(results, np.dtype to):
    """Return results in half precision."""
    return tuple([pointwise.cast(result, to) for result in results])


def batch_normalize(inputs, double eps):
    """Return images standardised per channel, times a weight plus a bias; the means; 1 / the deviations."""
    cdef int layout
    cdef np.ndarray x = plain_array(inputs[0]), weight, bias, y, mean, rstd, workspace
    cdef tp_images s
    cdef tp_batch_forward f
    cdef int wide
    if is_half(x):
        return narrowed(
            batch_normalize([pointwise.cast(array, descriptors[TP_F32]) for array in inputs], eps), x.dtype
        )
    x = dense(x, &layout)
    weight, bias = numbers(inputs[1]), numbers(inputs[2])
    y, mean, rstd = like(x, layout), per_channel(x), per_channel(x)
    if not np.PyArray_SIZE(x):
        mean[...] = float("nan")
        rstd[...] = float("nan")
        return y, mean, rstd
    workspace = begin(&s, x, layout)
    wide = type_of(x) != TP_F32
    f.x, f.weight, f.bias = np.PyArray_DATA(x), np.PyArray_DATA(weight), np.PyArray_DATA(bias)
    f.y, f.mean, f.rstd = np.PyArray_DATA(y), np.PyArray_DATA(mean), np.PyArray_DATA(rstd)
    f.eps = eps
    with nogil:
        kernels.forward[wide](&s, &f)
    return y, mean, rstd


def batch_normalize_backward(g_output, g_mean, g_rstd, input, weight, mean, rstd):
    """Return the gradients of the images, the weight and the bias."""
    cdef int layout
    cdef np.ndarray x = plain_array(input), g, g_m, g_r, w, m, r, g_x, g_weight, g_bias, workspace
    cdef tp_images s
    cdef tp_batch_backward k
    cdef int wide
    if is_half(x):
        arrays = (g_output, g_mean, g_rstd, x, weight, mean, rstd)
        return narrowed(
            batch_normalize_backward(*[pointwise.cast(array, descriptors[TP_F32]) for array in arrays]), x.dtype
        )
    x = dense(x, &layout)
    g = plain_array(g_output)
    if layout_of(g) != layout:
        g_x = like(x, layout)
        pointwise.copy(g_x, g, g_x)
        g = g_x
    g_m, g_r, w, m, r = numbers(g_mean), numbers(g_rstd), numbers(weight), numbers(mean), numbers(rstd)
    g_x, g_weight, g_bias = like(x, layout), per_channel(x), per_channel(x)
    if not np.PyArray_SIZE(x):
        g_weight[...] = 0
        g_bias[...] = 0
        return g_x, g_weight, g_bias
    workspace = begin(&s, x, layout)
    wide = type_of(x) != TP_F32
    k.g, k.x = np.PyArray_DATA(g), np.PyArray_DATA(x)
    k.g_mean, k.g_rstd = np.PyArray_DATA(g_m), np.PyArray_DATA(g_r)
    k.weight, k.mean, k.rstd = np.PyArray_DATA(w), np.PyArray_DATA(m), np.PyArray_DATA(r)
    k.g_x, k.g_weight, k.g_bias = np.PyArray_DATA(g_x), np.PyArray_DATA(g_weight), np.PyArray_DATA(g_bias)
    with nogil:
        kernels.backward[wide](&s, &k)
    return g_x, g_weight, g_bias
