# What the ops of this family call at every call.
from tensorplug.core.device.generator cimport Generator, chosen_generator
from tensorplug.core.dispatch.keys cimport DispatchKey, dispatch_key
from tensorplug.core.ops.creation.creation cimport made, options, sizes_of
from tensorplug.core.ops.random.numbers cimport integer_numbers, normal_numbers, uniform_numbers
from tensorplug.core.ops.rules cimport number
from tensorplug.core.tensor.shapes cimport as_shape, check_sizes

cpdef object floating(object dtype, object name)

cpdef object fresh(object make, object shape, DispatchKey key, Generator generator)

cdef object _made(
    object make, tuple sizes, object size, object dtype, object device, object generator, object requires_grad,
    object name,
)

cpdef object whole(object value, object name, object argument)

cpdef object check_range(object low, object high, object dtype, object name)

cpdef object integers_between(
    list given, object low, object high, object shape, object dtype, object device, object generator, object name
)

cpdef object check_deviation(object std, object name)
