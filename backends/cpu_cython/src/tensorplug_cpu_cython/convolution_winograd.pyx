"""Convolutions of images that lie channels last by Winograd's way, with weights that change, and their adjoints.

A tile mixes its numbers, so that NaN and infinity would spread: what has such a result is left to other kernels.
"""

cimport numpy as np
from libc.string cimport memset

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .layouts cimport CHANNELS_LAST, ROWS, laid_out, lies_channels_last
from .types cimport TP_F32, descriptors, type_of

np.import_array()

cdef extern from "c/convolution_winograd.h":
    """
    #define tp_wino_kernels_of(level) TP_CHOOSE(tp_wino_table, level)
    #define tp_wino_weight_kernels_of(level) TP_CHOOSE(tp_wino_weight_table, level)
    """
    enum:
        TP_WINO_BLOCK
    ctypedef struct tp_wino:
        ptrdiff_t images, height, width, channels, filters, out_height, out_width, top, left
        ptrdiff_t image_step, pixel_step, block_step
        int kernel, posts, threads
    ctypedef struct tp_wino_kernels:
        int (*pays)(const tp_wino *, int) noexcept nogil
        ptrdiff_t (*weights)(const tp_wino *) noexcept nogil
        ptrdiff_t (*workspace)(const tp_wino *) noexcept nogil
        void (*pack)(const tp_wino *, const float *, int, float *) noexcept nogil
        int (*run)(
            const tp_wino *, const float *, const float *, const float *, const float *const *, float *, float *
        ) noexcept nogil
    ctypedef struct tp_wino_weight_kernels:
        int (*pays)(const tp_wino *) noexcept nogil
        ptrdiff_t (*workspace)(const tp_wino *) noexcept nogil
        int (*run)(const tp_wino *, const float *, const float *, float *, float *) noexcept nogil
    const tp_wino_kernels *tp_wino_kernels_of(int)
    const tp_wino_weight_kernels *tp_wino_weight_kernels_of(int)

cdef const tp_wino_kernels *kernels = tp_wino_kernels_of(simd_level)
cdef const tp_wino_weight_kernels *weight_kernels = tp_wino_weight_kernels_of(simd_level)


cdef bint lies(np.ndarray array, Py_ssize_t n, Py_ssize_t c, Py_ssize_t h, Py_ssize_t w) noexcept:
    """Return whether an array is float32 images of a shape, channels last."""
    return (
        type_of(array) == TP_F32 and np.PyArray_NDIM(array) == 4 and np.PyArray_DIM(array, 0) == n
        and np.PyArray_DIM(array, 1) == c and np.PyArray_DIM(array, 2) == h and np.PyArray_DIM(array, 3) == w
        and lies_channels_last(array)
    )


cdef np.ndarray new_floats(np.npy_intp count):
    return new_array(<np.dtype> descriptors[TP_F32], 1, &count, NULL)


cdef tp_wino problem_of(tuple shape, tuple result, Py_ssize_t size, tuple padding):
    """Return the problem of images (N, C, H, W), the images that come of them, and a padded window of `size`."""
    cdef tp_wino p
    memset(&p, 0, sizeof(tp_wino))
    p.images, p.channels, p.height, p.width = shape
    p.filters, p.out_height, p.out_width = result[1:]
    p.top, p.left = padding
    p.kernel = <int> size
    p.image_step, p.pixel_step, p.block_step = p.height * p.width * p.channels, p.channels, TP_WINO_BLOCK
    return p


cdef bint fits(const tp_wino *p) noexcept:
    """Return whether the kernels can compute a problem."""
    return (
        (p.kernel == 3 or p.kernel == 5) and 0 <= p.top < p.kernel and 0 <= p.left < p.kernel
        and p.channels % TP_WINO_BLOCK == 0 and p.filters % TP_WINO_BLOCK == 0
        and p.out_height == p.height + 2 * p.top - p.kernel + 1
        and p.out_width == p.width + 2 * p.left - p.kernel + 1
        and p.images * p.channels * p.filters * p.out_height * p.out_width > 0
    )


cdef class Convolution:
    """A convolution of step 1 of images of one shape, or the adjoint of one, which takes the gradient of its result.

    `size` is that of the window, `padding` the convolution's, also where this is its adjoint.
    """

    cdef tp_wino problem
    cdef bint adjoint

    def __cinit__(self, tuple shape, tuple result, Py_ssize_t size, tuple padding, bint adjoint):
        if adjoint:
            padding = (size - 1 - padding[0], size - 1 - padding[1])
        self.problem = problem_of(shape, result, size, padding)
        self.adjoint = adjoint

    @property
    def pays(self):
        """Whether it takes clearly less than sums of products as they stand."""
        return bool(fits(&self.problem) and kernels.pays(&self.problem, True))

    def __call__(self, images, weight, bias=None):
        """Return the result, channels last; None for other arrays, and where it is not finite."""
        cdef tp_wino p = self.problem
        cdef np.ndarray x = plain_array(images), w = plain_array(weight), b = None, y, memory
        cdef Py_ssize_t first = p.channels if self.adjoint else p.filters
        cdef np.npy_intp shape[4]
        cdef np.npy_intp packed
        cdef float *space
        cdef const float *row = NULL
        cdef bint finite
        if not lies(x, p.images, p.channels, p.height, p.width) or type_of(w) != TP_F32:
            return None
        if (<object> w).shape != (first, p.channels + p.filters - first, p.kernel, p.kernel):
            return None
        w = np.PyArray_GETCONTIGUOUS(w)
        if bias is not None:
            b = np.PyArray_GETCONTIGUOUS(plain_array(bias))
            if type_of(b) != TP_F32 or np.PyArray_SIZE(b) != p.filters:
                return None
            row = <const float *> np.PyArray_DATA(b)
        shape[0], shape[1], shape[2], shape[3] = p.images, p.filters, p.out_height, p.out_width
        y = laid_out(<np.dtype> descriptors[TP_F32], 4, shape, CHANNELS_LAST)
        p.threads = threads_for(1 << 40, 1)
        packed = kernels.weights(&p)
        memory = new_floats(packed + kernels.workspace(&p) * p.threads)
        space = <float *> np.PyArray_DATA(memory)
        with nogil:
            kernels.pack(&p, <const float *> np.PyArray_DATA(w), self.adjoint, space)
            finite = kernels.run(
                &p, <const float *> np.PyArray_DATA(x), space, row, NULL, <float *> np.PyArray_DATA(y),
                space + packed,
            )
        return y if finite else None


cdef class WeightGradient:
    """The gradient of the weight of a convolution of step 1 of images of one shape."""

    cdef tp_wino problem

    def __cinit__(self, tuple shape, tuple result, Py_ssize_t size, tuple padding):
        self.problem = problem_of(shape, result, size, padding)

    @property
    def pays(self):
        """Whether it takes clearly less than sums of products as they stand."""
        return bool(fits(&self.problem) and weight_kernels.pays(&self.problem))

    def __call__(self, images, gradient):
        """Return the gradient, in rows; None for other arrays, and where it is not finite."""
        cdef tp_wino p = self.problem
        cdef np.ndarray x = plain_array(images), g = plain_array(gradient), w, memory
        cdef np.npy_intp shape[4]
        cdef float *space
        cdef bint finite
        if not lies(x, p.images, p.channels, p.height, p.width):
            return None
        if not lies(g, p.images, p.filters, p.out_height, p.out_width):
            return None
        shape[0], shape[1], shape[2], shape[3] = p.filters, p.channels, p.kernel, p.kernel
        w = laid_out(<np.dtype> descriptors[TP_F32], 4, shape, ROWS)
        p.threads = threads_for(1 << 40, 1)
        memory = new_floats(weight_kernels.workspace(&p))
        space = <float *> np.PyArray_DATA(memory)
        with nogil:
            finite = weight_kernels.run(
                &p, <const float *> np.PyArray_DATA(x), <const float *> np.PyArray_DATA(g),
                <float *> np.PyArray_DATA(w), space,
            )
        return w if finite else None
