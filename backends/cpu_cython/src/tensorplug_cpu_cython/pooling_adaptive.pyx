"""The largest elements of windows that divide images as evenly as can be, or at random steps, and where they are."""

cimport numpy as np
from cython cimport floating
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from .allocator cimport new_array, plain_array
from .layouts cimport CHANNELS_LAST, is_taken_for_channels_last, laid_out, layout_of
from .types cimport TP_F64, TP_I64, descriptors, type_of

np.import_array()


cdef void pool(
    const floating *image, floating *values, int64_t *places, const Py_ssize_t *size, const Py_ssize_t *wanted,
    const Py_ssize_t *begins, const Py_ssize_t *ends,
) noexcept nogil:
    """Pool one image of three dimensions; the first of equal maxima counts, and NaN is above all.

    Where windows begin and end stands in arrays: for the first dimension, then for the others.
    """
    cdef Py_ssize_t i, j, k, a, b, c, at, best, number = 0
    cdef const Py_ssize_t *rows = begins + wanted[0]
    cdef const Py_ssize_t *rows_end = ends + wanted[0]
    cdef const Py_ssize_t *columns = rows + wanted[1]
    cdef const Py_ssize_t *columns_end = rows_end + wanted[1]
    cdef floating value, largest
    for i in range(wanted[0]):
        for j in range(wanted[1]):
            for k in range(wanted[2]):
                best = -1
                largest = 0
                for a in range(begins[i], ends[i]):
                    for b in range(rows[j], rows_end[j]):
                        for c in range(columns[k], columns_end[k]):
                            at = (a * size[1] + b) * size[2] + c
                            value = image[at]
                            if best < 0 or value > largest or (value != value and largest == largest):
                                best, largest = at, value
                values[number], places[number] = largest, best
                number += 1


cdef floating moved(floating sample, floating step, floating alpha) noexcept nogil:
    return (step + sample) * alpha


cdef void random_steps(
    const floating *sample, Py_ssize_t step, const Py_ssize_t *size, const Py_ssize_t *wanted,
    const Py_ssize_t *kernel, Py_ssize_t *begins, Py_ssize_t *ends,
) noexcept nogil:
    """Write where windows begin and end: evenly spread, moved by the samples, then cut to whole numbers."""
    cdef Py_ssize_t d, i
    cdef floating alpha
    for d in range(3):
        alpha = <floating> ((size[d] - kernel[d]) / <double> max(wanted[d] - 1, 1))
        for i in range(wanted[d]):
            begins[i] = size[d] - kernel[d]
            if i < wanted[d] - 1:
                begins[i] = (
                    <Py_ssize_t> moved(sample[d * step], <floating> i, alpha)
                    - <Py_ssize_t> moved(sample[d * step], <floating> 0, alpha)
                )
            ends[i] = begins[i] + kernel[d]
        begins += wanted[d]
        ends += wanted[d]


cdef pooled(np.ndarray image, tuple output_size, tuple kernel_size, np.ndarray samples):
    """Return the maxima of images (N, C, *spatial), and their places in the flattened image.

    Windows divide the images evenly if `samples` is None.
    """
    cdef np.ndarray values, places
    cdef int dims = np.PyArray_NDIM(image) - 2, number = type_of(image), d, lead = 3 - dims
    cdef Py_ssize_t size[3]
    cdef Py_ssize_t wanted[3]
    cdef Py_ssize_t kernel[3]
    cdef np.npy_intp shape[5]
    cdef Py_ssize_t plane = 1, windows = 1, bounds = 0, n, i, images
    cdef Py_ssize_t *begins
    cdef Py_ssize_t *ends
    cdef char *sample = NULL
    cdef Py_ssize_t step = 1
    if not np.PyArray_IS_C_CONTIGUOUS(image):
        image = np.PyArray_GETCONTIGUOUS(image)
    shape[0], shape[1] = np.PyArray_DIM(image, 0), np.PyArray_DIM(image, 1)
    images = shape[0] * shape[1]
    for d in range(3):
        size[d] = wanted[d] = kernel[d] = 1
    for d in range(dims):
        size[lead + d] = np.PyArray_DIM(image, 2 + d)
        wanted[lead + d] = shape[2 + d] = output_size[d]
        kernel[lead + d] = kernel_size[d] if samples is not None else 1
        plane *= size[lead + d]
        windows *= shape[2 + d]
    for d in range(3):
        bounds += wanted[d]
    values = new_array(descriptors[number], dims + 2, shape, NULL)
    places = new_array(descriptors[TP_I64], dims + 2, shape, NULL)
    begins = <Py_ssize_t *> malloc((2 * bounds + 1) * sizeof(Py_ssize_t))
    if begins == NULL:
        raise MemoryError
    ends = begins + bounds
    if samples is None:
        n = 0
        for d in range(3):
            for i in range(wanted[d]):
                begins[n] = i * size[d] // wanted[d]
                ends[n] = ((i + 1) * size[d] + wanted[d] - 1) // wanted[d]
                n += 1
    else:  # of images the first sample is that of the width, of volumes that of the depth
        sample = <char *> np.PyArray_DATA(samples)
        step = -1 if dims == 2 else 1
    with nogil:
        for n in range(images):
            if number == TP_F64:
                if sample != NULL:
                    random_steps(
                        <const double *> sample + n * dims + (2 if dims == 2 else 0), step, size, wanted, kernel,
                        begins, ends,
                    )
                pool(
                    <const double *> np.PyArray_DATA(image) + n * plane,
                    <double *> np.PyArray_DATA(values) + n * windows,
                    <int64_t *> np.PyArray_DATA(places) + n * windows, size, wanted, begins, ends,
                )
            else:
                if sample != NULL:
                    random_steps(
                        <const float *> sample + n * dims + (2 if dims == 2 else 0), step, size, wanted, kernel,
                        begins, ends,
                    )
                pool(
                    <const float *> np.PyArray_DATA(image) + n * plane,
                    <float *> np.PyArray_DATA(values) + n * windows,
                    <int64_t *> np.PyArray_DATA(places) + n * windows, size, wanted, begins, ends,
                )
    free(begins)
    return values, places


def adaptive_max_pool(input, tuple output_size):
    """Return the maxima of windows that divide images evenly, and their places in the flattened image.

    Channels last where the input is.
    """
    cdef np.ndarray image = plain_array(input)
    found = pooled(image, output_size, (), None)
    if layout_of(image) != CHANNELS_LAST and not is_taken_for_channels_last(image):
        return found
    values, places = found
    return channels_last(values), channels_last(places)


cdef np.ndarray channels_last(np.ndarray array):
    cdef np.ndarray result = laid_out(
        array.dtype, np.PyArray_NDIM(array), np.PyArray_DIMS(array), CHANNELS_LAST
    )
    result[...] = array
    return result


def fractional_max_pool(input, tuple kernel_size, tuple output_size, samples):
    """Return the maxima of windows at random steps, and their places in the flattened image."""
    cdef np.ndarray numbers = plain_array(samples)
    if not np.PyArray_IS_C_CONTIGUOUS(numbers):
        numbers = np.PyArray_GETCONTIGUOUS(numbers)
    return pooled(plain_array(input), output_size, kernel_size, numbers)
