cimport cython

from tensorplug.core.device.generator cimport Generator
from tensorplug.core.dispatch.execution cimport kernel_of, native_kernel
from tensorplug.core.dispatch.keys cimport DispatchKey
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.dispatch.state cimport DispatchState
from tensorplug.core.tensor.base cimport TensorBase, new_tensor

cdef DispatchState dispatch_state
cdef Py_ssize_t _WORDS_PER_BLOCK

@cython.locals(count=Py_ssize_t, size=Py_ssize_t, blocks=Py_ssize_t)
cpdef by_kernel(
    Op op, object shape, DispatchKey key, Generator generator, Py_ssize_t words, tuple more, object into,
    DispatchKey result=*
)

@cython.locals(output=TensorBase)
cpdef drawn(
    Op op, object shape, DispatchKey key, object seed, object offset, tuple more, DispatchKey made
)

cpdef object uniform_numbers(object shape, DispatchKey key, Generator generator, object into=*)

cpdef object normal_numbers(object shape, DispatchKey key, Generator generator, object into=*)

cpdef object integer_numbers(
    object shape, DispatchKey key, Generator generator, object low, object high, object into=*
)

cpdef object bernoulli_numbers(
    object shape, DispatchKey key, Generator generator, object chance, object into=*
)
