cimport cython

from .steps cimport Step


cdef class _Tables:
    cdef public Py_ssize_t number


cdef _Tables _tables


cdef class Program:
    cdef public list steps, free, keys, outputs, fresh
    cdef public dict constants
    cdef public object state
    cdef public list _blank
    cdef public Py_ssize_t _tables

    cpdef bint is_current(self)

    @cython.locals(values=list, keys=list, free=list, step=Step, number=Py_ssize_t, place=Py_ssize_t, dead=tuple)
    cpdef list run(self, list inputs)
