cimport cython

from .arguments cimport plain_arguments
from .call_cache cimport CallCache, ViewPlan, store_call
from .composite_calls cimport call_overridden, run_decomposition
from .execution cimport execute, note_shown
from .keys cimport DispatchKey
from .op cimport Op
from .state cimport DispatchState
from ..tensor.base cimport Storage, TensorBase, new_tensor

cdef DispatchState dispatch_state
cdef int TRACKED

@cython.locals(source=TensorBase, plan=ViewPlan, key=tuple)
cpdef call_view(Op op, CallCache plans, CallCache cache, tuple args, dict kwargs)

@cython.locals(key=DispatchKey, op=Op, output=TensorBase, storage=Storage)
cpdef TensorBase follow(ViewPlan plan, TensorBase source)

@cython.locals(source=TensorBase, tensor_key=DispatchKey, parts=list)
cdef tuple _view_key(tuple args, dict kwargs)

@cython.locals(state=int)
cdef bint _tracked(TensorBase source)

cdef _run(Op op, CallCache cache, tuple args, dict kwargs)

@cython.locals(primitive=Op, plan=ViewPlan)
cdef _run_and_plan(Op op, CallCache plans, CallCache cache, object key, tuple args, dict kwargs)
