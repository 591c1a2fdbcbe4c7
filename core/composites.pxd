cimport cython

from .current cimport Current
from .execution cimport call_kernel, call_known, kernel_of, overlaps, unwrap
from .kinds cimport Kind
from .known cimport Known, Memory, keep, key_of, remember, zeros
from .op cimport Op, Spec, first_tensor
from .tensor_base cimport TensorBase, bump_version, new_tensor, wrap

cdef Current current
cdef int TRACKED

@cython.locals(
    known=Known, tracked=bint, position=Py_ssize_t, tensor=TensorBase, state=int, kind=Kind, result=Kind, output=TensorBase,
)
cpdef call_overridden(Op op, Memory memory, tuple args, dict kwargs)

@cython.locals(kinds=tuple, found=list, number=Py_ssize_t, kind=Kind, output=TensorBase)
cdef _outputs_of_known(Op op, Known known, object arrays)

@cython.locals(
    known=Known, recorded=bint, shaped=bint, tensor=TensorBase, tensors=list, parts=list, kind=Kind, result=Kind, output=TensorBase,
    key=tuple,
)
cdef _call_of_list(Op op, Memory memory, tuple args, dict kwargs)

@cython.locals(rest=tuple, kind=Kind, first=TensorBase, spec=Spec, known=Known)
cdef _note_list(Op op, Memory memory, object key, tuple args, object values)

@cython.locals(kind=Kind, spec=Spec, known=Known)
cdef _note(Op op, Memory memory, object key, tuple args, dict kwargs, object values)

cpdef run_overridden(Op op, tuple args, dict kwargs)

@cython.locals(kind=Kind, tracked=bint, served=bint, first=TensorBase)
cdef _run_canonical(Op op, object values, tuple args, dict kwargs)

@cython.locals(raw=list, arrays=list)
cdef _run_kernel(Op op, tuple values, Kind kind)

@cython.locals(key=tuple, known=Known, first=TensorBase, spec=Spec)
cpdef call_ruled(Op op, Memory memory, tuple args, dict kwargs)

cpdef run_decomposition(Op op, tuple args, dict kwargs)

cdef _decomposed(Op op, object values, tuple args, dict kwargs)

cpdef composite_spec(Op op, tuple args, dict kwargs)

@cython.locals(first=TensorBase, spec=Spec)
cdef _spec_of_values(object values)

@cython.locals(arrays=list)
cdef object _wrapped(Op op, Kind kind, object results)

@cython.locals(targets=list, raw=list, target=TensorBase)
cdef _run_writing(Op op, tuple values, Kind kind)

@cython.locals(state=int, tensor=TensorBase)
cpdef bint any_tracked(tuple values)

@cython.locals(other=Kind, tensor=TensorBase)
cdef bint _same_kind(tuple values, Kind kind, bint mixed)
