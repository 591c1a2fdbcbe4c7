from tensorplug.core.kinds cimport Kind
from tensorplug.core.tensor_base cimport new_tensor

cpdef normal(object array, Kind kind)
cpdef sum_to_shape(object array, object shape, Kind kind)
cpdef add(object a, object b, Kind kind, bint raw, bint fresh_a=*, bint fresh_b=*)
cpdef zeros(Kind kind, object shape, bint raw)
