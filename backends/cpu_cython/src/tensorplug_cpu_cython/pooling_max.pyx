"""Max pooling of arrays (N, C, *spatial), in rows or channels last, forward and backward."""

cimport numpy as np
from libc.limits cimport INT_MAX
from libc.stdint cimport int64_t
from libc.string cimport memset

from . import pointwise

from .layouts cimport CHANNELS_LAST, dense, laid_out, layout_of, meant_layout
from .allocator cimport plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport (
    TP_BF16, TP_F16, TP_F32, TP_F64, TP_I8, TP_I16, TP_I32, TP_I64, TP_U8, descriptors, type_of
)

np.import_array()

cdef extern from "c/pooling_max.h":
    ctypedef struct tp_pool:
        Py_ssize_t samples, channels
        Py_ssize_t size[3]
        Py_ssize_t where[3]
        Py_ssize_t kernel[3]
        Py_ssize_t stride[3]
        Py_ssize_t padding[3]
        Py_ssize_t dilation[3]
        int channels_last, threads
    ctypedef struct tp_pool_kernels:
        void (*maximum[3])(const tp_pool *, const void *, void *, int64_t *) noexcept nogil
        int (*gradient[2])(const tp_pool *, const void *, const int64_t *, void *) noexcept nogil

cdef extern from *:
    """
    #define tp_pool_kernels_of(level) TP_CHOOSE(tp_pool_table, level)
    """
    const tp_pool_kernels *tp_pool_kernels_of(int)

cdef const tp_pool_kernels *kernels = tp_pool_kernels_of(simd_level)

cdef enum:
    GRAIN = 8192

cdef np.dtype INT64 = descriptors[TP_I64]


cdef bint is_half(np.ndarray array) noexcept:
    cdef int number = type_of(array)
    return number == TP_F16 or number == TP_BF16


cdef void begin(tp_pool *p, Py_ssize_t samples, Py_ssize_t channels, int layout, Py_ssize_t work) noexcept:
    cdef int i
    memset(p, 0, sizeof(tp_pool))
    for i in range(3):
        p.size[i] = p.where[i] = p.kernel[i] = p.stride[i] = p.dilation[i] = 1
    p.samples = samples
    p.channels = channels
    p.channels_last = layout == CHANNELS_LAST
    p.threads = threads_for(work, GRAIN)


cdef Py_ssize_t windows(
    Py_ssize_t size, Py_ssize_t kernel, Py_ssize_t stride, Py_ssize_t padding, Py_ssize_t dilation, bint ceil_mode
) except -1:
    """Return how many windows there are; with `ceil_mode` the last may hang over the end."""
    if stride < 1:
        raise ValueError(f"stride must be at least 1, got {stride}")
    cdef Py_ssize_t span = size + 2 * padding - dilation * (kernel - 1) - 1
    cdef Py_ssize_t count = (span + stride - 1 if ceil_mode else span) // stride + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def max_pool(input, tuple kernel, tuple stride, tuple padding, tuple dilation, bint ceil_mode):
    """Return the largest element of each window, and its place in the flattened plane."""
    return maxima(input, kernel, stride, padding, dilation, ceil_mode, True)


def max_pool_values(input, tuple kernel, tuple stride, tuple padding, tuple dilation, bint ceil_mode):
    """Return the largest element of each window."""
    return maxima(input, kernel, stride, padding, dilation, ceil_mode, False)[0]


cdef tuple maxima(
    object input, tuple kernel, tuple stride, tuple padding, tuple dilation, bint ceil_mode, bint marked
):
    cdef np.ndarray x = plain_array(input), values, places = None
    cdef int64_t *marks = NULL
    cdef int layout, count = <int> len(kernel), i
    cdef np.npy_intp shape[64]
    cdef tp_pool p
    cdef Py_ssize_t work = 1, plane = 1
    cdef int number = type_of(x), computed = number, kind
    for i in range(count):
        plane *= np.PyArray_DIM(x, i + 2)
    if is_half(x) or number in (TP_U8, TP_I8, TP_I16):
        computed = TP_F32
    elif number == TP_I32:
        computed = TP_F64
    if marked and computed == TP_F32 and plane > INT_MAX:  # places count in 32 bits beside float32, and in 64 beside others
        computed = TP_F64
    if computed != number:
        values, places = maxima(
            pointwise.cast(x, descriptors[computed]), kernel, stride, padding, dilation, ceil_mode, marked
        )
        return pointwise.cast(values, x.dtype), places
    x = dense(x, &layout)
    shape[0], shape[1] = np.PyArray_DIM(x, 0), np.PyArray_DIM(x, 1)
    for i in range(count):
        shape[i + 2] = windows(
            np.PyArray_DIM(x, i + 2), kernel[i], stride[i], padding[i], dilation[i], ceil_mode
        )
        work *= shape[i + 2] * <Py_ssize_t> kernel[i]
    values = laid_out(x.dtype, count + 2, shape, layout)
    if marked:
        places = laid_out(INT64, count + 2, shape, layout)
        marks = <int64_t *> np.PyArray_DATA(places)
    if not np.PyArray_SIZE(values):
        return values, places
    begin(&p, shape[0], shape[1], layout, work * shape[0] * shape[1])
    for i in range(count):
        p.size[3 - count + i] = np.PyArray_DIM(x, i + 2)
        p.where[3 - count + i] = shape[i + 2]
        p.kernel[3 - count + i] = kernel[i]
        p.stride[3 - count + i] = stride[i]
        p.padding[3 - count + i] = padding[i]
        p.dilation[3 - count + i] = dilation[i]
    kind = 0 if number == TP_F32 else 1 if number == TP_F64 else 2
    with nogil:
        kernels.maximum[kind](&p, np.PyArray_DATA(x), np.PyArray_DATA(values), marks)
    return values, places


def max_pool_backward(gradient, indices, shape):
    """Return the gradient put, and added up, where the maxima were; channels last where the indices are."""
    cdef np.ndarray g = plain_array(gradient), places, turned, result
    cdef int layout, count = <int> len(shape) - 2, i, outside
    cdef np.npy_intp sizes[64]
    cdef tp_pool p
    cdef bint wide
    if is_half(g):
        result = max_pool_backward(pointwise.cast(g, descriptors[TP_F32]), indices, shape)
        return pointwise.cast(result, g.dtype)
    places = dense(indices, &layout)
    if layout_of(g) != layout:
        turned = laid_out(g.dtype, np.PyArray_NDIM(g), np.PyArray_DIMS(g), layout)
        g = pointwise.copy(turned, g, turned)
    layout = meant_layout(places)
    for i in range(count + 2):
        sizes[i] = shape[i]
    result = laid_out(g.dtype, count + 2, sizes, layout)
    memset(np.PyArray_DATA(result), 0, np.PyArray_NBYTES(result))
    if not np.PyArray_SIZE(g):
        return result
    begin(&p, sizes[0], sizes[1], layout, np.PyArray_SIZE(g))
    for i in range(count):
        p.size[3 - count + i] = sizes[i + 2]
        p.where[3 - count + i] = np.PyArray_DIM(g, i + 2)
    wide = type_of(g) != TP_F32
    with nogil:
        outside = kernels.gradient[wide](
            &p, np.PyArray_DATA(g), <const int64_t *> np.PyArray_DATA(places), np.PyArray_DATA(result)
        )
    if outside:
        raise IndexError(f"max_pool_backward(): an index lies outside of a plane of {list(shape[2:])}")
    return result
