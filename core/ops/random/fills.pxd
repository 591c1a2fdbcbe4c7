# Compiled as it is.
cimport cython

from tensorplug.core.dispatch.arguments cimport fits
from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.dispatch.out_variants cimport is_free
from tensorplug.core.tensor.base cimport TensorBase, bump_version

cdef DispatchState dispatch_state

@cython.locals(key=DispatchKey, op=Op, values=tuple)
cdef _apply_raw(list steps, TensorBase drawn)
