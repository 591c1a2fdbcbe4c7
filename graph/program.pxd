cimport cython

from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.dispatch.op cimport Op


cdef class KernelStep:
    cdef public Op op
    cdef public DispatchKey key
    cdef public list template, slots, out
    cdef public Py_ssize_t into

    @cython.locals(raw=list, out=list, key=DispatchKey, index=Py_ssize_t, number=Py_ssize_t, slot=tuple)
    cpdef run(self, list values, list keys)
    cpdef list places(self)


cdef class Program:
    cdef public list steps, free, keys, outputs, fresh
    cdef public dict constants
    cdef public object state
    cdef public Py_ssize_t _tables

    @cython.locals(values=list, keys=list, number=Py_ssize_t, place=Py_ssize_t, dead=tuple)
    cpdef list run(self, list inputs)


cdef list _gathered(list values, tuple places)
