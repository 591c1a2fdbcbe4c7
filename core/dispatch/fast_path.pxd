cimport cython

from .arguments cimport fits, is_scalar
from .state cimport DispatchState
from .execution cimport execute
from .keys cimport DispatchKey
from .op cimport Op, Spec
from ..tensor.base cimport TensorBase, unset_tensor

cdef DispatchState dispatch_state

@cython.locals(index=Py_ssize_t, source=TensorBase, key=DispatchKey, result=DispatchKey, output=TensorBase)
cpdef unary(object input, Op op)

@cython.locals(
    first=TensorBase, second=TensorBase, key=DispatchKey, index=Py_ssize_t, result=DispatchKey, output=TensorBase, left=int,
    right=int,
)
cpdef binary(object input, object other, Op op, bint operator=*)

cdef _slow_path(Op op, object input, object other, bint operator)
cpdef bint is_operand(object value)

@cython.locals(spec=Spec)
cdef _retry(Op op, tuple args, object error)
