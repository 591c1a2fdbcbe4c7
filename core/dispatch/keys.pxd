cimport cython

cdef dict _KEYS

cdef class DispatchKey:
    cdef public object array_type, as_array, device, dtype, runtime
    cdef public bint intercepts, is_differentiable, is_meta
    cdef public list kernels, results, writers
    cdef public dict scalars

    @cython.locals(known=dict)
    cpdef scalar(self, value)
    cpdef DispatchKey with_dtype(self, dtype)


@cython.locals(key=DispatchKey)
cpdef DispatchKey dispatch_key(object device, object dtype)

cpdef object default_device()

cpdef object made_key(tuple values)
