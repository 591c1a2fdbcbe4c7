cimport cython

from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.tensor.base cimport Storage, TensorBase, new_tensor

from .derivatives cimport Plan
from ..graph.nodes cimport MultiNode, Node, NodeExtra, OpNode, OutputNode
from .accumulation cimport accumulate
from .arithmetic cimport add, shown
from .evaluation cimport evaluate, evaluate_all
from tensorplug.core.dispatch.programs cimport Program

cdef DispatchState dispatch_state


cdef class _State:
    cdef public object gradient
    cdef public bint fresh
    cdef public Py_ssize_t pending


cdef class BackwardPass:
    cdef public bint create_graph, retain_graph, raw, alone
    cdef public object targets
    cdef public dict captured, leaves, states
    cdef public set needed

    @cython.locals(nodes=list, ready=list, finished=bint, targets=bint)
    cpdef run(self, list roots)

    cpdef count(self, list roots)

    @cython.locals(stack=list, root=Node, leaves=dict, node=Node, after=Node, entry=list)
    cpdef _count_in_slots(self, list roots)

    @cython.locals(
        node=Node, simple=OpNode, saved=tuple, plan=Plan, latest=tuple, key=DispatchKey, program=Program,
        kept=TensorBase, storage=Storage, fresh=bint, after=Node, pending=Py_ssize_t,
    )
    cpdef _run_plain(self, list ready)

    @cython.locals(edges=tuple, results=list, position=Py_ssize_t, fresh=bint)
    cpdef _step_plain(self, OpNode node, list ready)

    @cython.locals(extra=NodeExtra, edges=tuple, results=list, position=Py_ssize_t, fresh=bint)
    cpdef _step(self, Node node, list ready)

    @cython.locals(entry=list, node=Node, leaf=TensorBase)
    cpdef _deliver(self, object edge, object value, bint fresh, list ready)

    cpdef _finish_leaf(self, TensorBase leaf, object gradient, bint fresh)
