"""New arrays, for the modules of compiled kernels."""

cimport numpy as np

# A new array of the allocator, C-contiguous if `strides` is NULL.
cdef np.ndarray new_array(np.dtype descriptor, int dims, const np.npy_intp *shape, const np.npy_intp *strides)

# A new array of the same shape, C-contiguous, of a TP_ type.
cdef np.ndarray new_like(np.ndarray array, int type_number)

# The array as one that kernels read: exact, aligned, of the host's byte order.
cdef np.ndarray plain_array(object value)
