cimport cython

from .current cimport Current
from .kinds cimport Kind
from .known cimport Known
from .op cimport Op, Spec
from .tensor_base cimport Storage, TensorBase, new_tensor, storage_of

cdef Current current

cpdef kernel_of(Op op, Kind kind)

@cython.locals(tensor=TensorBase, kind=Kind)
cpdef show(Op op, object input, tuple values, object shape)

@cython.locals(output=TensorBase, source=TensorBase, storage=Storage)
cdef _show(Op op, Kind kind, object input, tuple values, object shape)

@cython.locals(kind=Kind, raw=list, state=int, outputs=tuple, output=TensorBase, pair=tuple)
cpdef execute(Op op, Spec spec)

cpdef call_kernel(Op op, Kind kind, list raw)

@cython.locals(raw=list, number=Py_ssize_t, place=Py_ssize_t, position=Py_ssize_t, tensor=TensorBase, kind=Kind)
cpdef call_known(Op op, Known known, tuple args)

@cython.locals(raw=list, state=int, numbers=bint, tensor=TensorBase, found=bint, arrays=list)
cpdef tuple unwrap(Op op, tuple values, Kind kind)

@cython.locals(result=Kind)
cdef TensorBase _wrap_checked(Op op, Kind kind, object array, object shape, object dtype)

cpdef bint overlaps(object tensor)
