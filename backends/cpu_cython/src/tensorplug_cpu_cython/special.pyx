"""Orthogonal polynomials by their recurrences, element by element."""

import numpy

cimport numpy as np
from cython cimport floating
from libc.math cimport trunc

from .allocator cimport new_array, plain_array
from .types cimport TP_F64, descriptors, type_of

np.import_array()

cdef enum:
    CHEBYSHEV_T, CHEBYSHEV_U, CHEBYSHEV_V, CHEBYSHEV_W, HERMITE_H, HERMITE_HE, LAGUERRE_L, LEGENDRE_P

cdef dict NUMBERS = {
    "chebyshev_t": CHEBYSHEV_T,
    "chebyshev_u": CHEBYSHEV_U,
    "chebyshev_v": CHEBYSHEV_V,
    "chebyshev_w": CHEBYSHEV_W,
    "hermite_h": HERMITE_H,
    "hermite_he": HERMITE_HE,
    "laguerre_l": LAGUERRE_L,
    "legendre_p": LEGENDRE_P,
}


cdef floating value_of(floating x, floating degree, int family) noexcept nogil:
    """Return the polynomial of a degree, whose fraction does not count; of none below 0 there is one."""
    cdef floating before = 1, last, following, k
    degree = trunc(degree)
    if not 0 <= degree <= 1e18:
        return 0
    if degree == 0:
        return before
    if family == CHEBYSHEV_U or family == HERMITE_H:
        last = 2 * x
    elif family == CHEBYSHEV_V:
        last = 2 * x - 1
    elif family == CHEBYSHEV_W:
        last = 2 * x + 1
    elif family == LAGUERRE_L:
        last = 1 - x
    else:
        last = x
    for step in range(1, <Py_ssize_t> degree):
        k = step
        if family <= CHEBYSHEV_W:
            following = 2 * x * last - before
        elif family == HERMITE_H:
            following = 2 * (x * last - k * before)
        elif family == HERMITE_HE:
            following = x * last - k * before
        elif family == LAGUERRE_L:
            following = ((2 * k + 1 - x) * last - k * before) / (k + 1)
        else:
            following = ((2 * k + 1) * x * last - k * before) / (k + 1)
        before = last
        last = following
    return last


cdef void fill(
    const floating *x, Py_ssize_t step, const floating *degree, Py_ssize_t degree_step, floating *result,
    Py_ssize_t count, int family,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        result[i] = value_of(x[i * step], degree[i * degree_step], family)


cdef np.ndarray contiguous(np.ndarray array):
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else np.PyArray_GETCONTIGUOUS(array)


cdef np.ndarray broadcast(np.ndarray x, np.ndarray degree, int number, int family):
    """Return polynomials where both arguments have dimensions of their own."""
    cdef np.broadcast pairs = np.PyArray_MultiIterNew2(x, degree)
    cdef np.ndarray result = new_array(descriptors[number], pairs.nd, pairs.dimensions, NULL)
    cdef void *out = np.PyArray_DATA(result)
    cdef Py_ssize_t i
    for i in range(np.PyArray_SIZE(result)):
        if number == TP_F64:
            (<double *> out)[i] = value_of(
                (<double *> np.PyArray_MultiIter_DATA(pairs, 0))[0],
                (<double *> np.PyArray_MultiIter_DATA(pairs, 1))[0], family,
            )
        else:
            (<float *> out)[i] = value_of(
                (<float *> np.PyArray_MultiIter_DATA(pairs, 0))[0],
                (<float *> np.PyArray_MultiIter_DATA(pairs, 1))[0], family,
            )
        np.PyArray_MultiIter_NEXT(pairs)
    return result


def orthogonal_polynomial(input, n, family):
    """Return polynomials of the degrees `n` at `input`, which are broadcast; one of them may be a number."""
    cdef int number = type_of(input if isinstance(input, numpy.ndarray) else n), which = NUMBERS[family]
    cdef np.ndarray x = plain_array(numpy.asarray(input, descriptors[number]))
    cdef np.ndarray degree = plain_array(numpy.asarray(n, descriptors[number])), shaped, result
    cdef Py_ssize_t x_step = np.PyArray_NDIM(x) > 0, degree_step = np.PyArray_NDIM(degree) > 0, count
    if x_step and degree_step and (<object> x).shape != (<object> degree).shape:
        return broadcast(x, degree, number, which)
    x, degree = contiguous(x), contiguous(degree)
    shaped = x if x_step else degree
    result = new_array(descriptors[number], np.PyArray_NDIM(shaped), np.PyArray_DIMS(shaped), NULL)
    count = np.PyArray_SIZE(result)
    with nogil:
        if number == TP_F64:
            fill(
                <const double *> np.PyArray_DATA(x), x_step, <const double *> np.PyArray_DATA(degree),
                degree_step, <double *> np.PyArray_DATA(result), count, which,
            )
        else:
            fill(
                <const float *> np.PyArray_DATA(x), x_step, <const float *> np.PyArray_DATA(degree),
                degree_step, <float *> np.PyArray_DATA(result), count, which,
            )
    return result
