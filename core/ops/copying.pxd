from tensorplug.core.execution cimport show
from tensorplug.core.kinds cimport Kind
from tensorplug.core.ops.rules cimport check_tensor
from tensorplug.core.tensor_base cimport TensorBase

cpdef strides_like(TensorBase input, object memory_format, object name)
