"""Reading from and writing to the places that index arrays tell, slices and the rows of a table."""

import numpy

cimport numpy as np
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from . import pointwise
from .indexing_gather import zeros

from .allocator cimport new_array, plain_array
from .cpu_features cimport threads_for
from .types cimport TP_BF16, TP_F16, TP_F32, TP_I64, descriptors, element_of
from .broadcasting cimport common_shape, is_of_shape
from .indexing_gather cimport (
    GRAIN, TP_ADD, TP_PARTS, copied, kernels, merged, narrowed, positions, run_gather, run_scatter, separate, tp_indices,
    tp_scatter, width_of, zeros_of,
)

np.import_array()


# --- at index arrays -------------------------------------------------------------------------------


cdef struct Key:
    # The indexed dimensions lie from `first` to before `last`; the indices have the shape `common`.
    int first, last, common_dims
    bint from_end  # whether negative places count from the end
    np.npy_intp common[64]
    Py_ssize_t count


cdef np.ndarray read_key(list indices, np.ndarray array, Key *key):
    """Return the places that index arrays tell, in one array; None for what is left to NumPy.

    Of one index they are places along its dimension, of several the bytes from the first element on.
    """
    cdef int d, found = 0
    cdef np.ndarray places, total
    key.first = key.last = -1
    key.from_end = True
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
    tp_indices *p, np.ndarray array, const Key *key, np.ndarray places, np.ndarray other
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
        p.size = np.PyArray_DIM(array, key.first)
        p.wrap = p.size if key.from_end else 0
        p.data_strides[1] = np.PyArray_STRIDE(array, key.first)
    else:  # offsets in bytes, which are known to be right
        p.size = (<int64_t> 1) << 62
        p.wrap = 0
        p.data_strides[1] = 1
    return True


cdef np.ndarray take(np.ndarray array, np.ndarray places, const Key *key):
    """Return the elements at places that were read, or None where that is left to NumPy."""
    cdef tp_indices p
    cdef np.npy_intp shape[64]
    cdef int width = width_of(array)
    cdef np.ndarray result
    if width < 0 or places is None or np.PyArray_NDIM(array) + key.common_dims > 63:
        return None
    result = new_array(array.descr, result_shape(array, key, shape), shape, NULL)
    if not np.PyArray_SIZE(result):
        return None
    if not describe_key(&p, array, key, places, result):
        if key.last - key.first > 1:
            return None  # the places were read for these strides
        array = copied(array)
        describe_key(&p, array, key, places, result)
    return result if run_gather(&p, width) else None


cdef indexed(input, list indices, fallback):
    """Return the elements at index arrays."""
    cdef np.ndarray array = plain_array(input), result
    cdef Key key
    result = take(array, read_key(indices, array, &key), &key)
    return fallback(input, indices) if result is None else result


def index_kernel(fallback):
    """Return the kernel of ``index``, without a frame of Python."""
    def index(input, list indices):
        return indexed(input, indices, fallback)

    return index


cdef np.ndarray widened(np.ndarray array, int dims, const np.npy_intp *shape):
    """Return an array of a shape that it broadcasts to, a copy unless it is of it already."""
    cdef np.ndarray result
    if is_of_shape(array, dims, shape):
        return array
    result = new_array(array.descr, dims, shape, NULL)
    pointwise.copy(result, array, result)
    return result


cdef bint put(
    np.ndarray array, np.ndarray places, const Key *key, np.ndarray values, tp_scatter function, bint fresh
) except -1:
    """Write into places that were read; return whether that was done."""
    cdef tp_indices p
    cdef np.npy_intp shape[64]
    cdef int dims, d
    if places is None or np.PyArray_NDIM(array) + key.common_dims > 63:
        return False
    if not np.PyArray_SIZE(places):  # a mask that is nowhere true
        return True
    dims = result_shape(array, key, shape)
    for d in range(dims):
        if not shape[d]:
            return False
    if np.PyArray_NDIM(values):
        values = widened(values, dims, shape)
        if not np.PyArray_IS_C_CONTIGUOUS(values):
            values = copied(values)
    return describe_key(&p, array, key, places, values) and run_scatter(&p, function, fresh)


cdef tp_scatter writer(np.ndarray array, bint accumulate) noexcept:
    """Return what writes or adds elements; in half precision these are added in single."""
    cdef int number = element_of(array), width = width_of(array)
    if not accumulate:
        return kernels.scatter[width] if width >= 0 else NULL
    if number == TP_F16 or number == TP_BF16:
        number = TP_F32
    return kernels.combine[<int> TP_ADD][number] if number >= 0 else NULL


cdef enum:
    FEW = 16, LARGE = 32768  # less than one place of so many is written, of so many elements at least


cdef np.ndarray different(np.ndarray places, const Key *key, Py_ssize_t size, int64_t *order):
    """Return the places that differ, in ascending order; write to `order` the number of each among them."""
    cdef np.npy_intp count = key.count, i, last = -1
    cdef np.ndarray all_places = new_array(<np.dtype> descriptors[TP_I64], 1, &count, NULL)
    cdef np.ndarray found = new_array(<np.dtype> descriptors[TP_I64], 1, &count, NULL), ascending
    cdef const int64_t *given = <const int64_t *> np.PyArray_DATA(places)
    cdef int64_t *at = <int64_t *> np.PyArray_DATA(all_places)
    cdef int64_t *to = <int64_t *> np.PyArray_DATA(found)
    cdef const np.npy_intp *turn
    for i in range(count):
        at[i] = given[i] + size if key.from_end and given[i] < 0 else given[i]
    ascending = np.PyArray_ArgSort(all_places, 0, np.NPY_QUICKSORT)
    turn = <const np.npy_intp *> np.PyArray_DATA(ascending)
    for i in range(count):
        if last < 0 or to[last] != at[turn[i]]:
            last += 1
            to[last] = at[turn[i]]
        order[turn[i]] = last
    return found[: last + 1]


cdef bint is_half(np.ndarray array) noexcept:
    cdef int number = element_of(array)
    return number == TP_F16 or number == TP_BF16


cdef np.ndarray added_at_few(np.ndarray array, np.ndarray places, const Key *key, np.ndarray given, bint fresh):
    """Add half-precision values at a few places along one dimension, in single precision; in a copy if it is to be `fresh`.

    Only what is at these places is converted. None, and nothing is written, where they are many, and for what is left
    to NumPy.
    """
    cdef int number = element_of(array)
    cdef Key here
    cdef np.ndarray rows, order, wide, target
    if (
        places is None or key.last - key.first != 1 or np.PyArray_SIZE(array) < LARGE
        or key.count * FEW > np.PyArray_DIM(array, key.first)
    ):
        return None
    order = new_array(<np.dtype> descriptors[TP_I64], key.common_dims, key.common, NULL)
    rows = different(places, key, np.PyArray_DIM(array, key.first), <int64_t *> np.PyArray_DATA(order))
    here = key[0]
    here.from_end, here.common_dims = False, 1
    here.common[0] = here.count = np.PyArray_SIZE(rows)
    wide = take(array, rows, &here)
    if wide is None:
        return None
    wide = pointwise.cast(wide, descriptors[TP_F32])
    if not put(wide, order, key, pointwise.cast(given, descriptors[TP_F32]), writer(array, True), True):
        return None
    target = copied(array) if fresh else array
    return target if put(target, rows, &here, narrowed(wide, number, None), writer(array, False), fresh) else None


cdef np.ndarray put_new(
    np.ndarray array, list indices, np.ndarray places, Key *key, np.ndarray given, bint accumulate
):
    """Return a copy with values written or added; None where that is left to NumPy.

    The places are those of the indices, or without any those that were read.
    """
    cdef tp_scatter function = writer(array, accumulate)
    cdef bint half = accumulate and is_half(array)
    cdef np.ndarray target
    if function == NULL or np.PyArray_TYPE(given) != np.PyArray_TYPE(array):
        return None
    if half:
        target = added_at_few(array, places if indices is None else read_key(indices, array, key), key, given, True)
        if target is not None:
            return target
        target = pointwise.cast(array, descriptors[TP_F32])
        given = pointwise.cast(given, descriptors[TP_F32])
    else:
        target = copied(array)
    if indices is not None:  # read for the copy, which may lie otherwise in memory
        places = read_key(indices, target, key)
    if not put(target, places, key, given, function, True):
        return None
    return narrowed(target, element_of(array), None) if half else target


def index_put(input, list indices, values, bint accumulate, fallback, out=None):
    """Return a copy of the input, or `out`, with values written or added at index arrays."""
    cdef np.ndarray array = plain_array(input), given = plain_array(values), target, places
    cdef tp_scatter function
    cdef Key key
    if out is None:
        target = put_new(array, indices, None, &key, given, accumulate)
        return fallback(input, indices, values, accumulate, None) if target is None else target
    function = writer(array, accumulate)
    if (
        out is not input
        or function == NULL
        or np.PyArray_TYPE(given) != np.PyArray_TYPE(array)
        or not separate(array, given)
        or any([item is not None and not separate(array, plain_array(item)) for item in indices])
    ):
        return fallback(input, indices, values, accumulate, out)
    if accumulate and is_half(array):
        if added_at_few(array, read_key(indices, array, &key), &key, given, False) is not None:
            return out
        target = put_new(array, indices, None, &key, given, True)
        if target is None:
            return fallback(input, indices, values, accumulate, out)
        out[...] = target
        return out
    places = read_key(indices, array, &key)
    if not put(array, places, &key, given, function, False):
        return fallback(input, indices, values, accumulate, out)
    return array


def indexed_sum(g, tuple shape, list indices, fallback):
    """Return zeros of `shape` with `g` added at index arrays: the gradient of :func:`index`."""
    cdef np.ndarray values = plain_array(g), target, places
    cdef int number = element_of(values)
    cdef Key key
    if number == TP_F16 or number == TP_BF16:
        wide = indexed_sum(pointwise.cast(values, descriptors[TP_F32]), shape, indices, fallback)
        return pointwise.cast(wide, descriptors[number])
    if writer(values, True) == NULL or not np.PyArray_SIZE(values):
        return fallback(g, shape, indices)
    target = zeros(shape, <np.dtype> descriptors[number])
    places = read_key(indices, target, &key)
    if not put(target, places, &key, values, writer(values, True), True):
        return fallback(g, shape, indices)
    return target


# --- slices ----------------------------------------------------------------------------------------


cdef np.ndarray slice_key(index, int dim, Key *key):
    """Read positions along one dimension, of which negative ones do not exist."""
    cdef np.ndarray places = positions(index)
    key.first = dim
    key.last = dim + 1
    key.from_end = False
    key.common_dims = 1
    key.common[0] = key.count = np.PyArray_SIZE(places)
    return places


cdef slices(input, int dim, index, fallback):
    """Return the slices at positions along a dimension."""
    cdef Key key
    cdef np.ndarray result = take(plain_array(input), slice_key(index, dim, &key), &key)
    return fallback(input, dim, index) if result is None else result


def index_select_kernel(fallback):
    """Return the kernel of ``index_select``, without a frame of Python."""
    def index_select(input, int dim, index):
        return slices(input, dim, index, fallback)

    return index_select


def put_slices(input, int dim, index, source, bint accumulate, fallback):
    """Return a copy with slices written or added at positions along a dimension."""
    cdef Key key
    cdef np.ndarray places = slice_key(index, dim, &key)
    cdef np.ndarray result = put_new(
        plain_array(input), None, places, &key, plain_array(source), accumulate
    )
    return fallback(input, dim, index, source, accumulate) if result is None else result


def write_slices(input, int dim, index, source, bint accumulate, fallback):
    """Write slices to, or add them at, positions along a dimension of the input."""
    cdef np.ndarray array = plain_array(input), given = plain_array(source), places
    cdef tp_scatter function = writer(array, accumulate)
    cdef Key key
    cdef bint done
    places = slice_key(index, dim, &key)
    done = (
        <object> array is input
        and function != NULL
        and np.PyArray_TYPE(given) == np.PyArray_TYPE(array)
        and separate(array, given)
        and separate(array, places)
    )
    if done and accumulate and is_half(array):
        done = added_at_few(array, places, &key, given, False) is not None
    elif done:
        done = put(array, places, &key, given, function, False)
    if not done:
        fallback(input, dim, index, source, accumulate)


# --- at a mask ------------------------------------------------------------------------------------


def chosen(input, mask):
    """Return the elements of the input where a mask of its shape is True, in one dimension."""
    cdef np.ndarray array = plain_array(input), where = plain_array(mask), result
    cdef int width = width_of(array), threads
    cdef Py_ssize_t count = np.PyArray_SIZE(array)
    cdef np.npy_intp found
    cdef Py_ssize_t starts[TP_PARTS + 1]
    if width < 0 or not np.PyArray_IS_C_CONTIGUOUS(array) or not np.PyArray_IS_C_CONTIGUOUS(where):
        return input[mask]
    threads = threads_for(count, GRAIN)
    with nogil:
        kernels.count_true(<const char *> np.PyArray_DATA(where), count, starts, threads)
    found = starts[TP_PARTS]
    result = new_array(array.descr, 1, &found, NULL)
    with nogil:
        kernels.choose[width](
            <char *> np.PyArray_DATA(result), <const char *> np.PyArray_DATA(array),
            <const char *> np.PyArray_DATA(where), count, starts, threads,
        )
    return result


def put_masked_kernel(fallback):
    """Return the kernel of copies that hold the first elements of a source where a mask is True."""
    def masked_scatter(input, mask, source):
        cdef np.ndarray array = plain_array(input), where = plain_array(mask), values = plain_array(source)
        cdef np.ndarray result
        cdef np.npy_intp shape[64]
        cdef int dims = common_shape(array, where, shape)
        array, where = widened(array, dims, shape), widened(where, dims, shape)
        if not np.PyArray_IS_C_CONTIGUOUS(where) or not np.PyArray_IS_C_CONTIGUOUS(values):
            return fallback(input, mask, source)
        result = copied(array)
        if not put_at_mask(
            <char *> np.PyArray_DATA(result), <const char *> np.PyArray_DATA(where),
            <const char *> np.PyArray_DATA(values), np.PyArray_SIZE(array), np.PyArray_SIZE(values),
            np.PyArray_ITEMSIZE(array),
        ):
            return fallback(input, mask, source)  # says what is wrong
        return result

    return masked_scatter


cdef bint put_at_mask(
    char *place, const char *mask, const char *value, Py_ssize_t count, Py_ssize_t left, size_t width
) noexcept:
    """Write values to the places where a mask is True; return whether there were enough of them."""
    cdef Py_ssize_t i
    for i in range(count):
        if mask[i]:
            if not left:
                return False
            if width == 4:  # whose copies the compiler then knows the length of
                memcpy(place + i * 4, value, 4)
            elif width == 8:
                memcpy(place + i * 8, value, 8)
            else:
                memcpy(place + i * width, value, width)
            value += width
            left -= 1
    return True


# --- rows of a table -------------------------------------------------------------------------------


cdef void describe_rows(tp_indices *p, np.ndarray table, np.ndarray places, np.ndarray rows) noexcept:
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
    cdef tp_indices p
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
    cdef tp_indices p
    cdef np.npy_intp shape[2]
    cdef int number = element_of(values)
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
