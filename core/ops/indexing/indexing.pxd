from tensorplug.core.dispatch.execution cimport show
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.ops.rules cimport check_tensor
from tensorplug.core.tensor.shapes cimport normalize_dim
from tensorplug.core.tensor.base cimport TensorBase

cdef Op _BASIC_INDEX

cpdef at(TensorBase input, object dim, object index)
cpdef part(TensorBase input, object dim, object start, object stop)
cpdef part_of_shape(TensorBase input, object dim, object start, object stop, object shape)
cpdef tuple resized(object shape, object dim, object size)
