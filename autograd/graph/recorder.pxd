cimport cython

from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.dispatch.gradient_layer cimport GradientLayer
from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.dispatch.call_cache cimport CachedCall
from tensorplug.core.dispatch.view_plans cimport ViewPlan, ViewPlans
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.tensor.base cimport Extra, Storage, TensorBase, extra_of, new_tensor

from ..engine.derivatives cimport Plan, CompiledDerivative
from .nodes cimport MultiNode, Node, OpNode, OutputNode, new_node
from .recording cimport (
    Recording, any_requires, attach, attach_several, build, build_listed, build_view, build_views, fill_node, inference_saved,
    mark_inference, save_all, shared
)
from .views cimport View, edge_of, note_view, refresh, requires_grad


cdef DispatchState dispatch_state
cdef int TRACKED, VIEW, ARGUMENT, BOTH, NOTHING, THE_OUTPUT


cdef class Recorder(GradientLayer):
    @cython.locals(key=DispatchKey, rule=CompiledDerivative, plan=Plan, only=int, storage=Storage, extra=Extra, node=OpNode)
    cpdef record_unary(self, Op op, TensorBase output, TensorBase input)

    @cython.locals(
        mask=int, edges=tuple, sizes=tuple, rule=CompiledDerivative, plan=Plan, only=int, tensor=TensorBase,
        storage=Storage, node=OpNode, first=TensorBase, second=TensorBase, version=Py_ssize_t,
    )
    cpdef record_binary(
        self, Op op, TensorBase output, object input, object other, int left, int right, bint broadcast
    )

    @cython.locals(node=OpNode, tensor=TensorBase)
    cpdef record(self, Op op, tuple values, tuple outputs)

    @cython.locals(mask=int, number=Py_ssize_t, index=int, position=Py_ssize_t, tensor=TensorBase, how=Recording, node=OpNode)
    cpdef record_cached(self, Op op, CachedCall cached, tuple args, TensorBase output)

    cpdef record_listed(self, Op op, CachedCall cached, object tensors, TensorBase output)

    @cython.locals(
        mask=int, number=Py_ssize_t, index=int, position=Py_ssize_t, tensor=TensorBase, how=Recording, several=MultiNode,
    )
    cpdef record_cached_outputs(self, Op op, CachedCall cached, tuple args, object outputs)

    @cython.locals(node=OpNode, enabled=bint)
    @cython.locals(rule=CompiledDerivative)
    cpdef record_view(self, Op op, TensorBase source, tuple values, TensorBase output, ViewPlan plan)

    @cython.locals(number=Py_ssize_t, plan=ViewPlan)
    cpdef record_views(self, TensorBase source, list outputs, ViewPlans plans)
