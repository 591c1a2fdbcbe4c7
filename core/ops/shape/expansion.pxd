from tensorplug.core.dispatch.execution cimport show
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.ops.rules cimport check_tensor

cdef Op _EXPAND
