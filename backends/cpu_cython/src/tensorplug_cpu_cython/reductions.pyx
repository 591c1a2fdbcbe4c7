"""Reductions: dimensions are merged until two of each sort are left, or the array is copied first."""

import numpy

cimport cython
cimport numpy as np
from cython cimport floating
from libc.stdlib cimport free, malloc

from . import pointwise

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BF16, TP_BOOL, TP_F16, TP_F32, TP_F64, TP_I64, TP_TYPES, TP_U8, descriptors, type_of

np.import_array()

cdef extern from "c/strided_views.h":
    np.ndarray tp_view_as(np.ndarray, char *, int, const np.npy_intp *, const np.npy_intp *, np.dtype)

cdef extern from "c/reductions.h":
    enum:
        TP_FILLED, TP_NUMBERS
    ctypedef struct tp_reduction:
        Py_ssize_t kept[2]
        Py_ssize_t reduced[2]
        Py_ssize_t kept_strides[2]
        Py_ssize_t reduced_strides[2]
        double divisor
    ctypedef void (*tp_reduce)(const char *, char *, const tp_reduction *, char *, int) noexcept nogil
    ctypedef void (*tp_arg)(const char *, np.npy_int64 *, Py_ssize_t, Py_ssize_t, Py_ssize_t, int) noexcept nogil
    ctypedef void (*tp_both)(const void *, void *, void *, Py_ssize_t, Py_ssize_t, int) noexcept nogil
    ctypedef struct tp_reductions:
        tp_reduce reduce[7][10]
        tp_arg arg[2][10]
        tp_both both[10]

cdef extern from *:
    """
    #define tp_reductions_kernels(level) TP_CHOOSE(tp_reductions_table, level)
    """
    const tp_reductions *tp_reductions_kernels(int)

cdef const tp_reductions *kernels = tp_reductions_kernels(simd_level)
SUM, MAX, MIN, PROD, NANSUM, FILLED, NUMBERS = range(7)

cdef enum:
    GRAIN = 32768, HOLD = 8192


cdef int merge(
    np.ndarray array, const int *dims, int count, Py_ssize_t *sizes, Py_ssize_t *strides
) noexcept:
    """Merge dimensions that lie behind each other; return how many are left, or 3 for too many.

    The slower of the two that are left comes first; what is missing has size 1.
    """
    cdef int left = 0, k
    cdef Py_ssize_t size, stride
    for k in range(count):
        size = np.PyArray_DIM(array, dims[k])
        stride = np.PyArray_STRIDE(array, dims[k])
        if size == 1:
            continue
        if left and strides[left - 1] == stride * size:
            sizes[left - 1] *= size
            strides[left - 1] = stride
            continue
        if left == 2:
            return 3
        sizes[left] = size
        strides[left] = stride
        left += 1
    if left < 2:
        sizes[1] = sizes[0] if left else 1
        strides[1] = strides[0] if left else 0
        sizes[0] = 1
        strides[0] = 0
    return left


cdef np.ndarray parts_of(np.ndarray array):
    """Return the parts of complex numbers, of less than 63 dimensions, along one more."""
    cdef np.npy_intp shape[64]
    cdef np.npy_intp strides[64]
    cdef int i, dims = np.PyArray_NDIM(array)
    cdef int number = TP_F32 if np.PyArray_ITEMSIZE(array) == 8 else TP_F64
    for i in range(dims):
        shape[i], strides[i] = np.PyArray_DIM(array, i), np.PyArray_STRIDE(array, i)
    shape[dims], strides[dims] = 2, np.PyArray_ITEMSIZE(array) // 2
    return tp_view_as(array, np.PyArray_BYTES(array), dims + 1, shape, strides, <np.dtype> descriptors[number])


cdef np.ndarray joined(np.ndarray parts, np.ndarray like):
    """Return the complex numbers of the parts that `parts_of` gives."""
    return tp_view_as(
        parts, np.PyArray_BYTES(parts), np.PyArray_NDIM(parts) - 1, np.PyArray_DIMS(parts), np.PyArray_STRIDES(parts),
        <np.dtype> like.dtype,
    )


cdef class Reduction:
    """A reduction: sum, mean, amax, amin, prod or nansum; or of truth values: any, all or how many hold."""

    cdef int kind
    cdef bint is_mean, of_truth
    cdef object fallback

    def __init__(self, int kind, fallback=None, bint is_mean=False, bint of_truth=False):
        self.kind = kind
        self.is_mean = is_mean
        self.of_truth = of_truth
        self.fallback = fallback

    def count(self, input, dim):
        """Return how many elements over the dimensions `dim` are not zero."""
        if not np.PyArray_SIZE(plain_array(input)):
            return numpy.asarray(numpy.count_nonzero(input, axis=dim))
        return self.call(input, dim, False)

    def call(self, input, dim, keepdim):
        """Return the reduction of `input` over the dimensions `dim`."""
        cdef np.ndarray array = plain_array(input), result
        cdef int number = type_of(array), dims = np.PyArray_NDIM(array), i, kept = 0, reduced = 0, out_dims = 0
        cdef int kept_dims[64]
        cdef int reduced_dims[64]
        cdef np.npy_intp shape[64]
        cdef bint is_reduced[64]
        cdef tp_reduction form
        cdef Py_ssize_t count, total = np.PyArray_SIZE(array)
        cdef tp_reduce function
        cdef char *partial
        cdef char stack[1024]
        cdef int threads
        cdef int to = number
        if number < 0 and np.PyArray_ISCOMPLEX(array) and dims < 63:
            parts = parts_of(array)
            return joined(self.call(parts, tuple(range(dims)) if dim is None else dim, keepdim), array)
        if self.of_truth:
            # torch keeps its old truth values in uint8.
            to = TP_I64 if self.kind == TP_FILLED else TP_U8 if number == TP_U8 else TP_BOOL
            if not total:
                return numpy.asarray(self.fallback(input, dim, keepdim), descriptors[to])
            if number == TP_U8 and self.kind != TP_FILLED:
                pass  # the extremes tell as much
            elif number != TP_BOOL and (self.kind != TP_FILLED or kernels.reduce[TP_FILLED][number] == NULL):
                array = pointwise.cast(array, descriptors[TP_BOOL])
                number = TP_BOOL
        elif number == TP_F16 or number == TP_BF16:
            # One by one they are widened slowly.
            if not total or not np.PyArray_IS_C_CONTIGUOUS(array):
                wide = self.call(pointwise.cast(array, descriptors[TP_F32]), dim, keepdim)
                return pointwise.cast(wide, descriptors[number])
            to = TP_F32
        elif self.kind == TP_NUMBERS:
            to = TP_I64
        function = kernels.reduce[self.kind][number] if number >= 0 else NULL
        if function == NULL or not total:
            return numpy.asarray(self.fallback(input, dim, keepdim))
        for i in range(dims):
            is_reduced[i] = False
        if isinstance(dim, tuple):
            for d in dim:
                is_reduced[<int> d] = True
        elif dim is None:
            for i in range(dims):
                is_reduced[i] = True
        elif dims:
            is_reduced[<int> dim] = True
        for i in range(dims):
            if is_reduced[i]:
                reduced_dims[reduced] = i
                reduced += 1
                if keepdim:
                    shape[out_dims] = 1
                    out_dims += 1
            else:
                kept_dims[kept] = i
                kept += 1
                shape[out_dims] = np.PyArray_DIM(array, i)
                out_dims += 1
        if (
            merge(array, kept_dims, kept, form.kept, form.kept_strides) == 3
            or merge(array, reduced_dims, reduced, form.reduced, form.reduced_strides) == 3
        ):
            array = numpy.ascontiguousarray(array) if number < 0 else pointwise.clone(array)
            if (
                merge(array, kept_dims, kept, form.kept, form.kept_strides) == 3
                or merge(array, reduced_dims, reduced, form.reduced, form.reduced_strides) == 3
            ):
                return numpy.asarray(self.fallback(input, dim, keepdim))
        # The order of what is reduced is free: put what lies closest together last.
        if abs(form.reduced_strides[0]) < abs(form.reduced_strides[1]) and form.reduced[0] > 1:
            form.reduced[0], form.reduced[1] = form.reduced[1], form.reduced[0]
            form.reduced_strides[0], form.reduced_strides[1] = form.reduced_strides[1], form.reduced_strides[0]
        count = form.kept[0] * form.kept[1]
        form.divisor = <double> (total // count) if self.is_mean else 1.0
        result = new_array(<np.dtype> descriptors[to], out_dims, shape, NULL)
        threads = threads_for(total, GRAIN)
        partial = stack
        if count < 4 * threads and (threads + 1) * count * 8 > <Py_ssize_t> sizeof(stack):
            partial = <char *> malloc((threads + 1) * count * 8)
            if partial == NULL:
                raise MemoryError()
        if total < HOLD:
            function(<char *> np.PyArray_DATA(array), <char *> np.PyArray_DATA(result), &form, partial, 1)
        else:
            with nogil:
                function(<char *> np.PyArray_DATA(array), <char *> np.PyArray_DATA(result), &form, partial, threads)
        if partial != stack:
            free(partial)
        if to == TP_F32 and number != TP_F32:  # of halves
            return pointwise.cast(result, descriptors[number])
        if self.of_truth and number == TP_U8:
            return pointwise.cast(pointwise.cast(result, descriptors[TP_BOOL]), descriptors[TP_U8])
        return result


@cython.cdivision(True)
cdef void divide(floating *total, const np.npy_int64 *count, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        total[i] /= <floating> count[i]


def _no_numbers(input, dim, keepdim):
    return numpy.asarray(numpy.sum(input, dim, numpy.int64, keepdims=keepdim))


cdef class NanMean:
    """The mean of what is not NaN."""

    cdef Reduction total, numbers

    def __init__(self, fallback):
        self.total = Reduction(NANSUM, fallback)
        self.numbers = Reduction(NUMBERS, _no_numbers)

    def call(self, input, tuple dim, bint keepdim):
        """Return the means over the dimensions `dim`."""
        cdef np.ndarray array = plain_array(input)
        cdef np.ndarray total = self.total.call(array, dim, keepdim), count = self.numbers.call(array, dim, keepdim)
        if type_of(array) == TP_F64:
            divide(<double *> np.PyArray_DATA(total), <np.npy_int64 *> np.PyArray_DATA(count), np.PyArray_SIZE(total))
        else:
            divide(<float *> np.PyArray_DATA(total), <np.npy_int64 *> np.PyArray_DATA(count), np.PyArray_SIZE(total))
        return total


cdef class Extremes:
    """The smallest and the largest elements."""

    cdef Reduction least, most

    def __init__(self, Reduction least, Reduction most):
        self.least = least
        self.most = most

    def call(self, input, tuple dim, bint keepdim):
        """Return both over the dimensions `dim`."""
        cdef np.ndarray array = plain_array(input), low, high
        cdef int number = type_of(array), dims = np.PyArray_NDIM(array), i, kept = dims - len(dim), out_dims = 0
        cdef Py_ssize_t total = np.PyArray_SIZE(array), rows = 1
        cdef np.npy_intp shape[64]
        cdef tp_both function = kernels.both[number] if number >= 0 else NULL
        cdef int threads = threads_for(total, GRAIN)
        for i in range(dims):
            if i < kept:
                shape[i] = np.PyArray_DIM(array, i)
                rows *= shape[i]
            else:
                shape[i] = 1
        # Rows, of which the threads get some each; else one extreme is found after the other.
        if (
            function == NULL or not total or rows < threads or not np.PyArray_IS_C_CONTIGUOUS(array)
            or (dim and dim[0] < kept)
        ):
            return self.least.call(input, dim, keepdim), self.most.call(input, dim, keepdim)
        out_dims = dims if keepdim else kept
        low = new_array(<np.dtype> descriptors[number], out_dims, shape, NULL)
        high = new_array(<np.dtype> descriptors[number], out_dims, shape, NULL)
        if total < HOLD:
            function(np.PyArray_DATA(array), np.PyArray_DATA(low), np.PyArray_DATA(high), rows, total // rows, 1)
        else:
            with nogil:
                function(
                    np.PyArray_DATA(array), np.PyArray_DATA(low), np.PyArray_DATA(high), rows, total // rows, threads
                )
        return low, high


cdef class ArgExtreme:
    """Where the largest (0) or smallest (1) element along a dimension is."""

    cdef int kind
    cdef object fallback

    def __init__(self, int kind, fallback):
        self.kind = kind
        self.fallback = fallback

    def call(self, input, dim, keepdim):
        """Return the first place of the extreme along `dim`, or in the flattened input."""
        cdef np.ndarray array = plain_array(input), result
        cdef int number = type_of(array), dims = np.PyArray_NDIM(array), i, out_dims = 0
        cdef Py_ssize_t before = 1, n = 1, after = 1, total = np.PyArray_SIZE(array)
        cdef np.npy_intp shape[64]
        cdef tp_arg function
        cdef int along = -1
        if number == TP_F16 or number == TP_BF16:
            return self.call(pointwise.cast(array, descriptors[TP_F32]), dim, keepdim)
        function = kernels.arg[self.kind][number] if number >= 0 else NULL
        if function == NULL or not total:
            return numpy.asarray(self.fallback(input, dim, keepdim))
        if not np.PyArray_IS_C_CONTIGUOUS(array):
            array = pointwise.clone(array)
        if dim is not None and dims:
            along = dim
        for i in range(dims):
            if along < 0 or i == along:
                n *= np.PyArray_DIM(array, i)
                if keepdim:
                    shape[out_dims] = 1
                    out_dims += 1
                continue
            if i < along:
                before *= np.PyArray_DIM(array, i)
            else:
                after *= np.PyArray_DIM(array, i)
            shape[out_dims] = np.PyArray_DIM(array, i)
            out_dims += 1
        result = new_array(<np.dtype> descriptors[TP_I64], out_dims, shape, NULL)
        if total < HOLD:
            function(
                <char *> np.PyArray_DATA(array), <np.npy_int64 *> np.PyArray_DATA(result), before, n, after, 1
            )
        else:
            with nogil:
                function(
                    <char *> np.PyArray_DATA(array), <np.npy_int64 *> np.PyArray_DATA(result), before, n, after,
                    threads_for(total, GRAIN),
                )
        return result


ctypedef fused element:
    np.npy_uint8
    np.npy_uint16
    np.npy_uint32
    np.npy_uint64


cdef void pick(
    const element *from_, const np.npy_int64 *places, element *to, Py_ssize_t before, Py_ssize_t n, Py_ssize_t after
) noexcept nogil:
    cdef Py_ssize_t i, j, k = 0
    for i in range(before):
        for j in range(after):
            to[k] = from_[(i * n + places[k]) * after + j]
            k += 1


cdef class Extreme:
    """The largest (0) or smallest (1) elements along a dimension, and where the first of each is."""

    cdef ArgExtreme place

    def __init__(self, int kind, fallback):
        self.place = ArgExtreme(kind, fallback)

    def call(self, input, int dim, bint keepdim):
        """Return the elements and their places."""
        cdef np.ndarray array = plain_array(input), values, places
        cdef Py_ssize_t before = 1, n = 1, after = 1
        cdef int i
        if not np.PyArray_IS_C_CONTIGUOUS(array):
            array = pointwise.clone(array)
        found = self.place.call(array, dim, keepdim)
        if not np.PyArray_SIZE(array):
            return numpy.empty(found.shape, array.dtype), found
        places = found
        values = new_array(
            <np.dtype> np.PyArray_DESCR(array), np.PyArray_NDIM(places), np.PyArray_DIMS(places), NULL
        )
        for i in range(np.PyArray_NDIM(array)):
            if i < dim:
                before *= np.PyArray_DIM(array, i)
            elif i == dim:
                n = np.PyArray_DIM(array, i)
            else:
                after *= np.PyArray_DIM(array, i)
        cdef const np.npy_int64 *at = <np.npy_int64 *> np.PyArray_DATA(places)
        cdef void *from_ = np.PyArray_DATA(array)
        cdef void *to = np.PyArray_DATA(values)
        cdef int size = np.PyArray_ITEMSIZE(array)
        with nogil:
            if size == 1:
                pick(<np.npy_uint8 *> from_, at, <np.npy_uint8 *> to, before, n, after)
            elif size == 2:
                pick(<np.npy_uint16 *> from_, at, <np.npy_uint16 *> to, before, n, after)
            elif size == 4:
                pick(<np.npy_uint32 *> from_, at, <np.npy_uint32 *> to, before, n, after)
            else:
                pick(<np.npy_uint64 *> from_, at, <np.npy_uint64 *> to, before, n, after)
        return values, places


def types_of(int kind):
    """Return the TP_ numbers of the types that a reduction serves."""
    return tuple([
        number for number in range(TP_TYPES) if number != TP_BOOL
        if kernels.reduce[kind][number] != NULL or number in (TP_F16, TP_BF16)
    ])


def index_types():
    """Return the TP_ numbers of the types that argmax and argmin serve."""
    return tuple([
        number for number in range(TP_TYPES) if kernels.arg[0][number] != NULL or number in (TP_F16, TP_BF16)
    ])
