from tensorplug.core.execution cimport show
from tensorplug.core.op cimport Op
from tensorplug.core.ops.rules cimport check_tensor

cdef Op _EXPAND
