from .current cimport Current
from .execution cimport execute
from .op cimport Op

cdef Current current

cpdef general(Op op, tuple args, dict kwargs)
cpdef run(Op op, tuple args, dict kwargs)
