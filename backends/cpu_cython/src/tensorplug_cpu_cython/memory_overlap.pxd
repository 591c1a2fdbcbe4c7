"""Whether arrays share memory, as NumPy's may_share_memory tells it: by the bytes between their ends.

Header only: each module that uses it compiles it for itself.
"""

cimport numpy as np


cdef inline void extent(np.ndarray array, const char **low, const char **high) noexcept:
    """Set the first byte of an array that has elements, and the one behind its last."""
    cdef int d
    cdef Py_ssize_t reach
    low[0] = high[0] = <const char *> np.PyArray_DATA(array)
    high[0] += np.PyArray_ITEMSIZE(array)
    for d in range(np.PyArray_NDIM(array)):
        reach = (np.PyArray_DIM(array, d) - 1) * np.PyArray_STRIDE(array, d)
        if reach < 0:
            low[0] += reach
        else:
            high[0] += reach


cdef inline bint may_share(np.ndarray array, np.ndarray other) noexcept:
    """Return whether the bytes between the ends of two arrays meet."""
    cdef const char *low
    cdef const char *high
    cdef const char *other_low
    cdef const char *other_high
    if not np.PyArray_SIZE(array) or not np.PyArray_SIZE(other):
        return False
    extent(array, &low, &high)
    extent(other, &other_low, &other_high)
    return low < other_high and other_low < high
