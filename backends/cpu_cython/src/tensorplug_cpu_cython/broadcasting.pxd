"""Shapes that arrays broadcast to.

Header only: each module that uses it compiles it for itself.
"""

cimport numpy as np


cdef inline int common_shape(np.ndarray first, np.ndarray second, np.npy_intp *shape) except -1:
    """Fill in the shape that two arrays broadcast to, of at most 64 dimensions; return how many it has."""
    cdef int a = np.PyArray_NDIM(first), b = np.PyArray_NDIM(second), dims = max(a, b), d
    cdef np.npy_intp own, other
    for d in range(dims):
        own = np.PyArray_DIM(first, d - dims + a) if d >= dims - a else 1
        other = np.PyArray_DIM(second, d - dims + b) if d >= dims - b else 1
        if own != other and own != 1 and other != 1:
            raise ValueError(f"arrays of sizes {own} and {other} do not broadcast")
        shape[d] = other if own == 1 else own
    return dims


cdef inline bint is_of_shape(np.ndarray array, int dims, const np.npy_intp *shape) noexcept:
    """Return whether an array has a shape."""
    cdef int d
    if np.PyArray_NDIM(array) != dims:
        return False
    for d in range(dims):
        if np.PyArray_DIM(array, d) != shape[d]:
            return False
    return True
