"""Dropout by Philox's words."""

import math

import numpy

cimport numpy as np
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from . import pointwise

from .allocator cimport new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BF16, TP_BOOL, TP_F16, TP_F32, TP_F64, descriptors, type_of

np.import_array()

cdef extern from "c/dropout.h":
    ctypedef struct tp_dropout:
        uint64_t seed, offset, upper
        uint32_t least
        double scale
    ctypedef struct tp_dropouts:
        void (*forward[2])(const tp_dropout *, const void *, void *, uint8_t *, Py_ssize_t, int) noexcept nogil
        void (*backward[2])(const void *, const uint8_t *, double, void *, Py_ssize_t, int) noexcept nogil

cdef extern from *:
    """
    #define tp_dropouts_of(level) TP_CHOOSE(tp_dropout_table, level)
    """
    const tp_dropouts *tp_dropouts_of(int)

cdef const tp_dropouts *kernels = tp_dropouts_of(simd_level)

cdef enum:
    GRAIN = 8192, HOLD = 1024


cdef np.ndarray contiguous(object value, int number):
    cdef np.ndarray array = plain_array(value)
    if type_of(array) != number:
        array = pointwise.cast(array, descriptors[number])
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef double scale_of(double p, int number) except -1:
    """Return what is kept's factor, as exact as the dtype has it."""
    cdef double scale = 1 / (1 - p) if p < 1 else 0.0
    if number == TP_F16 or number == TP_BF16:
        return float(numpy.asarray(scale, descriptors[number]))
    return scale


def forward(input, double p, seed, offset):
    """Return the input with elements zeroed, and which were kept."""
    cdef np.ndarray given = plain_array(input), array, result, kept
    cdef int number = type_of(given), wide = TP_F64 if number == TP_F64 else TP_F32, threads
    cdef Py_ssize_t count
    cdef tp_dropout d
    d.seed = seed
    d.offset = offset & 0xFFFFFFFFFFFFFFFF
    d.upper = offset >> 64
    d.least = math.ceil(<double> <float> p * 16777216.0)
    d.scale = scale_of(p, number)
    array = contiguous(given, wide)
    result = new_like(array, wide)
    kept = new_like(array, TP_BOOL)
    count = np.PyArray_SIZE(array)
    threads = threads_for(count, GRAIN)
    if count < HOLD:
        kernels.forward[wide == TP_F64](
            &d, np.PyArray_DATA(array), np.PyArray_DATA(result), <uint8_t *> np.PyArray_DATA(kept), count, 1
        )
    else:
        with nogil:
            kernels.forward[wide == TP_F64](
                &d, np.PyArray_DATA(array), np.PyArray_DATA(result), <uint8_t *> np.PyArray_DATA(kept), count,
                threads,
            )
    return result if wide == number else pointwise.cast(result, descriptors[number]), kept


def backward(g, kept, double p):
    """Return the gradient, scaled where the element was kept and zero elsewhere."""
    cdef np.ndarray given = plain_array(g), array, mask = plain_array(kept), result
    cdef int number = type_of(given), wide = TP_F64 if number == TP_F64 else TP_F32
    cdef Py_ssize_t count
    cdef double scale = scale_of(p, number)
    if np.PyArray_NDIM(given) != np.PyArray_NDIM(mask) or np.PyArray_SIZE(given) != np.PyArray_SIZE(mask):
        given, mask = numpy.broadcast_arrays(given, mask)
        given, mask = plain_array(given), plain_array(mask)
    array = contiguous(given, wide)
    mask = contiguous(mask, TP_BOOL)
    result = new_like(array, wide)
    count = np.PyArray_SIZE(array)
    with nogil:
        kernels.backward[wide == TP_F64](
            np.PyArray_DATA(array), <const uint8_t *> np.PyArray_DATA(mask), scale, np.PyArray_DATA(result), count,
            threads_for(count, 4 * GRAIN),
        )
    return result if wide == number else pointwise.cast(result, descriptors[number])
