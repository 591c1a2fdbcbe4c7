cimport cython

from .current cimport Current
from .execution cimport call_kernel, kernel_of, overlaps, unwrap
from .kinds cimport Kind
from .op cimport Op, first_tensor
from .tensor_base cimport TensorBase, bump_version, wrap

cdef Current current

@cython.locals(values=tuple, kind=Kind, tracked=bint, first=TensorBase)
cpdef run_overridden(Op op, tuple args, dict kwargs)

@cython.locals(raw=list, arrays=list)
cdef _run_kernel_or_body(Op op, tuple values, Kind kind, tuple args, dict kwargs)

@cython.locals(targets=list, raw=list, target=TensorBase)
cdef _run_writing(Op op, tuple values, Kind kind)

@cython.locals(state=int, tensor=TensorBase)
cpdef bint any_tracked(tuple values)

@cython.locals(other=Kind, tensor=TensorBase)
cdef bint _same_kind(tuple values, Kind kind)
