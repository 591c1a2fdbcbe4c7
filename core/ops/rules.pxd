# Compiled as it is, but for a check at every call.
from tensorplug.core.tensor.base cimport TensorBase

cpdef check_tensor(object value, object name, object argument=*)
