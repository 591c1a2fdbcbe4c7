cimport cython

from .keys cimport DispatchKey
from .op cimport Op
from ..tensor.base cimport TensorBase


cdef class PlannedCall:
    cdef public DispatchKey key
    cdef public object given, first, second, third, fourth, recording
    cdef public PlannedCall following

    cdef bint is_of(self, TensorBase source, object first, object second, object third, object fourth)


@cython.locals(index=Py_ssize_t)
cdef bint _same(object planned, object given)


cdef class ViewPlan(PlannedCall):
    cdef public Op op
    cdef public tuple values
    cdef public object shape
    cdef public DispatchKey result
    cdef public bint single
    cdef public int where


cpdef int layout_read(Op op)


cdef class ViewChain(PlannedCall):
    cdef public tuple views
    cdef public int where


cdef class ViewPlans(PlannedCall):
    cdef public tuple values, views
    cdef public Op op
    cdef public bint separate


cdef class RowPlans(PlannedCall):
    cdef public list rows
