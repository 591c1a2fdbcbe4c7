cimport cython

from .call_keys cimport all_given, ambiguous
from .keys cimport DispatchKey
from .op cimport Op, Spec, first_tensor
from .view_plans cimport PlannedCall
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

@cython.locals(index=Py_ssize_t)
cdef bint _equals(object planned, object given)


cdef class CallCache:
    cdef public dict calls, replays
    cdef public PlannedCall latest
    cdef public CachedCall recent
    cdef public object replayed
    cdef public bint by_shape
    cdef public Py_ssize_t missed, refused, unrecorded
    cdef public bint converts, delegates

    @cython.locals(
        cached=CachedCall, values=tuple, keys=tuple, rest=tuple, given=tuple, names=tuple, gathered=list, position=Py_ssize_t, turn=Py_ssize_t, number=Py_ssize_t,
        alike=bint, tensor=TensorBase,
    )
    cdef CachedCall recalled(self, tuple args, dict kwargs, bint listed)

    @cython.locals(before=CachedCall)
    cdef note_recent(self, CachedCall cached, tuple args, dict kwargs, bint shaped)


@cython.locals(before=PlannedCall)
cpdef note_latest(CallCache cache, PlannedCall plan)


cpdef CachedCall cache_call(Op op, CallCache cache, object key, tuple args, dict kwargs, Spec spec)

cpdef cache_delegation(Op op, CallCache cache, object key, tuple args, dict kwargs, object delegated)

cpdef object store_plan(CallCache cache, object key, object plan)

cpdef object store_call(CallCache cache, object key, object cached)

@cython.locals(first=TensorBase, spec=Spec)
cpdef Spec spec_of_values(object values)
