cimport cython

from .execution cimport execute
from .op cimport Op
from .state cimport DispatchState
from ..tensor.base cimport Storage, TensorBase

cdef DispatchState dispatch_state

cpdef executed(Op op, tuple args, dict kwargs)

@cython.locals(result=TensorBase, part=TensorBase, shown=Storage)
cpdef released(object results, object args, object kwargs)

cdef Storage _memory(Storage storage)

@cython.locals(tensor=TensorBase)
cdef bint _is_shown(Storage memory, object values)
