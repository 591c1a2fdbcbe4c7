from .op cimport Op
from .state cimport DispatchState

cdef DispatchState dispatch_state

cpdef object run_out(Op op, tuple args, dict kwargs, object out)
