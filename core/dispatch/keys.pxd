cimport cython


cdef class DispatchKey:
    cdef public object array_type, as_array, device, dtype, runtime
    cdef public bint intercepts, is_differentiable, is_meta
    cdef public list kernels, results, writers
    cdef public dict scalars

    @cython.locals(known=dict)
    cpdef scalar(self, value)
    cpdef DispatchKey with_dtype(self, dtype)
