cimport cython

from tensorplug.core.kinds cimport Kind
from tensorplug.core.pointwise cimport fits
from tensorplug.core.tensor_base cimport Storage, TensorBase, new_tensor

from .derivatives cimport Formula, Plan
from .nodes cimport OpNode


cdef class Program:
    cdef public list steps, constants, kernels
    cdef public object result
    cdef public Py_ssize_t index
    cdef public bint fresh, shape_free, identity, swap

    @cython.locals(values=list, kind=Kind, index=Py_ssize_t, step=tuple, operands=tuple)
    cpdef run(self, list inputs)


cdef _gather(list values, object places)


cdef class _Output:
    cdef public int number, place


@cython.locals(plan=Plan, sizes=tuple, results=list, place=Py_ssize_t)
cpdef list evaluate_all(OpNode node, object gradient)

@cython.locals(
    plan=Plan, formula=Formula, references=tuple, known=Program, kind=Kind, arrays=list, uniform=bint,
    tensor=TensorBase, storage=Storage, program=Program, saved=tuple,
)
cpdef tuple evaluate(OpNode node, Py_ssize_t place, tuple gradients)

@cython.locals(
    formula=Formula, references=tuple, key=list, arrays=list, frozen=tuple, program=Program, saved=tuple, tensor=TensorBase, storage=Storage
)
cdef tuple _evaluate_keyed(OpNode node, Py_ssize_t place, tuple gradients)

@cython.locals(arrays=list, saved=tuple, tensor=TensorBase, storage=Storage)
cdef list _tensors(OpNode node, tuple references, tuple gradients)

cpdef normal(object array, Kind kind)
cpdef sum_to_shape(object array, object shape, Kind kind)
cpdef add(object a, object b, Kind kind, bint raw, bint fresh_a=*, bint fresh_b=*)
cpdef zeros(Kind kind, object shape, bint raw)
