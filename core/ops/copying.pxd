from tensorplug.core.dispatch.execution cimport show
from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.ops.rules cimport check_tensor
from tensorplug.core.tensor.base cimport TensorBase

cpdef strides_like(TensorBase input, object memory_format, object name)
