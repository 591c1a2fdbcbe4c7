cimport cython

from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.tensor.base cimport TensorBase, new_tensor

from ..engine.derivatives cimport Formula, Plan


# Without the trashcan the end of a deep graph would recurse.
@cython.trashcan(True)
cdef class Node:
    cdef object __weakref__
    cdef public tuple edges
    cdef public NodeExtra extra
    cdef public DispatchKey key
    cdef public object shape, gradient
    cdef public Py_ssize_t pending
    cdef public bint fresh

    cpdef begin(self, tuple edges, DispatchKey key, object shape)
    cpdef list apply(self, object gradient, bint raw)
    cpdef release(self)


cdef class NodeExtra:
    cdef public dict metadata, pre_hooks, post_hooks, tensor_hooks
    cdef public object retains, forward_trace, induced_by, ranges, queue


@cython.trashcan(True)
cdef class OpNode(Node):
    cdef public Plan plan
    cdef public tuple saved, versions, sizes

    cpdef tuple output_kind(self, int number)
    cpdef fill(self, TensorBase output, tuple edges, Plan plan, tuple saved, tuple versions, tuple sizes)
    @cython.locals(formulas=tuple, sizes=tuple, results=list, formula=Formula, index=Py_ssize_t)
    cpdef list apply(self, object gradient, bint raw)


cpdef OpNode new_node()


@cython.trashcan(True)
cdef class MultiNode(OpNode):
    cdef public tuple outputs


@cython.trashcan(True)
cdef class OutputNode(Node):
    cdef public MultiNode parent
    cdef public int number


cdef class SavedByHook:
    cdef public object edge, packed, unpack_hook


@cython.trashcan(True)
cdef class Identity(Node):
    pass


@cython.locals(base=TensorBase)
cdef Py_ssize_t _version(object tensor)
