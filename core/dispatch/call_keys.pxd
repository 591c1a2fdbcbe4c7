cimport cython

from ..tensor.base cimport TensorBase


@cython.locals(parts=list, tensor=TensorBase)
cpdef tuple call_key(tuple args, dict kwargs)

cpdef bint any_named(dict kwargs, dict names)

@cython.locals(named=list)
cpdef tuple all_given(tuple args, dict kwargs)

cpdef tuple item_types(object values)

cdef bint of_ints(list values)

cpdef bint ambiguous(tuple values)

cpdef bint zeros(object values)

cpdef object exact_key(object value)
