"""Connectionist temporal classification."""

cimport numpy as np
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.string cimport memset

import numpy

from . import pointwise

from .allocator cimport new_array, new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_F64, TP_I64, descriptors, type_of

np.import_array()

cdef extern from "c/losses_ctc.h":
    ctypedef struct tp_ctc:
        Py_ssize_t steps, samples, classes, longest
        const void *x
        const int64_t *labels
        const int64_t *inputs
        const int64_t *outputs
        int64_t blank
        int threads
    ctypedef struct tp_ctc_kernels:
        int (*losses[2])(const tp_ctc *, void *) noexcept nogil
        int (*gradient[2])(const tp_ctc *, const void *, void *) noexcept nogil

cdef extern from *:
    """
    #define tp_ctc_of(level) TP_CHOOSE(tp_ctc_table, level)
    """
    const tp_ctc_kernels *tp_ctc_of(int)

cdef const tp_ctc_kernels *kernels = tp_ctc_of(simd_level)

cdef enum:
    GRAIN = 4096


cdef np.ndarray contiguous(object value, int number):
    cdef np.ndarray array = plain_array(value)
    if type_of(array) != number:
        array = pointwise.cast(array, descriptors[number])
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef class Call:
    """The arguments of a call, in memory as the kernels read it."""

    cdef np.ndarray x, labels, inputs, outputs
    cdef tp_ctc s

    def __cinit__(self, log_probs, labels, tuple inputs, tuple outputs, int64_t blank):
        cdef int64_t *label
        cdef int64_t length
        cdef Py_ssize_t n, i
        self.x = contiguous(log_probs, type_of(plain_array(log_probs)))
        self.labels = contiguous(labels, TP_I64)
        self.inputs, self.outputs = [numpy.array(lengths, numpy.int64) for lengths in (inputs, outputs)]
        self.s.steps, self.s.samples = np.PyArray_DIM(self.x, 0), np.PyArray_DIM(self.x, 1)
        self.s.classes, self.s.longest = np.PyArray_DIM(self.x, 2), np.PyArray_DIM(self.labels, 1)
        self.s.x, self.s.labels = np.PyArray_DATA(self.x), <const int64_t *> np.PyArray_DATA(self.labels)
        self.s.inputs = <const int64_t *> np.PyArray_DATA(self.inputs)
        self.s.outputs = <const int64_t *> np.PyArray_DATA(self.outputs)
        self.s.blank = blank
        self.s.threads = threads_for(self.s.steps * self.s.samples * (2 * self.s.longest + 1), GRAIN)
        for n in range(self.s.samples):
            length = self.s.outputs[n]
            if length > self.s.longest or length < 0 or not 0 <= self.s.inputs[n] <= self.s.steps:
                raise RuntimeError(f"ctc_loss(): lengths {inputs}, {outputs} do not fit")
            for i in range(length):
                if not 0 <= self.s.labels[n * self.s.longest + i] < self.s.classes:
                    raise RuntimeError(
                        f"ctc_loss(): label {self.s.labels[n * self.s.longest + i]} is out of range of "
                        f"{self.s.classes} classes"
                    )

    cdef double weight(self, Py_ssize_t n, bint mean) noexcept:
        """Return what a sample's loss is multiplied with: 1, or its share in the mean of losses per label."""
        cdef int64_t length = self.s.outputs[n]
        return 1.0 / ((length if length > 1 else 1) * self.s.samples) if mean else 1


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, bint zero_infinity):
    """Return the losses of samples, their sum, or the mean of losses per label."""
    cdef Call call = Call(log_probs, targets, tuple(input_lengths), tuple(target_lengths), blank)
    cdef np.npy_intp samples = call.s.samples
    cdef int number = type_of(call.x), done
    cdef np.ndarray losses = new_array(descriptors[number], 1, &samples, NULL), result
    cdef bint wide = number == TP_F64, mean = reduction == "mean"
    cdef double total = 0, loss
    cdef Py_ssize_t n
    with nogil:
        done = kernels.losses[wide](&call.s, np.PyArray_DATA(losses))
    if not done:
        raise MemoryError()
    for n in range(samples):
        loss = (<double *> np.PyArray_DATA(losses))[n] if wide else (<float *> np.PyArray_DATA(losses))[n]
        if zero_infinity and loss == INFINITY:
            loss = 0
            if wide:
                (<double *> np.PyArray_DATA(losses))[n] = 0
            else:
                (<float *> np.PyArray_DATA(losses))[n] = 0
        total += loss * call.weight(n, mean)
    if reduction == "none":
        return losses
    result = new_array(descriptors[number], 0, NULL, NULL)
    if mean and not samples:
        total = float("nan")
    if wide:
        (<double *> np.PyArray_DATA(result))[0] = total
    else:
        (<float *> np.PyArray_DATA(result))[0] = <float> total
    return result


def ctc_loss_backward(
    g, log_probs, targets, input_lengths, target_lengths, blank, reduction
):
    """Return the gradient of the log probabilities."""
    cdef Call call = Call(log_probs, targets, tuple(input_lengths), tuple(target_lengths), blank)
    cdef int number = type_of(call.x), done
    cdef bint wide = number == TP_F64, mean = reduction == "mean"
    cdef np.ndarray given = contiguous(g, number), each, result = new_like(call.x, number)
    cdef np.npy_intp samples = call.s.samples
    cdef Py_ssize_t n, step = np.PyArray_NDIM(given) > 0
    each = new_array(descriptors[number], 1, &samples, NULL)
    for n in range(samples):
        if wide:
            (<double *> np.PyArray_DATA(each))[n] = (
                (<double *> np.PyArray_DATA(given))[n * step] * call.weight(n, mean)
            )
        else:
            (<float *> np.PyArray_DATA(each))[n] = <float> (
                (<float *> np.PyArray_DATA(given))[n * step] * call.weight(n, mean)
            )
    with nogil:
        memset(np.PyArray_DATA(result), 0, np.PyArray_NBYTES(result))
        done = kernels.gradient[wide](&call.s, np.PyArray_DATA(each), np.PyArray_DATA(result))
    if not done:
        raise MemoryError()
    return result
