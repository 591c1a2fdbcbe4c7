cimport cython

from tensorplug.autograd.graph.views cimport requires_grad
from tensorplug.core.dispatch.keys cimport DispatchKey, default_device
from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.tensor.base cimport TensorBase

cdef DispatchState dispatch_state
cdef int TRACKED


cpdef bint records()

cpdef list modes()

@cython.locals(parts=list)
cpdef tuple call_key(tuple args, dict kwargs, list tensors)

@cython.locals(
    array=object, tensor=TensorBase, other=TensorBase, key=DispatchKey, number=Py_ssize_t, plain=bint, needed=bint,
)
cpdef key_of(object value, list tensors)
