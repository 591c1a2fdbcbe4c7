"""Samples of images at positions of a grid, and their blocks as columns."""

cimport numpy as np
from cython cimport floating
from libc.math cimport fabs, floor, fmod, rint

from .allocator cimport new_array, plain_array
from .indexing_gather cimport zeros_of
from .types cimport TP_F64, descriptors, type_of

np.import_array()

cdef enum:
    NEAREST, LINEAR, CUBIC
    ZEROS = 0, BORDER, REFLECTION

cdef dict MODES = {"nearest": NEAREST, "bilinear": LINEAR, "bicubic": CUBIC}
cdef dict PADDINGS = {"zeros": ZEROS, "border": BORDER, "reflection": REFLECTION}


cdef floating within(floating x, Py_ssize_t size, int padding, bint align) noexcept nogil:
    """Return a coordinate brought back into the image; for zero padding, as it is."""
    cdef floating low, span, distance, flips, rest
    if padding == ZEROS:
        return x
    if padding == REFLECTION:
        low = 0 if align else -0.5
        span = size - 1 if align else size
        if span == 0:
            x = x * 0
        else:
            distance = fabs(x - low)
            flips = floor(distance / span)
            rest = distance - flips * span
            x = rest + low if fmod(flips, 2) == 0 else span - rest + low
    if x < 0:
        return 0
    return size - 1 if x > size - 1 else x


cdef floating keys(floating x) noexcept nogil:
    """Return Keys' cubic convolution kernel at a distance from 0 to 2."""
    cdef floating a = -0.75
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a


cdef int taps(
    floating x, Py_ssize_t size, int mode, int padding, bint align, Py_ssize_t *places, floating *weights
) noexcept nogil:
    """Find the elements along a dimension that a position is made of, and their weights; return how many."""
    cdef floating low, at, weight
    cdef int count = 0, k, first = 0, number = 1
    x = (x + 1) / 2 * (size - 1) if align else ((x + 1) * size - 1) / 2
    if mode != CUBIC:
        x = within(x, size, padding, align)
    low = rint(x) if mode == NEAREST else floor(x)
    if mode == LINEAR:
        number = 2
    elif mode == CUBIC:
        first, number = -1, 4
    for k in range(first, first + number):
        at = low + k
        if mode == NEAREST:
            weight = 1
        elif mode == LINEAR:
            weight = x - low if k else 1 - (x - low)
        else:
            weight = keys(<floating> fabs(x - low - k))
            at = rint(within(at, size, padding, align))
        if 0 <= at <= size - 1:  # neither what is beyond the image, nor NaN
            places[count] = <Py_ssize_t> at
            weights[count] = weight
            count += 1
    return count


cdef void sample(
    const floating *image, const floating *grid, floating *result, Py_ssize_t channels, Py_ssize_t positions,
    const Py_ssize_t *sizes, int dims, int mode, int padding, bint align,
) noexcept nogil:
    """Sample one image of three spatial dimensions, of which the first one is not in use for two."""
    cdef Py_ssize_t places[12]
    cdef floating weights[12]
    cdef Py_ssize_t flat[64]
    cdef floating factors[64]
    cdef Py_ssize_t plane = sizes[0] * sizes[1] * sizes[2], position, c, before
    cdef int counts[3]
    cdef int d, i, j, k, count
    cdef floating total
    for position in range(positions):
        counts[0] = 1
        places[0], weights[0] = 0, 1
        for d in range(3 - dims, 3):
            counts[d] = taps(
                grid[position * dims + 2 - d], sizes[d], mode, padding, align, &places[4 * d], &weights[4 * d]
            )
        count = 0
        for i in range(counts[0]):
            for j in range(counts[1]):
                before = (places[i] * sizes[1] + places[4 + j]) * sizes[2]
                for k in range(counts[2]):
                    flat[count] = before + places[8 + k]
                    factors[count] = weights[i] * weights[4 + j] * weights[8 + k]
                    count += 1
        for c in range(channels):
            total = 0
            for i in range(count):
                total += image[c * plane + flat[i]] * factors[i]
            result[c * positions + position] = total


cdef np.ndarray contiguous(object value):
    cdef np.ndarray array = plain_array(value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else np.PyArray_GETCONTIGUOUS(array)


def grid_sample(input, grid, mode, padding_mode, bint align_corners):
    """Return what images (N, C, *spatial) have at the positions (N, *positions, spatial dimensions)."""
    cdef np.ndarray image = contiguous(input), places = contiguous(grid), result
    cdef int dims = np.PyArray_NDIM(image) - 2, d, which = MODES[mode], padding = PADDINGS[padding_mode]
    cdef Py_ssize_t sizes[3]
    cdef np.npy_intp shape[5]
    cdef Py_ssize_t n, batch = np.PyArray_DIM(image, 0), channels = np.PyArray_DIM(image, 1), positions = 1
    cdef Py_ssize_t plane = 1
    cdef int number = type_of(image)
    shape[0], shape[1] = batch, channels
    sizes[0] = 1
    for d in range(dims):
        sizes[3 - dims + d] = np.PyArray_DIM(image, 2 + d)
        plane *= np.PyArray_DIM(image, 2 + d)
        shape[2 + d] = np.PyArray_DIM(places, 1 + d)
        positions *= shape[2 + d]
    result = new_array(descriptors[number], dims + 2, shape, NULL)
    with nogil:
        for n in range(batch):
            if number == TP_F64:
                sample(
                    <const double *> np.PyArray_DATA(image) + n * channels * plane,
                    <const double *> np.PyArray_DATA(places) + n * positions * dims,
                    <double *> np.PyArray_DATA(result) + n * channels * positions,
                    channels, positions, sizes, dims, which, padding, align_corners,
                )
            else:
                sample(
                    <const float *> np.PyArray_DATA(image) + n * channels * plane,
                    <const float *> np.PyArray_DATA(places) + n * positions * dims,
                    <float *> np.PyArray_DATA(result) + n * channels * positions,
                    channels, positions, sizes, dims, which, padding, align_corners,
                )
    return result


# --- blocks of images ---------------------------------------------------------------------------------------------


cdef void move_blocks(
    floating *image, floating *columns, const Py_ssize_t *size, const Py_ssize_t *kernel, const Py_ssize_t *dilation,
    const Py_ssize_t *padding, const Py_ssize_t *stride, const Py_ssize_t *count, bint back,
) noexcept nogil:
    """Copy each element of a kernel at all positions to a row; or `back`, add the rows to the image."""
    cdef Py_ssize_t a, b, c, i, j, k, y, x, at
    cdef floating *row
    for a in range(kernel[0]):
        for b in range(kernel[1]):
            for c in range(kernel[2]):
                for i in range(count[0]):
                    y = i * stride[0] + a * dilation[0] - padding[0]
                    for j in range(count[1]):
                        x = j * stride[1] + b * dilation[1] - padding[1]
                        if not (0 <= y < size[0] and 0 <= x < size[1]):
                            if not back:
                                for k in range(count[2]):
                                    columns[k] = 0
                        else:
                            row = image + (y * size[1] + x) * size[2]
                            at = c * dilation[2] - padding[2]
                            for k in range(count[2]):
                                if back:
                                    if 0 <= at < size[2]:
                                        row[at] += columns[k]
                                else:
                                    columns[k] = row[at] if 0 <= at < size[2] else 0
                                at += stride[2]
                        columns += count[2]


cdef np.ndarray moved(
    np.ndarray source, tuple output_size, tuple kernel_size, tuple dilation, tuple padding, tuple stride, bint back
):
    cdef int dims = <int> len(kernel_size), number = type_of(source), d, lead = 3 - dims
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
        result = zeros_of(descriptors[number], dims + 2, shape)
    else:
        c = np.PyArray_DIM(source, 1)
        shape[1], shape[2] = c * block, positions
        result = new_array(descriptors[number], 3, shape, NULL)
    cdef char *images = <char *> np.PyArray_DATA(result if back else source)
    cdef char *columns = <char *> np.PyArray_DATA(source if back else result)
    with nogil:
        for image in range(n * c):
            if number == TP_F64:
                move_blocks(
                    <double *> images + image * plane, <double *> columns + image * block * positions, geometry[0],
                    geometry[1], geometry[2], geometry[3], geometry[4], geometry[5], back,
                )
            else:
                move_blocks(
                    <float *> images + image * plane, <float *> columns + image * block * positions, geometry[0],
                    geometry[1], geometry[2], geometry[3], geometry[4], geometry[5], back,
                )
    return result


def im2col(input, tuple kernel_size, tuple dilation, tuple padding, tuple stride):
    """Return a copy of every window of images (N, C, *spatial), as columns."""
    return moved(contiguous(input), (), kernel_size, dilation, padding, stride, False)


def col2im(input, tuple output_size, tuple kernel_size, tuple dilation, tuple padding, tuple stride):
    """Return columns added up where they came from."""
    return moved(contiguous(input), output_size, kernel_size, dilation, padding, stride, True)
