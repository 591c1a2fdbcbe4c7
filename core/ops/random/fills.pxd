# Compiled as it is.
cimport cython

from tensorplug.core.device.generator cimport Generator
from tensorplug.core.dispatch.arguments cimport scalar_of
from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.dispatch.writes cimport is_free
from tensorplug.core.ops.random.distributions cimport checked_chance, source_of
from tensorplug.core.ops.random.random cimport check_deviation, check_range, fresh
from tensorplug.core.ops.rules cimport number
from tensorplug.core.tensor.base cimport TensorBase, bump_version

cdef DispatchState dispatch_state

@cython.locals(key=DispatchKey, op=Op, values=tuple)
cdef _apply_raw(list steps, TensorBase drawn)

cdef list _scaling(object factor, object shift)

@cython.locals(key=DispatchKey)
cdef DispatchKey _precise(TensorBase input)

@cython.locals(position=Py_ssize_t)
cdef bint _alike(tuple planned, tuple given)
