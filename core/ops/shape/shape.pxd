from tensorplug.core.current cimport Current
from tensorplug.core.execution cimport show
from tensorplug.core.op cimport Op
from tensorplug.core.ops.rules cimport check_tensor
from tensorplug.core.shapes cimport infer_size, normalize_dim
from tensorplug.core.tensor_base cimport TensorBase

cdef Current current
cdef Op _PERMUTE, _VIEW

cpdef viewable(TensorBase input, object shape)
cpdef shown_as(TensorBase input, object shape)
cpdef permuted(TensorBase input, object order)
cpdef reshaped(TensorBase input, object shape)
cpdef view_in(TensorBase input, object shape)
