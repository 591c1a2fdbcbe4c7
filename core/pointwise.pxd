cimport cython

from .current cimport Current
from .execution cimport execute
from .kinds cimport Kind
from .op cimport Op, Spec
from .tensor_base cimport TensorBase, unset_tensor

cdef Current current

@cython.locals(index=Py_ssize_t, source=TensorBase, kind=Kind, result=Kind, output=TensorBase)
cpdef unary(object input, Op op)

@cython.locals(
    first=TensorBase, second=TensorBase, kind=Kind, index=Py_ssize_t, result=Kind, output=TensorBase, left=int,
    right=int,
)
cpdef binary(object input, object other, Op op, bint operator=*)

cdef _unusual(Op op, object input, object other, bint operator)
cpdef bint is_operand(object value)
cpdef as_operand(object value)
cpdef bint fits(object value, object dtype)

@cython.locals(spec=Spec)
cdef _again(Op op, tuple args, object error)
