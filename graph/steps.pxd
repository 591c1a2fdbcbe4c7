cimport cython

from tensorplug.core.dispatch.execution cimport call_kernel
from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.tensor.base cimport new_tensor


cdef class Step:
    cdef public list out

    cpdef run(self, list values, list keys)
    cpdef list places(self)


cdef class KernelStep(Step):
    cdef public Op op
    cdef public DispatchKey key
    cdef public list template, slots
    cdef public Py_ssize_t first, into, second

    cpdef settle(self)

    @cython.locals(key=DispatchKey, result=DispatchKey, index=Py_ssize_t, number=Py_ssize_t, place=Py_ssize_t, out=list)
    cpdef run(self, list values, list keys)

    @cython.locals(raw=list, slot=tuple, index=Py_ssize_t)
    cdef list _arguments(self, list values)

    cpdef list places(self)


cdef class CallStep(Step):
    cdef public object node
    cdef public dict given

    cpdef run(self, list values, list keys)
    cpdef list places(self)


cdef class WriteStep(CallStep):
    cdef public Op op
    cdef public DispatchKey key
    cdef public list template, slots, written

    @cython.locals(
        raw=list, slot=tuple, index=Py_ssize_t, number=Py_ssize_t, place=Py_ssize_t, key=DispatchKey,
    )
    cpdef run(self, list values, list keys)

    cpdef list places(self)


cdef class FusedStep(Step):
    cdef public object call, fuser, _plugin
    cdef public list inputs, steps

    @cython.locals(step=Step, place=Py_ssize_t)
    cpdef run(self, list values, list keys)

    @cython.locals(out=list, number=Py_ssize_t, place=Py_ssize_t)
    cdef _put(self, object results, list values)

    cpdef list places(self)


cdef list _gathered(list values, tuple places)
