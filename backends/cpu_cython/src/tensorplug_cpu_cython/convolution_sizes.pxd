"""What convolutions make of the sizes of images and windows."""

cimport numpy as np


cdef inline void window_positions(
    np.npy_intp *result, np.ndarray images, np.ndarray windows, tuple stride, tuple padding, tuple dilation
):
    """Put how many positions the windows have along each dimension of the images behind the first two sizes."""
    cdef int i
    for i in range(2, np.PyArray_NDIM(images)):
        result[i] = (
            np.PyArray_DIM(images, i) + 2 * <Py_ssize_t> padding[i - 2]
            - <Py_ssize_t> dilation[i - 2] * (np.PyArray_DIM(windows, i) - 1) - 1
        ) // <Py_ssize_t> stride[i - 2] + 1
