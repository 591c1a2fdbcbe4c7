"""Convolutions of rows of float32 or float64 by products with columns: for float64, and for sums that must be exact.

The windows of several samples, or of some slabs of one, are spelled out at a time, so few that they stay in the cache,
and BLAS multiplies the weights with them. None is returned for what is left to others.
"""

import numpy

cimport numpy as np
from libc.string cimport memset

from .layouts cimport ROWS, layout_of
from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_F32, TP_F64, descriptors, type_of
from .convolution_sizes cimport window_positions

np.import_array()

cdef extern from "c/convolution_columns.h":
    ctypedef struct tp_windows:
        Py_ssize_t samples, channels
        Py_ssize_t size[3]
        Py_ssize_t kernel[3]
        Py_ssize_t stride[3]
        Py_ssize_t before[3]
        Py_ssize_t dilation[3]
        Py_ssize_t begins[3]
        Py_ssize_t ends[3]
        Py_ssize_t row
        int threads
    ctypedef struct tp_rows:
        Py_ssize_t samples, rows, length, from_sample, from_row, to_sample, to_row
        int threads
    ctypedef struct tp_column_kernels:
        void (*spread[2])(const tp_windows *, const void *, void *) noexcept nogil
        void (*collect[2])(const tp_windows *, const void *, void *) noexcept nogil
        void (*place[2])(const tp_rows *, const void *, const void *, void *) noexcept nogil

cdef extern from *:
    """
    #define tp_column_kernels_of(level) TP_CHOOSE(tp_column_table, level)
    """
    const tp_column_kernels *tp_column_kernels_of(int)

cdef const tp_column_kernels *kernels = tp_column_kernels_of(simd_level)

cdef enum:
    GRAIN = 32768  # elements of columns
    PART = 1 << 17  # elements of columns at a time: about a core's second cache
    SHORT = 512  # positions that a product is worth a call for, whatever they take

cdef object multiply = numpy.matmul


cdef class Problem:
    """Images, the positions of windows over them, and how many of both are gone through at a time."""

    cdef tp_windows w
    cdef int wide, axis  # of which dimension slabs are
    cdef Py_ssize_t n, o, groups, rows, positions, where, samples_at_a_time, slabs_at_a_time
    cdef np.dtype dtype

    cdef bint fill(
        self, int dims, int number, const np.npy_intp *image, const np.npy_intp *positions, const np.npy_intp *window,
        Py_ssize_t outputs, tuple stride, tuple padding, tuple dilation, Py_ssize_t groups,
    ):
        """Describe the problem; return whether it is one that is solved here."""
        cdef int i, at
        cdef Py_ssize_t slab, together
        if not 3 <= dims <= 5 or (number != TP_F32 and number != TP_F64) or not groups:
            return False
        self.wide, self.dtype = number == TP_F64, <np.dtype> descriptors[number]
        self.n, self.o, self.groups, self.axis = image[0], outputs, groups, 5 - dims
        self.w.channels = image[1]
        self.rows, self.positions = image[1], 1
        for i in range(3):
            self.w.size[i] = self.w.kernel[i] = self.w.stride[i] = self.w.dilation[i] = self.w.ends[i] = 1
            self.w.before[i] = self.w.begins[i] = 0
        for i in range(dims - 2):
            at = self.axis + i
            self.w.size[at], self.w.kernel[at], self.w.ends[at] = image[i + 2], window[i + 2], positions[i + 2]
            self.w.stride[at], self.w.before[at], self.w.dilation[at] = stride[i], padding[i], dilation[i]
            self.rows *= window[i + 2]
            self.positions *= positions[i + 2]
            if self.w.size[at] <= 0 or self.w.kernel[at] <= 0 or positions[i + 2] <= 0 or self.w.stride[at] <= 0:
                return False
        if not self.n or not self.rows or not outputs:
            return False
        self.where = self.w.ends[self.axis]
        slab = self.positions // self.where
        together = max(PART // self.rows, SHORT)
        self.samples_at_a_time = min(max(together // self.positions, 1), self.n)
        self.slabs_at_a_time = self.where if self.positions <= together else max(together // slab, 1)
        self.w.threads = threads_for(self.rows * min(self.positions * self.n, together), GRAIN)
        return True

    cdef void take(self, Py_ssize_t sample, Py_ssize_t slab) noexcept:
        """Turn to some samples and slabs."""
        self.w.samples = min(self.samples_at_a_time, self.n - sample)
        self.w.begins[self.axis] = slab
        self.w.ends[self.axis] = min(slab + self.slabs_at_a_time, self.where)
        self.w.row = self.w.samples * self.places()

    cdef Py_ssize_t places(self) noexcept:
        """Return the positions that are gone through of each sample."""
        return self.positions // self.where * (self.w.ends[self.axis] - self.w.begins[self.axis])

    cdef np.ndarray room(self, Py_ssize_t rows):
        """Return new memory, (groups, rows of each, positions)."""
        cdef np.npy_intp shape[3]
        shape[0], shape[1], shape[2] = self.groups, rows // self.groups, self.w.row
        return new_array(self.dtype, 3, shape, NULL)

    cdef np.ndarray columns(self, np.ndarray image, Py_ssize_t sample):
        cdef np.ndarray found = self.room(self.rows)
        cdef const char *start = <char *> np.PyArray_DATA(image) + sample * np.PyArray_STRIDE(image, 0)
        with nogil:
            kernels.spread[self.wide](&self.w, start, np.PyArray_DATA(found))
        return found

    cdef tp_rows places_of(self) noexcept:
        """Describe how what is of these positions lies among those of all, (N, O, *positions), and side by side."""
        cdef tp_rows r
        r.samples, r.rows, r.length, r.threads = self.w.samples, self.o, self.places(), self.w.threads
        r.from_sample, r.from_row = self.o * self.positions, self.positions
        r.to_sample, r.to_row = r.length, self.w.row
        return r

    cdef Py_ssize_t start(self, Py_ssize_t sample) noexcept:
        """Return which element among those of all is the first of these positions."""
        return sample * self.o * self.positions + self.w.begins[self.axis] * (self.positions // self.where)

    cdef np.ndarray taken(self, np.ndarray gradient, Py_ssize_t sample):
        """Return the gradients of these positions as a matrix."""
        cdef np.ndarray found = self.room(self.o)
        cdef tp_rows r = self.places_of()
        cdef const char *start = <char *> np.PyArray_DATA(gradient) + self.start(sample) * np.PyArray_ITEMSIZE(gradient)
        with nogil:
            kernels.place[self.wide](&r, start, NULL, np.PyArray_DATA(found))
        return found

    cdef void put(self, np.ndarray product, np.ndarray bias, np.ndarray output, Py_ssize_t sample):
        """Write what was multiplied to where it is wanted."""
        cdef tp_rows r = self.places_of()
        cdef char *start = <char *> np.PyArray_DATA(output) + self.start(sample) * np.PyArray_ITEMSIZE(output)
        cdef const void *more = NULL if bias is None else np.PyArray_DATA(bias)
        r.from_sample, r.to_sample = r.to_sample, r.from_sample
        r.from_row, r.to_row = r.to_row, r.from_row
        with nogil:
            kernels.place[self.wide](&r, np.PyArray_DATA(product), more, start)


cdef np.ndarray in_rows(object value, int number):
    """Return an array of the type that lies in rows, or None."""
    cdef np.ndarray array = plain_array(value)
    if type_of(array) != number or np.PyArray_NDIM(array) < 3 or layout_of(array) != ROWS:
        return None
    return array


def convolution(input, weight, bias, tuple stride, tuple padding, tuple dilation, groups):
    """Return the cross-correlation."""
    cdef int number = type_of(plain_array(input)), dims
    cdef np.ndarray x = in_rows(input, number), w = np.PyArray_GETCONTIGUOUS(weight), y, b = None
    cdef np.npy_intp shape[64]
    cdef Problem p = Problem()
    cdef Py_ssize_t sample, slab
    if x is None or 0 in stride:
        return None
    dims = np.PyArray_NDIM(x)
    shape[0], shape[1] = np.PyArray_DIM(x, 0), np.PyArray_DIM(w, 0)
    window_positions(shape, x, w, stride, padding, dilation)
    if not p.fill(
        dims, number, np.PyArray_DIMS(x), shape, np.PyArray_DIMS(w), shape[1], stride, padding, dilation, groups
    ):
        return None
    if bias is not None:
        b = np.PyArray_GETCONTIGUOUS(bias)
    y = new_array(p.dtype, dims, shape, NULL)
    rows = w.reshape(p.groups, p.o // p.groups, p.rows // p.groups)
    for sample in range(0, p.n, p.samples_at_a_time):
        for slab in range(0, p.where, p.slabs_at_a_time):
            p.take(sample, slab)
            p.put(multiply(rows, p.columns(x, sample), p.room(p.o)), b, y, sample)
    return y


def convolution_input(gradient, weight, size, tuple stride, tuple padding, tuple dilation, groups):
    """Return the adjoint with respect to the input."""
    cdef int number = type_of(plain_array(gradient)), dims, i
    cdef np.ndarray g = in_rows(gradient, number), w = np.PyArray_GETCONTIGUOUS(weight), x, columns
    cdef np.npy_intp shape[64]
    cdef Problem p = Problem()
    cdef Py_ssize_t sample, slab
    cdef char *start
    if g is None:
        return None
    dims = np.PyArray_NDIM(g)
    shape[0], shape[1] = np.PyArray_DIM(g, 0), np.PyArray_DIM(w, 1) * <Py_ssize_t> groups
    for i in range(2, dims):
        shape[i] = size[i - 2]
    if not p.fill(
        dims, number, shape, np.PyArray_DIMS(g), np.PyArray_DIMS(w), np.PyArray_DIM(g, 1), stride, padding, dilation,
        groups,
    ):
        return None
    x = new_array(p.dtype, dims, shape, NULL)
    memset(np.PyArray_DATA(x), 0, np.PyArray_NBYTES(x))
    rows = w.reshape(p.groups, p.o // p.groups, p.rows // p.groups).swapaxes(1, 2)
    for sample in range(0, p.n, p.samples_at_a_time):
        start = <char *> np.PyArray_DATA(x) + sample * np.PyArray_STRIDE(x, 0)
        for slab in range(0, p.where, p.slabs_at_a_time):
            p.take(sample, slab)
            columns = multiply(rows, p.taken(g, sample), p.room(p.rows))
            with nogil:
                kernels.collect[p.wide](&p.w, np.PyArray_DATA(columns), start)
    return x


def convolution_weight(input, gradient, kernel, tuple stride, tuple padding, tuple dilation, groups):
    """Return the adjoint with respect to the weight."""
    cdef int number = type_of(plain_array(input)), dims, i
    cdef np.ndarray x = in_rows(input, number), g = in_rows(gradient, number)
    cdef np.npy_intp shape[64]
    cdef Problem p = Problem()
    cdef Py_ssize_t sample, slab
    if x is None or g is None:
        return None
    dims = np.PyArray_NDIM(x)
    for i in range(2, dims):
        shape[i] = kernel[i - 2]
    if not p.fill(
        dims, number, np.PyArray_DIMS(x), np.PyArray_DIMS(g), shape, np.PyArray_DIM(g, 1), stride, padding, dilation,
        groups,
    ):
        return None
    total = None
    for sample in range(0, p.n, p.samples_at_a_time):
        for slab in range(0, p.where, p.slabs_at_a_time):
            p.take(sample, slab)
            part = multiply(p.taken(g, sample), p.columns(x, sample).swapaxes(1, 2))
            total = part if total is None else numpy.add(total, part, total)
    return total.reshape(p.o, p.w.channels // p.groups, *kernel)
