cimport cython

from .arguments cimport plain_arguments
from .composite_results cimport output_of, wrapped
from .execution cimport call_kernel, kernel_of, native_kernel, note_together, overlaps, unwrap
from .keys cimport DispatchKey, made_key
from .op cimport Op, first_tensor
from .released_views cimport released
from .state cimport DispatchState
from ..tensor.base cimport TensorBase, bump_version

cdef DispatchState dispatch_state
cdef int TRACKED

cpdef run_overridden(Op op, tuple args, dict kwargs)

cpdef run_decomposition(Op op, tuple args, dict kwargs)

@cython.locals(key=DispatchKey, tracked=bint, served=bint, first=TensorBase)
cpdef run_canonical(Op op, object values, tuple args, dict kwargs)

cpdef record(Op op, tuple values, tuple outputs)

cpdef decomposed(Op op, object values, tuple args, dict kwargs)

@cython.locals(raw=list, arrays=list)
cdef _run_kernel(Op op, tuple values, DispatchKey key)

@cython.locals(targets=list, raw=list, target=TensorBase, recorded=bint)
cdef _run_writing(Op op, tuple values, DispatchKey key)

@cython.locals(state=int, tensor=TensorBase)
cpdef bint any_tracked(tuple values)

@cython.locals(other=DispatchKey, tensor=TensorBase)
cpdef bint of_one_key(tuple values, DispatchKey key, bint mixed)
