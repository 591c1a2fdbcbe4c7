"""Mantissas and exponents of real numbers."""

cimport numpy as np
from libc.stdint cimport int32_t

from . import pointwise

from .allocator cimport new_array, plain_array

np.import_array()

cdef extern from "<math.h>" nogil:
    float frexpf(float, int *)
    double frexp_of "frexp"(double, int *)


def frexp(input):
    """Return mantissas and exponents, float32 or float64."""
    cdef np.ndarray values = plain_array(input), mantissa, exponent
    cdef Py_ssize_t count = np.PyArray_SIZE(values), i
    cdef int dims = np.PyArray_NDIM(values)
    if not np.PyArray_IS_C_CONTIGUOUS(values):
        values = pointwise.clone(values)
    mantissa = new_array(values.descr, dims, np.PyArray_DIMS(values), NULL)
    exponent = new_array(<np.dtype> np.PyArray_DescrFromType(np.NPY_INT32), dims, np.PyArray_DIMS(values), NULL)
    cdef void *data = np.PyArray_DATA(mantissa)
    cdef const void *source = np.PyArray_DATA(values)
    cdef int32_t *powers = <int32_t *> np.PyArray_DATA(exponent)
    cdef bint single = np.PyArray_TYPE(values) == np.NPY_FLOAT32
    with nogil:
        if single:
            for i in range(count):
                (<float *> data)[i] = frexpf((<const float *> source)[i], <int *> &powers[i])
        else:
            for i in range(count):
                (<double *> data)[i] = frexp_of((<const double *> source)[i], <int *> &powers[i])
    return mantissa, exponent
