cimport cython

from ..dispatch.call_cache cimport CallCache, store_plan
from ..dispatch.view_plans cimport RowPlans, ViewPlan
from ..dispatch.keys cimport DispatchKey
from ..dispatch.state cimport DispatchState
from ..dispatch.view_calls cimport follow
from ..dispatch.execution cimport execute, show, verify
from ..dispatch.op cimport Op, Spec
from .base cimport TensorBase, new_tensor

cdef DispatchState dispatch_state
cdef CallCache _PLANS, _ROWS

@cython.locals(size=Py_ssize_t, position=Py_ssize_t, index=TensorBase)
cpdef get_item(TensorBase input, object key)

@cython.locals(key=DispatchKey, values=tuple, spec=Spec, output=TensorBase)
cdef _gathered(TensorBase input, TensorBase index, object shape)

@cython.locals(latest=RowPlans, plan=ViewPlan, rows=list)
cdef _row(TensorBase input, Py_ssize_t position, object shape)

@cython.locals(
    shape=tuple, ndim=Py_ssize_t, named=Py_ssize_t, basic=list, sizes=list, dim=Py_ssize_t, used=Py_ssize_t, size=Py_ssize_t,
    tensor_key=DispatchKey, plan=ViewPlan, latest=ViewPlan,
)
cdef _show_basic(TensorBase input, tuple key)

@cython.locals(index=Py_ssize_t)
cdef bint _same_key(tuple planned, tuple key)

cdef bint _same_slice(slice mine, slice given)

@cython.locals(parts=list, bounds=slice)
cdef tuple _plan_key(DispatchKey tensor_key, object shape, tuple key)

cdef object _slice(object item, object size)

@cython.locals(parts=list, basic=list, indices=list, named=Py_ssize_t, dim=Py_ssize_t, advanced=bint, changed=bint)
cdef tuple _parse(object input, object key)
