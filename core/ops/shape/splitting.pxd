from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.ops.indexing.indexing cimport at, part, part_of_shape, resized
from tensorplug.core.ops.rules cimport check_tensor
from tensorplug.core.tensor.shapes cimport normalize_dim
from tensorplug.core.tensor.base cimport TensorBase

cdef DispatchState dispatch_state

cdef tuple _parts(TensorBase input, list sizes, object dim)
cdef tuple _cut(TensorBase input, list sizes, object dim)
