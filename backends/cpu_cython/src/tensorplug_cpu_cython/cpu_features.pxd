"""The SIMD level and the threads, for the modules of compiled kernels."""

# 2, 3 or 4 for x86-64-v2 to v4; 0 where the kernels were compiled once.
cdef int simd_level

# How many threads to use for `count` elements of which `grain` are worth one.
cdef int threads_for(Py_ssize_t count, Py_ssize_t grain) noexcept nogil
