"""Convolutions of float32 images: by which of the kernels at hand.

Images in rows are turned neither there nor back where each channel is convolved by itself, or where the window
is a single place, which makes it a matrix product. Of few channels by wide windows there is a kernel of our own where
oneDNN has no layout for them. All others are oneDNN's.
"""

import numpy

cimport numpy as np

from . import convolution_depthwise, convolution_few_channels, onednn, pointwise, matmul

from .layouts cimport ROWS, dense, laid_out

np.import_array()

cdef enum:
    # Places of a plane from which on products are faster than oneDNN's blocks, and than its sums over places.
    PLACES = 100
    SUMMED = 400
    PRODUCTS = 1 << 20  # elements of samples' products at a time
    BLOCK = 16  # channels that oneDNN works on together; of fewer a bias is added faster afterwards

cdef object add = pointwise.Binary("add").call


cdef bint at_points(int dims, const np.npy_intp *window, tuple padding, object groups):
    """Return whether each window is a single place of the image."""
    cdef int i
    if groups != 1:
        return False
    for i in range(dims - 2):
        if window[i] != 1 or padding[i] != 0:
            return False
    return True


cdef bint steps(tuple stride):
    cdef object s
    for s in stride:
        if s != 1:
            return True
    return False


cdef object indices_of(int dims, const np.npy_intp *where, tuple stride):
    """Return the index of the places that the windows see."""
    cdef int i
    cdef list found = [Ellipsis]
    for i in range(2, dims):
        found.append(slice(0, (where[i] - 1) * <Py_ssize_t> stride[i - 2] + 1, stride[i - 2]))
    return tuple(found)


cdef np.ndarray thinned(np.ndarray image, const np.npy_intp *where, tuple stride):
    """Return the places that the windows see, in rows."""
    cdef int dims = np.PyArray_NDIM(image)
    cdef np.ndarray view = (<object> image)[indices_of(dims, where, stride)]
    cdef np.ndarray result = laid_out(image.dtype, dims, np.PyArray_DIMS(view), ROWS)
    return pointwise.copy(result, view, result)


cdef np.ndarray multiplied(np.ndarray weight, np.ndarray image):
    """Return the product of a matrix and each sample's (channels, places), in the shape of images."""
    cdef np.npy_intp shape[64]
    cdef np.PyArray_Dims wanted
    cdef int i, dims = np.PyArray_NDIM(image)
    cdef np.ndarray planes = image.reshape((np.PyArray_DIM(image, 0), np.PyArray_DIM(image, 1), -1))
    cdef np.ndarray result = matmul.matmul(weight, planes)
    for i in range(dims):
        shape[i] = np.PyArray_DIM(image, i)
    shape[1] = np.PyArray_DIM(result, 1)
    wanted.ptr, wanted.len = shape, dims
    return np.PyArray_Newshape(result, &wanted, np.NPY_CORDER)


cdef object summed(np.ndarray image, np.ndarray gradient):
    """Return the sum over samples of gradient @ image.T, of their (channels, places)."""
    cdef Py_ssize_t samples = np.PyArray_DIM(image, 0), i
    cdef object x = image.reshape((samples, np.PyArray_DIM(image, 1), -1))
    cdef object g = gradient.reshape((samples, np.PyArray_DIM(gradient, 1), -1))
    # Many rows of few columns are multiplied faster than few rows of many.
    cdef bint flip = np.PyArray_DIM(image, 1) > np.PyArray_DIM(gradient, 1)
    cdef Py_ssize_t some = max(PRODUCTS // (np.PyArray_DIM(image, 1) * np.PyArray_DIM(gradient, 1)), 8)
    if flip:
        x, g = g, x
    total = None
    for i in range(0, samples, some):
        part = matmul.matmul(g[i : i + some], x[i : i + some].transpose(0, 2, 1)).sum(0)
        total = part if total is None else total + part
    return total.T if flip else total


cdef bint are_planes(np.ndarray image, Py_ssize_t places) noexcept:
    """Return whether a product is worth it."""
    cdef Py_ssize_t planes = np.PyArray_DIM(image, 0) * np.PyArray_DIM(image, 1)
    return planes and np.PyArray_SIZE(image) // planes >= places


cdef np.ndarray matrix(np.ndarray weight):
    return weight.reshape((np.PyArray_DIM(weight, 0), np.PyArray_DIM(weight, 1)))


def convolution(input, weight, bias, tuple stride, tuple padding, tuple dilation, groups):
    """Return the cross-correlation; channels last where the input is."""
    cdef np.ndarray x, w = weight
    cdef np.npy_intp shape[64]
    cdef int layout, dims = np.PyArray_NDIM(w), i
    found = None
    if groups != 1:
        found = convolution_depthwise.convolution(input, weight, bias, stride, padding, dilation, groups)
    elif at_points(dims, np.PyArray_DIMS(w) + 2, padding, groups) and np.PyArray_SIZE(w):
        x = dense(input, &layout)
        if layout == ROWS and np.PyArray_SIZE(x):
            if steps(stride):
                for i in range(2, dims):
                    shape[i] = (np.PyArray_DIM(x, i) - 1) // <Py_ssize_t> stride[i - 2] + 1
                x = thinned(x, shape, stride)
                stride = (1,) * (dims - 2)
            if are_planes(x, PLACES) and (bias is None or min(np.PyArray_DIM(w, 0), np.PyArray_DIM(w, 1)) < BLOCK):
                found = multiplied(matrix(w), x)
                return found if bias is None else add(found, bias.reshape((-1,) + (1,) * (dims - 2)), found)
            input = x
    else:
        found = convolution_few_channels.convolution(input, weight, bias, stride, padding, dilation, groups)
    if found is not None:
        return found
    return onednn.convolution(input, weight, bias, stride, padding, dilation, groups)


def convolution_input(gradient, weight, size, tuple stride, tuple padding, tuple dilation, groups):
    """Return the adjoint with respect to the input; channels last where the gradient is."""
    cdef np.ndarray g, w = weight, x, part
    cdef np.npy_intp shape[64]
    cdef int layout, dims = np.PyArray_NDIM(w), i
    found = None
    if groups != 1:
        found = convolution_depthwise.convolution_input(gradient, weight, size, stride, padding, dilation, groups)
    elif at_points(dims, np.PyArray_DIMS(w) + 2, padding, groups) and np.PyArray_SIZE(w):
        g = dense(gradient, &layout)
        if layout == ROWS and np.PyArray_SIZE(g):
            if steps(stride):
                ones = (1,) * (dims - 2)
                part = convolution_input(g, weight, (<object> g).shape[2:], ones, padding, dilation, groups)
                shape[0], shape[1] = np.PyArray_DIM(part, 0), np.PyArray_DIM(part, 1)
                for i in range(2, dims):
                    shape[i] = size[i - 2]
                x = laid_out(g.dtype, dims, shape, ROWS)
                x[...] = 0
                view = (<object> x)[indices_of(dims, np.PyArray_DIMS(g), stride)]
                pointwise.copy(view, part, view)
                return x
            if are_planes(g, PLACES) and tuple(size) == (<object> g).shape[2:]:
                return multiplied(matrix(w).T, g)
    if found is not None:
        return found
    return onednn.convolution_input(gradient, weight, size, stride, padding, dilation, groups)


def convolution_weight(input, gradient, kernel, tuple stride, tuple padding, tuple dilation, groups):
    """Return the adjoint with respect to the weight."""
    cdef np.ndarray x, g
    cdef np.npy_intp window[64]
    cdef int layout, other, dims = np.PyArray_NDIM(gradient), i
    found = None
    if groups != 1:
        found = convolution_depthwise.convolution_weight(input, gradient, kernel, stride, padding, dilation, groups)
    else:
        for i in range(dims - 2):
            window[i] = kernel[i]
        if at_points(dims, window, padding, groups):
            x, g = dense(input, &layout), dense(gradient, &other)
            if layout == ROWS and other == ROWS and np.PyArray_SIZE(x) and np.PyArray_SIZE(g):
                if steps(stride):
                    x = thinned(x, np.PyArray_DIMS(g), stride)
                    stride = (1,) * (dims - 2)
                if are_planes(g, SUMMED):
                    weight = numpy.ascontiguousarray(summed(x, g))
                    return weight.reshape(weight.shape + (1,) * (dims - 2))
                input, gradient = x, g
    if found is not None:
        return found
    return onednn.convolution_weight(input, gradient, kernel, stride, padding, dilation, groups)
