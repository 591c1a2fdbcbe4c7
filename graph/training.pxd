cimport cython

from tensorplug.autograd.graph.nodes cimport MultiNode
from tensorplug.autograd.graph.recording cimport attach_several, shared
from tensorplug.autograd.graph.views cimport edge_of
from tensorplug.core.dispatch.keys cimport DispatchKey, dispatch_key
from tensorplug.core.tensor.base cimport TensorBase, new_tensor, version_of

from .program cimport Program


cdef class Training:
    cdef public object graph, joint, mode
    cdef public list generators, keys, needing, reached, rewritten, shown, wanted
    cdef public Program forward
    cdef public dict backward

    @cython.locals(program=Program, arrays=list, given=list, tensor=TensorBase)
    cpdef tuple run(self, list inputs)

    @cython.locals(begin=Py_ssize_t, end=Py_ssize_t)
    cdef tuple _apart(self, list found)

    @cython.locals(key=DispatchKey, program=Program, arrays=list, fresh=list, found=list, number=Py_ssize_t)
    cpdef list gradients(self, list saved, list given, list keys)

    cpdef list streams(self)

    @cython.locals(
        node=CompiledNode, outputs=list, edges=tuple, first=TensorBase, place=Py_ssize_t, kept=list,
    )
    cpdef record(self, list inputs, list saved, list streams, list tensors)


@cython.trashcan(True)
cdef class CompiledNode(MultiNode):
    cdef public Training training
    cdef public list inputs, streams, watched, watched_versions
    cdef public set arrived, done

    cpdef release(self)

    @cython.locals(number=Py_ssize_t, key=DispatchKey, keys=list, arrays=list)
    cpdef list apply(self, object gradient, bint raw)


cpdef CompiledNode new_compiled_node()
