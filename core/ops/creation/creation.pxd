# What every op that makes a tensor calls.
cimport cython

from tensorplug.core.dispatch.execution cimport kernel_of
from tensorplug.core.dispatch.keys cimport DispatchKey, default_device, dispatch_key
from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.tensor.base cimport TensorBase, new_tensor as wrap_array
from tensorplug.core.tensor.shapes cimport as_shape, check_sizes

cdef DispatchState dispatch_state

cpdef tuple options(object dtype, object device, object default=*)

cpdef object sizes_of(tuple sizes, object size, object name)

cpdef made(object result, object requires_grad, object pin_memory=*)

@cython.locals(key=DispatchKey)
cpdef object memory_of(object shape, object dtype, object device)

@cython.locals(memory=TensorBase)
cpdef object in_strides(object shape, object stride, DispatchKey key, object make)
