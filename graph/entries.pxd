cimport cython

from tensorplug.core.tensor.base cimport TensorBase, bump_version, new_tensor, version_of


@cython.locals(number=Py_ssize_t, tensor=TensorBase)
cdef bint _as_known(list tensors, list arrays, list storages)

@cython.locals(number=Py_ssize_t, tensor=TensorBase)
cdef bint _apart(list tensors, dict fixed, object memory)
