cimport cython

from .arguments cimport plain_arguments, reads_tensor
from .composite_calls cimport call_overridden, call_ruled
from .composite_runs cimport run_overridden
from .list_calls cimport call_of_list
from .state cimport DispatchState
from .dispatcher cimport general
from .execution cimport run_cached, execute
from .keys cimport DispatchKey
from .call_cache cimport CachedCall, CallCache, cache_call, cache_delegation
from .call_keys cimport all_given, any_named, call_key
from .op cimport Op, Spec, first_tensor
from .fast_path cimport binary, unary
from .writes cimport inplace
from .released_views cimport executed, released
from .replay cimport replayed, replayed_unrecorded
from .view_calls cimport call_view, show_again
from ..tensor.base cimport TensorBase, new_tensor

cdef DispatchState dispatch_state
cdef object ABSENT

@cython.locals(key=DispatchKey, tensor=TensorBase)
cdef tuple _in_rows(Op op, tuple args, dict kwargs)

@cython.locals(cache=CallCache)
cdef _with_options(Op op, tuple args, dict options)


@cython.locals(
    key=tuple, cached=CachedCall, tensor=TensorBase, result=DispatchKey, state=int, position=Py_ssize_t, output=TensorBase, spec=Spec,
)
cpdef call_primitive(Op op, CallCache cache, tuple args, dict kwargs)
