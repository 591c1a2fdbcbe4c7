cimport cython

from .arguments cimport fits, plain_arguments
from .keys cimport DispatchKey
from .op cimport Op
from .state cimport DispatchState
from ..tensor.base cimport Storage, TensorBase

cdef DispatchState dispatch_state
cdef int TRACKED

cpdef object inplace(Op op, str name, object target, tuple args, dict kwargs)

@cython.locals(storage=Storage, tensor=TensorBase)
cpdef object run_inplace(Op op, str name, object target, tuple args, dict kwargs)

cdef bint _inplace_plain(Op op, TensorBase target, tuple args)

@cython.locals(
    own=DispatchKey, first=TensorBase, key=DispatchKey, index=Py_ssize_t, recorded=bint, storage=Storage, raw=list, filled=bint,
    tensor=TensorBase,
)
cpdef bint written(Op op, TensorBase target, tuple operands)

cpdef bint is_free(TensorBase target)

@cython.locals(storage=Storage)
cdef bint _is_free(TensorBase target, bint recorded)
