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


cdef inline bint is_taken_for_channels_last(np.ndarray array) noexcept:
    """Return whether torch takes an array for images whose channels lie inside: by the order of its strides."""
    cdef int dims = np.PyArray_NDIM(array), d, k
    cdef Py_ssize_t reach = 0, step
    if dims != 4 and dims != 5 or not np.PyArray_STRIDE(array, 1) or not np.PyArray_SIZE(array):
        return False
    for k in range(dims):
        d = 1 if not k else 0 if k == dims - 1 else dims - k
        step = np.PyArray_STRIDE(array, d)
        # Where the last step is the first, the dimensions between have one element: either order is right.
        if step < reach or not d and reach == np.PyArray_STRIDE(array, 1):
            return False
        reach = step * np.PyArray_DIM(array, d)
    return True


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


cdef inline np.ndarray dense(object value, int *layout):
    """Return an array that lies in rows, or channels last, and which of the two it is."""
    cdef np.ndarray array = plain_array(value), copy
    layout[0] = layout_of(array)
    if layout[0] != OTHER:
        return array
    layout[0] = CHANNELS_LAST if is_taken_for_channels_last(array) else ROWS
    copy = laid_out(array.descr, np.PyArray_NDIM(array), np.PyArray_DIMS(array), layout[0])
    np.PyArray_CopyInto(copy, array)
    return copy


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
