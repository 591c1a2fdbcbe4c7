from tensorplug.core.execution cimport show
from tensorplug.core.op cimport Op
from tensorplug.core.ops.rules cimport check_tensor
from tensorplug.core.shapes cimport normalize_dim
from tensorplug.core.tensor_base cimport TensorBase

cdef Op _BASIC_INDEX

cpdef at(TensorBase input, object dim, object index)
cpdef part(TensorBase input, object dim, object start, object stop)
