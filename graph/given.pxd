cdef class Given:
    cdef public list tensors, objects, others
    cdef public set left_out
    cdef public tuple key
    cdef object _names
    cdef dict _numbers

    cdef _part(self, object value, tuple way)

    cdef list _items(self, object value, object kind, tuple way)
