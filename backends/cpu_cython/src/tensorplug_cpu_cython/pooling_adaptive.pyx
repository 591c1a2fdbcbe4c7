"""The largest elements of windows that divide images as evenly as can be, and where they are."""

cimport numpy as np
from cython cimport floating
from libc.stdint cimport int64_t

from .allocator cimport new_array, plain_array
from .types cimport TP_F64, TP_I64, descriptors, type_of

np.import_array()


cdef void pool(
    const floating *image, floating *values, int64_t *places, const Py_ssize_t *size, const Py_ssize_t *wanted
) noexcept nogil:
    """Pool one image of three dimensions; the first of equal maxima counts, and NaN is above all."""
    cdef Py_ssize_t i, j, k, a, b, c, at, best, number = 0
    cdef Py_ssize_t begin[3]
    cdef Py_ssize_t end[3]
    cdef floating value, largest
    for i in range(wanted[0]):
        begin[0], end[0] = i * size[0] // wanted[0], ((i + 1) * size[0] + wanted[0] - 1) // wanted[0]
        for j in range(wanted[1]):
            begin[1], end[1] = j * size[1] // wanted[1], ((j + 1) * size[1] + wanted[1] - 1) // wanted[1]
            for k in range(wanted[2]):
                begin[2] = k * size[2] // wanted[2]
                end[2] = ((k + 1) * size[2] + wanted[2] - 1) // wanted[2]
                best = -1
                largest = 0
                for a in range(begin[0], end[0]):
                    for b in range(begin[1], end[1]):
                        for c in range(begin[2], end[2]):
                            at = (a * size[1] + b) * size[2] + c
                            value = image[at]
                            if best < 0 or value > largest or (value != value and largest == largest):
                                best, largest = at, value
                values[number], places[number] = largest, best
                number += 1


def adaptive_max_pool(input, tuple output_size):
    """Return the maxima of images (N, C, *spatial), and their places in the flattened image."""
    cdef np.ndarray image = plain_array(input), values, places
    cdef int dims = np.PyArray_NDIM(image) - 2, number = type_of(image), d
    cdef Py_ssize_t size[3]
    cdef Py_ssize_t wanted[3]
    cdef np.npy_intp shape[5]
    cdef Py_ssize_t plane = 1, windows = 1, n, images
    if not np.PyArray_IS_C_CONTIGUOUS(image):
        image = np.PyArray_GETCONTIGUOUS(image)
    shape[0], shape[1] = np.PyArray_DIM(image, 0), np.PyArray_DIM(image, 1)
    images = shape[0] * shape[1]
    for d in range(3):
        size[d] = wanted[d] = 1
    for d in range(dims):
        size[3 - dims + d] = np.PyArray_DIM(image, 2 + d)
        wanted[3 - dims + d] = shape[2 + d] = output_size[d]
        plane *= size[3 - dims + d]
        windows *= shape[2 + d]
    values = new_array(descriptors[number], dims + 2, shape, NULL)
    places = new_array(descriptors[TP_I64], dims + 2, shape, NULL)
    with nogil:
        for n in range(images):
            if number == TP_F64:
                pool(
                    <const double *> np.PyArray_DATA(image) + n * plane,
                    <double *> np.PyArray_DATA(values) + n * windows,
                    <int64_t *> np.PyArray_DATA(places) + n * windows, size, wanted,
                )
            else:
                pool(
                    <const float *> np.PyArray_DATA(image) + n * plane,
                    <float *> np.PyArray_DATA(values) + n * windows,
                    <int64_t *> np.PyArray_DATA(places) + n * windows, size, wanted,
                )
    return values, places
