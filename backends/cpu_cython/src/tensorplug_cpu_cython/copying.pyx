"""Copies of whole rows: joined and rolled arrays, triangles of matrices, sequences of numbers."""

import numpy

cimport numpy as np
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from . import pointwise

from .allocator cimport new_array, plain_array
from .cpu_features cimport threads_for
from .layouts cimport is_taken_for_channels_last
from .types cimport descriptors, type_of

np.import_array()

cdef extern from "c/copying.h":
    ctypedef struct tp_piece:
        const char *from_ "from"
        Py_ssize_t step, bytes
    void tp_join(char *, Py_ssize_t, Py_ssize_t, const tp_piece *, int, int) noexcept nogil
    void tp_block_rows(
        char *, Py_ssize_t, Py_ssize_t, Py_ssize_t, const tp_piece *, int
    ) noexcept nogil
    void tp_triangle(
        char *, const char *, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, bint, int
    ) noexcept nogil
    bint tp_range(char *, int, Py_ssize_t, double, double, int) noexcept nogil
    bint tp_whole_range(char *, int, Py_ssize_t, int64_t, int64_t, int) noexcept nogil

cdef enum:
    GRAIN = 1 << 17, HOLD = 1 << 16, FEW = 16  # bytes, bytes, pieces

# Orders of the dimensions of images, (N, C, *spatial), by how many they have: channels inside, and back.
cdef dict INSIDE = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
cdef dict OUTSIDE = {4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)}


cdef np.ndarray rows_of(np.ndarray array):
    """Return an array whose elements lie row by row."""
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef bint piece_of(np.ndarray array, int dim, tp_piece *piece) noexcept:
    """Describe the rows of `array` from `dim` on; return whether they lie at equal steps."""
    cdef int dims = np.PyArray_NDIM(array), d
    cdef Py_ssize_t bytes = np.PyArray_ITEMSIZE(array), size, step = 0
    cdef bint found = False
    piece.from_ = <const char *> np.PyArray_DATA(array)
    if not np.PyArray_SIZE(array):  # whose strides say nothing
        piece.bytes = piece.step = 0
        return True
    for d in range(dims - 1, dim - 1, -1):
        size = np.PyArray_DIM(array, d)
        if size != 1 and np.PyArray_STRIDE(array, d) != bytes:
            return False
        bytes *= size
    piece.bytes = bytes
    for d in range(dim - 1, -1, -1):
        size = np.PyArray_DIM(array, d)
        if size == 1:
            continue
        if not found:
            piece.step = np.PyArray_STRIDE(array, d)
            step = piece.step * size
            found = True
        elif np.PyArray_STRIDE(array, d) != step:
            return False
        else:
            step *= size
    if not found:
        piece.step = bytes
    return True


cdef void run(char *to, Py_ssize_t step, Py_ssize_t rows, const tp_piece *pieces, int count) noexcept:
    if step * rows < HOLD:
        tp_join(to, step, rows, pieces, count, 1)
    else:
        with nogil:
            tp_join(to, step, rows, pieces, count, threads_for(step * rows, GRAIN))


cdef np.ndarray joined(list arrays, int dim, int dims, const np.npy_intp *shape):
    """Return a new array of a shape, in whose rows from `dim` on those of the arrays stand side by side."""
    cdef tp_piece few[FEW]
    cdef tp_piece *pieces = few
    cdef np.ndarray array = <np.ndarray> arrays[0], result
    cdef list kept = []  # copies that are read below
    cdef int count = <int> len(arrays), k, d
    cdef Py_ssize_t rows = 1, step = np.PyArray_ITEMSIZE(array)
    result = new_array(array.descr, dims, shape, NULL)
    for d in range(dims):
        if d < dim:
            rows *= shape[d]
        else:
            step *= shape[d]
    if not rows or not step:
        return result
    if count > FEW:
        pieces = <tp_piece *> malloc(count * sizeof(tp_piece))
        if pieces == NULL:
            raise MemoryError()
    try:
        for k in range(count):
            array = <np.ndarray> arrays[k]
            if not piece_of(array, dim, &pieces[k]):
                array = pointwise.clone(array)
                kept.append(array)
                piece_of(array, dim, &pieces[k])
        run(<char *> np.PyArray_DATA(result), step, rows, pieces, count)
    finally:
        if pieces != few:
            free(pieces)
    return result


cdef bint of_channels_last(list arrays) noexcept:
    """Return whether torch takes all for images whose channels lie inside."""
    for value in arrays:
        if not is_taken_for_channels_last(<np.ndarray> value):
            return False
    return True


def cat(list tensors, int dim):
    """Return arrays, equal in shape but for `dim`, joined along it: channels last where all are, else in rows."""
    cdef np.npy_intp shape[64]
    cdef np.ndarray array
    cdef list arrays = []
    cdef int dims = 0, d
    for value in tensors:
        array = plain_array(value)
        if not arrays:
            dims = np.PyArray_NDIM(array)
            for d in range(dims):
                shape[d] = np.PyArray_DIM(array, d)
        else:
            if np.PyArray_TYPE(array) != np.PyArray_TYPE(<np.ndarray> arrays[0]):
                return numpy.concatenate(tensors, dim)
            shape[dim] += np.PyArray_DIM(array, dim)
        arrays.append(array)
    if dims > 3 and of_channels_last(arrays):
        arrays = [array.transpose(INSIDE[dims]) for array in arrays]
        return cat(arrays, INSIDE[dims].index(dim)).transpose(OUTSIDE[dims])
    return joined(arrays, dim, dims, shape)


def stack(list tensors, int dim):
    """Return arrays of one shape joined along a new dimension."""
    cdef np.npy_intp shape[64]
    cdef np.ndarray array = plain_array(tensors[0])
    cdef list arrays = [array]
    cdef int dims = np.PyArray_NDIM(array), d, k
    if dims > 62:
        return numpy.stack(tensors, dim)
    for d in range(dims):
        shape[d if d < dim else d + 1] = np.PyArray_DIM(array, d)
    shape[dim] = len(tensors)
    for k in range(1, len(tensors)):
        arrays.append(plain_array(tensors[k]))
    if dim < dims and dims > 3 and of_channels_last(arrays):
        return cat(arrays, dim).reshape([shape[d] for d in range(dims + 1)])
    return joined(arrays, dim, dims + 1, shape)


def matrices_along_diagonal(list matrices):
    """Return a matrix with the given ones along its diagonal."""
    cdef np.npy_intp shape[2]
    cdef np.ndarray array, result
    cdef list arrays = []
    cdef tp_piece piece
    cdef Py_ssize_t itemsize, step, left = 0
    cdef char *to
    shape[0] = shape[1] = 0
    for value in matrices:
        array = plain_array(value)
        if not piece_of(array, 1, &piece):
            array = pointwise.clone(array)
        arrays.append(array)
        shape[0] += np.PyArray_DIM(array, 0)
        shape[1] += np.PyArray_DIM(array, 1)
    array = <np.ndarray> arrays[0]
    result = new_array(array.descr, 2, shape, NULL)
    itemsize = np.PyArray_ITEMSIZE(array)
    step = shape[1] * itemsize
    to = <char *> np.PyArray_DATA(result)
    if not step:
        return result
    for value in arrays:
        array = <np.ndarray> value
        piece_of(array, 1, &piece)
        piece.bytes = np.PyArray_DIM(array, 1) * itemsize  # where there are no rows, too
        with nogil:
            tp_block_rows(to, step, np.PyArray_DIM(array, 0), left, &piece, threads_for(
                step * np.PyArray_DIM(array, 0), GRAIN
            ))
        to += step * np.PyArray_DIM(array, 0)
        left += piece.bytes
    return result


def roll(input, tuple shifts, tuple dims):
    """Return a copy with its elements moved along dimensions, around the end to the start."""
    cdef np.ndarray array = plain_array(input), result
    cdef tp_piece pieces[2]
    cdef int dim
    cdef Py_ssize_t size, cut
    for shift, axis in zip(shifts, dims):
        dim = axis
        size = np.PyArray_DIM(array, dim)
        if not size:
            continue
        cut = (size - shift) % size
        if not cut:
            continue
        if not piece_of(array, dim, &pieces[0]):
            array = pointwise.clone(array)
            piece_of(array, dim, &pieces[0])
        result = new_array(array.descr, np.PyArray_NDIM(array), np.PyArray_DIMS(array), NULL)
        if not np.PyArray_SIZE(result):
            return result
        size = pieces[0].bytes
        cut *= size // np.PyArray_DIM(array, dim)
        pieces[1] = pieces[0]
        pieces[0].from_ += cut
        pieces[0].bytes -= cut
        pieces[1].bytes = cut
        run(
            <char *> np.PyArray_DATA(result), size, np.PyArray_NBYTES(result) // size, pieces, 2
        )
        array = result
    return pointwise.clone(array) if array is input else array


def triangle(input, diagonal, bint upper):
    """Return a copy of matrices with zeros above a diagonal, or below it."""
    cdef np.ndarray array = rows_of(plain_array(input)), result
    cdef int dims = np.PyArray_NDIM(array)
    cdef Py_ssize_t rows = np.PyArray_DIM(array, dims - 2), columns = np.PyArray_DIM(array, dims - 1)
    cdef Py_ssize_t bytes = np.PyArray_NBYTES(array), offset = min(max(diagonal, -rows), columns)
    cdef Py_ssize_t matrices
    result = new_array(array.descr, dims, np.PyArray_DIMS(array), NULL)
    if not bytes:
        return result
    matrices = np.PyArray_SIZE(array) // (rows * columns)
    cdef char *to = <char *> np.PyArray_DATA(result)
    cdef const char *given = <const char *> np.PyArray_DATA(array)
    cdef Py_ssize_t itemsize = np.PyArray_ITEMSIZE(array)
    if bytes < HOLD:
        tp_triangle(to, given, matrices, rows, columns, itemsize, offset, upper, 1)
    else:
        with nogil:
            tp_triangle(
                to, given, matrices, rows, columns, itemsize, offset, upper, threads_for(bytes, GRAIN)
            )
    return result


def arange(start, step, Py_ssize_t count, np.dtype descriptor, fallback):
    """Return start + i * step for i from 0 on; what there is no loop for is the fallback's."""
    cdef np.npy_intp shape[1]
    cdef np.ndarray result
    cdef int number
    cdef bint done, whole
    cdef int64_t first = 0, by = 0
    cdef double start_ = 0, step_ = 0
    cdef int threads
    shape[0] = count
    whole = type(start) is int and type(step) is int
    try:
        if whole:
            first, by = start, step
        else:
            start_, step_ = start, step
    except (OverflowError, TypeError):  # complex numbers, and those beyond int64
        return fallback()
    result = new_array(descriptor, 1, shape, NULL)
    number = type_of(result)
    if number < 0:
        return fallback()
    threads = threads_for(count, GRAIN // 8)
    with nogil:
        if whole:
            done = tp_whole_range(<char *> np.PyArray_DATA(result), number, count, first, by, threads)
        else:
            done = tp_range(<char *> np.PyArray_DATA(result), number, count, start_, step_, threads)
    return result if done else fallback()


def clone_strided(np.ndarray input, tuple stride):
    """Return a copy whose elements lie in given strides, which leave no gaps."""
    cdef np.npy_intp steps[64]
    cdef int d, dims = np.PyArray_NDIM(input)
    cdef np.ndarray result
    for d in range(dims):
        steps[d] = <np.npy_intp> stride[d] * np.PyArray_ITEMSIZE(input)
    result = new_array(<np.dtype> np.PyArray_DESCR(input), dims, np.PyArray_DIMS(input), steps)
    return pointwise.copy(result, input, result)
