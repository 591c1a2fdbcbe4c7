cimport cython

from .composites cimport call_overridden, call_ruled, run_overridden
from .current cimport Current
from .dispatch cimport general
from .execution cimport call_known, execute
from .kinds cimport Kind
from .known cimport Known, Memory, key_of, remember
from .op cimport Op, Spec, first_tensor
from .pointwise cimport binary, unary
from .tensor_base cimport TensorBase, new_tensor

cdef Current current


@cython.locals(
    key=tuple, known=Known, tensor=TensorBase, result=Kind, state=int, position=Py_ssize_t, output=TensorBase, spec=Spec,
)
cpdef call_primitive(Op op, Memory memory, tuple args, dict kwargs)
