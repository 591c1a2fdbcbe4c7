"""Random bits."""

cimport numpy as np
from libc.stdint cimport int64_t, uint64_t

from .allocator cimport new_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_I64, descriptors

np.import_array()

cdef extern from "c/random.h":
    ctypedef struct tp_random:
        void (*philox)(int64_t *, Py_ssize_t, uint64_t, uint64_t, uint64_t, int) noexcept nogil

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
