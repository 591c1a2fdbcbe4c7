from tensorplug.core.dispatch.execution cimport show
from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.ops.rules cimport check_tensor
from tensorplug.core.tensor.base cimport TensorBase
from tensorplug.core.tensor.layout cimport strides_like
