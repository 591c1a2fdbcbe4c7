"""Average pooling of (N, C, *spatial), in rows or channels last: of floating-point arrays also backward, of int64."""

cimport numpy as np
from libc.stdint cimport int64_t
from libc.string cimport memset

from . import pointwise

from .layouts cimport CHANNELS_LAST, dense, laid_out
from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BF16, TP_F16, TP_F32, TP_I64, descriptors, type_of

np.import_array()

cdef extern from "c/pooling_average.h":
    ctypedef struct tp_boxes:
        Py_ssize_t samples, channels
        Py_ssize_t size[3]
        Py_ssize_t where[3]
        const int64_t *first[3]
        const int64_t *behind[3]
        const int64_t *divisor[3]
        int channels_last, threads
    ctypedef struct tp_average_kernels:
        void (*mean[3])(const tp_boxes *, const void *, void *) noexcept nogil
        void (*gradient[3])(const tp_boxes *, const void *, void *) noexcept nogil

cdef extern from *:
    """
    #define tp_average_kernels_of(level) TP_CHOOSE(tp_average_table, level)
    """
    const tp_average_kernels *tp_average_kernels_of(int)

cdef const tp_average_kernels *kernels = tp_average_kernels_of(simd_level)

cdef enum:
    GRAIN = 8192


cdef class Boxes:
    """Along each dimension, which places each result is made of, and what it is divided by."""

    cdef list numbers
    cdef Py_ssize_t where[3]
    cdef int count

    def __cinit__(self, int count):
        self.count = count
        self.numbers = [None] * count

    cdef int64_t *begin(self, int dim, Py_ssize_t where):
        """Make room for a dimension's numbers: first, behind and divisor, one after the other."""
        cdef np.npy_intp size = 3 * where
        cdef np.ndarray numbers = new_array(<np.dtype> descriptors[TP_I64], 1, &size, NULL)
        self.where[dim] = where
        self.numbers[dim] = numbers
        return <int64_t *> np.PyArray_DATA(numbers)


cdef int kernel_of(np.ndarray array) noexcept:
    """Return at which place of the tables the kernel of an array's type is."""
    cdef int number = type_of(array)
    return 0 if number == TP_F32 else 2 if number == TP_I64 else 1


cdef bint is_half(np.ndarray array) noexcept:
    cdef int number = type_of(array)
    return number == TP_F16 or number == TP_BF16


cdef Boxes windows(
    const np.npy_intp *size, tuple kernel, tuple stride, tuple padding, bint ceil_mode, bint include_padding,
    object divisor,
):
    cdef Boxes boxes = Boxes.__new__(Boxes, len(kernel))
    cdef Py_ssize_t k, s, p, n, span, where, i, start, low, high
    cdef int64_t *numbers
    cdef int d
    for d in range(boxes.count):
        k, s, p, n = kernel[d], stride[d], padding[d], size[d]
        if s < 1:
            raise ValueError(f"stride must be at least 1, got {s}")
        span = n + 2 * p - k
        where = (span + s - 1 if ceil_mode else span) // s + 1
        if ceil_mode and (where - 1) * s >= n + p:
            where -= 1
        numbers = boxes.begin(d, where)
        low, high = 0, n
        if include_padding:
            low, high = -p, n + p
        for i in range(where):
            start = i * s - p
            numbers[i] = min(max(start, 0), n)
            numbers[where + i] = max(min(start + k, n), numbers[i])
            if divisor is None:
                numbers[2 * where + i] = min(start + k, high) - max(start, low)
            else:
                numbers[2 * where + i] = <Py_ssize_t> divisor if d == 0 else 1
    return boxes


cdef Boxes shares(const np.npy_intp *size, tuple wanted):
    cdef Boxes boxes = Boxes.__new__(Boxes, len(wanted))
    cdef Py_ssize_t n, where, i
    cdef int64_t *numbers
    cdef int d
    for d in range(boxes.count):
        n, where = size[d], wanted[d]
        numbers = boxes.begin(d, where)
        for i in range(where):
            numbers[i] = i * n // where
            numbers[where + i] = ((i + 1) * n + where - 1) // where
            numbers[2 * where + i] = numbers[where + i] - numbers[i]
    return boxes


cdef int64_t[3] ONE = [0, 1, 1]


cdef void fill(tp_boxes *p, Boxes boxes, const np.npy_intp *shape, int layout, Py_ssize_t work) noexcept:
    """Describe the problem for images of a shape."""
    cdef int d, at, skipped = 3 - boxes.count
    cdef const int64_t *numbers
    memset(p, 0, sizeof(tp_boxes))
    p.samples, p.channels = shape[0], shape[1]
    p.channels_last = layout == CHANNELS_LAST
    p.threads = threads_for(work, GRAIN)
    for at in range(3):
        d = at - skipped
        p.size[at] = shape[d + 2] if d >= 0 else 1
        p.where[at] = boxes.where[d] if d >= 0 else 1
        numbers = <const int64_t *> np.PyArray_DATA(<np.ndarray> boxes.numbers[d]) if d >= 0 else ONE
        p.first[at], p.behind[at], p.divisor[at] = numbers, numbers + p.where[at], numbers + 2 * p.where[at]


cdef np.ndarray mean(np.ndarray x, int layout, Boxes boxes):
    cdef np.npy_intp shape[64]
    cdef tp_boxes p
    cdef np.ndarray result
    cdef int d
    cdef int kernel = kernel_of(x)
    shape[0], shape[1] = np.PyArray_DIM(x, 0), np.PyArray_DIM(x, 1)
    for d in range(boxes.count):
        shape[d + 2] = boxes.where[d]
    result = laid_out(x.dtype, boxes.count + 2, shape, layout)
    if np.PyArray_SIZE(result):
        fill(&p, boxes, np.PyArray_DIMS(x), layout, np.PyArray_SIZE(x))
        with nogil:
            kernels.mean[kernel](&p, np.PyArray_DATA(x), np.PyArray_DATA(result))
    return result


cdef np.ndarray spread(np.ndarray g, int layout, const np.npy_intp *shape, Boxes boxes):
    cdef tp_boxes p
    cdef np.ndarray result = laid_out(g.dtype, boxes.count + 2, shape, layout)
    cdef int kernel = kernel_of(g)
    memset(np.PyArray_DATA(result), 0, np.PyArray_NBYTES(result))
    if np.PyArray_SIZE(g) and np.PyArray_SIZE(result):
        fill(&p, boxes, shape, layout, np.PyArray_SIZE(result))
        with nogil:
            kernels.gradient[kernel](&p, np.PyArray_DATA(g), np.PyArray_DATA(result))
    return result


cdef object shape_of(np.ndarray g, tuple size, np.npy_intp *shape):
    """Set the shape of images of this spatial size."""
    cdef int i
    shape[0], shape[1] = np.PyArray_DIM(g, 0), np.PyArray_DIM(g, 1)
    for i in range(<int> len(size)):
        shape[i + 2] = size[i]


def avg_pool(
    input, tuple kernel, tuple stride, tuple padding, bint ceil_mode, bint count_include_pad, divisor
):
    """Return the mean of each window."""
    cdef np.ndarray x = plain_array(input)
    cdef int layout
    if is_half(x):
        result = avg_pool(
            pointwise.cast(x, descriptors[TP_F32]), kernel, stride, padding, ceil_mode, count_include_pad, divisor
        )
        return pointwise.cast(result, x.dtype)
    x = dense(x, &layout)
    return mean(x, layout, windows(
        np.PyArray_DIMS(x) + 2, kernel, stride, padding, ceil_mode, count_include_pad, divisor
    ))


def avg_pool_backward(
    gradient, tuple size, tuple kernel, tuple stride, tuple padding, bint ceil_mode, bint count_include_pad, divisor
):
    """Return the gradient of the input, of this spatial size; channels last where the gradient is."""
    cdef np.ndarray g = plain_array(gradient)
    cdef np.npy_intp shape[64]
    cdef int layout
    if is_half(g):
        result = avg_pool_backward(
            pointwise.cast(g, descriptors[TP_F32]), size, kernel, stride, padding, ceil_mode, count_include_pad,
            divisor,
        )
        return pointwise.cast(result, g.dtype)
    g = dense(g, &layout)
    shape_of(g, size, shape)
    return spread(g, layout, shape, windows(
        shape + 2, kernel, stride, padding, ceil_mode, count_include_pad, divisor
    ))


def adaptive_avg_pool(input, tuple size):
    """Return the mean of each of so many shares."""
    cdef np.ndarray x = plain_array(input)
    cdef int layout
    if is_half(x):
        return pointwise.cast(adaptive_avg_pool(pointwise.cast(x, descriptors[TP_F32]), size), x.dtype)
    x = dense(x, &layout)
    return mean(x, layout, shares(np.PyArray_DIMS(x) + 2, size))


def adaptive_avg_pool_backward(gradient, shape):
    """Return the gradient of the input, of this shape; channels last where the gradient is."""
    cdef np.ndarray g = plain_array(gradient)
    cdef np.npy_intp sizes[64]
    cdef int layout
    if is_half(g):
        return pointwise.cast(adaptive_avg_pool_backward(pointwise.cast(g, descriptors[TP_F32]), shape), g.dtype)
    g = dense(g, &layout)
    shape_of(g, tuple(shape[2:]), sizes)
    return spread(g, layout, sizes, shares(sizes + 2, tuple([g.shape[i] for i in range(2, g.ndim)])))
