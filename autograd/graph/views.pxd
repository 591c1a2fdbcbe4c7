cimport cython

from tensorplug.core.tensor.base cimport TensorBase, bump_version, new_tensor

from .nodes cimport Node


@cython.freelist(64)
cdef class View:
    cdef public object base, before, op, values, seen, unrecorded_in
    cdef public bint recorded
    cpdef tuple steps(self)


@cython.locals(outer=View, view=View, base=TensorBase)
cpdef View note_view(object op, TensorBase source, tuple values, TensorBase output, bint recorded)

@cython.locals(base=TensorBase, outer=View)
cpdef base_of(View view)

@cython.locals(view=View, base=TensorBase)
cpdef refresh(TensorBase tensor)

cpdef bint requires_grad(TensorBase tensor)

cpdef edge_of(TensorBase tensor)


@cython.trashcan(True)
cdef class ScatterView(Node):
    cdef public object steps
