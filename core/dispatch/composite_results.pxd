cimport cython

from .call_cache cimport CachedCall
from .keys cimport DispatchKey
from .op cimport Op
from .state cimport DispatchState
from ..tensor.base cimport TensorBase, unset_tensor, wrap

cdef DispatchState dispatch_state

@cython.locals(result=DispatchKey, key=DispatchKey, output=TensorBase)
cpdef TensorBase finished(Op op, CachedCall cached, object array)

@cython.locals(keys=tuple, found=list, number=Py_ssize_t, key=DispatchKey, output=TensorBase)
cpdef finished_all(Op op, CachedCall cached, object arrays)

cpdef object wrapped(Op op, DispatchKey key, object results)

@cython.locals(output=TensorBase)
cpdef object output_of(DispatchKey key, object array)
