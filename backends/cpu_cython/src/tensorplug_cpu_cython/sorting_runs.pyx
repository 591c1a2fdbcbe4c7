"""Runs of equal elements, or of equal rows."""

import numpy

cimport numpy as np
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from . import pointwise

from .allocator cimport new_array, plain_array
from .types cimport TP_BF16, TP_F16, TP_F32, TP_F64, TP_I8, TP_I16, TP_I32, TP_I64, descriptors, type_of

np.import_array()

ctypedef fused element:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    float
    double


cdef Py_ssize_t starts(
    const element *x, Py_ssize_t rows, Py_ssize_t columns, int64_t *heads, int64_t *run
) noexcept nogil:
    """Note where runs start, and which one each row belongs to if that is asked for; return how many there are."""
    cdef Py_ssize_t row, column, count = 0
    cdef bint new
    for row in range(rows):
        new = row == 0
        for column in range(columns):
            if new:
                break
            new = x[row * columns + column] != x[(row - 1) * columns + column]
        heads[count] = row  # which the next run writes over, if this row starts none
        count += new
        if run:
            run[row] = count - 1
    return count


def unique_consecutive(input, return_inverse, return_counts, dim):
    """Return the first of each run, the run of each, and how many are in it."""
    cdef np.ndarray array = plain_array(input), keys, heads, run = None, lengths
    cdef Py_ssize_t rows = np.PyArray_SIZE(array), columns = 1, count, i
    cdef int64_t *head
    cdef int64_t *of = NULL
    cdef int64_t *length
    cdef const void *x
    keys = np.PyArray_GETCONTIGUOUS(numpy.moveaxis(array, dim, 0) if dim else array)
    if dim is not None:
        rows = np.PyArray_DIM(array, dim)
        columns = np.PyArray_SIZE(array) // rows if rows else 0
    cdef int number = type_of(keys)
    values = keys
    if number == TP_F16 or number == TP_BF16:
        keys, number = pointwise.cast(keys, descriptors[TP_F32]), TP_F32
    cdef np.npy_intp shape[1]
    shape[0] = rows + 1  # after the last run something is written, too
    heads = new_array(descriptors[TP_I64], 1, shape, NULL)
    head = <int64_t *> np.PyArray_DATA(heads)
    if return_inverse:
        shape[0] = rows
        run = new_array(descriptors[TP_I64], 1, shape, NULL)
        of = <int64_t *> np.PyArray_DATA(run)
    x = np.PyArray_DATA(keys)
    with nogil:
        if number == TP_F32:
            count = starts(<const float *> x, rows, columns, head, of)
        elif number == TP_F64:
            count = starts(<const double *> x, rows, columns, head, of)
        elif number == TP_I64:
            count = starts(<const int64_t *> x, rows, columns, head, of)
        elif number == TP_I32:
            count = starts(<const int32_t *> x, rows, columns, head, of)
        elif number == TP_I16:
            count = starts(<const int16_t *> x, rows, columns, head, of)
        elif number == TP_I8:
            count = starts(<const int8_t *> x, rows, columns, head, of)
        else:
            count = starts(<const uint8_t *> x, rows, columns, head, of)
    first = heads[:count]
    found = [values.reshape(-1).take(first) if dim is None else array.take(first, dim)]
    if return_inverse:
        found.append(run.reshape(input.shape) if dim is None else run)
    if return_counts:
        shape[0] = count
        lengths = new_array(descriptors[TP_I64], 1, shape, NULL)
        length = <int64_t *> np.PyArray_DATA(lengths)
        head[count] = rows
        for i in range(count):
            length[i] = head[i + 1] - head[i]
        found.append(lengths)
    return tuple(found) if len(found) > 1 else found[0]
