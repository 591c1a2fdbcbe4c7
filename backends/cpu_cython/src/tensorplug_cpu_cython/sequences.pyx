"""Random bits, and sums along a dimension."""

cimport numpy as np
from libc.stdint cimport int64_t, uint64_t

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
