from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.tensor.base cimport new_tensor, storage_of

cpdef normal(object array, DispatchKey key)
cpdef sum_to_shape(object array, object shape, DispatchKey key)
cpdef add(object a, object b, DispatchKey key, bint raw, bint fresh_a=*, bint fresh_b=*)
cpdef zeros(DispatchKey key, object shape, bint raw)
cpdef shown(object array, DispatchKey key)
