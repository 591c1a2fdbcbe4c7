cimport cython

from .state cimport DispatchState
from .keys cimport DispatchKey
from .call_cache cimport CachedCall
from .op cimport Op, Spec
from ..tensor.base cimport Storage, TensorBase, new_tensor, storage_of

cdef DispatchState dispatch_state

cpdef kernel_of(Op op, DispatchKey key)

cpdef bint native_kernel(Op op, DispatchKey key)

@cython.locals(key=DispatchKey)
cpdef show(Op op, TensorBase input, tuple values, object shape)

cpdef note_together(Op op, tuple values, tuple outputs)

cpdef note_shown(Op op, TensorBase source, tuple values, TensorBase output)

@cython.locals(output=TensorBase, storage=Storage)
cdef _show(Op op, DispatchKey key, TensorBase source, tuple values, object shape, DispatchKey result)

@cython.locals(key=DispatchKey, raw=list, state=int, outputs=tuple, output=TensorBase, pair=tuple)
cpdef execute(Op op, Spec spec)

cpdef call_kernel(Op op, DispatchKey key, list raw)

@cython.locals(raw=list, number=Py_ssize_t, index=Py_ssize_t, position=Py_ssize_t, tensor=TensorBase, key=DispatchKey)
cpdef run_cached(Op op, CachedCall cached, tuple args)

@cython.locals(raw=list, state=int, numbers=bint, tensor=TensorBase, found=bint, arrays=list)
cpdef tuple unwrap(Op op, tuple values, DispatchKey key)

@cython.locals(result=DispatchKey)
cdef TensorBase _wrap_checked(Op op, DispatchKey key, object array, object shape, object dtype)

cpdef bint overlaps(object tensor)
cpdef bint shares_elements(object tensor)

@cython.locals(reach=Py_ssize_t, index=Py_ssize_t)
cdef bint _meet(object strides, object sizes)

cpdef verify(Op op, DispatchKey key, object results, tuple outputs)
