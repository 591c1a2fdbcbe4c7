"""Convolutions of images that lie channels last by Winograd's way, with weights that are transformed in each call."""

cimport numpy as np

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .layouts cimport CHANNELS_LAST, laid_out, lies_channels_last
from .types cimport TP_F32, descriptors, type_of

np.import_array()

cdef extern from "c/convolution_winograd.h":
    """
    #define tp_wino_kernels_of(level) TP_CHOOSE(tp_wino_table, level)
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
    const tp_wino_kernels *tp_wino_kernels_of(int)

cdef const tp_wino_kernels *kernels = tp_wino_kernels_of(simd_level)


cdef bint lies(np.ndarray array, Py_ssize_t n, Py_ssize_t c, Py_ssize_t h, Py_ssize_t w) noexcept:
    """Return whether an array is float32 images of a shape, channels last."""
    return (
        type_of(array) == TP_F32 and np.PyArray_NDIM(array) == 4 and np.PyArray_DIM(array, 0) == n
        and np.PyArray_DIM(array, 1) == c and np.PyArray_DIM(array, 2) == h and np.PyArray_DIM(array, 3) == w
        and lies_channels_last(array)
    )


cdef class Convolution:
    """A convolution of step 1 of images (N, C, H, W) of one size, or the adjoint of one: images of a gradient come in.

    `size` is that of the window; `padding` is the convolution's also where this is its adjoint.
    """

    cdef tp_wino problem
    cdef bint adjoint

    def __cinit__(self, tuple shape, tuple result, Py_ssize_t size, tuple padding, bint adjoint):
        cdef tp_wino *p = &self.problem
        p.images, p.channels, p.height, p.width = shape
        p.filters, p.out_height, p.out_width = result[1:]
        p.top, p.left = padding
        p.kernel = <int> size
        if adjoint:
            p.top, p.left = size - 1 - p.top, size - 1 - p.left
        p.image_step, p.pixel_step, p.block_step = p.height * p.width * p.channels, p.channels, TP_WINO_BLOCK
        self.adjoint = adjoint

    @property
    def pays(self):
        """Whether it takes clearly less than sums of products as they stand."""
        cdef tp_wino *p = &self.problem
        return bool(
            (p.kernel == 3 or p.kernel == 5) and 0 <= p.top < p.kernel and 0 <= p.left < p.kernel
            and p.channels % TP_WINO_BLOCK == 0 and p.filters % TP_WINO_BLOCK == 0
            and p.out_height == p.height + 2 * p.top - p.kernel + 1
            and p.out_width == p.width + 2 * p.left - p.kernel + 1
            and kernels.pays(p, True)
        )

    def __call__(self, images, weight, bias=None):
        """Return the result, channels last; None for other arrays, and where it is not finite.

        A tile mixes its numbers, so that NaN and infinity would spread.
        """
        cdef tp_wino p = self.problem
        cdef np.ndarray x = plain_array(images), w = plain_array(weight), b = None, y, memory
        cdef Py_ssize_t first = p.channels if self.adjoint else p.filters
        cdef np.npy_intp shape[4]
        cdef np.npy_intp packed, count
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
        packed = (kernels.weights(&p) + 15) // 16 * 16
        count = packed + kernels.workspace(&p) * p.threads
        memory = new_array(<np.dtype> descriptors[TP_F32], 1, &count, NULL)
        space = <float *> np.PyArray_DATA(memory)
        with nogil:
            kernels.pack(&p, <const float *> np.PyArray_DATA(w), self.adjoint, space)
            finite = kernels.run(
                &p, <const float *> np.PyArray_DATA(x), space, row, NULL, <float *> np.PyArray_DATA(y),
                space + packed,
            )
        return y if finite else None
