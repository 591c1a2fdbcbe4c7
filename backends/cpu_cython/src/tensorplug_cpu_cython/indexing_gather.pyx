"""Reading from and writing to the places along one dimension that an index tells."""

import numpy

cimport numpy as np
from libc.stdint cimport int64_t

from . import pointwise

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BF16, TP_F16, TP_F32, TP_I64, descriptors, element_of
from .memory_overlap cimport may_share

np.import_array()

cdef extern from *:
    """
    #define tp_index_kernels_of(level) TP_CHOOSE(tp_index_table, level)
    """
    const tp_index_kernels *tp_index_kernels_of(int)

kernels = tp_index_kernels_of(simd_level)

ADD, MULTIPLY, MAXIMUM, MINIMUM = TP_ADD, TP_MULTIPLY, TP_MAXIMUM, TP_MINIMUM


cdef int width_of(np.ndarray array) noexcept:
    """Return which of the widths an element has, or -1."""
    cdef int bytes = np.PyArray_ITEMSIZE(array)
    return 0 if bytes == 1 else 1 if bytes == 2 else 2 if bytes == 4 else 3 if bytes == 8 else 4 if bytes == 16 else -1


cdef np.ndarray positions(object value):
    """Return an index as int64, one element behind the other."""
    cdef np.ndarray array = plain_array(value)
    if element_of(array) != TP_I64:
        array = array.astype("int64")
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else numpy.ascontiguousarray(array)


cdef bint merged(
    tp_indices *p, int place, const np.npy_intp *shape, int begin, int end, const np.npy_intp *data,
    const np.npy_intp *other, const np.npy_intp *index,
) noexcept:
    """Make one dimension of those from `begin` to `end`; return whether that is possible."""
    cdef int d
    cdef bint found = False
    p.count[place] = 1
    p.data_strides[place] = p.other_strides[place] = p.index_strides[place] = 0
    for d in range(begin, end):
        if shape[d] == 1:
            continue
        if found and not (
            p.data_strides[place] == data[d] * shape[d]
            and p.other_strides[place] == other[d] * shape[d]
            and p.index_strides[place] == (index[d] * shape[d] if index != NULL else 0)
        ):
            return False
        found = True
        p.count[place] *= shape[d]
        p.data_strides[place] = data[d]
        p.other_strides[place] = other[d]
        p.index_strides[place] = index[d] if index != NULL else 0
    return True


cdef bint describe(
    tp_indices *p, np.ndarray data, int dim, np.ndarray index, np.ndarray other, bint broadcast
) noexcept:
    """Describe gather and scatter along `dim`, for an index of the same number of dimensions."""
    cdef int dims = np.PyArray_NDIM(index), d
    cdef np.npy_intp none[64]
    cdef const np.npy_intp *strides
    if dims <= 1 and np.PyArray_NDIM(data) <= 1 and not (dims and np.PyArray_NDIM(data)):
        describe_single(p, data, index, other, broadcast)
        return True
    if dims != np.PyArray_NDIM(data) or dims > 64:
        return False
    for d in range(dims):
        none[d] = 0
    if broadcast:
        strides = none
    elif np.PyArray_NDIM(other) == dims:
        strides = np.PyArray_STRIDES(other)
    else:
        return False
    p.data = <char *> np.PyArray_DATA(data)
    p.other = <char *> np.PyArray_DATA(other)
    p.index = <const char *> np.PyArray_DATA(index)
    p.size = np.PyArray_DIM(data, dim)
    p.wrap = 0
    p.skip = -1
    if not (
        merged(p, 0, np.PyArray_DIMS(index), 0, dim, np.PyArray_STRIDES(data), strides, np.PyArray_STRIDES(index))
        and merged(
            p, 2, np.PyArray_DIMS(index), dim + 1, dims, np.PyArray_STRIDES(data), strides,
            np.PyArray_STRIDES(index)
        )
    ):
        return False
    p.count[1] = np.PyArray_DIM(index, dim)
    p.data_strides[1] = np.PyArray_STRIDE(data, dim)
    p.other_strides[1] = strides[dim]
    p.index_strides[1] = np.PyArray_STRIDE(index, dim)
    return True


cdef void describe_single(
    tp_indices *p, np.ndarray data, np.ndarray index, np.ndarray other, bint broadcast
) noexcept:
    """Describe gather and scatter where data or index has no dimension, which counts as one of size 1."""
    cdef int place
    for place in range(3):
        p.count[place] = 1
        p.data_strides[place] = p.other_strides[place] = p.index_strides[place] = 0
    p.data = <char *> np.PyArray_DATA(data)
    p.other = <char *> np.PyArray_DATA(other)
    p.index = <const char *> np.PyArray_DATA(index)
    p.size = np.PyArray_SIZE(data)
    p.wrap = 0
    p.skip = -1
    p.count[1] = np.PyArray_SIZE(index)
    if np.PyArray_NDIM(data):
        p.data_strides[1] = np.PyArray_STRIDE(data, 0)
    if np.PyArray_NDIM(index):
        p.index_strides[1] = np.PyArray_STRIDE(index, 0)
    if np.PyArray_NDIM(other) and not broadcast:
        p.other_strides[1] = np.PyArray_STRIDE(other, 0)


cdef bint run_gather(const tp_indices *p, int width) noexcept:
    cdef Py_ssize_t total = p.count[0] * p.count[1] * p.count[2]
    cdef int fit
    if total < HOLD:
        return kernels.gather[width](p, 1)
    with nogil:
        fit = kernels.gather[width](p, threads_for(total, GRAIN))
    return fit


cdef bint run_scatter(const tp_indices *p, tp_scatter function, bint fresh) noexcept:
    """Check the places, then write; return whether all are there, of which `fresh` data may be told late."""
    cdef Py_ssize_t total = p.count[0] * p.count[1] * p.count[2]
    cdef bint checked = fresh and tp_checks(p)
    cdef int threads
    cdef bint fit
    if total < HOLD:
        return (checked or kernels.fits(p, 1)) and function(p, 1)
    with nogil:
        threads = threads_for(total, GRAIN)
        fit = (checked or kernels.fits(p, threads)) and function(p, threads)
    return fit


cdef object zeros_of(np.dtype descriptor, int dims, const np.npy_intp *shape):
    cdef np.ndarray result = new_array(descriptor, dims, shape, NULL)
    cdef Py_ssize_t bytes = np.PyArray_NBYTES(result)
    if bytes < HOLD * 8:
        kernels.clear(<char *> np.PyArray_DATA(result), bytes, 1)
    else:
        with nogil:
            kernels.clear(<char *> np.PyArray_DATA(result), bytes, threads_for(bytes, CLEAR_GRAIN))
    return result


def zeros(tuple shape, np.dtype descriptor):
    """Return a new array of zeros."""
    cdef np.npy_intp sizes[64]
    cdef int i
    for i in range(len(shape)):
        sizes[i] = shape[i]
    return zeros_of(descriptor, <int> len(shape), sizes)


# --- along one dimension ---------------------------------------------------------------------------


cdef gathered(input, int dim, index, fallback):
    """Return the elements whose place along `dim` the index tells."""
    cdef np.ndarray array = plain_array(input), places = plain_array(index), result
    cdef tp_indices p
    cdef int width = width_of(array)
    if element_of(places) != TP_I64:
        places = positions(places)
    if width < 0:
        return fallback(input, dim, index)
    result = new_array(array.descr, np.PyArray_NDIM(places), np.PyArray_DIMS(places), NULL)
    if not np.PyArray_SIZE(places):
        return result
    if not describe(&p, array, dim, places, result, False) or not run_gather(&p, width):
        return fallback(input, dim, index)
    return result


def gather_kernel(fallback):
    """Return the kernel of ``gather``, without a frame of Python."""
    def gather(input, int dim, index):
        return gathered(input, dim, index, fallback)

    return gather


cdef bint scatter_into(
    np.ndarray target, int dim, np.ndarray places, np.ndarray values, tp_scatter function, bint fresh
) noexcept:
    """Write into `target`; return whether that was done, which it is not where a place is missing."""
    cdef tp_indices p
    if not describe(&p, target, dim, places, values, np.PyArray_NDIM(values) == 0):
        return False
    return run_scatter(&p, function, fresh)


cdef np.ndarray copied(np.ndarray array):
    cdef np.ndarray result
    if element_of(array) >= 0:
        return pointwise.clone(array)
    result = new_array(array.descr, np.PyArray_NDIM(array), np.PyArray_DIMS(array), NULL)
    result[...] = array
    return result


cdef bint separate(np.ndarray target, np.ndarray other) noexcept:
    return not may_share(target, other)


def scatter(input, int dim, index, src, fallback, out=None):
    """Return a copy of the input, or `out`, with values written where the index tells."""
    cdef np.ndarray array = plain_array(input), places = plain_array(index), values = plain_array(src), target
    cdef int width = width_of(array)
    if (
        width < 0
        or np.PyArray_TYPE(values) != np.PyArray_TYPE(array)
        or element_of(places) != TP_I64
        or not np.PyArray_SIZE(places)
        or (out is not None and not (out is input and separate(array, values) and separate(array, places)))
    ):
        return fallback(input, dim, index, src, None, out)
    target = copied(array) if out is None else array
    if not scatter_into(target, dim, places, values, kernels.scatter[width], out is None):
        return fallback(input, dim, index, src, None, out)
    return target


def combine(input, int dim, index, src, int way, fallback, out=None):
    """Return a copy of the input, or `out`, with values combined where the index tells."""
    cdef np.ndarray array = plain_array(input), places = plain_array(index), values = plain_array(src), target
    cdef int number = element_of(array)
    if (
        number < 0
        or element_of(values) != number
        or element_of(places) != TP_I64
        or not np.PyArray_SIZE(places)
        or (out is not None and not (out is input and separate(array, values) and separate(array, places)))
    ):
        return fallback(input, dim, index, src, out)
    if number == TP_F16 or number == TP_BF16:
        target = pointwise.cast(array, descriptors[TP_F32])
        values = pointwise.cast(values, descriptors[TP_F32])
        if not scatter_into(target, dim, places, values, kernels.combine[way][<int> TP_F32], True):
            return fallback(input, dim, index, src, out)
        return narrowed(target, number, out)
    if kernels.combine[way][number] == NULL:
        return fallback(input, dim, index, src, out)
    target = copied(array) if out is None else array
    if not scatter_into(target, dim, places, values, kernels.combine[way][number], out is None):
        return fallback(input, dim, index, src, out)
    return target


cdef object narrowed(np.ndarray wide, int number, object out):
    if out is None:
        return pointwise.cast(wide, descriptors[number])
    out[...] = wide
    return out


def gathered_sum(g, tuple shape, int dim, index, fallback):
    """Return zeros of `shape` with `g` added where the index tells: the gradient of :func:`gather`."""
    cdef np.ndarray values = plain_array(g), places = plain_array(index), target
    cdef int number = element_of(values)
    if number < 0 or element_of(places) != TP_I64 or not np.PyArray_SIZE(places):
        return fallback(g, shape, dim, index)
    if number == TP_F16 or number == TP_BF16:
        wide = gathered_sum(pointwise.cast(values, descriptors[TP_F32]), shape, dim, index, fallback)
        return pointwise.cast(wide, descriptors[number])
    if kernels.combine[<int> TP_ADD][number] == NULL:
        return fallback(g, shape, dim, index)
    target = zeros(shape, <np.dtype> descriptors[number])
    if not scatter_into(target, dim, places, values, kernels.combine[<int> TP_ADD][number], True):
        return fallback(g, shape, dim, index)
    return target


def place(input, shape, key):
    """Return zeros of `shape` that hold the input at a basic key."""
    cdef np.ndarray array = plain_array(input)
    result = zeros(tuple(shape), array.descr)
    if element_of(array) < 0:
        result[tuple(key)] = array
    else:
        where = result[(*key, ...)]
        pointwise.copy(where, array, where)
    return result
