"""Cross products of vectors in any layout."""

cimport numpy as np
from libc.stdint cimport int32_t, int64_t

from .allocator cimport new_array, plain_array

np.import_array()


ctypedef fused number:
    float
    double
    int64_t
    int32_t


cdef void products(
    const number *sample, char **data, const Py_ssize_t *at, const Py_ssize_t *steps, Py_ssize_t count
) noexcept nogil:
    """Write the products of a row of vectors; `at` are the strides of their elements, `steps` those of the vectors."""
    cdef char *x = data[0]
    cdef char *y = data[1]
    cdef char *z = data[2]
    cdef number a, b, c, d, e, f
    cdef Py_ssize_t i
    for i in range(count):
        a, b, c = (<number *> x)[0], (<number *> (x + at[0]))[0], (<number *> (x + 2 * at[0]))[0]
        d, e, f = (<number *> y)[0], (<number *> (y + at[1]))[0], (<number *> (y + 2 * at[1]))[0]
        (<number *> z)[0] = b * f - c * e
        (<number *> (z + at[2]))[0] = c * d - a * f
        (<number *> (z + 2 * at[2]))[0] = a * e - b * d
        x += steps[0]
        y += steps[1]
        z += steps[2]


def cross(input, other, int dim):
    """Return the cross products along `dim` of arrays of as many dimensions and of one dtype, which broadcast."""
    cdef np.ndarray a = plain_array(input), b = plain_array(other), result, array
    cdef int dims = np.PyArray_NDIM(a), d, k, row = -1, kind = np.PyArray_TYPE(a)
    cdef np.npy_intp shape[64]
    cdef Py_ssize_t strides[3][64]
    cdef Py_ssize_t place[64]
    cdef Py_ssize_t at[3]
    cdef Py_ssize_t steps[3]
    cdef Py_ssize_t rows = 1, count = 1, r
    cdef char *data[3]
    dim += dims if dim < 0 else 0
    for d in range(dims):
        shape[d] = np.PyArray_DIM(a, d) if np.PyArray_DIM(a, d) != 1 else np.PyArray_DIM(b, d)
        place[d] = 0
        if d != dim:
            row = d
            rows *= shape[d]
    result = new_array(a.descr, dims, shape, NULL)
    if not rows:
        return result
    for k in range(3):
        array = a if k == 0 else b if k == 1 else result
        data[k] = <char *> np.PyArray_DATA(array)
        for d in range(dims):
            strides[k][d] = 0 if np.PyArray_DIM(array, d) == 1 else np.PyArray_STRIDE(array, d)
        at[k] = strides[k][dim]
        steps[k] = 0 if row < 0 else strides[k][row]
    if row >= 0:
        count = shape[row]
        rows //= count
    with nogil:
        for r in range(rows):
            if kind == np.NPY_FLOAT32:
                products(<const float *> NULL, data, at, steps, count)
            elif kind == np.NPY_FLOAT64:
                products(<const double *> NULL, data, at, steps, count)
            elif kind == np.NPY_INT64:
                products(<const int64_t *> NULL, data, at, steps, count)
            else:
                products(<const int32_t *> NULL, data, at, steps, count)
            d = row - 1
            while d >= 0:
                if d != dim:
                    place[d] += 1
                    for k in range(3):
                        data[k] += strides[k][d]
                    if place[d] < shape[d]:
                        break
                    for k in range(3):
                        data[k] -= shape[d] * strides[k][d]
                    place[d] = 0
                d -= 1
    return result
