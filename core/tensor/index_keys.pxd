cimport cython

from ..dispatch.execution cimport show
from .base cimport TensorBase, new_tensor

cpdef object bounded(object item, object size)

@cython.locals(parts=list, basic=list, indices=list, named=Py_ssize_t, dim=Py_ssize_t, advanced=bint, changed=bint)
cpdef tuple parse(object input, object key)
