cimport cython

from .call_cache cimport CallCache
from .keys cimport DispatchKey
from .arguments cimport has_number
from .composite_runs cimport any_tracked
from .op cimport Op
from .programs cimport Program
from .state cimport DispatchState
from ..tensor.base cimport TensorBase, new_tensor

cdef DispatchState dispatch_state
cdef int TRACKED


cdef class Replay:
    cdef public Program program
    cdef public Replay following
    cdef public bint refused, tracked
    cdef public int failed, seen
    cdef public DispatchKey key
    cdef public object shape, container, told, recorded
    cdef public tuple keys, parts, shapes


@cython.locals(
    parts=list, tensors=list, recorded=bint, key=tuple, replay=Replay, latest=Replay, program=Program, outputs=list,
    tensor=TensorBase, number=Py_ssize_t, arrays=list, tracked=bint, found_tracked=int, found_named=int
)
cpdef object replayed(Op op, CallCache cache, tuple args, dict kwargs)

@cython.locals(parts=tuple, position=Py_ssize_t)
cdef bint _is_of(Replay replay, tuple args, dict kwargs, list tensors, bint recorded)

@cython.locals(tensor=TensorBase, end=Py_ssize_t)
cdef Py_ssize_t _passed(object values, tuple parts, Py_ssize_t position, list tensors, bint recorded) except -2

@cython.locals(tensor=TensorBase, tracked=int, found=int)
cdef int _collect(object values, list parts, list tensors, bint recorded) except -2

cpdef object replayed_unrecorded(Op op, CallCache cache, tuple args, dict kwargs)

cdef _refuse(CallCache cache, bint tracked, Py_ssize_t calls)

cdef object _output(object array, DispatchKey key, object shape)
