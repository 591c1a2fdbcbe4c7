cimport cython

from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.tensor.layout cimport strides_like
from tensorplug.core.ops.creation.creation cimport made
from tensorplug.core.ops.rules cimport check_tensor

@cython.locals(key=DispatchKey)
cpdef tuple like(object input, object dtype, object device, object name)
