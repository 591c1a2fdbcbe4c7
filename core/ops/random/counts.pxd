# What the op calls at every call.
from tensorplug.core.device.generator cimport Generator
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.ops.random.distributions cimport source_of
from tensorplug.core.ops.random.numbers cimport drawn

cdef DispatchState dispatch_state
