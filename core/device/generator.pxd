# Compiled as it is: every draw takes words from a generator.
from tensorplug.core.dispatch.state cimport DispatchState

cdef DispatchState dispatch_state
