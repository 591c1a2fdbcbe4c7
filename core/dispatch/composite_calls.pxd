cimport cython

from .arguments cimport plain_arguments, reads_tensor
from .call_cache cimport CachedCall, CallCache, spec_of_values, cache_call, cache_delegation
from .call_keys cimport all_given, call_key
from .composite_results cimport finished, finished_all
from .composite_runs cimport decomposed, of_one_key, record, run_canonical, run_decomposition, run_overridden
from .execution cimport run_cached
from .keys cimport DispatchKey, made_key
from .list_calls cimport call_of_list
from .op cimport Op, Spec
from .released_views cimport released
from .replay cimport replayed, replayed_unrecorded
from .state cimport DispatchState
from ..tensor.base cimport TensorBase

cdef DispatchState dispatch_state
cdef int TRACKED

@cython.locals(
    cached=CachedCall, filled=list, number=Py_ssize_t, slot=Py_ssize_t, tracked=bint, position=Py_ssize_t, tensor=TensorBase, state=int, output=TensorBase,
)
cpdef call_overridden(Op op, CallCache cache, tuple args, dict kwargs)

@cython.locals(tensor_key=DispatchKey, spec=Spec, cached=CachedCall)
cdef _cache_call(Op op, CallCache cache, object key, tuple args, dict kwargs, object values)

@cython.locals(key=tuple, cached=CachedCall, spec=Spec)
cdef _call_uncached(Op op, CallCache cache, tuple args, dict kwargs)

@cython.locals(key=tuple, cached=CachedCall, spec=Spec, filled=list, number=Py_ssize_t, slot=Py_ssize_t)
cpdef call_ruled(Op op, CallCache cache, tuple args, dict kwargs)
