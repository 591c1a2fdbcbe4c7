"""Medians, elements of a rank, quantiles, modes, histograms and membership."""

import numpy

cimport numpy as np
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from . import sorting, pointwise

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BOOL, TP_F32, TP_F64, TP_I8, TP_I16, TP_I32, TP_I64, descriptors, type_of

np.import_array()

cdef extern from "c/sorting_select.h":
    enum:
        TP_RANKED, TP_MEDIAN, TP_NANMEDIAN
    ctypedef struct tp_selection:
        const void *x
        void *values
        int64_t *places
        Py_ssize_t before, n, after, rank
        int which
    ctypedef struct tp_quantiles:
        const void *x
        const void *levels
        void *out
        Py_ssize_t rows, n, count
        int ignore_nan, interpolation, ordered
    ctypedef int (*tp_select)(const tp_selection *, int) noexcept nogil
    ctypedef int (*tp_quantile)(const tp_quantiles *, int) noexcept nogil
    ctypedef struct tp_selections:
        tp_select select[10]
        tp_quantile quantiles[2]

cdef extern from *:
    """
    #define tp_selections_of(level) TP_CHOOSE(tp_selection_table, level)
    """
    const tp_selections *tp_selections_of(int)

cdef const tp_selections *kernels = tp_selections_of(simd_level)

# In the order of c/selections.h.
cdef tuple WAYS = ("linear", "lower", "higher", "midpoint", "nearest")

cdef enum:
    GRAIN = 16384, HOLD = 256
    # A row is sorted for more levels than these.
    LEVELS = 12
    # Elements are compared with each of so many tests, block by block.
    TESTS = 32, BLOCK = 1024


cdef object select(object input, int dim, Py_ssize_t rank, int which, bint keepdim, bint with_indices):
    """Return the values, and the places or None; `dim` of -1 stands for all elements as one row."""
    cdef np.ndarray array = plain_array(input), values, places = None
    cdef int number = type_of(array), i, out_dims = 0, done
    cdef tp_selection o
    cdef tp_select function = kernels.select[number]
    cdef np.npy_intp shape[64]
    cdef Py_ssize_t total = np.PyArray_SIZE(array)
    if not np.PyArray_IS_C_CONTIGUOUS(array):
        array = pointwise.clone(array)
    o.before = o.n = o.after = 1
    for i in range(np.PyArray_NDIM(array)):
        if dim < 0 or i == dim:
            o.n *= np.PyArray_DIM(array, i)
            if not keepdim:
                continue
            shape[out_dims] = 1
        else:
            shape[out_dims] = np.PyArray_DIM(array, i)
            if i < dim:
                o.before *= shape[out_dims]
            else:
                o.after *= shape[out_dims]
        out_dims += 1
    values = new_array(<np.dtype> descriptors[number], out_dims, shape, NULL)
    o.places = NULL
    if with_indices:
        places = new_array(<np.dtype> descriptors[TP_I64], out_dims, shape, NULL)
        o.places = <int64_t *> np.PyArray_DATA(places)
    if not total:
        return values, places
    o.x = np.PyArray_DATA(array)
    o.values = np.PyArray_DATA(values)
    o.rank = rank
    o.which = which
    if total < HOLD:
        done = function(&o, 1)
    else:
        with nogil:
            done = function(&o, threads_for(total, GRAIN))
    if not done:
        raise MemoryError()
    return values, places


def kth(input, Py_ssize_t k, int dim, bint keepdim):
    """Return the k-th smallest elements along `dim`, counted from 1, and their places."""
    return select(input, dim, k - 1, TP_RANKED, keepdim, True)


def median(input, int dim, bint keepdim, bint ignore_nan):
    """Return the lower medians along `dim` and their places."""
    return select(input, dim, 0, TP_NANMEDIAN if ignore_nan else TP_MEDIAN, keepdim, True)


def median_of_all(input, bint ignore_nan):
    """Return the lower median of all elements, of which there is one at least."""
    return select(input, -1, 0, TP_NANMEDIAN if ignore_nan else TP_MEDIAN, False, False)[0]


def quantiles(rows, levels, bint ignore_nan, interpolation):
    """Return the quantiles at some levels along the last dimension, which becomes that of the levels."""
    cdef np.ndarray array = plain_array(rows), given = plain_array(levels), result
    cdef int number = type_of(array), i, last = np.PyArray_NDIM(array) - 1, done
    cdef tp_quantiles o
    cdef tp_quantile function = kernels.quantiles[number == TP_F64]
    cdef np.npy_intp shape[64]
    cdef Py_ssize_t total = np.PyArray_SIZE(array)
    o.n = np.PyArray_DIM(array, last)
    o.count = np.PyArray_SIZE(given)
    o.ordered = o.count > LEVELS
    if o.ordered:
        array = sorting.sort(array, last, False)[0]
    if not np.PyArray_IS_C_CONTIGUOUS(array):
        array = pointwise.clone(array)
    if not np.PyArray_IS_C_CONTIGUOUS(given):
        given = pointwise.clone(given)
    o.rows = 1
    for i in range(last):
        shape[i] = np.PyArray_DIM(array, i)
        o.rows *= shape[i]
    shape[last] = o.count
    result = new_array(<np.dtype> descriptors[number], last + 1, shape, NULL)
    o.x = np.PyArray_DATA(array)
    o.levels = np.PyArray_DATA(given)
    o.out = np.PyArray_DATA(result)
    o.ignore_nan = ignore_nan
    o.interpolation = WAYS.index(interpolation)
    if total < HOLD:
        done = function(&o, 1)
    else:
        with nogil:
            done = function(&o, threads_for(total, GRAIN))
    if not done:
        raise MemoryError()
    return result


ctypedef fused whole:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t


cdef bint count_each(const whole *x, Py_ssize_t n, int64_t *counts, Py_ssize_t bins, Py_ssize_t tables) noexcept nogil:
    """Count, neighbours in tables of their own: equal ones need not wait for each other."""
    cdef Py_ssize_t i, t
    cdef bint fit = True
    for i in range(n):
        if 0 <= x[i] < bins:
            counts[(i & (tables - 1)) * bins + x[i]] += 1
        else:
            fit = False
    for t in range(1, tables):
        for i in range(bins):
            counts[i] += counts[t * bins + i]
    return fit


def occurrences(input, Py_ssize_t bins):
    """Return how often each number from 0 to before `bins` occurs."""
    cdef np.ndarray array = plain_array(input)
    cdef int number = type_of(array)
    cdef Py_ssize_t n = np.PyArray_SIZE(array)
    cdef Py_ssize_t tables = 4 if bins <= 4096 and n >= 4 * bins else 1
    if not np.PyArray_IS_C_CONTIGUOUS(array):
        array = pointwise.clone(array)
    cdef np.ndarray counts = numpy.zeros(tables * bins, descriptors[TP_I64])
    cdef int64_t *to = <int64_t *> np.PyArray_DATA(counts)
    cdef const void *x = np.PyArray_DATA(array)
    cdef bint fit
    with nogil:
        if number == TP_I64:
            fit = count_each(<const int64_t *> x, n, to, bins, tables)
        elif number == TP_I32:
            fit = count_each(<const int32_t *> x, n, to, bins, tables)
        elif number == TP_I16:
            fit = count_each(<const int16_t *> x, n, to, bins, tables)
        elif number == TP_I8:
            fit = count_each(<const int8_t *> x, n, to, bins, tables)
        else:
            fit = count_each(<const uint8_t *> x, n, to, bins, tables)
    if not fit:
        raise IndexError(f"bincount(): expected numbers from 0 to {bins - 1}")
    return counts if tables == 1 else counts[:bins].copy()


ctypedef fused real:
    float
    double


cdef void count_between(
    const real *x, Py_ssize_t n, const real *edges, int64_t *counts, Py_ssize_t bins, Py_ssize_t tables
) noexcept nogil:
    """Count in tables as :func:`count_each`; the guessed bin is put right by the edges themselves."""
    cdef int32_t guesses[BLOCK]
    cdef Py_ssize_t i, t, bin, count
    cdef real least = edges[0], most = edges[bins], value
    cdef double scale = bins / (<double> most - <double> least), guess, last = bins - 1
    while n > 0:
        count = min(<Py_ssize_t> BLOCK, n)
        for i in range(count):  # several at once
            guess = (<double> x[i] - <double> least) * scale
            guess = guess if guess < last else last
            guesses[i] = <int32_t> (guess if guess > 0 else 0)
        for i in range(count):
            value = x[i]
            if not least <= value <= most:
                continue
            bin = guesses[i]
            while value < edges[bin]:
                bin -= 1
            while bin < bins - 1 and value >= edges[bin + 1]:
                bin += 1
            counts[(i & (tables - 1)) * bins + bin] += 1
        x += count
        n -= count
    for t in range(1, tables):
        for i in range(bins):
            counts[i] += counts[t * bins + i]


def even_counts(values, edges):
    """Return how many elements stand between ascending edges; the last bin is closed."""
    cdef np.ndarray array = plain_array(values), bounds = plain_array(edges), counts
    cdef Py_ssize_t n = np.PyArray_SIZE(array), bins = np.PyArray_SIZE(bounds) - 1
    cdef Py_ssize_t tables = 4 if bins <= 4096 and n >= 4 * bins else 1
    if not np.PyArray_IS_C_CONTIGUOUS(array):
        array = pointwise.clone(array)
    if not np.PyArray_IS_C_CONTIGUOUS(bounds):
        bounds = pointwise.clone(bounds)
    counts = numpy.zeros(tables * bins, descriptors[TP_I64])
    cdef int64_t *to = <int64_t *> np.PyArray_DATA(counts)
    cdef const void *x = np.PyArray_DATA(array)
    cdef const void *e = np.PyArray_DATA(bounds)
    cdef bint single = type_of(array) == TP_F32
    with nogil:
        if single:
            count_between(<const float *> x, n, <const float *> e, to, bins, tables)
        else:
            count_between(<const double *> x, n, <const double *> e, to, bins, tables)
    return pointwise.cast(counts[:bins], array.descr)


ctypedef fused element:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    float
    double


cdef void longest_run(
    const element *x, const int64_t *places, Py_ssize_t n, Py_ssize_t step, element *value, int64_t *place
) noexcept nogil:
    """Find the end of the first of the longest runs of equal elements, which are sorted."""
    cdef Py_ssize_t i, start = 0, longest = -1, last = 0
    for i in range(n):
        if x[i * step] != x[start * step]:
            start = i
        if i - start > longest:
            longest = i - start
            last = i
    value[0] = x[last * step]
    place[0] = places[last * step]


cdef void longest_runs(
    const element *x, const int64_t *places, Py_ssize_t rows, Py_ssize_t n, Py_ssize_t after, element *values,
    int64_t *found,
) noexcept nogil:
    cdef Py_ssize_t row, first
    for row in range(rows):
        first = row // after * n * after + row % after
        longest_run(x + first, places + first, n, after, values + row, found + row)


def mode(input, int dim, bint keepdim):
    """Return the most frequent elements along `dim`, the smallest of several, and their last places."""
    cdef np.ndarray array = plain_array(input), ordered, order, values, places
    cdef np.npy_intp shape[64]
    cdef int number = type_of(array), i, dims = 0
    cdef Py_ssize_t n = np.PyArray_DIM(array, dim), rows = 1, after = 1
    for i in range(np.PyArray_NDIM(array)):
        if i != dim or keepdim:
            shape[dims] = 1 if i == dim else np.PyArray_DIM(array, i)
            dims += 1
        if i != dim:
            rows *= np.PyArray_DIM(array, i)
            after *= np.PyArray_DIM(array, i) if i > dim else 1
    values = new_array(<np.dtype> descriptors[number], dims, shape, NULL)
    places = new_array(<np.dtype> descriptors[TP_I64], dims, shape, NULL)
    if not rows:
        return values, places
    ordered, order = sorting.sort(array, dim, False)
    cdef const void *x = np.PyArray_DATA(ordered)
    cdef const int64_t *at = <const int64_t *> np.PyArray_DATA(order)
    cdef void *v = np.PyArray_DATA(values)
    cdef int64_t *p = <int64_t *> np.PyArray_DATA(places)
    with nogil:
        if number == TP_F32:
            longest_runs(<const float *> x, at, rows, n, after, <float *> v, p)
        elif number == TP_F64:
            longest_runs(<const double *> x, at, rows, n, after, <double *> v, p)
        elif number == TP_I64:
            longest_runs(<const int64_t *> x, at, rows, n, after, <int64_t *> v, p)
        elif number == TP_I32:
            longest_runs(<const int32_t *> x, at, rows, n, after, <int32_t *> v, p)
        elif number == TP_I16:
            longest_runs(<const int16_t *> x, at, rows, n, after, <int16_t *> v, p)
        elif number == TP_I8:
            longest_runs(<const int8_t *> x, at, rows, n, after, <int8_t *> v, p)
        else:
            longest_runs(<const uint8_t *> x, at, rows, n, after, <uint8_t *> v, p)
    return values, places


cdef void compare_each(
    const element *x, Py_ssize_t n, const element *tests, Py_ssize_t count, uint8_t *found
) noexcept nogil:
    cdef Py_ssize_t start = 0, stop, i, t
    cdef element test
    while start < n:
        stop = min(n, start + <Py_ssize_t> BLOCK)
        for t in range(count):
            test = tests[t]
            for i in range(start, stop):
                found[i] |= x[i] == test
        start = stop


def among(elements, tests):
    """Return for each element whether it is among the tests, which have its dtype."""
    cdef np.ndarray array = plain_array(elements), given = plain_array(tests), result
    cdef int number = type_of(array)
    cdef Py_ssize_t n = np.PyArray_SIZE(array), count = np.PyArray_SIZE(given)
    if count > TESTS:
        given = sorting.sort(given, 0, False)[0]
        return given.take(numpy.searchsorted(given, array), mode="clip") == array
    if not np.PyArray_IS_C_CONTIGUOUS(array):
        array = pointwise.clone(array)
    if not np.PyArray_IS_C_CONTIGUOUS(given):
        given = pointwise.clone(given)
    result = pointwise.fill_new((<object> array).shape, False, descriptors[TP_BOOL])
    cdef const void *x = np.PyArray_DATA(array)
    cdef const void *t = np.PyArray_DATA(given)
    cdef uint8_t *found = <uint8_t *> np.PyArray_DATA(result)
    with nogil:
        if number == TP_F32:
            compare_each(<const float *> x, n, <const float *> t, count, found)
        elif number == TP_F64:
            compare_each(<const double *> x, n, <const double *> t, count, found)
        elif number == TP_I64:
            compare_each(<const int64_t *> x, n, <const int64_t *> t, count, found)
        elif number == TP_I32:
            compare_each(<const int32_t *> x, n, <const int32_t *> t, count, found)
        elif number == TP_I16:
            compare_each(<const int16_t *> x, n, <const int16_t *> t, count, found)
        elif number == TP_I8:
            compare_each(<const int8_t *> x, n, <const int8_t *> t, count, found)
        else:
            compare_each(<const uint8_t *> x, n, <const uint8_t *> t, count, found)
    return result


def nonzero(np.ndarray input):
    """Return the indices of what is not zero, one row each."""
    return nonzero_rows(input, -1, 0)


def nonzero_static(np.ndarray input, Py_ssize_t size, int64_t fill_value):
    """Return the first `size` rows of `nonzero`, filled up with a value."""
    return nonzero_rows(input, size, fill_value)


cdef np.ndarray nonzero_rows(np.ndarray input, Py_ssize_t rows, int64_t fill_value):
    """Return so many rows of indices, filled up with a value; with -1, as many as there are."""
    cdef int d, dims = np.PyArray_NDIM(input)
    cdef np.npy_intp sizes[2]
    cdef np.ndarray result, truth
    cdef Py_ssize_t wanted, count, total, i
    cdef const uint8_t *values
    cdef int64_t *out
    truth = pointwise.cast(input, descriptors[TP_BOOL]) if type_of(input) >= 0 else plain_array(input != 0)
    if not np.PyArray_IS_C_CONTIGUOUS(truth):
        truth = pointwise.clone(truth)
    values = <const uint8_t *> np.PyArray_DATA(truth)
    total = np.PyArray_SIZE(truth)
    wanted = count_true(values, total) if rows < 0 else rows
    sizes[0], sizes[1] = wanted, dims
    result = new_array(<np.dtype> descriptors[TP_I64], 2, sizes, NULL)
    if not dims:
        return result
    out = <int64_t *> np.PyArray_DATA(result)
    with nogil:
        count = find_true(values, total, dims, np.PyArray_DIMS(truth), out, wanted)
        for i in range(count * dims, wanted * dims):
            out[i] = fill_value
    return result


cdef Py_ssize_t count_true(const uint8_t *truth, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, total = 0
    for i in range(n):
        total += truth[i]
    return total


cdef Py_ssize_t find_true(
    const uint8_t *truth, Py_ssize_t n, int dims, const np.npy_intp *sizes, int64_t *out, Py_ssize_t wanted
) noexcept nogil:
    """Write the indices of the first values that hold; return of how many."""
    cdef Py_ssize_t length = sizes[dims - 1], start = 0, found = 0, held, i, stop
    cdef int64_t row[64]
    cdef uint64_t eight
    cdef int d
    memset(row, 0, sizeof(row))
    while start < n and found < wanted:
        i = 0
        while i < length:
            if i + 8 <= length:
                memcpy(&eight, truth + start + i, 8)
                if not eight:
                    i += 8
                    continue
            stop = min(i + 8, length)
            if dims == 1 and found + 8 <= wanted:
                while i < stop:
                    out[0] = i
                    out += truth[i]
                    found += truth[i]
                    i += 1
                continue
            while i < stop and found < wanted:  # written whether it holds or not: nothing can be foretold wrongly
                for d in range(dims - 1):
                    out[d] = row[d]
                out[dims - 1] = i
                held = truth[start + i]
                out += dims if held else 0
                found += held
                i += 1
            if found == wanted:
                return found
        start += length
        d = dims - 2
        while d >= 0:
            row[d] += 1
            if row[d] < sizes[d]:
                break
            row[d] = 0
            d -= 1
    return found
