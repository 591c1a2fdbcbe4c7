"""Copies with a number around them."""

cimport numpy as np
from libc.string cimport memcpy

from . import pointwise

from .allocator cimport new_array, plain_array
from .cpu_features cimport threads_for

np.import_array()

cdef extern from "c/padding.h":
    ctypedef struct tp_padding:
        int dims
        Py_ssize_t before[64]
        Py_ssize_t kept[64]
        Py_ssize_t behind[64]
        Py_ssize_t step[64]
        char number[16]
    void tp_simplify_padding(tp_padding *)
    bint tp_pad(char *, const char *, const tp_padding *, int, int) noexcept nogil

cdef extern from "c/strided_views.h":
    object tp_view(np.ndarray array, char *data, int dims, const np.npy_intp *, const np.npy_intp *)

cdef enum:
    GRAIN = 1 << 17, HOLD = 1 << 16  # bytes


def constant_pad_nd(value, tuple sizes, around):
    """Return `value` with so many elements before and behind each of the last dimensions, from the last on.

    Negative numbers take away; what is added is the number `around`.
    """
    cdef np.ndarray input = plain_array(value), result, number
    cdef np.dtype descriptor = <np.dtype> np.PyArray_DESCR(input)
    cdef np.npy_intp shape[64]
    cdef np.npy_intp kept[64]
    cdef tp_padding padding
    cdef int dims = np.PyArray_NDIM(input), itemsize = np.PyArray_ITEMSIZE(input), d, i
    cdef int last = dims - <int> len(sizes) // 2
    cdef const char *data = <const char *> np.PyArray_DATA(input)
    cdef Py_ssize_t before, behind, bytes
    cdef bint any_kept = True
    for d in range(dims):
        i = 2 * (dims - 1 - d)
        before, behind = (sizes[i], sizes[i + 1]) if d >= last else (0, 0)
        shape[d] = np.PyArray_DIM(input, d) + before + behind
        kept[d] = max(np.PyArray_DIM(input, d) + min(before, 0) + min(behind, 0), 0)
        any_kept = any_kept and kept[d] > 0
        data -= min(before, 0) * np.PyArray_STRIDE(input, d)
        padding.before[d], padding.kept[d], padding.behind[d] = max(before, 0), kept[d], max(behind, 0)
        padding.step[d] = np.PyArray_STRIDE(input, d)
    if not any_kept:
        return pointwise.fill_new(tuple([shape[d] for d in range(dims)]), around, descriptor)
    if not dims or itemsize > 16 or itemsize & (itemsize - 1) or padding.step[dims - 1] != itemsize and kept[dims - 1] > 1:
        return padded_after_filling(input, <char *> data, tuple([shape[d] for d in range(dims)]), kept, &padding, around)
    result = new_array(descriptor, dims, shape, NULL)
    number = pointwise.fill_new((), around, descriptor)
    memcpy(padding.number, np.PyArray_DATA(number), itemsize)
    padding.dims, padding.step[dims - 1] = dims, itemsize
    tp_simplify_padding(&padding)
    bytes = np.PyArray_NBYTES(result)
    if bytes < HOLD:
        tp_pad(<char *> np.PyArray_DATA(result), data, &padding, itemsize, 1)
    else:
        with nogil:
            tp_pad(<char *> np.PyArray_DATA(result), data, &padding, itemsize, threads_for(bytes, GRAIN))
    return result


cdef np.ndarray padded_after_filling(
    np.ndarray input, char *data, tuple shape, const np.npy_intp *kept, const tp_padding *padding, around
):
    """Return the result for elements that lie in no rows, which the copy of views takes by blocks."""
    cdef np.ndarray result = pointwise.fill_new(shape, around, <np.dtype> np.PyArray_DESCR(input))
    cdef int dims = np.PyArray_NDIM(input), d
    cdef Py_ssize_t offset = 0
    for d in range(dims):
        offset += padding.before[d] * np.PyArray_STRIDE(result, d)
    shown = tp_view(result, <char *> np.PyArray_DATA(result) + offset, dims, kept, np.PyArray_STRIDES(result))
    pointwise.copy(shown, tp_view(input, data, dims, kept, np.PyArray_STRIDES(input)), shown)
    return result
