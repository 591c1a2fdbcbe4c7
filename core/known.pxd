from .kinds cimport Kind


cdef class Known:
    cdef public list template, raw
    cdef public tuple places, positions, outputs
    cdef public Kind kind, result
    cdef public dict recordings
    cdef public object shape

    cpdef list fill(self, tuple args)
