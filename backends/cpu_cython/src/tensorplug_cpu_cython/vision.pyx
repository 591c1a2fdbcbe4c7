"""Samples of images at positions of a grid, and their blocks as columns."""

cimport numpy as np
from libc.limits cimport INT_MAX
from libc.string cimport memcpy, memset

from . import pointwise

from .allocator cimport new_array, new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .indexing_gather cimport zeros_of
from .types cimport TP_F32, TP_F64, descriptors, type_of

np.import_array()

cdef extern from "c/vision.h":
    enum:
        TP_NEAREST, TP_LINEAR, TP_CUBIC
        TP_ZEROS, TP_BORDER, TP_REFLECTION
    ctypedef struct tp_sampling:
        Py_ssize_t batch, channels, positions
        Py_ssize_t sizes[3]
        int dims, mode, padding, align, threads
    ctypedef struct tp_vision:
        void (*sample[2])(const tp_sampling *, const void *, const void *, void *) noexcept nogil
        void (*gradient[2])(
            const tp_sampling *, const void *, const void *, const void *, void *, void *
        ) noexcept nogil

cdef extern from *:
    """
    #define tp_vision_of(level) TP_CHOOSE(tp_vision_table, level)
    """
    const tp_vision *tp_vision_of(int)

cdef const tp_vision *kernels = tp_vision_of(simd_level)

cdef enum:
    GRAIN = 4096  # numbers that are sampled

cdef dict MODES = {"nearest": TP_NEAREST, "bilinear": TP_LINEAR, "bicubic": TP_CUBIC}
cdef dict PADDINGS = {"zeros": TP_ZEROS, "border": TP_BORDER, "reflection": TP_REFLECTION}


cdef np.ndarray contiguous(object value):
    cdef np.ndarray array = plain_array(value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef void describe(
    tp_sampling *s, np.ndarray image, np.ndarray grid, object mode, object padding_mode, bint align_corners
):
    cdef int d
    s.dims = np.PyArray_NDIM(image) - 2
    s.mode, s.padding, s.align = MODES[mode], PADDINGS[padding_mode], align_corners
    s.batch, s.channels, s.positions = np.PyArray_DIM(image, 0), np.PyArray_DIM(image, 1), 1
    s.sizes[0] = 1
    for d in range(s.dims):
        s.sizes[3 - s.dims + d] = np.PyArray_DIM(image, 2 + d)
        s.positions *= np.PyArray_DIM(grid, 1 + d)
    s.threads = threads_for(s.batch * s.channels * s.positions, GRAIN)


cdef bint is_vast(const tp_sampling *s) noexcept:
    """Return whether places in a plane need more than 32 bits, which they have beside float64."""
    return s.sizes[0] * s.sizes[1] * s.sizes[2] > INT_MAX


def grid_sample(input, grid, mode, padding_mode, bint align_corners):
    """Return what images (N, C, *spatial) have at the positions (N, *positions, spatial dimensions)."""
    cdef np.ndarray image = contiguous(input), places = contiguous(grid), result
    cdef tp_sampling s
    cdef np.npy_intp shape[5]
    cdef int d, number = type_of(image)
    describe(&s, image, places, mode, padding_mode, align_corners)
    if number == TP_F32 and is_vast(&s):
        wide = [pointwise.cast(array, descriptors[TP_F64]) for array in (image, places)]
        return pointwise.cast(grid_sample(*wide, mode, padding_mode, align_corners), image.dtype)
    shape[0], shape[1] = s.batch, s.channels
    for d in range(s.dims):
        shape[2 + d] = np.PyArray_DIM(places, 1 + d)
    result = new_array(descriptors[number], s.dims + 2, shape, NULL)
    with nogil:
        kernels.sample[number == TP_F64](
            &s, np.PyArray_DATA(image), np.PyArray_DATA(places), np.PyArray_DATA(result)
        )
    return result


def grid_sampler_backward(g, input, grid, mode, padding_mode, bint align_corners):
    """Return the gradients of the images and the grid."""
    cdef np.ndarray gradient = contiguous(g), image = contiguous(input), places = contiguous(grid)
    cdef np.ndarray of_image, of_grid
    cdef tp_sampling s
    cdef int number = type_of(image)
    describe(&s, image, places, mode, padding_mode, align_corners)
    if number == TP_F32 and is_vast(&s):
        wide = [pointwise.cast(array, descriptors[TP_F64]) for array in (gradient, image, places)]
        of_image, of_grid = grid_sampler_backward(*wide, mode, padding_mode, align_corners)
        return pointwise.cast(of_image, image.dtype), pointwise.cast(of_grid, image.dtype)
    of_image, of_grid = new_like(image, number), new_like(places, number)
    with nogil:
        memset(np.PyArray_DATA(of_image), 0, np.PyArray_NBYTES(of_image))
        kernels.gradient[number == TP_F64](
            &s, np.PyArray_DATA(gradient), np.PyArray_DATA(image), np.PyArray_DATA(places),
            np.PyArray_DATA(of_image), np.PyArray_DATA(of_grid),
        )
    return of_image, of_grid


# --- blocks of images ---------------------------------------------------------------------------------------------


# Elements that are copied alone may be of any type of these sizes.
ctypedef fused element:
    float
    double
    np.npy_uint8
    np.npy_uint16


cdef void move_blocks(
    element *image, element *columns, const Py_ssize_t *size, const Py_ssize_t *kernel, const Py_ssize_t *dilation,
    const Py_ssize_t *padding, const Py_ssize_t *stride, const Py_ssize_t *count, bint back,
) noexcept nogil:
    """Copy each element of a kernel at all positions to a row; or `back`, add the rows to the image."""
    cdef Py_ssize_t a, b, c, i, j, k, y, x, at, low, high, step = stride[2]
    cdef element *row
    for a in range(kernel[0]):
        for b in range(kernel[1]):
            for c in range(kernel[2]):
                # Of a row the positions from `low` to `high` see the image.
                at = c * dilation[2] - padding[2]
                low = 0 if at >= 0 else min((step - 1 - at) // step, count[2])
                high = 0 if at >= size[2] else min((size[2] - 1 - at) // step + 1, count[2])
                high = max(low, high)
                for i in range(count[0]):
                    y = i * stride[0] + a * dilation[0] - padding[0]
                    for j in range(count[1]):
                        x = j * stride[1] + b * dilation[1] - padding[1]
                        if not (0 <= y < size[0] and 0 <= x < size[1]):
                            if not back:
                                memset(columns, 0, count[2] * sizeof(element))
                            columns += count[2]
                            continue
                        row = image + (y * size[1] + x) * size[2] + at
                        if back:
                            for k in range(low, high):
                                row[k * step] += columns[k]
                        else:
                            for k in range(low):
                                columns[k] = 0
                            if step == 1:
                                memcpy(columns + low, row + low, (high - low) * sizeof(element))
                            else:
                                for k in range(low, high):
                                    columns[k] = row[k * step]
                            for k in range(high, count[2]):
                                columns[k] = 0
                        columns += count[2]


cdef np.ndarray moved(
    np.ndarray source, tuple output_size, tuple kernel_size, tuple dilation, tuple padding, tuple stride, bint back
):
    cdef int dims = <int> len(kernel_size), width = <int> np.PyArray_ITEMSIZE(source), d, lead = 3 - dims
    cdef Py_ssize_t geometry[6][3]  # size, kernel, dilation, padding, stride, count
    cdef np.npy_intp shape[5]
    cdef Py_ssize_t n = np.PyArray_DIM(source, 0), c, block = 1, plane = 1, positions = 1, image
    cdef np.ndarray result
    for d in range(3):
        geometry[0][d] = geometry[1][d] = geometry[2][d] = geometry[4][d] = geometry[5][d] = 1
        geometry[3][d] = 0
    for d in range(dims):
        geometry[0][lead + d] = output_size[d] if back else np.PyArray_DIM(source, 2 + d)
        geometry[1][lead + d], geometry[2][lead + d] = kernel_size[d], dilation[d]
        geometry[3][lead + d], geometry[4][lead + d] = padding[d], stride[d]
        geometry[5][lead + d] = (
            geometry[0][lead + d] + 2 * geometry[3][lead + d] - geometry[2][lead + d] * (geometry[1][lead + d] - 1) - 1
        ) // geometry[4][lead + d] + 1
        plane *= geometry[0][lead + d]
        block *= geometry[1][lead + d]
        positions *= geometry[5][lead + d]
        shape[2 + d] = geometry[0][lead + d]
    shape[0] = n
    if back:
        c = shape[1] = np.PyArray_DIM(source, 1) // block
        result = zeros_of(<np.dtype> np.PyArray_DESCR(source), dims + 2, shape)
    else:
        c = np.PyArray_DIM(source, 1)
        shape[1], shape[2] = c * block, positions
        result = new_array(<np.dtype> np.PyArray_DESCR(source), 3, shape, NULL)
    cdef char *images = <char *> np.PyArray_DATA(result if back else source)
    cdef char *columns = <char *> np.PyArray_DATA(source if back else result)
    with nogil:
        for image in range(n * c):
            if width == 8:
                move_blocks(
                    <double *> images + image * plane, <double *> columns + image * block * positions, geometry[0],
                    geometry[1], geometry[2], geometry[3], geometry[4], geometry[5], back,
                )
            elif width == 4:
                move_blocks(
                    <float *> images + image * plane, <float *> columns + image * block * positions, geometry[0],
                    geometry[1], geometry[2], geometry[3], geometry[4], geometry[5], back,
                )
            elif width == 2:
                move_blocks(
                    <np.npy_uint16 *> images + image * plane, <np.npy_uint16 *> columns + image * block * positions, geometry[0],
                    geometry[1], geometry[2], geometry[3], geometry[4], geometry[5], back,
                )
            else:
                move_blocks(
                    <np.npy_uint8 *> images + image * plane, <np.npy_uint8 *> columns + image * block * positions, geometry[0],
                    geometry[1], geometry[2], geometry[3], geometry[4], geometry[5], back,
                )
    return result


def im2col(input, tuple kernel_size, tuple dilation, tuple padding, tuple stride):
    """Return a copy of every window of images (N, C, *spatial), as columns."""
    return moved(contiguous(input), (), kernel_size, dilation, padding, stride, False)


def col2im(input, tuple output_size, tuple kernel_size, tuple dilation, tuple padding, tuple stride):
    """Return columns added up where they came from."""
    return moved(contiguous(input), output_size, kernel_size, dilation, padding, stride, True)
