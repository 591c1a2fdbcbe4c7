from tensorplug.core.execution cimport show
from tensorplug.core.shapes cimport infer_size

cpdef viewable(object input, object shape)
cpdef shown_as(object input, object shape)
cpdef permuted(object input, object order)
