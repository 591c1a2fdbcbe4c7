"""Cross-entropy between classes and scores or log probabilities."""

cimport numpy as np
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from . import pointwise

from .allocator cimport new_array, new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BF16, TP_F16, TP_F32, TP_F64, TP_I64, descriptors, type_of

np.import_array()

cdef extern from "c/losses.h":
    ctypedef struct tp_classes:
        const void *x
        const int64_t *target
        const void *weight
        int64_t ignored
        Py_ssize_t before, n, after
    ctypedef struct tp_losses:
        int (*forward[2])(const tp_classes *, void *, double *, int) noexcept nogil
        void (*backward[2])(const tp_classes *, const void *, Py_ssize_t, double, void *, int) noexcept nogil
        double (*total[2])(const tp_classes *) noexcept nogil
        int (*likelihood[2])(const tp_classes *, void *, double *, int) noexcept nogil
        void (*likelihood_backward[2])(
            const tp_classes *, const void *, Py_ssize_t, double, void *, int
        ) noexcept nogil
    Py_ssize_t tp_loss_blocks(const tp_classes *) noexcept nogil

cdef extern from *:
    """
    #define tp_losses_of(level) TP_CHOOSE(tp_loss_table, level)
    """
    const tp_losses *tp_losses_of(int)

cdef const tp_losses *kernels = tp_losses_of(simd_level)

cdef enum:
    GRAIN = 16384


cdef np.ndarray contiguous(object value, int number):
    """Return an array of the given type whose elements lie one behind the other."""
    cdef np.ndarray array = plain_array(value)
    if type_of(array) != number:
        array = pointwise.cast(array, descriptors[number])
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef bint describe(tp_classes *c, np.ndarray x, np.ndarray target, np.ndarray weight, int64_t ignored) noexcept:
    """Fill in the description; return False if there is nothing to compute."""
    cdef int i
    c.x = np.PyArray_DATA(x)
    c.target = <const int64_t *> np.PyArray_DATA(target)
    c.weight = NULL if weight is None else np.PyArray_DATA(weight)
    c.ignored = ignored
    c.before = np.PyArray_DIM(x, 0)
    c.n = np.PyArray_DIM(x, 1)
    c.after = 1
    for i in range(2, np.PyArray_NDIM(x)):
        c.after *= np.PyArray_DIM(x, i)
    return np.PyArray_SIZE(x) > 0 and np.PyArray_SIZE(target) == c.before * c.after


cdef int computed_in(np.ndarray array) noexcept:
    cdef int number = type_of(array)
    return TP_F64 if number == TP_F64 else TP_F32


def cross_entropy(input, target, weight, ignored, reduction, bint logs, fallback):
    """Return the losses, their sum or their weighted mean, of scores or of log probabilities."""
    cdef np.ndarray given = plain_array(input), x, classes, weights = None, result
    cdef tp_classes c
    cdef int number = computed_in(given), fits, threads
    cdef bint wide = number == TP_F64
    cdef Py_ssize_t blocks, i
    cdef double *sums
    cdef double lost = 0, weighed = 0
    cdef void *losses = NULL
    x = contiguous(given, number)
    classes = contiguous(target, TP_I64)
    if weight is not None:
        weights = contiguous(weight, number)
    if not describe(&c, x, classes, weights, ignored):
        return fallback(input, target, weight, ignored, reduction)
    if reduction == "none":
        result = new_like(classes, number)
        losses = np.PyArray_DATA(result)
    else:
        result = new_array(<np.dtype> descriptors[number], 0, NULL, NULL)
    blocks = tp_loss_blocks(&c)
    threads = threads_for(c.before * c.after * (1 if logs else c.n), GRAIN)
    sums = <double *> calloc(2 * blocks, sizeof(double))
    if sums == NULL:
        raise MemoryError()
    with nogil:
        if logs:
            fits = kernels.likelihood[wide](&c, losses, sums, threads)
        else:
            fits = kernels.forward[wide](&c, losses, sums, threads)
        for i in range(blocks):
            lost += sums[2 * i]
            weighed += sums[2 * i + 1]
    free(sums)
    if not fits:  # says which class is wrong
        return fallback(input, target, weight, ignored, reduction)
    if losses == NULL:
        if reduction == "mean":
            lost /= weighed
        if wide:
            (<double *> np.PyArray_DATA(result))[0] = lost
        else:
            (<float *> np.PyArray_DATA(result))[0] = <float> lost
    return result if type_of(given) == number else pointwise.cast(result, descriptors[type_of(given)])


def cross_entropy_gradient(g, input, target, weight, ignored, reduction, bint logs, fallback):
    """Return the gradient of :func:`cross_entropy`'s input."""
    cdef np.ndarray given = plain_array(input), x, classes, gradient, weights = None, result
    cdef tp_classes c
    cdef int number = computed_in(given), threads
    cdef bint wide = number == TP_F64
    cdef double scale = 1
    cdef bint mean = reduction == "mean"
    cdef Py_ssize_t step
    cdef void *to
    # Of log probabilities only the shape counts.
    x = given if logs and type_of(given) == number else contiguous(given, number)
    classes = contiguous(target, TP_I64)
    gradient = contiguous(g, number)
    if weight is not None:
        weights = contiguous(weight, number)
    if not describe(&c, x, classes, weights, ignored):
        return fallback(g, input, target, weight, ignored, reduction)
    result = new_array(<np.dtype> descriptors[number], np.PyArray_NDIM(x), np.PyArray_DIMS(x), NULL)
    to = np.PyArray_DATA(result)
    step = np.PyArray_NDIM(gradient) > 0
    threads = threads_for(c.before * c.n * c.after, GRAIN)
    with nogil:
        if mean:
            scale = kernels.total[wide](&c)
            scale = 1 / scale if scale else INFINITY  # what is ignored stays zero
        if logs:
            kernels.likelihood_backward[wide](&c, np.PyArray_DATA(gradient), step, scale, to, threads)
        else:
            kernels.backward[wide](&c, np.PyArray_DATA(gradient), step, scale, to, threads)
    return result if type_of(given) == number else pointwise.cast(result, descriptors[type_of(given)])
