cimport cython


cdef class Held:
    cdef public list bases, cells, classes, code, containers, contents, defaults, functions, items, kinds
    cdef public list named, names, objects, sizes, tables, values

    @cython.locals(number=Py_ssize_t, table=dict)
    cpdef bint same(self) except -1

    @cython.locals(at=Py_ssize_t, number=Py_ssize_t, size=Py_ssize_t, table=dict, held=list)
    cdef bint _contain_same(self) except -1
