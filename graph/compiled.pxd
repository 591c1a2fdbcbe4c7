from tensorplug.core.dispatch.state cimport DispatchState

from .keys cimport call_key, modes, records

cdef DispatchState dispatch_state

cdef bint _is_seen() except -1
