from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.dispatch.execution cimport show
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.ops.rules cimport check_tensor
from tensorplug.core.tensor.shapes cimport infer_size, normalize_dim
from tensorplug.core.tensor.base cimport TensorBase

cdef DispatchState dispatch_state
cdef Op _PERMUTE, _VIEW

cpdef viewable(TensorBase input, object shape)
cpdef shown_as(TensorBase input, object shape)
cpdef permuted(TensorBase input, object order)
cpdef reshaped(TensorBase input, object shape)
