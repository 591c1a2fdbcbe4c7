cimport cython

from tensorplug.core.current cimport Current
from tensorplug.core.gradient cimport GradientLayer
from tensorplug.core.kinds cimport Kind
from tensorplug.core.op cimport Op
from tensorplug.core.tensor_base cimport Extra, Storage, TensorBase, extra_of, new_tensor, version_of

from .derivatives cimport Formula, Plan, Rule
from .nodes cimport MultiNode, Node, OpNode, OutputNode
from .views cimport View, edge_of, refresh, requires_grad

cdef Current current


cdef class Recorder(GradientLayer):
    @cython.locals(kind=Kind, rule=Rule, plan=Plan, storage=Storage, extra=Extra, node=OpNode)
    cpdef record_unary(self, Op op, TensorBase output, TensorBase input)

    @cython.locals(
        mask=int, edges=tuple, extra=Extra, rule=Rule, plan=Plan, only=int, tensor=TensorBase,
        storage=Storage, node=OpNode, first=TensorBase, second=TensorBase,
    )
    cpdef record_binary(
        self, Op op, TensorBase output, object input, object other, int left, int right, bint broadcast
    )

    @cython.locals(node=OpNode, tensor=TensorBase)
    cpdef record(self, Op op, tuple values, tuple outputs)

    @cython.locals(source=TensorBase, node=OpNode)
    cpdef record_view(self, Op op, tuple values, TensorBase output)


cdef bint _any_requires(object values)

@cython.locals(output=TensorBase, tensor=TensorBase)
cpdef tuple save(int origin, int position, tuple values, tuple outputs)

@cython.locals(storage=Storage, kept=TensorBase)
cpdef TensorBase shared(TensorBase output)

@cython.locals(saved=list, versions=list, origin=int, position=int)
cpdef tuple save_all(Plan plan, tuple values, tuple outputs, dict versions_before=*)

@cython.locals(
    tracked=list, position=Py_ssize_t, rule=Rule, plan=Plan, edges=list, sizes=list, formula=Formula,
    first=TensorBase, node=OpNode, several=MultiNode, tensor=TensorBase, output=TensorBase,
)
cpdef OpNode build(Op op, tuple values, tuple outputs, dict versions_before=*)

@cython.locals(output=TensorBase, number=Py_ssize_t)
cpdef attach(OpNode node, tuple outputs)
