"""Random bits, sums along a dimension, and joined arrays."""

import numpy

cimport numpy as np
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc

from . import pointwise

from .machine cimport (
    TP_BF16, TP_F16, TP_F32, TP_F64, TP_I64, descriptors, new_array, new_like, plain_array, simd_level,
    threads_for, type_of,
)

np.import_array()

cdef extern from "c/sequences.h":
    ctypedef void (*tp_cumsum)(const void *, void *, Py_ssize_t, Py_ssize_t, Py_ssize_t, int) noexcept nogil
    ctypedef struct tp_sequences:
        void (*philox)(int64_t *, Py_ssize_t, uint64_t, uint64_t, uint64_t, int) noexcept nogil
        tp_cumsum cumsum[3]
        void (*join)(
            char *, const char *const *, const Py_ssize_t *, Py_ssize_t, Py_ssize_t, int) noexcept nogil

cdef extern from *:
    """
    #define tp_sequences_of(level) TP_CHOOSE(tp_sequence_table, level)
    """
    const tp_sequences *tp_sequences_of(int)

cdef const tp_sequences *kernels = tp_sequences_of(simd_level)


def philox_bits(tuple shape, seed, offset):
    """Return 32-bit words by counter, as int64."""
    cdef np.npy_intp sizes[64]
    cdef int i
    cdef np.ndarray result
    cdef Py_ssize_t count
    cdef uint64_t key = seed, low = offset & 0xFFFFFFFFFFFFFFFF, high = offset >> 64
    for i in range(len(shape)):
        sizes[i] = shape[i]
    result = new_array(<np.dtype> descriptors[TP_I64], <int> len(shape), sizes, NULL)
    count = np.PyArray_SIZE(result)
    if count:
        with nogil:
            kernels.philox(<int64_t *> np.PyArray_DATA(result), count, key, low, high, threads_for(count, 16384))
    return result


def cumsum(input, int dim):
    """Return the sums of each element and all before it along `dim`."""
    cdef np.ndarray array = plain_array(input), result
    cdef int number = type_of(array), i, which
    cdef Py_ssize_t before = 1, n = 1, after = 1, total = np.PyArray_SIZE(array)
    if number == TP_F16 or number == TP_BF16:
        return pointwise.cast(cumsum(pointwise.cast(array, descriptors[TP_F32]), dim), descriptors[number])
    if not np.PyArray_IS_C_CONTIGUOUS(array):
        array = pointwise.clone(array)
    result = new_like(array, number)
    if not total:
        return result
    for i in range(np.PyArray_NDIM(array)):
        if i < dim:
            before *= np.PyArray_DIM(array, i)
        elif i == dim:
            n = np.PyArray_DIM(array, i)
        else:
            after *= np.PyArray_DIM(array, i)
    which = 0 if number == TP_F32 else 1 if number == TP_F64 else 2
    with nogil:
        kernels.cumsum[which](
            np.PyArray_DATA(array), np.PyArray_DATA(result), before, n, after, threads_for(total, 32768)
        )
    return result


# Below so many bytes a piece is copied faster by what knows the size of an element.
cdef enum:
    SHORT_PIECE = 64, HOLD_BYTES = 32768, GRAIN_BYTES = 262144, FEW = 32


def join(arrays, int dim, bint stacked):
    """Return arrays of one dtype behind each other along `dim`, a new dimension if they are stacked."""
    cdef Py_ssize_t count = len(arrays), k, rows = 1, inner, length = 0, shortest = -1, total
    cdef const char *few_sources[32]
    cdef Py_ssize_t few_bytes[32]
    cdef const char **sources = few_sources
    cdef Py_ssize_t *sizes = few_bytes
    cdef np.npy_intp shape[64]
    cdef list plain = []
    cdef np.ndarray array, first, result
    cdef np.dtype descriptor
    cdef int dims, i, number
    for value in arrays:
        array = plain_array(value)
        number = type_of(array)
        if number >= 0 and not np.PyArray_IS_C_CONTIGUOUS(array) and np.PyArray_SIZE(array) > FEW:
            array = pointwise.clone(array)
        plain.append(array)
    first = <np.ndarray> plain[0]
    descriptor = (<object> first).dtype
    dims = np.PyArray_NDIM(first)
    inner = np.PyArray_ITEMSIZE(first)
    for i in range(dims):
        if i < dim:
            rows *= np.PyArray_DIM(first, i)
        elif i > dim or stacked:
            inner *= np.PyArray_DIM(first, i)
    if count > FEW:
        sources = <const char **> malloc(count * (sizeof(char *) + sizeof(Py_ssize_t)))
        if sources == NULL:
            raise MemoryError()
        sizes = <Py_ssize_t *> (sources + count)
    try:
        for k in range(count):
            array = <np.ndarray> plain[k]
            sources[k] = <const char *> np.PyArray_DATA(array)
            sizes[k] = inner if stacked else inner * np.PyArray_DIM(array, dim)
            length += 1 if stacked else np.PyArray_DIM(array, dim)
            if shortest < 0 or sizes[k] < shortest:
                shortest = sizes[k]
            if not np.PyArray_IS_C_CONTIGUOUS(array) or (<object> array).dtype is not descriptor:
                shortest = 0
        for i in range(dims):
            shape[i + (1 if stacked and i >= dim else 0)] = np.PyArray_DIM(first, i)
        shape[dim] = length
        result = new_array(descriptor, dims + (1 if stacked else 0), shape, NULL)
        total = np.PyArray_NBYTES(result)
        if not total:
            return result
        if rows > 1 and shortest < SHORT_PIECE or not shortest:
            return (numpy.stack if stacked else numpy.concatenate)(plain, dim, out=result)
        if total < HOLD_BYTES:
            kernels.join(<char *> np.PyArray_DATA(result), sources, sizes, count, rows, 1)
        else:
            with nogil:
                kernels.join(
                    <char *> np.PyArray_DATA(result), sources, sizes, count, rows,
                    threads_for(total, GRAIN_BYTES),
                )
        return result
    finally:
        if count > FEW:
            free(sources)
