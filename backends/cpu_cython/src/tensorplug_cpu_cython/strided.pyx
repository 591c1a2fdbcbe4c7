"""Views: arrays over the memory of others, made without NumPy's Python."""

import numpy

cimport numpy as np

from tensorplug.plugin.array_kernels.rearranging import copied_like, flipped

from . import pointwise

from .allocator cimport new_array, plain_array
from .cpu_features cimport threads_for
from .indexing_gather cimport zeros_of
from .broadcasting cimport common_shape

np.import_array()

cdef enum:
    GRAIN = 32768

cdef extern from "c/parallel.h":
    pass

cdef extern from "c/strided_views.h":
    object tp_view_as(np.ndarray array, char *data, int dims, const np.npy_intp *, const np.npy_intp *, np.dtype)
    object tp_view(np.ndarray array, char *data, int dims, const np.npy_intp *, const np.npy_intp *)

cdef extern from *:
    """
    /* Put numbers of two arrays, whose strides count elements, into pairs. */
    #define TP_PAIRS(T)                                                                                    \\
        static void tp_pairs_##T(const T *restrict x, const T *restrict y, T *restrict to, int dims,       \\
                                 const npy_intp *shape, const npy_intp *dx, const npy_intp *dy,            \\
                                 ptrdiff_t total, int threads) {                                           \\
            const int last = dims - 1;                                                                     \\
            TP_PARALLEL(total, threads, begin, end, {                                                      \\
                npy_intp place[64];                                                                        \\
                ptrdiff_t left = begin;                                                                    \\
                for (int d = last; d >= 0; left /= shape[d--]) place[d] = left % shape[d];                 \\
                for (ptrdiff_t at = begin; at < end;) {                                                    \\
                    const T *a = x; const T *b = y;                                                        \\
                    T *pairs = to + 2 * at;                                                                \\
                    const ptrdiff_t row = shape[last] - place[last];                                       \\
                    const ptrdiff_t n = row < end - at ? row : end - at;                                   \\
                    const ptrdiff_t p = dx[last]; const ptrdiff_t q = dy[last];                            \\
                    for (int d = 0; d <= last; d++) a += place[d] * dx[d], b += place[d] * dy[d];          \\
                    if (p == 1 && q == 1)                                                                  \\
                        for (ptrdiff_t i = 0; i < n; i++) pairs[2 * i] = a[i], pairs[2 * i + 1] = b[i];    \\
                    else                                                                                   \\
                        for (ptrdiff_t i = 0; i < n; i++) pairs[2 * i] = a[i * p], pairs[2 * i + 1] = b[i * q];\\
                    at += n;                                                                               \\
                    place[last] = 0;                                                                       \\
                    for (int d = last - 1; d >= 0 && ++place[d] == shape[d]; d--) place[d] = 0;            \\
                }                                                                                          \\
            });                                                                                            \\
        }
    TP_PAIRS(uint32_t)
    TP_PAIRS(uint64_t)
    """
    void tp_pairs_uint32_t(
        const void *, const void *, void *, int, const np.npy_intp *, const np.npy_intp *, const np.npy_intp *,
        Py_ssize_t, int
    ) noexcept nogil
    void tp_pairs_uint64_t(
        const void *, const void *, void *, int, const np.npy_intp *, const np.npy_intp *, const np.npy_intp *,
        Py_ssize_t, int
    ) noexcept nogil
    int PySlice_Unpack(object, Py_ssize_t *, Py_ssize_t *, Py_ssize_t *) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t, Py_ssize_t *, Py_ssize_t *, Py_ssize_t)


cdef inline np.ndarray array_of(object value):
    """Return an array; sums over all elements are NumPy's scalars in replayed formulas."""
    return <np.ndarray> value if np.PyArray_Check(value) else numpy.asarray(value)


def basic_index(value, key):
    """Return the view of a key of nonnegative ints, slices of positive step, and None."""
    cdef np.ndarray input = array_of(value)
    cdef tuple items = <tuple> key if type(key) is tuple else tuple(key)
    cdef np.npy_intp shape[64]
    cdef np.npy_intp strides[64]
    cdef char *data = <char *> np.PyArray_DATA(input)
    cdef int dims = np.PyArray_NDIM(input), d = 0, count = 0
    cdef Py_ssize_t start, stop, step, size
    if dims + len(items) > 64:
        return input[(*items, ...)]
    for item in items:
        if item is None:
            shape[count] = 1
            strides[count] = 0
            count += 1
            continue
        if d >= dims:
            return input[(*items, ...)]  # says what is wrong
        size = np.PyArray_DIM(input, d)
        if type(item) is slice:
            PySlice_Unpack(item, &start, &stop, &step)
            shape[count] = PySlice_AdjustIndices(size, &start, &stop, step)
            strides[count] = np.PyArray_STRIDE(input, d) * step
            if shape[count]:
                data += start * np.PyArray_STRIDE(input, d)
            count += 1
        else:
            start = item
            if start < 0 or start >= size:
                return input[(*items, ...)]
            data += start * np.PyArray_STRIDE(input, d)
        d += 1
    for d in range(d, dims):
        shape[count] = np.PyArray_DIM(input, d)
        strides[count] = np.PyArray_STRIDE(input, d)
        count += 1
    return tp_view(input, data, count, shape, strides)


def view(value, shape):
    """Return the array in another shape of as many elements."""
    cdef np.ndarray input = array_of(value)
    cdef np.npy_intp sizes[64]
    cdef np.npy_intp strides[64]
    cdef np.npy_intp step = np.PyArray_ITEMSIZE(input)
    cdef Py_ssize_t size = np.PyArray_SIZE(input)
    cdef int dims = <int> len(shape), i
    if not size or dims > 64 or not np.PyArray_IS_C_CONTIGUOUS(input):
        return input.reshape(shape)
    for i in range(dims - 1, -1, -1):
        sizes[i] = shape[i]
        strides[i] = step
        if sizes[i] <= 0 or size % sizes[i]:
            return input.reshape(shape)  # says what is wrong
        size //= sizes[i]
        step *= sizes[i]
    if size != 1:
        return input.reshape(shape)
    return tp_view(input, <char *> np.PyArray_DATA(input), dims, sizes, strides)


def permute(value, tuple dims):
    """Return a view with the dimensions in another order, that of a permutation."""
    cdef np.ndarray input = array_of(value)
    cdef np.npy_intp shape[64]
    cdef np.npy_intp strides[64]
    cdef int count = np.PyArray_NDIM(input), i, d
    for i in range(count):
        d = dims[i]
        shape[i] = np.PyArray_DIM(input, d)
        strides[i] = np.PyArray_STRIDE(input, d)
    return tp_view(input, <char *> np.PyArray_DATA(input), count, shape, strides)


def expand(value, tuple shape):
    """Return a view with dimensions of size 1 repeated, which may be written to.

    The core refuses to write where elements share memory; one row of the view is another matter.
    """
    cdef np.ndarray input = array_of(value)
    cdef np.npy_intp sizes[64]
    cdef np.npy_intp strides[64]
    cdef int count = <int> len(shape), own = np.PyArray_NDIM(input), i, lead = count - own
    cdef bint empty = False
    for i in range(count):
        sizes[i] = shape[i]
        empty = empty or not sizes[i]
        strides[i] = 0
        if i >= lead and np.PyArray_DIM(input, i - lead) == sizes[i]:
            strides[i] = np.PyArray_STRIDE(input, i - lead)
    if empty:
        return numpy.empty(shape, input.dtype)  # without elements there is nothing to share
    return tp_view(input, <char *> np.PyArray_DATA(input), count, sizes, strides)


def unfold(value, int dimension, Py_ssize_t size, Py_ssize_t step):
    """Return the view of all windows of a size along a dimension, their elements along a new last one."""
    cdef np.ndarray input = array_of(value)
    cdef np.npy_intp shape[64]
    cdef np.npy_intp strides[64]
    cdef int dims = np.PyArray_NDIM(input), i
    if not dims:
        return input.reshape(1)[:size]
    for i in range(dims):
        shape[i] = np.PyArray_DIM(input, i)
        strides[i] = np.PyArray_STRIDE(input, i)
    shape[dims] = size
    strides[dims] = strides[dimension]
    shape[dimension] = (shape[dimension] - size) // step + 1
    strides[dimension] *= step
    return tp_view(input, <char *> np.PyArray_DATA(input), dims + 1, shape, strides)


def diagonal(value, Py_ssize_t offset, int dim1, int dim2):
    """Return the view of the elements `offset` places right of the diagonal, along a new last dimension."""
    cdef np.ndarray input = array_of(value)
    cdef np.npy_intp shape[64]
    cdef np.npy_intp strides[64]
    cdef char *data = <char *> np.PyArray_DATA(input)
    cdef Py_ssize_t rows = np.PyArray_DIM(input, dim1), columns = np.PyArray_DIM(input, dim2), length
    cdef int count = 0, d
    for d in range(np.PyArray_NDIM(input)):
        if d != dim1 and d != dim2:
            shape[count] = np.PyArray_DIM(input, d)
            strides[count] = np.PyArray_STRIDE(input, d)
            count += 1
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    shape[count] = max(length, 0)
    strides[count] = np.PyArray_STRIDE(input, dim1) + np.PyArray_STRIDE(input, dim2)
    if length > 0:
        data += (
            offset * np.PyArray_STRIDE(input, dim2) if offset >= 0 else -offset * np.PyArray_STRIDE(input, dim1)
        )
    return tp_view(input, data, count + 1, shape, strides)


def select(value, int dim, Py_ssize_t index):
    """Return the view of one position along a dimension."""
    return _part(array_of(value), dim, index, 1, 1, True)


def sliced(value, int dim, Py_ssize_t start, Py_ssize_t end, Py_ssize_t step):
    """Return the view of a slice of a dimension, its bounds canonical."""
    return _part(array_of(value), dim, start, max(0, (end - start + step - 1) // step), step, False)


cdef _part(np.ndarray input, int dim, Py_ssize_t start, Py_ssize_t count, Py_ssize_t step, bint single):
    cdef np.npy_intp shape[64]
    cdef np.npy_intp strides[64]
    cdef int dims = np.PyArray_NDIM(input), d, made = 0
    for d in range(dims):
        if d == dim:
            if single:
                continue
            shape[made] = count
            strides[made] = np.PyArray_STRIDE(input, d) * step
        else:
            shape[made] = np.PyArray_DIM(input, d)
            strides[made] = np.PyArray_STRIDE(input, d)
        made += 1
    start = start * np.PyArray_STRIDE(input, dim) if count else 0
    return tp_view(input, <char *> np.PyArray_DATA(input) + start, made, shape, strides)


def written(view):
    """Return the kernel of a copy of an array, in its order of memory, that holds another at a view."""
    def kernel(value, src, *where):
        cdef np.ndarray input = array_of(value)
        result = pointwise.clone(input) if np.PyArray_IS_C_CONTIGUOUS(input) else copied_like(
            input, input, pointwise.clone
        )
        shown = view(result, *where)
        pointwise.copy(shown, src, shown)
        return result

    return kernel


cdef dict _REAL = {numpy.dtype("complex64"): numpy.dtype("float32"), numpy.dtype("complex128"): numpy.dtype("float64")}
cdef dict _COMPLEX = {real: number for number, real in _REAL.items()}


def view_as_real(value):
    """Return the view of complex numbers as pairs, in a new last dimension."""
    cdef np.ndarray input = array_of(value)
    cdef np.npy_intp shape[64]
    cdef np.npy_intp strides[64]
    cdef int dims = np.PyArray_NDIM(input), d
    for d in range(dims):
        shape[d] = np.PyArray_DIM(input, d)
        strides[d] = np.PyArray_STRIDE(input, d)
    shape[dims] = 2
    strides[dims] = np.PyArray_ITEMSIZE(input) // 2
    return tp_view_as(
        input, <char *> np.PyArray_DATA(input), dims + 1, shape, strides, _REAL[<object> np.PyArray_DESCR(input)]
    )


def view_as_complex(value):
    """Return the view of pairs, the last dimension, as complex numbers."""
    cdef np.ndarray input = array_of(value)
    return tp_view_as(
        input, <char *> np.PyArray_DATA(input), np.PyArray_NDIM(input) - 1, np.PyArray_DIMS(input),
        np.PyArray_STRIDES(input), _COMPLEX[<object> np.PyArray_DESCR(input)],
    )


cdef int joined(np.ndarray first, np.ndarray second, int dims, np.npy_intp *shape, np.npy_intp[2][64] strides):
    """Count the dimensions in which both are shown in a shape, next ones as one where that can be, in elements."""
    cdef np.ndarray array
    cdef np.npy_intp own[2]
    cdef np.npy_intp size
    cdef int d, k, at, made = 0
    for d in range(dims):
        size = shape[d]
        if size == 1:
            continue
        for k in range(2):
            array = second if k else first
            at = d - dims + np.PyArray_NDIM(array)
            own[k] = 0
            if at >= 0 and np.PyArray_DIM(array, at) == size:
                own[k] = np.PyArray_STRIDE(array, at) // np.PyArray_ITEMSIZE(array)
        if made and strides[0][made - 1] == own[0] * size and strides[1][made - 1] == own[1] * size:
            made -= 1
            size *= shape[made]
        shape[made] = size
        strides[0][made], strides[1][made] = own[0], own[1]
        made += 1
    if not made:
        shape[0], strides[0][0], strides[1][0] = 1, 0, 0
        made = 1
    return made


def complex_of(real, imag):
    """Return new complex numbers with these parts, arrays of one dtype."""
    cdef np.ndarray parts = plain_array(real), others = plain_array(imag), result
    cdef np.npy_intp shape[64]
    cdef np.npy_intp strides[2][64]
    cdef int last = common_shape(parts, others, shape), threads, dims
    cdef Py_ssize_t size
    cdef bint is_double
    result = new_array(_COMPLEX[<object> np.PyArray_DESCR(parts)], last, shape, NULL)
    size = np.PyArray_SIZE(result)
    if not size:
        return result
    dims = joined(parts, others, last, shape, strides)
    is_double = np.PyArray_ITEMSIZE(parts) == 8
    threads = threads_for(size, GRAIN)
    with nogil:
        if is_double:
            tp_pairs_uint64_t(
                np.PyArray_DATA(parts), np.PyArray_DATA(others), np.PyArray_DATA(result), dims, shape, strides[0],
                strides[1], size, threads,
            )
        else:
            tp_pairs_uint32_t(
                np.PyArray_DATA(parts), np.PyArray_DATA(others), np.PyArray_DATA(result), dims, shape, strides[0],
                strides[1], size, threads,
            )
    return result


def flip(value, tuple dims):
    """Return a copy, in its own order of memory, with some dimensions reversed."""
    cdef np.ndarray input = array_of(value)
    cdef np.npy_intp strides[64]
    cdef char *data = <char *> np.PyArray_DATA(input)
    cdef int d
    if not np.PyArray_IS_C_CONTIGUOUS(input):
        return flipped(input, dims, pointwise.clone)
    for d in range(np.PyArray_NDIM(input)):
        strides[d] = np.PyArray_STRIDE(input, d)
    if np.PyArray_SIZE(input):
        for d in dims:
            data += strides[d] * (np.PyArray_DIM(input, d) - 1)
            strides[d] = -strides[d]
    return pointwise.clone(tp_view(input, data, np.PyArray_NDIM(input), np.PyArray_DIMS(input), strides))


cdef np.ndarray rearranged(
    np.ndarray input, int dims, const np.npy_intp *shape, const np.npy_intp *strides, int last,
    const np.npy_intp *wanted,
):
    """Return a contiguous copy of a view of the input, of another shape."""
    cdef np.ndarray copied = pointwise.clone(tp_view(input, <char *> np.PyArray_DATA(input), dims, shape, strides))
    cdef np.PyArray_Dims target
    target.ptr, target.len = <np.npy_intp *> wanted, last
    return np.PyArray_Newshape(copied, &target, np.NPY_CORDER)


def pixel_shuffle(value, Py_ssize_t r):
    """Return (*, C r², H, W) rearranged as (*, C, H r, W r)."""
    cdef np.ndarray input = array_of(value)
    cdef np.npy_intp shape[64]
    cdef np.npy_intp strides[64]
    cdef np.npy_intp wanted[64]
    cdef int at = np.PyArray_NDIM(input) - 3, d
    cdef Py_ssize_t step = np.PyArray_STRIDE(input, at)
    for d in range(at):
        shape[d] = wanted[d] = np.PyArray_DIM(input, d)
        strides[d] = np.PyArray_STRIDE(input, d)
    shape[at] = wanted[at] = np.PyArray_DIM(input, at) // (r * r)
    strides[at] = step * r * r
    for d in range(2):
        shape[at + 1 + 2 * d], strides[at + 1 + 2 * d] = np.PyArray_DIM(input, at + 1 + d), np.PyArray_STRIDE(input, at + 1 + d)
        shape[at + 2 + 2 * d], strides[at + 2 + 2 * d] = r, step if d else step * r
        wanted[at + 1 + d] = shape[at + 1 + 2 * d] * r
    return rearranged(input, at + 5, shape, strides, at + 3, wanted)


def pixel_unshuffle(value, Py_ssize_t r):
    """Return (*, C, H r, W r) rearranged as (*, C r², H, W)."""
    cdef np.ndarray input = array_of(value)
    cdef np.npy_intp shape[64]
    cdef np.npy_intp strides[64]
    cdef np.npy_intp wanted[64]
    cdef int at = np.PyArray_NDIM(input) - 2, d
    for d in range(at):
        shape[d] = wanted[d] = np.PyArray_DIM(input, d)
        strides[d] = np.PyArray_STRIDE(input, d)
    wanted[at - 1] *= r * r
    for d in range(2):
        shape[at + d], strides[at + d] = r, np.PyArray_STRIDE(input, at + d)
        shape[at + 2 + d], strides[at + 2 + d] = np.PyArray_DIM(input, at + d) // r, strides[at + d] * r
        wanted[at + d] = shape[at + 2 + d]
    return rearranged(input, at + 4, shape, strides, at + 2, wanted)


def channel_shuffle(value, Py_ssize_t groups):
    """Return the channels of (N, C, *) in turn from each of `groups` groups."""
    cdef np.ndarray input = array_of(value)
    cdef np.npy_intp shape[64]
    cdef np.npy_intp strides[64]
    cdef int dims = np.PyArray_NDIM(input), d
    shape[0], strides[0] = np.PyArray_DIM(input, 0), np.PyArray_STRIDE(input, 0)
    shape[1], strides[1] = np.PyArray_DIM(input, 1) // groups, np.PyArray_STRIDE(input, 1)
    shape[2], strides[2] = groups, strides[1] * shape[1]
    for d in range(2, dims):
        shape[d + 1], strides[d + 1] = np.PyArray_DIM(input, d), np.PyArray_STRIDE(input, d)
    return rearranged(input, dims + 1, shape, strides, dims, np.PyArray_DIMS(input))


def diag_embed(value, Py_ssize_t offset, int dim1, int dim2):
    """Return zeros with the last dimension laid along the diagonals of two new ones."""
    cdef np.ndarray input = array_of(value), result
    cdef np.npy_intp shape[64]
    cdef int dims = np.PyArray_NDIM(input), d, other = 0
    for d in range(dims + 1):
        if d == dim1 or d == dim2:
            shape[d] = np.PyArray_DIM(input, dims - 1) + abs(offset)
        else:
            shape[d] = np.PyArray_DIM(input, other)
            other += 1
    result = zeros_of(<np.dtype> np.PyArray_DESCR(input), dims + 1, shape)
    if np.PyArray_SIZE(input):
        shown = diagonal(result, offset, dim1, dim2)
        pointwise.copy(shown, input, shown)
    return result


ctypedef fused number:
    float
    double


cdef void add_strided(
    number *storage, const number *values, int dims, const np.npy_intp *shape, const np.npy_intp *strides
) noexcept:
    """Add values, row by row, to the elements that strides tell, of which some may be the same."""
    cdef np.npy_intp place[64]
    cdef np.npy_intp total = 1, offset = 0, i, k
    cdef int d
    for d in range(dims):
        place[d] = 0
        total *= shape[d]
    cdef np.npy_intp last = shape[dims - 1] if dims else 1, step = strides[dims - 1] if dims else 0
    for i in range(total // last if last else 0):
        for k in range(last):
            storage[offset + k * step] += values[i * last + k]
        for d in range(dims - 2, -1, -1):
            place[d] += 1
            offset += strides[d]
            if place[d] < shape[d]:
                break
            offset -= shape[d] * strides[d]
            place[d] = 0


def as_strided_backward_kernel(fallback):
    """Return the kernel of the gradient of views by strides, for float32 and float64.

    The fallback serves views of what does not lie row by row.
    """
    def as_strided_backward(g, input_shape, size, stride, Py_ssize_t storage_offset, layout):
        cdef np.ndarray values = array_of(g), storage
        cdef np.npy_intp shape[64]
        cdef np.npy_intp strides[64]
        cdef np.npy_intp extent = storage_offset, count = 1, begin = layout[1]
        cdef int dims = <int> len(size), d
        for d in range(<int> len(input_shape) - 1, -1, -1):
            if layout[0][d] != count and input_shape[d] != 1:
                return fallback(g, input_shape, size, stride, storage_offset, layout)
            count *= input_shape[d]
        for d in range(dims):
            shape[d] = size[d]
            strides[d] = stride[d]
            extent += (shape[d] - 1) * strides[d]
        if dims > 63 or not count or not np.PyArray_SIZE(values):
            return fallback(g, input_shape, size, stride, storage_offset, layout)
        if not np.PyArray_IS_C_CONTIGUOUS(values):
            values = pointwise.clone(values)
        extent = max(extent + 1, begin + count)
        storage = zeros_of(<np.dtype> np.PyArray_DESCR(values), 1, &extent)
        if np.PyArray_TYPE(values) == np.NPY_FLOAT32:
            add_strided[float](
                <float *> np.PyArray_DATA(storage) + storage_offset, <const float *> np.PyArray_DATA(values),
                dims, shape, strides,
            )
        else:
            add_strided[double](
                <double *> np.PyArray_DATA(storage) + storage_offset, <const double *> np.PyArray_DATA(values),
                dims, shape, strides,
            )
        return view(_part(storage, 0, begin, count, 1, False), tuple(input_shape))

    return as_strided_backward


def as_strided_kernel(fallback):
    """Return the kernel of views by strides, and an offset, into the memory that an array shows.

    The fallback serves arrays whose owner does not lie in C order, and says what is wrong.
    """
    def as_strided(value, size, stride, Py_ssize_t storage_offset, layout=None):
        cdef np.ndarray input = array_of(value), owner = input
        cdef np.npy_intp shape[64]
        cdef np.npy_intp strides[64]
        cdef np.npy_intp step = np.PyArray_ITEMSIZE(input)
        cdef np.npy_intp last = storage_offset
        cdef Py_ssize_t i, count = len(size)
        base = (<object> input).base  # not the field, which is a pointer
        while base is not None:
            if np.PyArray_Check(base):
                owner = base
            base = getattr(base, "base", None)
        if count > 64 or storage_offset < 0 or not np.PyArray_IS_C_CONTIGUOUS(owner):
            return fallback(value, size, stride, storage_offset, layout)
        for i in range(count):
            shape[i] = size[i]
            strides[i] = stride[i]
            last += (shape[i] - 1) * strides[i]
            strides[i] *= step
            if not shape[i]:
                return fallback(value, size, stride, storage_offset, layout)
        if (last + 1) * step > np.PyArray_NBYTES(owner):
            return fallback(value, size, stride, storage_offset, layout)
        return tp_view(input, <char *> np.PyArray_DATA(owner) + storage_offset * step, <int> count, shape, strides)

    return as_strided
