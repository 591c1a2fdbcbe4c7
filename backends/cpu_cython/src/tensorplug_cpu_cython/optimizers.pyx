"""Steps of optimizers: the arrays of each parameter in one pass."""

import numpy

cimport numpy as np
from libc.math cimport sqrt
from libc.string cimport memset

from .allocator cimport plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_F32, type_of

np.import_array()

cdef extern from "c/optimizers.h":
    ctypedef struct tp_options:
        double lr, decay, momentum, dampening, beta1, beta2, eps, shrink, step_size, root
        int nesterov, maximize, first
    ctypedef void (*tp_step)(void *, const void *, void *const *, Py_ssize_t, const tp_options *, int) noexcept nogil
    ctypedef struct tp_optimizers:
        tp_step sgd[2]
        tp_step adam[2]
        tp_step adagrad[2]
        tp_step rmsprop[2]

cdef extern from *:
    """
    #define tp_optimizers_of(level) TP_CHOOSE(tp_optimizer_table, level)
    """
    const tp_optimizers *tp_optimizers_of(int)

cdef const tp_optimizers *kernels = tp_optimizers_of(simd_level)

cdef enum:
    GRAIN = 32768, HOLD = 2048


cdef object one_step(const tp_step *functions, tp_options *options, parameter, gradient, tuple state):
    """Run a step over one parameter; arrays with gaps or of another order are copied out and back."""
    cdef void *states[3]
    cdef np.ndarray array
    cdef list copies = []
    cdef list arrays = []
    cdef int k
    cdef Py_ssize_t count
    cdef tp_step function
    for value in (parameter, gradient, *state):
        if value is None:
            arrays.append(None)
            continue
        array = plain_array(value)
        if not np.PyArray_IS_C_CONTIGUOUS(array):
            array = numpy.ascontiguousarray(array)
        if array is not value and value is not gradient:
            copies.append((value, array))
        arrays.append(array)
    for k in range(3):
        states[k] = NULL
    for k in range(len(state)):
        if arrays[2 + k] is not None:
            states[k] = np.PyArray_DATA(<np.ndarray> arrays[2 + k])
    array = <np.ndarray> arrays[0]
    count = np.PyArray_SIZE(array)
    function = functions[0 if type_of(array) == TP_F32 else 1]
    cdef void *p = np.PyArray_DATA(array)
    cdef void *g = np.PyArray_DATA(<np.ndarray> arrays[1])
    if count < HOLD:
        function(p, g, states, count, options, 1)
    else:
        with nogil:
            function(p, g, states, count, options, threads_for(count, GRAIN))
    for value, array in copies:
        value[...] = array


def sgd_step(
    list params, list grads, list buffers, double lr, double momentum, double dampening, double weight_decay,
    bint nesterov, bint maximize, bint first,
):
    """Take a step of stochastic gradient descent."""
    cdef tp_options options
    cdef int i
    memset(&options, 0, sizeof(options))
    options.lr, options.momentum, options.dampening, options.decay = lr, momentum, dampening, weight_decay
    options.nesterov, options.maximize, options.first = nesterov, maximize, first
    for i in range(len(params)):
        one_step(kernels.sgd, &options, params[i], grads[i], (buffers[i] if buffers else None,))


def adam_step(
    list params, list grads, list averages, list squares, list largest, list steps, double lr, double beta1,
    double beta2, double weight_decay, double eps, bint amsgrad, bint maximize, bint decoupled,
):
    """Take a step of Adam, or of AdamW."""
    cdef tp_options options
    cdef double step
    cdef int i
    memset(&options, 0, sizeof(options))
    options.beta1, options.beta2, options.eps, options.maximize = beta1, beta2, eps, maximize
    options.shrink = 1 - lr * weight_decay if decoupled else 1.0
    options.decay = 0.0 if decoupled else weight_decay
    for i in range(len(params)):
        step = steps[i]
        options.step_size = lr / (1 - beta1**step)
        options.root = sqrt(1 - beta2**step)
        one_step(
            kernels.adam, &options, params[i], grads[i],
            (averages[i], squares[i], largest[i] if amsgrad else None),
        )


def adagrad_step(
    list params, list grads, list sums, list steps, double lr, double lr_decay, double weight_decay, double eps,
    bint maximize,
):
    """Take a step of Adagrad."""
    cdef tp_options options
    cdef double step
    cdef int i
    memset(&options, 0, sizeof(options))
    options.decay, options.eps, options.maximize = weight_decay, eps, maximize
    for i in range(len(params)):
        step = steps[i]
        options.lr = lr / (1 + (step - 1) * lr_decay)
        one_step(kernels.adagrad, &options, params[i], grads[i], (sums[i],))


def rmsprop_step(
    list params, list grads, list squares, list means, list buffers, double lr, double alpha, double eps,
    double weight_decay, double momentum, bint centered, bint maximize,
):
    """Take a step of RMSprop."""
    cdef tp_options options
    cdef int i
    memset(&options, 0, sizeof(options))
    options.lr, options.beta2, options.eps, options.decay = lr, alpha, eps, weight_decay
    options.momentum, options.maximize = momentum, maximize
    for i in range(len(params)):
        one_step(
            kernels.rmsprop, &options, params[i], grads[i],
            (squares[i], means[i] if centered else None, buffers[i] if momentum > 0 else None),
        )
