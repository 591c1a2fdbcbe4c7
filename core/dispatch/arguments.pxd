cimport cython

from .op cimport Op
from ..tensor.base cimport TensorBase

cdef frozenset _PLAIN, _SIGNED, _NO_FLOATS, _NO_SEQUENCES

cpdef bint is_scalar(object value)

cpdef object plain(object value)

cpdef find_foreign(tuple args, dict kwargs)

@cython.locals(tensor=TensorBase)
cpdef tuple plain_arguments(Op op, tuple args, dict kwargs)

cdef tuple _replaced(tuple args, dict kwargs, Py_ssize_t position, str name, object value)

cdef _check_none(Op op, tuple args, dict kwargs, Py_ssize_t position, str name, str kind)

cpdef bint reads_tensor(tuple given, dict named, tuple args, dict kwargs)

cdef object _index(Op op, str name, object value)

cdef object _wrong(Op op, str name, str kind, object value)

cpdef bint has_number(Op op, tuple args, dict kwargs)

cpdef check_number(object value, object name, object argument)

cpdef bint fits(object value, object dtype)

cpdef object scalar_of(object value, object key)

cpdef bint fits_rounded(object value, object dtype)
