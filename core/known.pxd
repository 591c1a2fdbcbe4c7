cimport cython

from .kinds cimport Kind
from .op cimport Op, Spec, first_tensor
from .tensor_base cimport TensorBase, new_tensor


cdef class Known:
    cdef public list template, raw
    cdef public tuple places, positions, outputs
    cdef public Kind kind, result
    cdef public bint listed, native
    cdef public dict recordings
    cdef public object shape

    cpdef list fill(self, tuple args)


cdef class Memory:
    cdef public dict known


@cython.locals(parts=list, tensor=TensorBase)
cpdef tuple key_of(tuple args, dict kwargs)

cpdef Known remember(Op op, Memory memory, object key, tuple args, dict kwargs, Spec spec)

cpdef bint zeros(tuple values)

cpdef Known keep(Memory memory, object key, Known known)
