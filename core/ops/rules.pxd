# Compiled as it is, but for checks at every call.
from tensorplug.core.tensor.base cimport TensorBase

cpdef check_tensor(object value, object name, object argument=*)

cpdef object number(object value, object name, object argument)
