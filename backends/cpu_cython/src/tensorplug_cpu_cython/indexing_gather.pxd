"""What the modules that read from and write to places share."""

cimport numpy as np
from libc.stdint cimport int64_t

cdef extern from "c/indexing_gather.h":
    enum:
        TP_ADD, TP_MULTIPLY, TP_MAXIMUM, TP_MINIMUM
        TP_PARTS
    ctypedef struct tp_indices:
        char *data
        char *other
        const char *index
        Py_ssize_t count[3]
        Py_ssize_t data_strides[3]
        Py_ssize_t other_strides[3]
        Py_ssize_t index_strides[3]
        int64_t size, wrap, skip
    ctypedef int (*tp_scatter)(const tp_indices *, int) noexcept nogil
    int tp_checks(const tp_indices *) noexcept nogil
    ctypedef struct tp_index_kernels:
        int (*fits)(const tp_indices *, int) noexcept nogil
        int (*gather[5])(const tp_indices *, int) noexcept nogil
        tp_scatter scatter[5]
        tp_scatter combine[4][12]
        int (*offsets)(int64_t *, const int64_t *, Py_ssize_t, int64_t, Py_ssize_t, int) noexcept nogil
        void (*clear)(char *, Py_ssize_t, int) noexcept nogil
        void (*count_true)(const char *, Py_ssize_t, Py_ssize_t *, int) noexcept nogil
        void (*choose[5])(
            char *, const char *, const char *, Py_ssize_t, const Py_ssize_t *, int
        ) noexcept nogil

cdef const tp_index_kernels *kernels

cdef enum:
    GRAIN = 16384, HOLD = 2048, CLEAR_GRAIN = 1 << 18

# Which of the widths an element has, or -1.
cdef int width_of(np.ndarray array) noexcept

# An index as int64, one element behind the other.
cdef np.ndarray positions(object value)

# Make one dimension of those from `begin` to `end`; return whether that is possible.
cdef bint merged(
    tp_indices *p, int place, const np.npy_intp *shape, int begin, int end, const np.npy_intp *data,
    const np.npy_intp *other, const np.npy_intp *index,
) noexcept

# Read; return whether all places are there.
cdef bint run_gather(const tp_indices *p, int width) noexcept

# Check the places, then write; return whether all are there, of which `fresh` data may be told late.
cdef bint run_scatter(const tp_indices *p, tp_scatter function, bint fresh) noexcept

# New arrays: of zeros, a copy, and sums in half precision from those in single.
cdef object zeros_of(np.dtype descriptor, int dims, const np.npy_intp *shape)
cdef np.ndarray copied(np.ndarray array)
cdef object narrowed(np.ndarray wide, int number, object out)

# Whether two arrays share no memory.
cdef bint separate(np.ndarray target, np.ndarray other) noexcept
