"""Places of values in sorted sequences, and counts of what lies between."""

cimport numpy as np
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport calloc, free

from . import pointwise

from .allocator cimport new_array, new_like, plain_array
from .types cimport TP_BF16, TP_F16, TP_F32, TP_F64, TP_I8, TP_I16, TP_I32, TP_I64, descriptors, type_of

np.import_array()

cdef extern from "c/types.h":
    float wide_F16(uint16_t) noexcept nogil
    float wide_BF16(uint16_t) noexcept nogil

ctypedef fused element:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    float
    double

ctypedef fused floating:
    float
    double


cdef inline Py_ssize_t place_of(const element *row, Py_ssize_t size, element value, bint right) noexcept nogil:
    """Return how many stand before a value; NaN, for which no comparison holds, goes behind everything."""
    cdef Py_ssize_t low = 0, high = size, middle
    while low < high:
        middle = (low + high) // 2
        if (row[middle] > value) if right else (row[middle] >= value):
            high = middle
        else:
            low = middle + 1
    return low


cdef void places(
    const element *rows, Py_ssize_t size, Py_ssize_t step, const element *values, Py_ssize_t count,
    Py_ssize_t length, int64_t *to, bint right
) noexcept nogil:
    cdef Py_ssize_t row, i
    for row in range(count):
        for i in range(length):
            to[row * length + i] = place_of(rows + row * step, size, values[row * length + i], right)


cdef inline float wide(uint16_t half, bint brain) noexcept nogil:
    return wide_BF16(half) if brain else wide_F16(half)


cdef void places_of_halves(
    const uint16_t *rows, Py_ssize_t size, Py_ssize_t step, const uint16_t *values, Py_ssize_t count,
    Py_ssize_t length, int64_t *to, bint right, bint brain
) noexcept nogil:
    """As `places`; of a sequence only what is compared is widened."""
    cdef Py_ssize_t at, low, high, middle
    cdef const uint16_t *row
    cdef float value, found
    for at in range(count * length):
        row = rows + at // length * step
        value = wide(values[at], brain)
        low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            found = wide(row[middle], brain)
            if (found > value) if right else (found >= value):
                high = middle
            else:
                low = middle + 1
        to[at] = low


cdef np.ndarray in_rows(object value):
    cdef np.ndarray array = plain_array(value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


def searchsorted(sorted_sequence, input, bint right):
    """Return where each value would have to be inserted, in one sequence or in that of its row."""
    cdef np.ndarray rows = in_rows(sorted_sequence), values = in_rows(input), result = new_like(values, TP_I64)
    cdef Py_ssize_t size = np.PyArray_DIM(rows, np.PyArray_NDIM(rows) - 1)
    cdef Py_ssize_t total = np.PyArray_SIZE(values), count = 1, length = total, step = 0
    cdef int number = type_of(rows)
    cdef const void *row = np.PyArray_DATA(rows)
    cdef const void *value = np.PyArray_DATA(values)
    cdef int64_t *to = <int64_t *> np.PyArray_DATA(result)
    if not total:
        return result
    if np.PyArray_NDIM(rows) > 1:
        length = np.PyArray_DIM(values, np.PyArray_NDIM(values) - 1)
        count, step = total // length, size
    with nogil:
        if number == TP_F16 or number == TP_BF16:
            places_of_halves(
                <const uint16_t *> row, size, step, <const uint16_t *> value, count, length, to, right,
                number == TP_BF16,
            )
        elif number == TP_F32:
            places(<const float *> row, size, step, <const float *> value, count, length, to, right)
        elif number == TP_F64:
            places(<const double *> row, size, step, <const double *> value, count, length, to, right)
        elif number == TP_I64:
            places(<const int64_t *> row, size, step, <const int64_t *> value, count, length, to, right)
        elif number == TP_I32:
            places(<const int32_t *> row, size, step, <const int32_t *> value, count, length, to, right)
        elif number == TP_I16:
            places(<const int16_t *> row, size, step, <const int16_t *> value, count, length, to, right)
        elif number == TP_I8:
            places(<const int8_t *> row, size, step, <const int8_t *> value, count, length, to, right)
        else:
            places(<const uint8_t *> row, size, step, <const uint8_t *> value, count, length, to, right)
    return result


cdef enum:
    FEW_CELLS = 16


cdef bint ascend(const floating *edges, Py_ssize_t size) noexcept nogil:
    """Return whether no edge is below the one before it."""
    cdef Py_ssize_t i
    cdef bint found = True
    for i in range(size):
        found &= edges[i] <= edges[i + 1]
    return found


cdef bint are_even(const floating *edges, Py_ssize_t size) noexcept nogil:
    """Return whether edges are about where equal cells have them."""
    cdef Py_ssize_t i
    cdef double width = (<double> edges[size] - edges[0]) / size
    cdef bint found = 0 < width < 1e300
    for i in range(size + 1):
        found &= -0.5 * width < edges[i] - (edges[0] + i * width) < 0.5 * width
    return found


cdef void find_cells(
    const char *points, Py_ssize_t step, Py_ssize_t count, const floating *edges, Py_ssize_t size, int64_t *cells
) noexcept nogil:
    """Go on to one more coordinate: -1 is outside; the last bin is closed."""
    cdef Py_ssize_t i, at, j
    cdef floating value
    cdef bint few = size <= FEW_CELLS and ascend(edges, size)
    cdef bint even = size > FEW_CELLS and are_even(edges, size) and ascend(edges, size)
    cdef double scale = size / (<double> edges[size] - edges[0]) if even else 0
    for i in range(count):
        value = (<const floating *> (points + i * step))[0]
        if few:  # without branches, which are foreseen as often as not
            at = -(value == edges[size])
            for j in range(size + 1):
                at += edges[j] <= value
            at -= 1
        elif even:  # the guess is at most one off
            at = -1
            if edges[0] <= value <= edges[size]:
                at = min(<Py_ssize_t> ((<double> value - edges[0]) * scale), size - 1)
                at -= edges[at] > value
                at += at < size - 1 and edges[at + 1] <= value
        else:
            at = size - 1 if value == edges[size] else place_of(edges, size + 1, value, True) - 1
        cells[i] = cells[i] * size + at if (cells[i] >= 0) & (0 <= at) & (at < size) else -1


cdef void add_up(const int64_t *cells, Py_ssize_t count, const floating *weight, double *sums) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        if cells[i] >= 0:
            sums[cells[i]] += 1.0 if weight == NULL else weight[i]


def grid_counts(points, edges, weight):
    """Return the weight of the points, in rows, in each cell of the grid that the edges span."""
    cdef np.ndarray array = plain_array(points), bounds, result, factors
    cdef int number = type_of(array), d, dims = len(edges)
    cdef Py_ssize_t count = np.PyArray_DIM(array, 0), cells = 1, i, size
    cdef np.npy_intp shape[64]
    cdef int64_t *found
    cdef double *sums
    cdef const char *column
    cdef const void *each = NULL
    for d in range(dims):
        shape[d] = len(edges[d]) - 1
        cells *= shape[d]
    result = new_array(<np.dtype> descriptors[number], dims, shape, NULL)
    if not cells:
        return result
    if not dims:  # a point without coordinates is in no cell
        result.fill(0)
        return result
    if weight is not None:
        factors = in_rows(weight)
        each = np.PyArray_DATA(factors)
    found = <int64_t *> calloc(count + 1, sizeof(int64_t))
    sums = <double *> calloc(cells, sizeof(double))
    if found == NULL or sums == NULL:
        free(found)
        free(sums)
        raise MemoryError()
    for d in range(dims):
        bounds = in_rows(edges[d])
        size = shape[d]
        column = <const char *> np.PyArray_DATA(array) + d * np.PyArray_STRIDE(array, 1)
        if number == TP_F32:
            find_cells(column, np.PyArray_STRIDE(array, 0), count, <const float *> np.PyArray_DATA(bounds), size, found)
        else:
            find_cells(column, np.PyArray_STRIDE(array, 0), count, <const double *> np.PyArray_DATA(bounds), size, found)
    if number == TP_F32:
        add_up(found, count, <const float *> each, sums)
        for i in range(cells):
            (<float *> np.PyArray_DATA(result))[i] = <float> sums[i]
    else:
        add_up(found, count, <const double *> each, sums)
        for i in range(cells):
            (<double *> np.PyArray_DATA(result))[i] = sums[i]
    free(found)
    free(sums)
    return result


cdef bint all_within(const element *x, Py_ssize_t count, double low, double high) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint found = True
    for i in range(count):
        found &= low <= x[i] <= high
    return found


def is_within(input, double low, double high):
    """Return whether all elements, of which none must be NaN, lie between two bounds."""
    cdef np.ndarray array = in_rows(input)
    cdef Py_ssize_t count = np.PyArray_SIZE(array)
    cdef const void *x = np.PyArray_DATA(array)
    cdef int number = type_of(array)
    if number == TP_F32:
        return all_within(<const float *> x, count, low, high)
    if number == TP_I32:
        return all_within(<const int32_t *> x, count, low, high)
    return all_within(<const double *> x, count, low, high)
