from .kinds cimport Kind


cdef class Spec:
    cdef public Kind kind
    cdef public tuple outputs, values


cdef class Op:
    cdef public str name, owner, sort
    cdef public object index, function, call, rule, inplace_body, inplace, method, defaults, scaled, _signature
    cdef public bint declared, elementwise, mixed, pointwise, view, overridden
    cdef public tuple parameters, names, outputs, writes, aliases
    cdef public int arity, optional

    cpdef tuple bind(self, tuple args, dict kwargs)


cpdef object first_tensor(object values)
