cimport cython

from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.dispatch.call_cache cimport CachedCall
from tensorplug.core.dispatch.view_plans cimport ViewPlan, ViewPlans
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.tensor.base cimport Storage, TensorBase, extra_of, new_tensor, version_of

from ..engine.derivatives cimport Formula, Plan, CompiledDerivative
from .nodes cimport MultiNode, OpNode, OutputNode, new_node
from .views cimport edge_of, requires_grad

cdef DispatchState dispatch_state
cdef int TRACKED, ARGUMENT, OUTPUT, SHAPE, RESULT, PLAIN, NOWHERE
cdef tuple _NO_VERSIONS


cdef class Recording:
    cdef public CompiledDerivative rule
    cdef public Plan plan, watched
    cdef public tuple edges, saves, sizes


@cython.locals(
    saved=list, versions=list, position=Py_ssize_t, tensor=TensorBase, storage=Storage, pair=tuple,
    edge=Py_ssize_t, edges=list,
)
cpdef fill_node(Recording recording, OpNode node, tuple args, TensorBase first, object outputs)

cpdef bint any_requires(object values)

@cython.locals(output=TensorBase, tensor=TensorBase)
cpdef tuple save(int origin, int position, tuple values, tuple outputs)

@cython.locals(storage=Storage, kept=TensorBase)
cpdef TensorBase shared(TensorBase output)

@cython.locals(saved=list, versions=list, origin=int, position=int)
cpdef tuple save_all(Plan plan, tuple values, tuple outputs, dict versions_before=*)

@cython.locals(
    tracked=list, position=Py_ssize_t, rule=CompiledDerivative, plan=Plan, edges=list, sizes=list, formula=Formula,
    first=TensorBase, node=OpNode, several=MultiNode, tensor=TensorBase, output=TensorBase,
)
cpdef OpNode build(Op op, tuple values, tuple outputs, dict versions_before=*)

cdef class PlainRecording:
    cdef public CompiledDerivative rule
    cdef public Plan plan
    cdef public tuple saved, versions


@cython.locals(rule=CompiledDerivative, how=PlainRecording, node=OpNode)
cpdef OpNode build_view(Op op, TensorBase source, tuple values, TensorBase output, ViewPlan planned)

@cython.locals(op=Op, rule=CompiledDerivative, how=PlainRecording, node=MultiNode)
cpdef build_views(TensorBase source, list outputs, ViewPlans plans)

@cython.locals(rule=CompiledDerivative, how=PlainRecording, node=OpNode, edges=list, tensor=TensorBase)
cpdef build_listed(Op op, CachedCall cached, object tensors, TensorBase output)

@cython.locals(plan=Plan, saved=list, versions=tuple, kept=tuple, origin=int, position=Py_ssize_t, how=PlainRecording)
cdef PlainRecording _record_view(CompiledDerivative rule, TensorBase source, tuple values, object outputs)

@cython.locals(output=TensorBase)
cpdef attach(OpNode node, tuple outputs)

@cython.locals(made=list, index=Py_ssize_t, output=TensorBase, front=OutputNode)
cpdef attach_several(MultiNode node, object outputs, tuple connected=*)

cpdef inference_saved()
cpdef mark_inference(TensorBase tensor)
