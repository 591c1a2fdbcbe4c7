cimport cython

from tensorplug.core.kinds cimport Kind
from tensorplug.core.ops.copying cimport strides_like
from tensorplug.core.ops.creation.creation cimport made
from tensorplug.core.ops.rules cimport check_tensor

@cython.locals(kind=Kind)
cpdef tuple like(object input, object dtype, object device, object name)
