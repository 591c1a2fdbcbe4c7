"""What the modules of compiled kernels share: the SIMD level, threads, types and new arrays."""

cimport numpy as np

cdef extern from "c/types.h":
    enum:
        TP_F32, TP_F64, TP_I64, TP_I32, TP_I16, TP_I8, TP_U8, TP_BOOL, TP_F16, TP_BF16, TP_TYPES

# 2, 3 or 4 for x86-64-v2 to v4; 0 where the kernels were compiled once.
cdef int simd_level

# How many threads to use for `count` elements of which `grain` are worth one.
cdef int threads_for(Py_ssize_t count, Py_ssize_t grain) noexcept nogil

# The TP_ number of an array's dtype, or -1.
cdef int type_of(np.ndarray array) noexcept

# The TP_ number of a dtype, or -1.
cdef int number_of(np.dtype descriptor) noexcept

# The dtype objects by TP_ number.
cdef list descriptors

# A new array of the allocator, C-contiguous if `strides` is NULL.
cdef np.ndarray new_array(np.dtype descriptor, int dims, const np.npy_intp *shape, const np.npy_intp *strides)

# A new array of the same shape, C-contiguous, of a TP_ type.
cdef np.ndarray new_like(np.ndarray array, int type_number)

# The array as one that kernels read: exact, aligned, of the host's byte order.
cdef np.ndarray plain_array(object value)
