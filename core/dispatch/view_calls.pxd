cimport cython

from .arguments cimport plain_arguments
from .call_cache cimport CallCache, note_latest, store_plan
from .view_plans cimport PlannedCall, ViewChain, ViewPlan, ViewPlans, layout_read
from .composite_calls cimport call_overridden
from .composite_runs cimport run_decomposition
from .execution cimport note_shown, note_together, verify
from .keys cimport DispatchKey
from .op cimport Op
from .released_views cimport executed
from .state cimport DispatchState
from ..tensor.base cimport Storage, TensorBase, new_tensor

cdef DispatchState dispatch_state
cdef int ANYWHERE, AT_START, IN_ROWS, TRACKED
cdef object ABSENT

@cython.locals(known=CallCache, planned=PlannedCall, source=TensorBase)
cpdef show_again(Op op, object input, object first, object second, object third, object fourth)

@cython.locals(known=CallCache, source=TensorBase, key=tuple)
cpdef call_view(Op op, CallCache cache, tuple args, dict kwargs)

@cython.locals(plan=ViewPlan, plans=ViewPlans, chain=ViewChain, shown=TensorBase)
cdef _followed(object planned, TensorBase source)

cdef bint _lies(TensorBase source, int where)

@cython.locals(output=TensorBase)
cpdef TensorBase follow(ViewPlan plan, TensorBase source)

@cython.locals(outputs=list)
cdef _follow_together(ViewPlans plans, TensorBase source)

@cython.locals(key=DispatchKey, result=DispatchKey, op=Op, output=TensorBase, storage=Storage)
cdef TensorBase _made(ViewPlan plan, TensorBase source)

@cython.locals(source=TensorBase, tensor_key=DispatchKey, parts=list)
cdef tuple _view_key(tuple args, dict kwargs, bint by_shape)

@cython.locals(state=int)
cdef bint _tracked(TensorBase source)

cdef _run(Op op, CallCache cache, tuple args, dict kwargs)

@cython.locals(latest=PlannedCall)
cdef _run_and_plan(Op op, CallCache known, CallCache cache, object key, tuple args, dict kwargs)

@cython.locals(primitive=Op, plan=ViewPlan, plans=ViewPlans, made=TensorBase)
cdef PlannedCall _plan_of(Op op, TensorBase source, object result, list views, object together)

cdef _plan_together(ViewPlans plans, object together, object source, tuple outputs)
