cimport cython

from ..dispatch.keys cimport DispatchKey
from ..dispatch.state cimport DispatchState
from ..dispatch.execution cimport execute, show, verify
from ..dispatch.op cimport Op, Spec
from .base cimport TensorBase, new_tensor
from .basic_views cimport row, show_basic
from .index_keys cimport parse

cdef DispatchState dispatch_state

@cython.locals(size=Py_ssize_t, position=Py_ssize_t, index=TensorBase)
cpdef get_item(TensorBase input, object key)

@cython.locals(key=DispatchKey, values=tuple, spec=Spec, output=TensorBase)
cdef _gathered(TensorBase input, TensorBase index, object shape)
