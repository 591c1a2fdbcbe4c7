cimport cython

from tensorplug.core.dispatch.programs cimport Program
from tensorplug.core.tensor.base cimport TensorBase, new_tensor, version_of

from .nodes cimport Identity, Node
from .recording cimport shared
from .views cimport edge_of

cdef int TRACKED


@cython.trashcan(True)
cdef class BodyNode(Node):
    cdef public object body
    cdef public list arrays, checked, tensors

    @cython.locals(program=Program)
    cpdef list apply(self, object gradient, bint raw)
    cdef _check(self, list saved)


@cython.locals(node=BodyNode)
cpdef record_body(object recorded, list tensors, TensorBase output, list found)
