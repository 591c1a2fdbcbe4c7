"""Batch normalisation of floating-point arrays (N, C, *), in rows or channels last, without copies of either."""

import numpy

cimport numpy as np
from libc.math cimport INFINITY

from . import pointwise

from .layouts cimport CHANNELS_LAST, OTHER, ROWS, dense, laid_out, layout_of
from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BF16, TP_F16, TP_F32, descriptors, type_of

np.import_array()

cdef extern from "c/normalization_batch.h":
    ctypedef struct tp_images:
        Py_ssize_t samples, channels, positions, columns
        int channels_last, threads
        double *workspace
    ctypedef struct tp_batch_forward:
        const void *x
        const void *weight
        const void *bias
        void *y
        void *mean
        void *rstd
        double eps, low, high
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
        void (*forward[4])(const tp_images *, const tp_batch_forward *) noexcept nogil
        void (*backward[4])(const tp_images *, const tp_batch_backward *) noexcept nogil
        void (*by_statistics[4])(const tp_images *, const tp_batch_forward *) noexcept nogil

cdef extern from *:
    """
    #define tp_batch_kernels_of(level) TP_CHOOSE(tp_batch_table, level)
    """
    const tp_batch_kernels *tp_batch_kernels_of(int)

cdef const tp_batch_kernels *kernels = tp_batch_kernels_of(simd_level)

cdef enum:
    GRAIN = 16384, MOST_CHANNELS = 2048, FEW_POSITIONS = 64, SOME_SAMPLES = 8, MOST_COLUMNS = 32768

cdef np.dtype DOUBLE = descriptors[1]


cdef bint is_half(np.ndarray x) noexcept:
    return type_of(x) == TP_BF16 or type_of(x) == TP_F16


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
    s.columns = s.channels
    # And planes of few elements, where there are enough of them, are rows of channels that have several columns each.
    if (
        not s.channels_last and s.positions <= FEW_POSITIONS and s.samples >= SOME_SAMPLES
        and s.channels * s.positions <= (MOST_CHANNELS if is_half(x) else MOST_COLUMNS)
    ):
        s.channels_last = True
        s.columns *= s.positions
    s.threads = threads_for(total, GRAIN)
    room = (3 * s.threads + 3) * s.columns
    workspace = new_array(DOUBLE, 1, &room, NULL)
    s.workspace = <double *> np.PyArray_DATA(workspace)
    return workspace


cdef np.ndarray numbers(object value, np.ndarray x):
    """Return one number per channel, without gaps, of the type that is computed in."""
    cdef np.ndarray array = plain_array(in_type(value, descriptors[TP_F32]) if is_half(x) else value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef np.ndarray per_channel(np.ndarray x):
    """Return a number per channel, of the type that is computed in."""
    return new_array(<np.dtype> descriptors[TP_F32 if is_half(x) else type_of(x)], 1, np.PyArray_DIMS(x) + 1, NULL)


cdef np.ndarray like(np.ndarray x, int layout):
    return laid_out(<np.dtype> descriptors[type_of(x)], np.PyArray_NDIM(x), np.PyArray_DIMS(x), layout)


cdef int kernel_of(np.ndarray x) noexcept:
    """Return which kernel takes images of this type, or -1; those of halves hold eight rows of channels."""
    cdef int number = type_of(x)
    if is_half(x):
        return -1 if np.PyArray_DIM(x, 1) > MOST_CHANNELS else 2 if number == TP_BF16 else 3
    return number != TP_F32


def narrowed(results, x, weight):
    """Return results in the precision of the images, and those per channel in that of the weight."""
    image, *others = results
    return (in_type(image, x.dtype), *[in_type(other, weight.dtype) for other in others])


def in_type(array, to):
    return array if array.dtype == to else pointwise.cast(array, to)


def batch_normalize(inputs, double eps, double low=-INFINITY, double high=INFINITY):
    """Return images standardised per channel, times a weight plus a bias; the means; 1 / the deviations.

    The images are cut off at two bounds, which halves must be able to hold.
    """
    cdef int layout
    cdef np.ndarray x = plain_array(inputs[0]), weight, bias, y, mean, rstd, workspace
    cdef tp_images s
    cdef tp_batch_forward f
    cdef int which = kernel_of(x)
    if which < 0:
        return narrowed(
            batch_normalize([in_type(array, descriptors[TP_F32]) for array in inputs], eps, low, high),
            x,
            inputs[1],
        )
    x = dense(x, &layout)
    weight, bias = numbers(inputs[1], x), numbers(inputs[2], x)
    y, mean, rstd = like(x, layout), per_channel(x), per_channel(x)
    if not np.PyArray_SIZE(x):
        mean[...] = float("nan")
        rstd[...] = float("nan")
        return narrowed((y, mean, rstd), x, inputs[1])
    workspace = begin(&s, x, layout)
    f.x, f.weight, f.bias = np.PyArray_DATA(x), np.PyArray_DATA(weight), np.PyArray_DATA(bias)
    f.y, f.mean, f.rstd = np.PyArray_DATA(y), np.PyArray_DATA(mean), np.PyArray_DATA(rstd)
    f.eps, f.low, f.high = eps, low, high
    with nogil:
        kernels.forward[which](&s, &f)
    return (y, mean, rstd) if which < 2 else narrowed((y, mean, rstd), x, inputs[1])


def half_by_statistics(image, running_mean, running_var, weight, bias, double eps):
    """Return images of halves standardised by given means and variances; a weight or bias may be None."""
    cdef int layout
    cdef np.ndarray x = dense(plain_array(image), &layout), w, b, mean, rstd, y = like(x, layout), workspace
    cdef np.npy_intp channels = np.PyArray_DIM(x, 1)
    cdef tp_images s
    cdef tp_batch_forward f
    cdef int which = 2 if type_of(x) == TP_BF16 else 3
    if not np.PyArray_SIZE(x):
        return y
    mean = numbers(running_mean, x)
    rstd = plain_array(1 / numpy.sqrt(numbers(running_var, x) + numpy.float64(eps))).astype(numpy.float32)
    w = numpy.ones(channels, numpy.float32) if weight is None else numbers(weight, x)
    b = numpy.zeros(channels, numpy.float32) if bias is None else numbers(bias, x)
    workspace = begin(&s, x, layout)
    f.x, f.weight, f.bias = np.PyArray_DATA(x), np.PyArray_DATA(w), np.PyArray_DATA(b)
    f.y, f.mean, f.rstd, f.eps = np.PyArray_DATA(y), np.PyArray_DATA(mean), np.PyArray_DATA(rstd), eps
    f.low, f.high = -INFINITY, INFINITY
    with nogil:
        kernels.by_statistics[which](&s, &f)
    return y


def batch_normalize_backward(g_output, g_mean, g_rstd, input, weight, mean, rstd):
    """Return the gradients of the images, the weight and the bias."""
    cdef int layout
    cdef np.ndarray x = plain_array(input), g, g_m, g_r, w, m, r, g_x, g_weight, g_bias, workspace
    cdef tp_images s
    cdef tp_batch_backward k
    cdef int which = kernel_of(x)
    if which < 0:
        arrays = (g_output, g_mean, g_rstd, x, weight, mean, rstd)
        return narrowed(
            batch_normalize_backward(*[in_type(array, descriptors[TP_F32]) for array in arrays]), x, weight
        )
    x = dense(x, &layout)
    g = plain_array(g_output)
    if layout_of(g) != layout:
        g_x = like(x, layout)
        pointwise.copy(g_x, g, g_x)
        g = g_x
    g_m, g_r, w, m, r = [numbers(one, x) for one in (g_mean, g_rstd, weight, mean, rstd)]
    g_x, g_weight, g_bias = like(x, layout), per_channel(x), per_channel(x)
    if not np.PyArray_SIZE(x):
        g_weight[...] = 0
        g_bias[...] = 0
        return narrowed((g_x, g_weight, g_bias), x, weight)
    workspace = begin(&s, x, layout)
    k.g, k.x = np.PyArray_DATA(g), np.PyArray_DATA(x)
    k.g_mean, k.g_rstd = np.PyArray_DATA(g_m), np.PyArray_DATA(g_r)
    k.weight, k.mean, k.rstd = np.PyArray_DATA(w), np.PyArray_DATA(m), np.PyArray_DATA(r)
    k.g_x, k.g_weight, k.g_bias = np.PyArray_DATA(g_x), np.PyArray_DATA(g_weight), np.PyArray_DATA(g_bias)
    with nogil:
        kernels.backward[which](&s, &k)
    return (g_x, g_weight, g_bias) if which < 2 else narrowed((g_x, g_weight, g_bias), x, weight)
