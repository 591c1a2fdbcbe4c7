cimport cython

from .keys cimport DispatchKey


cdef class Program:
    cdef public list steps, constants, kernels
    cdef public object fresh, result
    cdef public Py_ssize_t index
    cdef public bint shape_free, identity, reads_layout, swap

    @cython.locals(values=list, key=DispatchKey, index=Py_ssize_t, step=tuple, operands=tuple, dead=tuple, place=Py_ssize_t, count=Py_ssize_t)
    cpdef run(self, list inputs)


cdef _gather(list values, object indices)


cdef class OutputPlace:
    cdef public int index, number
