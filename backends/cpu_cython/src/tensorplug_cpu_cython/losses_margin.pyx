"""Losses that ask classes to keep a distance from target classes."""

cimport numpy as np
from libc.stdint cimport int64_t

from . import pointwise

from .allocator cimport new_array, new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_F64, TP_I64, descriptors, type_of

np.import_array()

cdef extern from "c/losses_margin.h":
    enum:
        TP_NO_CLASS, TP_NO_MEMORY
    ctypedef struct tp_margins:
        Py_ssize_t rows, classes
        const void *x
        const int64_t *target
        const void *weight
        double margin
        int squared, threads
    ctypedef struct tp_margin_kernels:
        int (*multi[2])(const tp_margins *, void *) noexcept nogil
        int (*multi_backward[2])(const tp_margins *, const void *, Py_ssize_t, double, void *) noexcept nogil
        int (*multilabel[2])(const tp_margins *, void *) noexcept nogil
        int (*multilabel_backward[2])(const tp_margins *, const void *, Py_ssize_t, double, void *) noexcept nogil

cdef extern from *:
    """
    #define tp_margins_of(level) TP_CHOOSE(tp_margin_table, level)
    """
    const tp_margin_kernels *tp_margins_of(int)

cdef const tp_margin_kernels *kernels = tp_margins_of(simd_level)

cdef enum:
    GRAIN = 16384


cdef np.ndarray contiguous(object value, int number):
    cdef np.ndarray array = plain_array(value)
    if type_of(array) != number:
        array = pointwise.cast(array, descriptors[number])
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef tp_margins described(np.ndarray x, np.ndarray target, np.ndarray weight, bint squared, double margin):
    cdef tp_margins s
    cdef int dims = np.PyArray_NDIM(x)
    s.classes = np.PyArray_DIM(x, dims - 1) if dims else 1
    s.rows = np.PyArray_DIM(x, 0) if dims > 1 else 1
    s.x, s.target = np.PyArray_DATA(x), <const int64_t *> np.PyArray_DATA(target)
    s.weight = NULL if weight is None else np.PyArray_DATA(weight)
    s.squared, s.margin = squared, margin
    s.threads = threads_for(s.rows * s.classes, GRAIN)
    return s


cdef int refuse(int failed, str name, target, Py_ssize_t classes) except -1:
    if failed == TP_NO_CLASS:
        raise RuntimeError(f"{name}(): a target is out of range of {classes} classes: {target.tolist()}")
    if failed == TP_NO_MEMORY:
        raise MemoryError()
    return 0


def margin_losses(input, target, weight, bint squared, double margin, bint several):
    """Return the loss of each row of scores, of one target class or of `several`."""
    cdef np.ndarray x = contiguous(input, type_of(plain_array(input))), classes = contiguous(target, TP_I64)
    cdef np.ndarray weights = None if weight is None else contiguous(weight, type_of(x)), result
    cdef tp_margins s = described(x, classes, weights, squared, margin)
    cdef np.npy_intp rows = s.rows
    cdef int failed, wide = type_of(x) == TP_F64
    result = new_array(descriptors[type_of(x)], 1, &rows, NULL)
    with nogil:
        if several:
            failed = kernels.multilabel[wide](&s, np.PyArray_DATA(result))
        else:
            failed = kernels.multi[wide](&s, np.PyArray_DATA(result))
    refuse(failed, "multilabel_margin_loss" if several else "multi_margin_loss", target, s.classes)
    return result


def margin_gradient(g, input, target, weight, bint squared, double margin, bint several, double scale):
    """Return the gradient of the scores, from one per row, or one for all, times `scale`."""
    cdef np.ndarray x = contiguous(input, type_of(plain_array(input))), classes = contiguous(target, TP_I64)
    cdef np.ndarray weights = None if weight is None else contiguous(weight, type_of(x)), result
    cdef np.ndarray gradient = contiguous(g, type_of(x))
    cdef tp_margins s = described(x, classes, weights, squared, margin)
    cdef Py_ssize_t step = np.PyArray_NDIM(gradient) > 0
    cdef int failed, wide = type_of(x) == TP_F64
    result = new_like(x, type_of(x))
    with nogil:
        if several:
            failed = kernels.multilabel_backward[wide](
                &s, np.PyArray_DATA(gradient), step, scale, np.PyArray_DATA(result)
            )
        else:
            failed = kernels.multi_backward[wide](
                &s, np.PyArray_DATA(gradient), step, scale, np.PyArray_DATA(result)
            )
    refuse(failed, "multilabel_margin_loss" if several else "multi_margin_loss", target, s.classes)
    return result
