"""Samples of images at positions of a grid."""

cimport numpy as np
from cython cimport floating
from libc.math cimport fabs, floor, fmod, rint

from .allocator cimport new_array, plain_array
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
