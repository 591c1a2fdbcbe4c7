from .keys cimport DispatchKey


cdef class Spec:
    cdef public DispatchKey key
    cdef public tuple outputs, values


cdef class Op:
    cdef public str name, owner, kind, delegates
    cdef public object index, function, declaration, call, canonical, derivative, inplace_body, inplace, method, defaults
    cdef public object named, plans, promotions, reflected, scaled, inplace_of, _signature
    cdef public bint cacheable, checked, scales, declared, elementwise, fills, keeps_format, keeps_order, mixed, pointwise, pure, random, view, overridden, rows
    cdef public bint layout, reads_layout, returns_argument
    cdef public frozenset needed
    cdef public tuple flags, floats, integers, layouts, numbers, sequences, strings, parameters, names, outputs, updates, writes, aliases, masks
    cdef public int arity, leading, optional, scaled_sign

    cpdef tuple bind(self, tuple args, dict kwargs)
    cpdef object arguments(self, tuple args, dict kwargs)
    cpdef object decompose(self, tuple values)


cpdef object first_tensor(object values)
