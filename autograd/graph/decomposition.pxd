cimport cython

from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.dispatch.programs cimport Program
from tensorplug.core.tensor.base cimport TensorBase, new_tensor


cdef class _Gradients:
    cdef public Program program
    cdef public Py_ssize_t seen
    cdef public object told
