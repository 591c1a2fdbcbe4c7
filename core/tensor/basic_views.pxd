cimport cython

from ..dispatch.call_cache cimport CallCache, store_plan
from ..dispatch.execution cimport show
from ..dispatch.keys cimport DispatchKey
from ..dispatch.state cimport DispatchState
from ..dispatch.view_calls cimport follow
from ..dispatch.view_plans cimport RowPlans, ViewPlan
from .base cimport TensorBase
from .index_keys cimport bounded

cdef DispatchState dispatch_state
cdef CallCache _PLANS, _ROWS
cdef Py_ssize_t _new_keys

@cython.locals(latest=RowPlans, plan=ViewPlan, rows=list)
cpdef row(TensorBase input, Py_ssize_t position, object shape)

@cython.locals(
    shape=tuple, ndim=Py_ssize_t, named=Py_ssize_t, basic=list, sizes=list, dim=Py_ssize_t, used=Py_ssize_t, size=Py_ssize_t,
    tensor_key=DispatchKey, plan=ViewPlan, latest=ViewPlan,
)
cpdef show_basic(TensorBase input, tuple key)

@cython.locals(index=Py_ssize_t)
cdef bint _same_key(tuple planned, tuple key)

cdef bint _same_slice(slice mine, slice given)

@cython.locals(parts=list, bounds=slice)
cdef tuple _plan_key(DispatchKey tensor_key, object shape, tuple key)
