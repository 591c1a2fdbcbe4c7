cimport cython

from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.tensor.base cimport Extra, Storage, TensorBase, bump_version, extra_of, new_tensor

from .arithmetic cimport normal


@cython.locals(extra=Extra)
cpdef accumulate(TensorBase leaf, TensorBase tensor, bint fresh, bint create_graph, bint raw)


@cython.locals(key=DispatchKey)
cdef _own(TensorBase gradient, TensorBase leaf, bint fresh)

@cython.locals(key=DispatchKey)
cdef bint _added(TensorBase known, TensorBase tensor)
