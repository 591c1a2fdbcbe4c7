cimport cython

from tensorplug.core.dispatch.keys cimport DispatchKey, dispatch_key
from tensorplug.core.tensor.layout cimport strides_like
from tensorplug.core.ops.creation.creation cimport in_strides, made, memory_of, sizes_of
from tensorplug.core.ops.rules cimport check_tensor, number

@cython.locals(key=DispatchKey)
cpdef tuple like(object input, object dtype, object device, object name)

cpdef object made_like(object input, tuple options, object name, object make)
