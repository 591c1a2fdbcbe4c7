"""Reading from and writing to the places that an index tells."""

import numpy

cimport numpy as np
from libc.stdint cimport int64_t

from . import pointwise

from .machine cimport (
    TP_BF16, TP_F16, TP_F32, TP_I64, TP_TYPES, descriptors, new_array, plain_array, simd_level, threads_for,
    type_of,
)

np.import_array()

cdef extern from "c/places.h":
    enum:
        TP_ADD, TP_MULTIPLY, TP_MAXIMUM, TP_MINIMUM
    ctypedef struct tp_places:
        char *data
        char *other
        const char *index
        Py_ssize_t count[3]
        Py_ssize_t data_strides[3]
        Py_ssize_t other_strides[3]
        Py_ssize_t index_strides[3]
        int64_t size, wrap, skip
    ctypedef int (*tp_scatter)(const tp_places *, int) noexcept nogil
    int tp_checks(const tp_places *) noexcept nogil
    ctypedef struct tp_place_kernels:
        int (*fits)(const tp_places *, int) noexcept nogil
        int (*gather[5])(const tp_places *, int) noexcept nogil
        tp_scatter scatter[5]
        tp_scatter combine[4][10]
        int (*offsets)(int64_t *, const int64_t *, Py_ssize_t, int64_t, Py_ssize_t, int) noexcept nogil
        void (*clear)(char *, Py_ssize_t, int) noexcept nogil

cdef extern from *:
    """
    #define tp_place_kernels_of(level) TP_CHOOSE(tp_place_table, level)
    """
    const tp_place_kernels *tp_place_kernels_of(int)

cdef const tp_place_kernels *kernels = tp_place_kernels_of(simd_level)

cdef enum:
    GRAIN = 16384, HOLD = 2048, CLEAR_GRAIN = 1 << 18

ADD, MULTIPLY, MAXIMUM, MINIMUM = TP_ADD, TP_MULTIPLY, TP_MAXIMUM, TP_MINIMUM


cdef int width_of(np.ndarray array) noexcept:
    """Return which of the widths an element has, or -1."""
    cdef int bytes = np.PyArray_ITEMSIZE(array)
    return 0 if bytes == 1 else 1 if bytes == 2 else 2 if bytes == 4 else 3 if bytes == 8 else 4 if bytes == 16 else -1


cdef np.ndarray positions(object value):
    """Return an index as int64, one element behind the other."""
    cdef np.ndarray array = plain_array(value)
    if type_of(array) != TP_I64:
        array = array.astype("int64")
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else numpy.ascontiguousarray(array)


cdef bint merged(
    tp_places *p, int place, const np.npy_intp *shape, int begin, int end, const np.npy_intp *data,
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
    tp_places *p, np.ndarray data, int dim, np.ndarray index, np.ndarray other, bint broadcast
) noexcept:
    """Describe gather and scatter along `dim`, for an index of the same number of dimensions."""
    cdef int dims = np.PyArray_NDIM(index), d
    cdef np.npy_intp none[64]
    cdef const np.npy_intp *strides
    if dims == 0 or dims != np.PyArray_NDIM(data) or dims > 64:
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


cdef bint run_gather(const tp_places *p, int width) noexcept:
    cdef Py_ssize_t total = p.count[0] * p.count[1] * p.count[2]
    cdef int fit
    if total < HOLD:
        return kernels.gather[width](p, 1)
    with nogil:
        fit = kernels.gather[width](p, threads_for(total, GRAIN))
    return fit


cdef bint run_scatter(const tp_places *p, tp_scatter function, bint fresh) noexcept:
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


def gather(input, int dim, index, fallback):
    """Return the elements whose place along `dim` the index tells."""
    cdef np.ndarray array = plain_array(input), places = plain_array(index), result
    cdef tp_places p
    cdef int width = width_of(array)
    if type_of(places) != TP_I64:
        places = positions(places)
    if width < 0 or not np.PyArray_NDIM(places):
        return fallback(input, dim, index)
    result = new_array(array.descr, np.PyArray_NDIM(places), np.PyArray_DIMS(places), NULL)
    if not np.PyArray_SIZE(places):
        return result
    if not describe(&p, array, dim, places, result, False) or not run_gather(&p, width):
        return fallback(input, dim, index)
    return result


cdef bint scatter_into(
    np.ndarray target, int dim, np.ndarray places, np.ndarray values, tp_scatter function, bint fresh
) noexcept:
    """Write into `target`; return whether that was done, which it is not where a place is missing."""
    cdef tp_places p
    if not describe(&p, target, dim, places, values, np.PyArray_NDIM(values) == 0):
        return False
    return run_scatter(&p, function, fresh)


cdef np.ndarray copied(np.ndarray array):
    cdef np.ndarray result
    if type_of(array) >= 0:
        return pointwise.clone(array)
    result = new_array(array.descr, np.PyArray_NDIM(array), np.PyArray_DIMS(array), NULL)
    result[...] = array
    return result


cdef bint separate(np.ndarray target, np.ndarray other) except -1:
    return not numpy.may_share_memory(target, other)


def scatter(input, int dim, index, src, fallback, out=None):
    """Return a copy of the input, or `out`, with values written where the index tells."""
    cdef np.ndarray array = plain_array(input), places = plain_array(index), values = plain_array(src), target
    cdef int width = width_of(array)
    if (
        width < 0
        or np.PyArray_TYPE(values) != np.PyArray_TYPE(array)
        or type_of(places) != TP_I64
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
    cdef int number = type_of(array)
    if (
        number < 0
        or type_of(values) != number
        or type_of(places) != TP_I64
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
    cdef int number = type_of(values)
    if number < 0 or type_of(places) != TP_I64 or not np.PyArray_SIZE(places) or not shape:
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


# --- at index arrays -------------------------------------------------------------------------------


cdef struct Key:
    # The indexed dimensions lie from `first` to before `last`; the indices have the shape `common`.
    int first, last, common_dims
    np.npy_intp common[64]
    Py_ssize_t count


cdef np.ndarray read_key(list indices, np.ndarray array, Key *key):
    """Return the places that index arrays tell, in one array; None for what is left to NumPy.

    Of one index they are places along its dimension, of several the bytes from the first element on.
    """
    cdef int d, found = 0
    cdef np.ndarray places, total
    key.first = key.last = -1
    for d in range(len(indices)):
        if indices[d] is not None:
            if found and key.last != d:
                return None
            if not found:
                key.first = d
            key.last = d + 1
            found += 1
    if not found:
        return None
    if found > 1:
        given = indices[key.first:key.last]
        shape = given[0].shape
        if any([item.shape != shape for item in given]):
            given = numpy.broadcast_arrays(*given)
            indices = indices[:key.first] + list(given)
    places = positions(indices[key.first])
    key.common_dims = np.PyArray_NDIM(places)
    for d in range(key.common_dims):
        key.common[d] = np.PyArray_DIM(places, d)
    key.count = np.PyArray_SIZE(places)
    if found == 1:
        return places
    total = zeros_of(<np.dtype> descriptors[TP_I64], key.common_dims, key.common)
    for d in range(key.first, key.last):
        places = positions(indices[d])
        if np.PyArray_STRIDE(array, d) < 0 or not kernels.offsets(
            <int64_t *> np.PyArray_DATA(total), <const int64_t *> np.PyArray_DATA(places), key.count,
            np.PyArray_DIM(array, d), np.PyArray_STRIDE(array, d), threads_for(key.count, GRAIN),
        ):
            return None
    return total


cdef int result_shape(np.ndarray array, const Key *key, np.npy_intp *shape) noexcept:
    """Write the shape of ``array[indices]``; return its dimensions."""
    cdef int d, dims = 0
    for d in range(key.first):
        shape[dims] = np.PyArray_DIM(array, d)
        dims += 1
    for d in range(key.common_dims):
        shape[dims] = key.common[d]
        dims += 1
    for d in range(key.last, np.PyArray_NDIM(array)):
        shape[dims] = np.PyArray_DIM(array, d)
        dims += 1
    return dims


cdef bint describe_key(
    tp_places *p, np.ndarray array, const Key *key, np.ndarray places, np.ndarray other
) noexcept:
    """Describe ``array[indices]`` and `other`, which has its shape and is contiguous, or has no dimension."""
    cdef int dims = np.PyArray_NDIM(array), d
    cdef np.npy_intp strides[64]
    cdef np.npy_intp step = 0 if np.PyArray_NDIM(other) == 0 else np.PyArray_ITEMSIZE(other), between
    for d in range(dims - 1, key.last - 1, -1):
        strides[d] = step
        step *= np.PyArray_DIM(array, d)
    between = step
    step *= key.count
    for d in range(key.first - 1, -1, -1):
        strides[d] = step
        step *= np.PyArray_DIM(array, d)
    p.data = <char *> np.PyArray_DATA(array)
    p.other = <char *> np.PyArray_DATA(other)
    p.index = <const char *> np.PyArray_DATA(places)
    p.skip = -1
    if not (
        merged(p, 0, np.PyArray_DIMS(array), 0, key.first, np.PyArray_STRIDES(array), strides, NULL)
        and merged(p, 2, np.PyArray_DIMS(array), key.last, dims, np.PyArray_STRIDES(array), strides, NULL)
    ):
        return False
    p.count[1] = key.count
    p.other_strides[1] = between
    p.index_strides[1] = sizeof(int64_t)
    if key.last - key.first == 1:
        p.size = p.wrap = np.PyArray_DIM(array, key.first)
        p.data_strides[1] = np.PyArray_STRIDE(array, key.first)
    else:  # offsets in bytes, which are known to be right
        p.size = (<int64_t> 1) << 62
        p.wrap = 0
        p.data_strides[1] = 1
    return True


def index(input, list indices, fallback):
    """Return the elements at index arrays."""
    cdef np.ndarray array = plain_array(input), places, result
    cdef Key key
    cdef tp_places p
    cdef np.npy_intp shape[64]
    cdef int width = width_of(array)
    if width < 0:
        return fallback(input, indices)
    places = read_key(indices, array, &key)
    if places is None or np.PyArray_NDIM(array) + key.common_dims > 63:
        return fallback(input, indices)
    result = new_array(array.descr, result_shape(array, &key, shape), shape, NULL)
    if (
        not np.PyArray_SIZE(result)
        or not describe_key(&p, array, &key, places, result)
        or not run_gather(&p, width)
    ):
        return fallback(input, indices)
    return result


cdef bint put(np.ndarray array, list indices, np.ndarray values, tp_scatter function, bint fresh) except -1:
    """Write into the places; return whether that was done."""
    cdef Key key
    cdef tp_places p
    cdef np.ndarray places = read_key(indices, array, &key)
    cdef np.npy_intp shape[64]
    cdef int dims, d
    cdef bint same
    if places is None or np.PyArray_NDIM(array) + key.common_dims > 63:
        return False
    dims = result_shape(array, &key, shape)
    for d in range(dims):
        if not shape[d]:
            return False
    if np.PyArray_NDIM(values):
        same = np.PyArray_NDIM(values) == dims
        for d in range(dims if same else 0):
            same = same and shape[d] == np.PyArray_DIM(values, d)
        if not same:
            values = numpy.broadcast_to(values, tuple([shape[d] for d in range(dims)]))
        if not np.PyArray_IS_C_CONTIGUOUS(values):
            values = copied(values)
    return describe_key(&p, array, &key, places, values) and run_scatter(&p, function, fresh)


def index_put(input, list indices, values, bint accumulate, fallback, out=None):
    """Return a copy of the input, or `out`, with values written or added at index arrays."""
    cdef np.ndarray array = plain_array(input), given = plain_array(values), target
    cdef int number = type_of(array), width = width_of(array)
    cdef bint half = accumulate and (number == TP_F16 or number == TP_BF16)
    cdef tp_scatter function = NULL
    if not accumulate:
        if width >= 0:
            function = kernels.scatter[width]
    elif number >= 0:
        function = kernels.combine[<int> TP_ADD][<int> TP_F32 if half else number]
    if (
        function == NULL
        or np.PyArray_TYPE(given) != np.PyArray_TYPE(array)
        or (
            out is not None
            and not (
                out is input
                and separate(array, given)
                and not any([item is not None and numpy.may_share_memory(array, item) for item in indices])
            )
        )
    ):
        return fallback(input, indices, values, accumulate, out)
    if half:
        target = pointwise.cast(array, descriptors[TP_F32])
        if put(target, indices, pointwise.cast(given, descriptors[TP_F32]), function, True):
            return narrowed(target, number, out)
        return fallback(input, indices, values, accumulate, out)
    target = copied(array) if out is None else array
    if not put(target, indices, given, function, out is None):
        return fallback(input, indices, values, accumulate, out)
    return target


def indexed_sum(g, tuple shape, list indices, fallback):
    """Return zeros of `shape` with `g` added at index arrays: the gradient of :func:`index`."""
    cdef np.ndarray values = plain_array(g), target
    cdef int number = type_of(values)
    if number == TP_F16 or number == TP_BF16:
        wide = indexed_sum(pointwise.cast(values, descriptors[TP_F32]), shape, indices, fallback)
        return pointwise.cast(wide, descriptors[number])
    if number < 0 or kernels.combine[<int> TP_ADD][number] == NULL or not np.PyArray_SIZE(values):
        return fallback(g, shape, indices)
    target = zeros(shape, <np.dtype> descriptors[number])
    if not put(target, indices, values, kernels.combine[<int> TP_ADD][number], True):
        return fallback(g, shape, indices)
    return target


# --- rows of a table -------------------------------------------------------------------------------


cdef void describe_rows(tp_places *p, np.ndarray table, np.ndarray places, np.ndarray rows) noexcept:
    p.data = <char *> np.PyArray_DATA(table)
    p.other = <char *> np.PyArray_DATA(rows)
    p.index = <const char *> np.PyArray_DATA(places)
    p.count[0] = 1
    p.count[1] = np.PyArray_SIZE(places)
    p.count[2] = np.PyArray_DIM(table, 1)
    p.data_strides[0] = p.other_strides[0] = p.index_strides[0] = p.index_strides[2] = 0
    p.data_strides[1] = np.PyArray_STRIDE(table, 0)
    p.data_strides[2] = np.PyArray_STRIDE(table, 1)
    p.other_strides[2] = np.PyArray_ITEMSIZE(rows)
    p.other_strides[1] = p.other_strides[2] * p.count[2]
    p.index_strides[1] = sizeof(int64_t)
    p.size = np.PyArray_DIM(table, 0)
    p.wrap = 0
    p.skip = -1


def rows_of(weight, indices, fallback):
    """Return the rows of a table that the indices name."""
    cdef np.ndarray table = plain_array(weight), places = positions(indices), result
    cdef tp_places p
    cdef np.npy_intp shape[64]
    cdef int dims = np.PyArray_NDIM(places), d, width = width_of(table)
    for d in range(dims):
        shape[d] = np.PyArray_DIM(places, d)
    shape[dims] = np.PyArray_DIM(table, 1)
    result = new_array(table.descr, dims + 1, shape, NULL)
    if width < 0 or not np.PyArray_SIZE(result):
        return fallback(weight, indices)
    describe_rows(&p, table, places, result)
    if not run_gather(&p, width):
        return fallback(weight, indices)
    return result


def rows_sum(g, indices, Py_ssize_t rows, int64_t padding, fallback):
    """Return a table of zeros with `g` added to the rows that the indices name, but for `padding`."""
    cdef np.ndarray values = plain_array(g), places = positions(indices), table
    cdef tp_places p
    cdef np.npy_intp shape[2]
    cdef int number = type_of(values)
    if number == TP_F16 or number == TP_BF16:
        wide = rows_sum(pointwise.cast(values, descriptors[TP_F32]), indices, rows, padding, fallback)
        return pointwise.cast(wide, descriptors[number])
    if number < 0 or kernels.combine[<int> TP_ADD][number] == NULL:
        return fallback(g, indices, rows, padding)
    shape[0] = rows
    shape[1] = np.PyArray_DIM(values, np.PyArray_NDIM(values) - 1)
    table = zeros_of(<np.dtype> descriptors[number], 2, shape)
    if not np.PyArray_SIZE(values):
        return table
    if not np.PyArray_IS_C_CONTIGUOUS(values):
        values = copied(values)
    describe_rows(&p, table, places, values)
    p.skip = padding
    if not run_scatter(&p, kernels.combine[<int> TP_ADD][number], True):
        return fallback(g, indices, rows, padding)
    return table


def place(input, tuple shape, tuple key):
    """Return zeros of `shape` that hold the input at a basic key."""
    cdef np.ndarray array = plain_array(input)
    result = zeros(shape, array.descr)
    result[key] = array
    return result
