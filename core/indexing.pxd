from .execution cimport show

cpdef get_item(object input, object key)
