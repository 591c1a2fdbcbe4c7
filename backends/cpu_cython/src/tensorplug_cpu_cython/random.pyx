"""Random bits, and numbers of them."""

cimport numpy as np
from libc.stdint cimport int64_t, uint64_t

from .allocator cimport new_array, new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_F32, TP_I64, descriptors, type_of

np.import_array()

cdef extern from "c/random.h":
    ctypedef struct tp_random:
        void (*philox)(int64_t *, Py_ssize_t, uint64_t, uint64_t, uint64_t, int) noexcept nogil
        void (*uniform)(const int64_t *, float *, Py_ssize_t, int, int) noexcept nogil
        void (*normal)(const int64_t *, const int64_t *, float *, Py_ssize_t, int) noexcept nogil

cdef extern from *:
    """
    #define tp_random_of(level) TP_CHOOSE(tp_random_table, level)
    """
    const tp_random *tp_random_of(int)

cdef const tp_random *kernels = tp_random_of(simd_level)


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


cdef np.ndarray words_of(object value):
    """Return words that lie one after the other."""
    cdef np.ndarray words = plain_array(value)
    if type_of(words) != TP_I64:
        raise TypeError("random words are of int64")
    return words if np.PyArray_IS_C_CONTIGUOUS(words) else np.PyArray_GETCONTIGUOUS(words)


def uniform_of_words(words, int kept):
    """Return numbers from 0 to below 1, each of the first bits of a word."""
    cdef np.ndarray given = words_of(words), result = new_like(given, TP_F32)
    cdef Py_ssize_t count = np.PyArray_SIZE(given)
    with nogil:
        kernels.uniform(
            <const int64_t *> np.PyArray_DATA(given), <float *> np.PyArray_DATA(result), count, kept,
            threads_for(count, 65536),
        )
    return result


def normal_of_words(radius, angle):
    """Return normal numbers of pairs of words."""
    cdef np.ndarray first = words_of(radius), second = words_of(angle), result = new_like(first, TP_F32)
    cdef Py_ssize_t count = np.PyArray_SIZE(first)
    if np.PyArray_SIZE(second) != count:
        raise ValueError("there are as many angles as radii")
    with nogil:
        kernels.normal(
            <const int64_t *> np.PyArray_DATA(first), <const int64_t *> np.PyArray_DATA(second),
            <float *> np.PyArray_DATA(result), count, threads_for(count, 16384),
        )
    return result
