"""Pointwise ops that take several steps elsewhere, each in one pass over memory."""

cimport numpy as np
from libc.string cimport memcmp, memset

from .allocator cimport new_array
from .cpu_features cimport simd_level
from .types cimport TP_BOOL, TP_ELEMENTS, descriptors, element_of
from .pointwise cimport HOLD, evaluate, links_of, run_flat, tp_links, tp_loop

np.import_array()

cdef extern from "c/pointwise_fused.h":
    enum:
        TP_FUSED_OPS
    ctypedef struct tp_fused:
        tp_loop loops[1][12]
    ctypedef struct tp_fused_facts:
        const char *name
        int arrays, grain, truth
    const tp_fused_facts tp_fused_ops[1]

cdef extern from *:
    """
    #define tp_fused_links_at(level) TP_CHOOSE(tp_fused_links, level)
    #define tp_fused_kernels(level) TP_CHOOSE(tp_fused_table, level)
    #define TP_READABLE (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED)
    #define tp_flat(array) ((PyArray_FLAGS(array) & TP_READABLE) == TP_READABLE)
    """
    const tp_fused *tp_fused_kernels(int)
    const tp_links *tp_fused_links_at(int)
    bint tp_flat(np.ndarray)

cdef const tp_fused *kernels = tp_fused_kernels(simd_level)

_NUMBERS = {tp_fused_ops[i].name.decode(): i for i in range(TP_FUSED_OPS)}


cdef class Fused:
    """A pointwise op of up to three arrays of one dtype, and up to four numbers."""

    cdef tp_loop loops[12]
    cdef int arrays, output
    cdef Py_ssize_t grain

    def __init__(self, str name):
        cdef int number = _NUMBERS[name], i
        for i in range(TP_ELEMENTS):
            self.loops[i] = kernels.loops[number][i]
        self.arrays = tp_fused_ops[number].arrays
        self.grain = tp_fused_ops[number].grain
        self.output = TP_BOOL if tp_fused_ops[number].truth else -1

    def call(self, tuple arrays, tuple numbers=(), out=None):
        """Return the op's result, or write it into `out`."""
        cdef double parameters[4]
        cdef char *data[4]
        cdef Py_ssize_t strides[4]
        cdef np.ndarray array, first, result
        cdef int number, k, count = self.arrays
        cdef Py_ssize_t total
        if len(arrays) != count:
            raise TypeError(f"expected {count} arrays, got {len(arrays)}")
        memset(parameters, 0, sizeof(parameters))
        for k in range(min(<int> len(numbers), 4)):
            parameters[k] = numbers[k]
        if out is None and np.PyArray_CheckExact(arrays[0]):
            first = <np.ndarray> arrays[0]
            number = element_of(first)
            if number >= 0 and self.loops[number] != NULL and tp_flat(first):
                for k in range(1, count):
                    if not np.PyArray_CheckExact(arrays[k]):
                        break
                    array = <np.ndarray> arrays[k]
                    if element_of(array) != number or not tp_flat(array):
                        break
                    if np.PyArray_NDIM(array) and (
                        np.PyArray_NDIM(array) != np.PyArray_NDIM(first)
                        or memcmp(
                            np.PyArray_DIMS(array), np.PyArray_DIMS(first),
                            np.PyArray_NDIM(first) * sizeof(np.npy_intp),
                        )
                    ):
                        break
                else:
                    result = new_array(
                        <np.dtype> descriptors[number if self.output < 0 else self.output],
                        np.PyArray_NDIM(first), np.PyArray_DIMS(first), NULL,
                    )
                    total = np.PyArray_SIZE(result)
                    for k in range(count):
                        array = <np.ndarray> arrays[k]
                        data[k] = <char *> np.PyArray_DATA(array)
                        strides[k] = np.PyArray_ITEMSIZE(first) if np.PyArray_NDIM(array) else 0
                    data[count] = <char *> np.PyArray_DATA(result)
                    strides[count] = np.PyArray_ITEMSIZE(result)
                    if total < HOLD:
                        self.loops[number](data, strides, total, parameters)
                    else:
                        with nogil:
                            run_flat(self.loops[number], data, strides, count + 1, total, parameters, self.grain)
                    return result
        return evaluate(arrays, self.loops, self.output, out, parameters, self.grain, None)

    def loop(self, int number):
        """Return the address of the loop of a type, 0 for none, the result's type, numbers and grain."""
        return <size_t> self.loops[number], number if self.output < 0 else self.output, (), self.grain


def names():
    """Return the names of the ops that there are loops for."""
    return list(_NUMBERS)


def links():
    """Return the links of this module's loops, for pointwise_chains."""
    return links_of(tp_fused_links_at(simd_level))
