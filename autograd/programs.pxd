cimport cython

from tensorplug.core.kinds cimport Kind
from tensorplug.core.pointwise cimport fits
from tensorplug.core.tensor_base cimport Storage, TensorBase, new_tensor

from .derivatives cimport Formula, Plan
from .nodes cimport OpNode


cdef class Program:
    cdef public list steps, constants, kernels
    cdef public object result, index
    cdef public bint fresh, shape_free, identity, swap

    @cython.locals(values=list, kind=Kind, step=tuple, operands=tuple)
    cpdef run(self, list inputs)


cdef _gather(list values, object places)


cdef class _Output:
    cdef public int number, place


@cython.locals(plan=Plan, sizes=tuple, results=list, place=Py_ssize_t, fresh=bint)
cpdef list evaluate_all(OpNode node, object gradient)

@cython.locals(
    kind=Kind, arrays=list, uniform=bint, tensor=TensorBase, storage=Storage, program=Program, saved=tuple
)
cpdef tuple evaluate(OpNode node, Formula formula, tuple references, tuple gradients)

@cython.locals(
    key=list, arrays=list, frozen=tuple, program=Program, saved=tuple, tensor=TensorBase, storage=Storage
)
cdef tuple _evaluate_keyed(OpNode node, Formula formula, tuple references, tuple gradients)

cpdef normal(object array, Kind kind)
cpdef sum_to_shape(object array, object shape, Kind kind)
cpdef add(object a, object b, Kind kind, bint raw, bint fresh_a=*, bint fresh_b=*)
cpdef zeros(Kind kind, object shape, bint raw)
