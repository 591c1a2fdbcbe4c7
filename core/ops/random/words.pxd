cimport cython

from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.tensor.base cimport TensorBase, new_tensor

cdef DispatchState dispatch_state

@cython.locals(key=DispatchKey, output=TensorBase)
cpdef bits(object shape, object device, object generator)
