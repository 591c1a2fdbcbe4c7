"""How the elements of images, (N, C, *spatial), lie in memory, and new arrays that lie in the same way.

Header only: each module that uses it compiles it for itself.
"""

cimport numpy as np

from .allocator cimport new_array, plain_array

cdef enum:
    ROWS, CHANNELS_LAST, OTHER


cdef inline bint lies_channels_last(np.ndarray array) noexcept:
    """Return whether (N, C, *spatial) is dense with the channels of a place beside each other."""
    cdef int dims = np.PyArray_NDIM(array), i
    cdef Py_ssize_t step = np.PyArray_ITEMSIZE(array)
    if np.PyArray_DIM(array, 1) != 1:
        if np.PyArray_STRIDE(array, 1) != step:
            return False
        step *= np.PyArray_DIM(array, 1)
    for i in range(dims - 1, 0, -1):
        if i == 1:
            i = 0
        if np.PyArray_DIM(array, i) != 1:
            if np.PyArray_STRIDE(array, i) != step:
                return False
            step *= np.PyArray_DIM(array, i)
    return True


cdef inline int layout_of(np.ndarray array) noexcept:
    """Return how (N, C, *spatial) lies in memory; rows where both are right."""
    if np.PyArray_IS_C_CONTIGUOUS(array):
        return ROWS
    return CHANNELS_LAST if lies_channels_last(array) else OTHER


cdef inline np.ndarray dense(object value, int *layout):
    """Return an array that lies in rows, or channels last, and which of the two it is."""
    cdef np.ndarray array = plain_array(value)
    layout[0] = layout_of(array)
    if layout[0] == OTHER:
        array = np.PyArray_GETCONTIGUOUS(array)
        layout[0] = ROWS
    return array


cdef inline np.ndarray laid_out(np.dtype descriptor, int dims, const np.npy_intp *shape, int layout):
    """Return a new array that lies in rows, or channels last."""
    cdef np.npy_intp strides[64]
    cdef np.npy_intp step = descriptor.itemsize
    cdef int i
    if layout != CHANNELS_LAST:
        return new_array(descriptor, dims, shape, NULL)
    strides[1] = step
    step *= shape[1]
    for i in range(dims - 1, 0, -1):
        if i == 1:
            i = 0
        strides[i] = step
        step *= shape[i]
    return new_array(descriptor, dims, shape, strides)


cdef inline int meant_layout(np.ndarray array) noexcept:
    """Return how (N, C, *spatial) lies in memory; where both are right, as images of one place, what its strides say."""
    cdef int dims = np.PyArray_NDIM(array), i, layout = layout_of(array)
    cdef Py_ssize_t step = np.PyArray_ITEMSIZE(array)
    if layout != ROWS or not lies_channels_last(array) or np.PyArray_STRIDE(array, 1) != step:
        return layout
    step *= np.PyArray_DIM(array, 1)
    for i in range(dims - 1, 1, -1):
        if np.PyArray_STRIDE(array, i) != step:
            return ROWS
        step *= np.PyArray_DIM(array, i)
    return CHANNELS_LAST
