"""Bags of rows of a table, and rows whose norms are bounded."""

cimport numpy as np
from libc.stdint cimport int64_t
from libc.string cimport memset

import numpy

from . import pointwise

from .allocator cimport new_array, new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_F64, TP_I64, descriptors, type_of

np.import_array()

cdef extern from "c/embedding.h":
    enum:
        TP_BAG_SUM, TP_BAG_MEAN, TP_BAG_MAX
    ctypedef struct tp_bags:
        Py_ssize_t bags, features
        const void *table
        const int64_t *indices
        const int64_t *starts
        int64_t padding
        const void *factors
        const int64_t *counts
        int mode, threads
    ctypedef struct tp_embeddings:
        void (*forward[2])(const tp_bags *, void *) noexcept nogil
        void (*backward[2])(const tp_bags *, const void *, void *, void *) noexcept nogil
        void (*bound[2])(void *, Py_ssize_t, double, double) noexcept nogil

cdef extern from *:
    """
    #define tp_embeddings_of(level) TP_CHOOSE(tp_embedding_table, level)
    """
    const tp_embeddings *tp_embeddings_of(int)

cdef const tp_embeddings *kernels = tp_embeddings_of(simd_level)

cdef enum:
    GRAIN = 16384

cdef dict MODES = {"sum": TP_BAG_SUM, "mean": TP_BAG_MEAN, "max": TP_BAG_MAX}


cdef np.ndarray contiguous(object value, int number):
    cdef np.ndarray array = plain_array(value)
    if type_of(array) != number:
        array = pointwise.cast(array, descriptors[number])
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef int64_t *data_of(np.ndarray array) noexcept:
    return <int64_t *> np.PyArray_DATA(array)


cdef int check_rows(np.ndarray indices, Py_ssize_t rows) except -1:
    cdef Py_ssize_t i
    for i in range(np.PyArray_SIZE(indices)):
        if not 0 <= data_of(indices)[i] < rows:
            raise IndexError(f"index out of range in self: {data_of(indices)[i]}, of {rows} rows")
    return 0


cdef np.ndarray starts_of(np.ndarray indices, offsets, bint include_last_offset):
    """Return where each bag begins, and the last one ends."""
    cdef Py_ssize_t total = np.PyArray_SIZE(indices), bags, i
    cdef np.npy_intp size
    cdef np.ndarray given = None, starts
    if np.PyArray_NDIM(indices) == 2:
        bags = np.PyArray_DIM(indices, 0)
    else:
        given = contiguous(offsets, TP_I64)
        bags = np.PyArray_SIZE(given) - include_last_offset
    size = (bags if bags > 0 else 0) + 1
    starts = new_array(descriptors[TP_I64], 1, &size, NULL)
    for i in range(size):
        if given is None:
            data_of(starts)[i] = i * np.PyArray_DIM(indices, 1)
        else:
            data_of(starts)[i] = data_of(given)[i] if i < np.PyArray_SIZE(given) else total
    if given is None or not np.PyArray_SIZE(given):
        return starts
    if data_of(given)[0]:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {data_of(given)[0]}"
        )
    if data_of(given)[np.PyArray_SIZE(given) - 1] > total:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {total} but got offsets[-1] of "
            f"{data_of(given)[np.PyArray_SIZE(given) - 1]}"
        )
    for i in range(size - 1):
        if data_of(starts)[i + 1] < data_of(starts)[i]:
            raise RuntimeError(f"embedding_bag(): offsets must not decrease, got {given.tolist()}")
    return starts


cdef class Bags:
    """The arguments of a call, in memory as the kernels read it."""

    cdef np.ndarray table, indices, starts, factors, counts
    cdef tp_bags s

    def __cinit__(self, weight, input, offsets, bint by_frequency, mode, factors, bint include_last_offset, padding):
        cdef int number = type_of(plain_array(weight))
        self.table, self.indices = contiguous(weight, number), contiguous(input, TP_I64)
        self.starts = starts_of(self.indices, offsets, include_last_offset)
        try:
            check_rows(self.indices, np.PyArray_DIM(self.table, 0))
        except IndexError as error:  # torch's error of a bag
            raise RuntimeError(
                f"embedding_bag: Expected idx >= 0 && idx < num_embeddings; {error}"
            ) from None
        self.s.bags = np.PyArray_SIZE(self.starts) - 1
        self.s.features = np.PyArray_DIM(self.table, 1)
        self.s.table = np.PyArray_DATA(self.table)
        self.s.indices, self.s.starts = data_of(self.indices), data_of(self.starts)
        self.s.padding = -1 if padding is None else padding
        self.s.mode = MODES[mode]
        self.s.threads = threads_for(np.PyArray_SIZE(self.indices) * self.s.features, GRAIN)
        if factors is not None:
            self.factors = contiguous(factors, number)
            self.s.factors = np.PyArray_DATA(self.factors)
        if by_frequency:
            self.counts = contiguous(
                numpy.bincount(self.indices.reshape(-1), minlength=np.PyArray_DIM(self.table, 0)), TP_I64
            )
            self.s.counts = data_of(self.counts)


def embedding_bag(weight, input, offsets, by_frequency, mode, factors, include_last_offset, padding):
    """Return the sum, mean or largest numbers of each bag of rows; of an empty one zeros."""
    cdef Bags bags = Bags(weight, input, offsets, False, mode, factors, include_last_offset, padding)
    cdef np.npy_intp shape[2]
    cdef np.ndarray result
    cdef int number = type_of(bags.table)
    shape[0], shape[1] = bags.s.bags, bags.s.features
    result = new_array(descriptors[number], 2, shape, NULL)
    with nogil:
        kernels.forward[number == TP_F64](&bags.s, np.PyArray_DATA(result))
    return result


def embedding_bag_backward(g, weight, input, offsets, by_frequency, mode, factors, include_last_offset, padding):
    """Return the gradients of the table, and of the factors; without those an empty one."""
    cdef Bags bags = Bags(weight, input, offsets, by_frequency, mode, factors, include_last_offset, padding)
    cdef int number = type_of(bags.table)
    cdef np.ndarray gradient = contiguous(g, number), of_table = new_like(bags.table, number), of_factors
    cdef np.npy_intp none = 0
    cdef void *to = NULL
    if factors is None:
        of_factors = new_array(descriptors[number], 1, &none, NULL)
    else:
        of_factors = new_like(bags.factors, number)
        memset(np.PyArray_DATA(of_factors), 0, np.PyArray_NBYTES(of_factors))
        to = np.PyArray_DATA(of_factors)
    with nogil:
        memset(np.PyArray_DATA(of_table), 0, np.PyArray_NBYTES(of_table))
        kernels.backward[number == TP_F64](
            &bags.s, np.PyArray_DATA(gradient), np.PyArray_DATA(of_table), to
        )
    return of_table, of_factors


def embedding_renorm(weight, indices, double max_norm, double norm_type):
    """Scale rows of a table down, in place; each once."""
    cdef np.ndarray table = plain_array(weight), places, held
    cdef Py_ssize_t i, features = np.PyArray_DIM(table, 1)
    cdef int wide = type_of(table) == TP_F64
    cdef bint dense = np.PyArray_IS_C_CONTIGUOUS(table)
    places = numpy.sort(contiguous(indices, TP_I64), None)
    check_rows(places, np.PyArray_DIM(table, 0))
    held = table if dense else pointwise.clone(table)
    for i in range(np.PyArray_SIZE(places)):
        if not i or data_of(places)[i] != data_of(places)[i - 1]:
            kernels.bound[wide](
                <char *> np.PyArray_DATA(held) + data_of(places)[i] * features * np.PyArray_ITEMSIZE(held),
                features, max_norm, norm_type,
            )
    if held is not weight:
        numpy.copyto(weight, held)
