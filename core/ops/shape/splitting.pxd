from tensorplug.core.current cimport Current
from tensorplug.core.ops.indexing.indexing cimport at, part
from tensorplug.core.ops.rules cimport check_tensor
from tensorplug.core.shapes cimport normalize_dim
from tensorplug.core.tensor_base cimport TensorBase

cdef Current current

cdef tuple _parts(TensorBase input, list sizes, object dim)
cdef tuple _cut(TensorBase input, list sizes, object dim)
