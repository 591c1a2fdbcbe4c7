cimport cython

from tensorplug.core.kinds cimport Kind
from tensorplug.core.tensor_base cimport TensorBase, new_tensor

from .engine cimport Pass
from .nodes cimport Node
from .arithmetic cimport normal
from .views cimport edge_of, requires_grad


@cython.locals(root=TensorBase, kind=Kind)
cdef _root_gradient(object output, object gradient, Py_ssize_t number, str name)

@cython.locals(pass_=Pass)
cpdef backward_from(TensorBase tensor, object gradient, object retain_graph, bint create_graph)
