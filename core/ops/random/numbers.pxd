cimport cython

from tensorplug.core.dispatch.execution cimport kernel_of
from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.tensor.base cimport TensorBase, new_tensor

cdef DispatchState dispatch_state
cdef Py_ssize_t _WORDS_PER_BLOCK

@cython.locals(key=DispatchKey, count=Py_ssize_t, size=Py_ssize_t, blocks=Py_ssize_t, output=TensorBase)
cdef _by_kernel(
    Op op, object shape, object dtype, object device, object generator, Py_ssize_t words, tuple more,
    object into
)
