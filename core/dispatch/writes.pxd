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

@cython.locals(first=TensorBase, key=DispatchKey, recorded=bint, raw=list)
cpdef bint written(Op op, TensorBase target, tuple operands)

@cython.locals(raw=list, filled=bint, tensor=TensorBase, converted=bint)
cdef list _raw_operands(Op op, tuple shape, tuple operands, DispatchKey key, bint recorded)

cdef bint _is_recorded(TensorBase tensor)

@cython.locals(storage=Storage)
cdef _write_by(object writer, TensorBase target, object first, object second, list raw)

@cython.locals(own=DispatchKey, key=DispatchKey, recorded=bint, tensor=TensorBase)
cdef bint _copied(TensorBase target, object src)

@cython.locals(known=dict, key=tuple)
cdef bint _converts(Op op, TensorBase first, TensorBase second)

cdef _converted(TensorBase tensor, DispatchKey key)

@cython.locals(count=Py_ssize_t, before=Py_ssize_t, dim=Py_ssize_t)
cdef bint _fills(tuple sizes, tuple shape)

cpdef bint is_free(TensorBase target)

@cython.locals(storage=Storage)
cdef bint _is_free(TensorBase target, bint recorded)
