cimport cython

from .keys cimport DispatchKey
from .op cimport Op, Spec, first_tensor
from ..tensor.base cimport TensorBase, new_tensor


cdef class CachedCall:
    cdef public list template, raw
    cdef public tuple slots, arg_indices, outputs, keys, given, names, rest
    cdef public DispatchKey key, result
    cdef public bint listed, native
    cdef public dict recordings
    cdef public object function, shape
    cdef public CachedCall following

    @cython.locals(values=list, number=Py_ssize_t, slot=Py_ssize_t)
    cpdef list fill(self, tuple args)


cdef object kept(object value)

cdef bint of_ints(list values)

@cython.locals(index=Py_ssize_t)
cdef bint _equals(object planned, object given)


cdef class PlannedCall:
    cdef public DispatchKey key
    cdef public object given, first, second, third, fourth, recording
    cdef public PlannedCall following

    cdef bint is_of(self, TensorBase source, object first, object second, object third, object fourth)


@cython.locals(index=Py_ssize_t)
cdef bint _same(object planned, object given)


cdef class ViewPlan(PlannedCall):
    cdef public Op op
    cdef public tuple values, steps
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


cdef class CallCache:
    cdef public dict calls, replays
    cdef public PlannedCall latest
    cdef public CachedCall recent
    cdef public object replayed
    cdef public bint by_shape
    cdef public Py_ssize_t missed, refused, unrecorded
    cdef public bint delegates

    @cython.locals(
        cached=CachedCall, values=tuple, keys=tuple, rest=tuple, given=tuple, names=tuple, gathered=list, position=Py_ssize_t, turn=Py_ssize_t, number=Py_ssize_t,
        alike=bint, tensor=TensorBase,
    )
    cdef CachedCall recalled(self, tuple args, dict kwargs, bint listed)

    @cython.locals(before=CachedCall)
    cdef note_recent(self, CachedCall cached, tuple args, dict kwargs, bint shaped)


@cython.locals(before=PlannedCall)
cpdef note_latest(CallCache cache, PlannedCall plan)


@cython.locals(parts=list, tensor=TensorBase)
cpdef tuple call_key(tuple args, dict kwargs)

cpdef bint any_named(dict kwargs, dict names)

@cython.locals(named=list)
cpdef tuple all_given(tuple args, dict kwargs)

cpdef tuple item_types(object values)

cpdef CachedCall cache_call(Op op, CallCache cache, object key, tuple args, dict kwargs, Spec spec)

cpdef cache_delegation(Op op, CallCache cache, object key, tuple args, dict kwargs, object delegated)

cpdef bint ambiguous(tuple values)

cpdef bint zeros(object values)

cpdef object exact_key(object value)

cpdef object store_plan(CallCache cache, object key, object plan)

cpdef object store_call(CallCache cache, object key, object cached)

@cython.locals(first=TensorBase, spec=Spec)
cpdef Spec spec_of_values(object values)
