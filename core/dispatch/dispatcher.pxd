from .arguments cimport plain_arguments
from .state cimport DispatchState
from .execution cimport execute
from .op cimport Op

cdef DispatchState dispatch_state

cpdef general(Op op, tuple args, dict kwargs)
cpdef run(Op op, tuple args, dict kwargs)
