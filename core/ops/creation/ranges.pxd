# Compiled as it is, but for what reads bounds: its rules run at every call that is not known.
cimport cython

from tensorplug.core.dispatch.arguments cimport scalar_of
from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.ops.creation.creation cimport made, options
from tensorplug.core.ops.rules cimport number
from tensorplug.core.tensor.base cimport TensorBase

cdef DispatchState dispatch_state
cdef Op _POW

cdef object _zero_dim(object value, object name, object argument)

cdef object _spaced(object start, object end, object steps, object dtype, object device, object name)

@cython.locals(key=DispatchKey)
cdef object _raised(object base, TensorBase exponents)
