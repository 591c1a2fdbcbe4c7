# What the ops of this family call at every call.
cimport cython

from tensorplug.core.device.generator cimport Generator, chosen_generator
from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.ops.random.numbers cimport bernoulli_numbers
from tensorplug.core.ops.rules cimport check_tensor, number

cdef DispatchState dispatch_state

cpdef Generator source_of(object input, object generator, object name, int lowest=*, int highest=*)

cpdef object checked_chance(object p, object name)
