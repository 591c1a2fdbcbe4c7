cimport cython

from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.dispatch.arguments cimport fits
from tensorplug.core.tensor.base cimport Storage, TensorBase, new_tensor

from .arithmetic cimport sum_to_shape
from .derivatives cimport Formula, Plan
from ..graph.nodes cimport OpNode
from tensorplug.core.dispatch.programs cimport Program


@cython.locals(plan=Plan, sizes=tuple, results=list, index=Py_ssize_t)
cpdef list evaluate_all(OpNode node, object gradient)

@cython.locals(
    plan=Plan, formula=Formula, references=tuple, known=Program, key=DispatchKey, arrays=list, uniform=bint,
    tensor=TensorBase, storage=Storage, program=Program, saved=tuple,
)
cpdef tuple evaluate(OpNode node, Py_ssize_t place, tuple gradients)

@cython.locals(
    formula=Formula, references=tuple, key=list, arrays=list, frozen=tuple, program=Program, saved=tuple, tensor=TensorBase, storage=Storage
)
cdef tuple _evaluate_keyed(OpNode node, Py_ssize_t index, tuple gradients)

@cython.locals(arrays=list, saved=tuple, tensor=TensorBase, storage=Storage)
cdef list _tensors(OpNode node, tuple references, tuple gradients)
