"""Random bits, and numbers made of them."""

cimport numpy as np
from libc.stdint cimport int64_t, uint64_t

from .allocator cimport new_array, new_like
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_F32, TP_I64, descriptors, type_of

np.import_array()

cdef extern from "c/random.h":
    ctypedef struct tp_random:
        void (*philox)(int64_t *, Py_ssize_t, uint64_t, uint64_t, uint64_t, int) noexcept nogil
        void (*uniform)(const int64_t *, float *, Py_ssize_t, int) noexcept nogil
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


cdef bint are_words(object value):
    return np.PyArray_CheckExact(value) and type_of(value) == TP_I64 and np.PyArray_ISCARRAY_RO(value)


def uniform_kernel(fallback):
    """Return the kernel of uniform numbers made of words, of float32."""
    def uniform_of_words(words, dtype):
        cdef np.ndarray result
        cdef Py_ssize_t count
        if dtype.name != "float32" or not are_words(words):
            return fallback(words, dtype)
        result = new_like(words, TP_F32)
        count = np.PyArray_SIZE(result)
        kernels.uniform(
            <const int64_t *> np.PyArray_DATA(words), <float *> np.PyArray_DATA(result), count, threads_for(count, 65536)
        )
        return result

    return uniform_of_words


def normal_kernel(fallback):
    """Return the kernel of normal numbers made of pairs of words, of float32."""
    def normal_of_words(radius, angle, dtype):
        cdef np.ndarray result
        cdef Py_ssize_t count
        if dtype.name != "float32" or not (are_words(radius) and are_words(angle) and radius.shape == angle.shape):
            return fallback(radius, angle, dtype)
        result = new_like(radius, TP_F32)
        count = np.PyArray_SIZE(result)
        kernels.normal(
            <const int64_t *> np.PyArray_DATA(radius), <const int64_t *> np.PyArray_DATA(angle),
            <float *> np.PyArray_DATA(result), count, threads_for(count, 16384),
        )
        return result

    return normal_of_words
