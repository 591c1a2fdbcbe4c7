"""Images divided by a power of the mean square over neighbouring channels."""

cimport numpy as np

from . import pointwise

from .allocator cimport new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_F64, type_of

np.import_array()

cdef extern from "c/normalization_response.h":
    ctypedef struct tp_response:
        Py_ssize_t samples, channels, positions, before, behind
        double alpha, beta, k
        int threads
    ctypedef struct tp_responses:
        int (*forward[2])(const tp_response *, const void *, void *) noexcept nogil
        int (*backward[2])(const tp_response *, const void *, const void *, void *) noexcept nogil

cdef extern from *:
    """
    #define tp_responses_of(level) TP_CHOOSE(tp_response_table, level)
    """
    const tp_responses *tp_responses_of(int)

cdef const tp_responses *kernels = tp_responses_of(simd_level)

cdef enum:
    GRAIN = 8192


cdef np.ndarray contiguous(object value):
    cdef np.ndarray array = plain_array(value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef tp_response described(np.ndarray x, Py_ssize_t size, double alpha, double beta, double k):
    cdef tp_response s
    cdef int d
    s.samples, s.channels, s.positions = np.PyArray_DIM(x, 0), np.PyArray_DIM(x, 1), 1
    for d in range(2, np.PyArray_NDIM(x)):
        s.positions *= np.PyArray_DIM(x, d)
    s.before, s.behind = size // 2, size - 1 - size // 2
    s.alpha, s.beta, s.k = alpha / size, beta, k
    s.threads = threads_for(np.PyArray_SIZE(x), GRAIN)
    return s


def local_response_norm(input, Py_ssize_t size, double alpha, double beta, double k):
    """Return images (N, C, *) divided by (k + alpha * mean of squares) ** beta."""
    cdef np.ndarray x = contiguous(input), result = new_like(x, type_of(x))
    cdef tp_response s = described(x, size, alpha, beta, k)
    cdef int wide = type_of(x) == TP_F64, done
    with nogil:
        done = kernels.forward[wide](&s, np.PyArray_DATA(x), np.PyArray_DATA(result))
    if not done:
        raise MemoryError()
    return result


def local_response_norm_backward(g, input, Py_ssize_t size, double alpha, double beta, double k):
    """Return the gradient of the images."""
    cdef np.ndarray x = contiguous(input), given = contiguous(g), result = new_like(x, type_of(x))
    cdef tp_response s = described(x, size, alpha, beta, k)
    cdef int wide = type_of(x) == TP_F64, done
    with nogil:
        done = kernels.backward[wide](
            &s, np.PyArray_DATA(given), np.PyArray_DATA(x), np.PyArray_DATA(result)
        )
    if not done:
        raise MemoryError()
    return result
