cimport cython

from .arguments cimport plain_arguments, reads_tensor
from .call_cache cimport CachedCall, CallCache, store_call
from .call_keys cimport all_given, ambiguous, call_key
from .composite_results cimport finished, wrapped
from .composite_runs cimport of_one_key, run_canonical, run_overridden
from .execution cimport execute, run_cached
from .keys cimport DispatchKey
from .op cimport Op, Spec, first_tensor
from .released_views cimport executed, released
from .replay cimport replayed
from .state cimport DispatchState
from ..tensor.base cimport TensorBase

cdef DispatchState dispatch_state
cdef int TRACKED

@cython.locals(
    cached=CachedCall, recorded=bint, tracked=bint, shaped=bint, tensor=TensorBase, parts=list, output=TensorBase, key=tuple,
)
cpdef call_of_list(Op op, CallCache cache, tuple args, dict kwargs)

cdef _run_list(Op op, tuple args, dict kwargs)

cdef _run_and_cache_list(Op op, CallCache cache, object key, tuple args, dict kwargs)

@cython.locals(values=tuple, rest=tuple, tensor_key=DispatchKey, own=Spec, cached=CachedCall)
cdef _cache_list_call(Op op, CallCache cache, object key, tuple args, Spec spec)
