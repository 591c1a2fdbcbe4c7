"""The numbers that the C kernels have for NumPy's dtypes."""

import ml_dtypes
import numpy

cimport numpy as np
from libc.string cimport memset

np.import_array()

cdef int numbers[32]
memset(numbers, -1, sizeof(numbers))
descriptors = [
    numpy.dtype(name)
    for name in ("f4", "f8", "i8", "i4", "i2", "i1", "u1", "?", "f2", ml_dtypes.bfloat16, "c8", "c16")
]
cdef int bfloat16_number = numpy.dtype(ml_dtypes.bfloat16).num


def _number_types():
    for number, descriptor in enumerate(descriptors):
        if descriptor.num < 32:
            numbers[descriptor.num] = number
    for other in ("q", "l", "i"):  # two C types have eight or four bytes
        numbers[numpy.dtype(other).num] = TP_I64 if numpy.dtype(other).itemsize == 8 else TP_I32


_number_types()


cdef int type_of(np.ndarray array) noexcept:
    cdef int number = by_type(np.PyArray_TYPE(array))
    return number if number < TP_TYPES else -1


cdef int element_of(np.ndarray array) noexcept:
    return by_type(np.PyArray_TYPE(array))


cdef int element_number(np.dtype descriptor) noexcept:
    return by_type(descriptor.type_num)


cdef inline int by_type(int number) noexcept:
    if number < 32:
        return numbers[number]
    return TP_BF16 if number == bfloat16_number else -1
