cimport cython

from ..dispatch.state cimport DispatchState
from ..dispatch.execution cimport execute, show
from ..dispatch.op cimport Op, Spec
from .base cimport TensorBase

cdef DispatchState dispatch_state

@cython.locals(size=Py_ssize_t, position=Py_ssize_t, index=TensorBase, spec=Spec)
cpdef get_item(TensorBase input, object key)

@cython.locals(
    shape=tuple, ndim=Py_ssize_t, named=Py_ssize_t, basic=list, sizes=list, dim=Py_ssize_t, used=Py_ssize_t, size=Py_ssize_t,
)
cdef _show_basic(TensorBase input, tuple key)

cdef object _slice(object item, object size)
cdef object _length(object item)

@cython.locals(parts=list, basic=list, indices=list, named=Py_ssize_t, dim=Py_ssize_t, advanced=bint, changed=bint)
cdef tuple _parse(object input, object key)
