"""Regions of pointwise ops, tile by tile: each array is gone through once, what lies between stays in the cache."""

import numpy

cimport numpy as np
from libc.string cimport memset

from . import pointwise, pointwise_fused
from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .pointwise_chains import LOAD, STORE, chains_of
from .types cimport descriptors, type_of

np.import_array()

cdef extern from "c/pointwise_tiles.h":
    enum:
        TP_TILE_ARRAYS, TP_TILE_REGISTERS, TP_TILE_CALLS, TP_TILE_DIMS
    ctypedef void (*tp_loop)(char *const *, const Py_ssize_t *, Py_ssize_t, const double *) noexcept nogil
    ctypedef struct tp_tile_call:
        tp_loop loop
        int operands
        int registers[4]
        double parameters[4]
    ctypedef void (*tp_link_code)() noexcept nogil
    ctypedef struct tp_tile_link:
        tp_link_code code
        int registers[2]
        double parameters[4]
    ctypedef struct tp_tile_chain:
        int first, last, link, links
    ctypedef struct tp_chains:
        tp_link_code load, store
    ctypedef struct tp_tiles:
        int calls, arrays
        tp_tile_call call[64]
        int itemsize[96]
        int slot[96]
        int slots, widest
        int chains
        tp_tile_chain chain[64]
        tp_tile_link link[192]
        const tp_chains *ways
    ctypedef struct tp_tile_iteration:
        int dims
        Py_ssize_t shape[32]
        Py_ssize_t strides[24][32]
    void tp_tiles_run(const tp_tiles *, const tp_tile_iteration *, char *const *, int) noexcept nogil

cdef extern from *:
    "#define tp_chains_at(level) TP_CHOOSE(tp_chains_of, level)"
    const tp_chains *tp_chains_at(int)

_LINKS = {**pointwise.links(), **pointwise_fused.links()}

#: How many arrays and calls one region may have, and dimensions.
ARRAYS = TP_TILE_ARRAYS
CALLS = TP_TILE_CALLS
DIMS = TP_TILE_DIMS

cdef enum:
    HOLD = 8192  # below so many elements the interpreter's lock is kept


cdef class Tiles:
    """Calls of loops over arrays of one shape, to which the arrays that go in are broadcast.

    Parameters
    ----------
    shape : tuple of int
    order : tuple of int
        The dimensions from the slowest to the fastest one.
    inputs : list of (int, tuple)
        Types and shapes of the arrays that go in.
    outputs : list of (int, tuple)
        Types, and strides in bytes, of those that come out.
    calls : list of (int, tuple, tuple)
        The address of a loop, its parameters and its registers. Those are the inputs, the outputs, and what
        lies between.
    between : list of (int, int)
        Types of those, and which part of the buffer each one has.
    grain : int
        How many elements are worth a thread.
    """

    cdef tp_tiles tiles
    cdef tuple shape, order
    cdef list inputs, outputs
    cdef Py_ssize_t total, grain

    def __init__(
        self, tuple shape, tuple order, list inputs, list outputs, list calls, list between, Py_ssize_t grain,
    ):
        cdef int number, k
        cdef size_t address
        if (
            len(inputs) + len(outputs) > TP_TILE_ARRAYS or len(calls) > TP_TILE_CALLS or len(shape) > TP_TILE_DIMS
            or len(inputs) + len(outputs) + len(between) > TP_TILE_REGISTERS or not outputs
        ):
            raise ValueError("too much for one region")
        memset(&self.tiles, 0, sizeof(tp_tiles))
        self.shape, self.order, self.inputs, self.outputs, self.grain = shape, order, inputs, outputs, grain
        self.total = 1
        for size in shape:
            self.total *= <Py_ssize_t> size
        self.tiles.arrays = <int> (len(inputs) + len(outputs))
        types = [number for number, _ in (*inputs, *outputs, *between)]
        for k, number in enumerate(types):
            self.tiles.itemsize[k] = descriptors[number].itemsize
            self.tiles.widest = max(self.tiles.widest, self.tiles.itemsize[k])
        for k, (_, number) in enumerate(between):
            self.tiles.slot[self.tiles.arrays + k] = number
            self.tiles.slots = max(self.tiles.slots, number + 1)
        self.tiles.calls = <int> len(calls)
        for k, (where, parameters, registers) in enumerate(calls):
            address = where
            self.tiles.call[k].loop = <tp_loop> address
            self.tiles.call[k].operands = <int> len(registers)
            for number in range(len(parameters)):
                self.tiles.call[k].parameters[number] = parameters[number]
            for number in range(len(registers)):
                if not 0 <= registers[number] < len(types):
                    raise ValueError("there is no such register")
                self.tiles.call[k].registers[number] = registers[number]

        self.tiles.ways = tp_chains_at(simd_level)
        for first, last, links in chains_of(calls, self.tiles.arrays, _LINKS):
            self._link(first, last, links)

    cdef int _link(self, int first, int last, list links) except -1:
        """Add a chain in the place of some calls."""
        cdef tp_tile_chain *chain = &self.tiles.chain[self.tiles.chains]
        cdef tp_tile_link *link
        cdef size_t address
        cdef int k
        chain.first, chain.last = first, last
        if self.tiles.chains:
            chain.link = (chain - 1).link + (chain - 1).links
        for code, parameters, registers in links:
            link = &self.tiles.link[chain.link + chain.links]
            address = code
            if address == LOAD:
                link.code = self.tiles.ways.load
            elif address == STORE:
                link.code = self.tiles.ways.store
            else:
                link.code = <tp_link_code> address
            for k in range(2):
                link.registers[k] = registers[k] if k < len(registers) else -1
            for k in range(len(parameters)):
                link.parameters[k] = parameters[k]
            chain.links += 1
        self.tiles.chains += 1
        return 0

    def __call__(self, arrays):
        """Return the arrays that come out."""
        cdef tp_tile_iteration iteration
        cdef char *data[24]
        cdef np.npy_intp sizes[32]
        cdef np.npy_intp steps[32]
        cdef np.ndarray array
        cdef int count = <int> len(self.inputs), dims = <int> len(self.shape), k, d, axis, lead, type_number
        cdef list kept = [], made = []
        cdef tuple shape
        if len(arrays) != count:
            raise ValueError(f"expected {count} arrays, got {len(arrays)}")
        iteration.dims = dims
        for d in range(dims):
            sizes[d] = self.shape[d]
        for d in range(dims):
            iteration.shape[d] = sizes[<int> self.order[d]]
        for k in range(count):
            array = plain_array(arrays[k])
            kept.append(array)
            type_number, shape = self.inputs[k]
            if type_of(array) != type_number or (<object> array).shape != shape:
                raise ValueError(f"expected an array of shape {shape}, got {(<object> array).shape}")
            data[k] = <char *> np.PyArray_DATA(array)
            lead = dims - np.PyArray_NDIM(array)
            for d in range(dims):
                axis = <int> self.order[d] - lead
                iteration.strides[k][d] = (
                    0 if axis < 0 or np.PyArray_DIM(array, axis) == 1 else np.PyArray_STRIDE(array, axis)
                )
        for k in range(<int> len(self.outputs)):
            type_number, strides = self.outputs[k]
            for d in range(dims):
                steps[d] = strides[d]
            array = new_array(<np.dtype> descriptors[type_number], dims, sizes, steps)
            made.append(array)
            data[count + k] = <char *> np.PyArray_DATA(array)
            for d in range(dims):
                iteration.strides[count + k][d] = steps[<int> self.order[d]]
        if self.total < HOLD:
            tp_tiles_run(&self.tiles, &iteration, data, 1)
        else:
            with nogil:
                tp_tiles_run(&self.tiles, &iteration, data, threads_for(self.total, self.grain))
        return made
