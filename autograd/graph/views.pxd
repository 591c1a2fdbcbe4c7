cimport cython

from tensorplug.core.dispatch.call_cache cimport ViewPlan
from tensorplug.core.tensor.base cimport Extra, TensorBase, bump_version, extra_of, new_tensor

from .nodes cimport Node


@cython.freelist(64)
cdef class View:
    cdef public object base, steps, seen
    cdef public bint recorded


@cython.locals(extra=Extra, outer=View, view=View, base=TensorBase)
cpdef View note_view(object op, TensorBase source, tuple values, TensorBase output, bint recorded, ViewPlan plan)

@cython.locals(tensor=TensorBase, extra=Extra)
cpdef base_of(View view)

@cython.locals(view=View, base=TensorBase)
cpdef refresh(TensorBase tensor)

cpdef bint requires_grad(TensorBase tensor)

@cython.locals(extra=Extra)
cpdef edge_of(TensorBase tensor)


@cython.trashcan(True)
cdef class ScatterView(Node):
    cdef public object steps
