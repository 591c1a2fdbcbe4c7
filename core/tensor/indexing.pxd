cimport cython

from ..dispatch.state cimport DispatchState
from ..dispatch.execution cimport execute, show
from ..dispatch.op cimport Op, Spec
from .base cimport TensorBase

cdef DispatchState dispatch_state

cpdef get_item(object input, object key)

cdef object _slice(object item, object size)
cdef object _length(object item)

@cython.locals(parts=list, basic=list, indices=list, named=Py_ssize_t, dim=Py_ssize_t, advanced=bint, changed=bint)
cdef tuple _parse(object input, object key)
