cimport cython

from tensorplug.core.tensor.base cimport TensorBase


cdef class Held:
    cdef public list arrays, bases, cells, classes, code, containers, contents, defaults, functions, items, kinds
    cdef public list named, names, objects, sizes, states, tables, tensors, values

    @cython.locals(number=Py_ssize_t, table=dict, tensor=TensorBase)
    cpdef bint same(self) except -1

    @cython.locals(at=Py_ssize_t, number=Py_ssize_t, size=Py_ssize_t, table=dict, held=list)
    cdef bint _contain_same(self) except -1
