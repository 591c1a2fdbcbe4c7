cimport cython

from tensorplug.core.current cimport Current
from tensorplug.core.gradient cimport GradientLayer
from tensorplug.core.kinds cimport Kind
from tensorplug.core.known cimport Known
from tensorplug.core.op cimport Op
from tensorplug.core.tensor_base cimport Extra, Storage, TensorBase, extra_of, new_tensor

from .derivatives cimport Plan, Rule
from .nodes cimport Node, OpNode, new_node
from .recording cimport (
    Recording, any_requires, attach, build, build_known, build_known_outputs, build_view, inference_saved,
    mark_inference, save_all, shared
)
from .views cimport View, edge_of, note_view, refresh, requires_grad


cdef Current current
cdef int TRACKED, VIEW, ARGUMENT, BOTH, NOTHING, THE_OUTPUT


cdef class Recorder(GradientLayer):
    @cython.locals(kind=Kind, rule=Rule, plan=Plan, only=int, storage=Storage, extra=Extra, node=OpNode)
    cpdef record_unary(self, Op op, TensorBase output, TensorBase input)

    @cython.locals(
        mask=int, edges=tuple, extra=Extra, rule=Rule, plan=Plan, only=int, tensor=TensorBase,
        storage=Storage, node=OpNode, first=TensorBase, second=TensorBase, version=Py_ssize_t,
    )
    cpdef record_binary(
        self, Op op, TensorBase output, object input, object other, int left, int right, bint broadcast
    )

    @cython.locals(node=OpNode, tensor=TensorBase)
    cpdef record(self, Op op, tuple values, tuple outputs)

    @cython.locals(mask=int, number=Py_ssize_t, place=int, position=Py_ssize_t, tensor=TensorBase, how=Recording)
    cpdef record_known(self, Op op, Known known, tuple args, TensorBase output)

    @cython.locals(mask=int, number=Py_ssize_t, place=int, position=Py_ssize_t, tensor=TensorBase, how=Recording)
    cpdef record_known_outputs(self, Op op, Known known, tuple args, object outputs)

    @cython.locals(source=TensorBase, node=OpNode, enabled=bint)
    cpdef record_view(self, Op op, tuple values, TensorBase output)
