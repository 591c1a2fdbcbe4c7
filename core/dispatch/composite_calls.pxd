cimport cython

from .arguments cimport plain_arguments, reads_tensor
from .state cimport DispatchState
from .execution cimport call_kernel, execute, kernel_of, note_together, overlaps, run_cached, unwrap
from .keys cimport DispatchKey, made_key
from .call_cache cimport CachedCall, CallCache, store_call, spec_of_values, cache_call, cache_delegation
from .call_keys cimport all_given, call_key, ambiguous
from .op cimport Op, Spec, first_tensor
from .released_views cimport executed, released
from .replay cimport replayed
from ..tensor.base cimport TensorBase, bump_version, unset_tensor, wrap

cdef DispatchState dispatch_state
cdef int TRACKED

@cython.locals(
    cached=CachedCall, filled=list, number=Py_ssize_t, slot=Py_ssize_t, tracked=bint, position=Py_ssize_t, tensor=TensorBase, state=int, output=TensorBase,
)
cpdef call_overridden(Op op, CallCache cache, tuple args, dict kwargs)

@cython.locals(result=DispatchKey, key=DispatchKey, output=TensorBase)
cdef TensorBase _finished(Op op, CachedCall cached, object array)

@cython.locals(keys=tuple, found=list, number=Py_ssize_t, key=DispatchKey, output=TensorBase)
cdef _outputs_of_cached(Op op, CachedCall cached, object arrays)

@cython.locals(
    cached=CachedCall, recorded=bint, tracked=bint, shaped=bint, tensor=TensorBase, parts=list, output=TensorBase, key=tuple,
)
cpdef call_of_list(Op op, CallCache cache, tuple args, dict kwargs)

cdef _run_list(Op op, tuple args, dict kwargs)

cdef _run_and_cache_list(Op op, CallCache cache, object key, tuple args, dict kwargs)

@cython.locals(values=tuple, rest=tuple, tensor_key=DispatchKey, own=Spec, cached=CachedCall)
cdef _cache_list_call(Op op, CallCache cache, object key, tuple args, Spec spec)

@cython.locals(tensor_key=DispatchKey, spec=Spec, cached=CachedCall)
cdef _cache_call(Op op, CallCache cache, object key, tuple args, dict kwargs, object values)

cpdef run_overridden(Op op, tuple args, dict kwargs)

@cython.locals(key=DispatchKey, tracked=bint, served=bint, first=TensorBase)
cdef _run_canonical(Op op, object values, tuple args, dict kwargs)

cdef _record(Op op, tuple values, tuple outputs)

@cython.locals(raw=list, arrays=list)
cdef _run_kernel(Op op, tuple values, DispatchKey key)

@cython.locals(key=tuple, cached=CachedCall, spec=Spec)
cdef _call_uncached(Op op, CallCache cache, tuple args, dict kwargs)

@cython.locals(key=tuple, cached=CachedCall, spec=Spec, filled=list, number=Py_ssize_t, slot=Py_ssize_t)
cpdef call_ruled(Op op, CallCache cache, tuple args, dict kwargs)

cpdef run_decomposition(Op op, tuple args, dict kwargs)

cdef _decomposed(Op op, object values, tuple args, dict kwargs)

cdef object _wrapped(Op op, DispatchKey key, object results)

@cython.locals(output=TensorBase)
cdef object _output(DispatchKey key, object array)

@cython.locals(targets=list, raw=list, target=TensorBase, recorded=bint)
cdef _run_writing(Op op, tuple values, DispatchKey key)

@cython.locals(state=int, tensor=TensorBase)
cpdef bint any_tracked(tuple values)

@cython.locals(other=DispatchKey, tensor=TensorBase)
cdef bint _same_key(tuple values, DispatchKey key, bint mixed)
