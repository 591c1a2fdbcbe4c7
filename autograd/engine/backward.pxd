cimport cython

from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.tensor.base cimport TensorBase, new_tensor

from .accumulation cimport accumulate
from .engine cimport BackwardPass
from ..graph.nodes cimport Node
from .arithmetic cimport normal
from ..graph.views cimport edge_of, requires_grad


cdef bint _is_plain(object node)

@cython.locals(root=TensorBase, key=DispatchKey)
cdef _root_gradient(object output, object gradient, Py_ssize_t number, str name, bint returned)

@cython.locals(pass_=BackwardPass)
cpdef backward_from(TensorBase tensor, object gradient, object retain_graph, bint create_graph)
