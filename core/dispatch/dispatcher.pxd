from .arguments cimport plain_arguments
from .released_views cimport executed
from .replay cimport replayed_unrecorded
from .state cimport DispatchState
from .op cimport Op
from ..tensor.base cimport TensorBase

cdef DispatchState dispatch_state

cpdef general(Op op, tuple args, dict kwargs)
cpdef run(Op op, tuple args, dict kwargs)
cpdef promoted(Op op, object input, object other)
