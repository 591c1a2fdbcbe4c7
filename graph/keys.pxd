cimport cython

from tensorplug.core.tensor.base cimport TensorBase


cpdef list modes()

@cython.locals(number=Py_ssize_t, tensor=TensorBase)
cpdef key_of(object value, list tensors)
