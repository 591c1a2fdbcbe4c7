cimport cython


@cython.locals(at=Py_ssize_t, number=Py_ssize_t, size=Py_ssize_t, table=dict)
cpdef bint holds_same(list containers, list sizes, list held) except -1
