# Every draw asks which generator it is of, and takes words from it.
cimport cython

from tensorplug.core.dispatch.state cimport DispatchState

cdef DispatchState dispatch_state
cdef Py_ssize_t _WORDS_PER_BLOCK
cdef bint _COMPILED


cdef class Generator:
    cdef public object _device, _lock
    cdef public tuple _position
    cdef object __weakref__

    cpdef tuple take(self, Py_ssize_t words)

    @cython.locals(position=tuple, further=tuple)
    cdef tuple _claim(self, Py_ssize_t blocks)


cpdef Generator generator_of(object device)

cpdef Generator chosen_generator(object generator, object device, object name)
