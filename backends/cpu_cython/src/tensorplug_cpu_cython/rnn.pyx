"""LSTM and GRU cells between their matrix products, of float32 and float64 arrays."""

import numpy

cimport numpy as np

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_F32, type_of

np.import_array()

cdef extern from "c/rnn.h":
    ctypedef struct tp_rnn:
        const void *in_ "in"[8]
        Py_ssize_t step[8]
        void *out[3]
        Py_ssize_t n, h
    ctypedef void (*tp_rnn_loop)(const tp_rnn *, int) noexcept nogil
    ctypedef struct tp_rnn_kernels:
        tp_rnn_loop lstm[2]
        tp_rnn_loop lstm_backward[2]
        tp_rnn_loop lstm_step_backward[2]
        tp_rnn_loop gru[2]
        tp_rnn_loop gru_backward[2]
        tp_rnn_loop gru_step_backward[2]

cdef extern from *:
    """
    #define tp_rnn_of(level) TP_CHOOSE(tp_rnn_table, level)
    """
    const tp_rnn_kernels *tp_rnn_of(int)

cdef const tp_rnn_kernels *kernels = tp_rnn_of(simd_level)

cdef enum:
    GRAIN = 2048, HOLD = 512


cdef object run(const tp_rnn_loop *loops, tuple inputs, tuple widths, tuple given=None):
    """Run a loop over the rows of the inputs; return arrays of `widths` times H columns, contiguous ones if given."""
    cdef tp_rnn cell
    cdef np.ndarray array
    cdef np.npy_intp shape[2]
    cdef int i
    cdef tp_rnn_loop loop
    cdef list kept = [], results = []
    for i in range(len(inputs)):
        array = plain_array(inputs[i])
        if np.PyArray_DIM(array, 1) > 1 and np.PyArray_STRIDE(array, 1) != np.PyArray_ITEMSIZE(array):
            array = numpy.ascontiguousarray(array)
        kept.append(array)
        cell.in_[i] = np.PyArray_DATA(array)
        cell.step[i] = np.PyArray_STRIDE(array, 0) // np.PyArray_ITEMSIZE(array)
    array = <np.ndarray> kept[2]
    loop = loops[0 if type_of(array) == TP_F32 else 1]
    cell.n = shape[0] = np.PyArray_DIM(array, 0)
    cell.h = np.PyArray_DIM(array, 1)
    for i in range(len(widths)):
        shape[1] = cell.h * <np.npy_intp> widths[i]
        results.append(new_array(array.dtype, 2, shape, NULL) if given is None else given[i])
        cell.out[i] = np.PyArray_DATA(<np.ndarray> results[i])
    if cell.n * cell.h < HOLD:
        loop(&cell, 1)
    else:
        with nogil:
            loop(&cell, threads_for(cell.n * cell.h, GRAIN))
    return tuple(results)


def lstm_cell(inputs, given=None):
    """Return the next hidden and cell states."""
    return run(kernels.lstm, tuple(inputs), (1, 1), given)


def lstm_cell_gradient(g_hidden, g_state, inputs, state, given=None):
    """Return the gradients of the gates and of the cell state."""
    return run(kernels.lstm_backward, (*inputs, g_hidden, g_state, state), (4, 1), given)


def lstm_step_gradient(g_hidden, g_state, inputs, state, next_hidden, next_state, given):
    """Write the gradients of the gates and of the cell state, where others of the results come from the next step.

    Those of the cell state may be written where they lie.
    """
    run(kernels.lstm_step_backward, (*inputs, g_hidden, g_state, state, next_hidden, next_state), (4, 1), given)


def gru_cell(inputs, given=None):
    """Return the next state."""
    return run(kernels.gru, tuple(inputs), (1,), given)[0]


def gru_cell_gradient(g, inputs, given=None):
    """Return the gradients of the two parts of the gates, and of the state."""
    return run(kernels.gru_backward, (*inputs, g), (3, 3, 1), given)


def gru_step_gradient(g, inputs, next, direct, given):
    """Write the gradients of the two parts of the gates, and of the state, where others come from the next step.

    Those of the state may be written where `direct` lies.
    """
    run(kernels.gru_step_backward, (*inputs, g, next, direct), (3, 3, 1), given)
