cimport cython

from tensorplug.autograd.graph.views cimport requires_grad
from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.tensor.base cimport Extra, TensorBase, bump_version, new_tensor, version_of

from .program cimport Program
from .training cimport Training

cdef DispatchState dispatch_state
cdef int TRACKED


cdef class Entry:
    cdef public object graph, inference, kind, memory, memory_of_state, mode, refused, shown, training, tree
    cdef public object unwatch, watch
    cdef public dict fixed, same, shared, trainings
    cdef public object devices
    cdef public list arrays, before, folded, given, groups, kept, kinds, leaves, made, needing, news
    cdef public list changed, objects, partition, parts, results, sources, state, storages, targets
    cdef public Program program
    cdef public Py_ssize_t handed_out, written
    cdef object __weakref__

    @cython.locals(number=Py_ssize_t)
    cpdef bint holds(self, list tensors) except -1

    @cython.locals(inputs=list, number=Py_ssize_t, needing=list)
    cpdef run(self, list tensors, bint recorded, list objects)

    @cython.locals(number=Py_ssize_t)
    cdef _ended(self, list leaves, list objects)

    cdef _training(self, list inputs, list needing)

    @cython.locals(arrays=list, saved=list, tensors=list, number=Py_ssize_t)
    cdef list _recorded(self, Training training, list inputs)

    @cython.locals(number=Py_ssize_t, place=Py_ssize_t, leaves=list, target=TensorBase, new=TensorBase)
    cdef list _written(self, list tensors)

    @cython.locals(
        program=Program, arrays=list, given=list, tensors=list, keys=list, outputs=list, inference=bint,
        number=Py_ssize_t, place=Py_ssize_t, group=Py_ssize_t, tensor=TensorBase, made=TensorBase, source=object,
    )
    cdef list _by_kernels(self, list inputs)

    cdef bint _as_folded(self) except -1

    cdef tuple _lowered(self, list inputs)


@cython.locals(number=Py_ssize_t, tensor=TensorBase)
cdef bint _as_known(list tensors, list arrays, list storages) except -1

@cython.locals(number=Py_ssize_t, tensor=TensorBase)
cdef bint _apart(list tensors, dict fixed, object memory) except -1

@cython.locals(found=list, tensor=TensorBase, state=int)
cdef list _needing(list tensors)

@cython.locals(tensor=TensorBase, extra=Extra)
cdef bint _unusual(list tensors) except -1
