"""Networks of convolutions by oneDNN: one call, in which arrays lie as its primitives want them."""

import numpy

cimport numpy as np
from libc.stdint cimport int64_t
from libc.string cimport memset

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .onednn cimport TP_CONVOLUTION, raise_status, tp_dnn_array, tp_dnn_problem
from .types cimport TP_F32, descriptors, type_of

np.import_array()

cdef extern from "c/onednn_network.h":
    enum:
        TP_NET_RELU, TP_NET_CLIP, TP_NET_HARDSWISH, TP_NET_SWISH, TP_NET_HARDSIGMOID, TP_NET_TANH, TP_NET_LOGISTIC
        TP_NET_ADD, TP_NET_DEPTHWISE
        TP_NET_MAX, TP_NET_MEAN, TP_NET_MEAN_WITHOUT_PADDING
        TP_NET_NOT_FINITE
    ctypedef struct tp_net:
        pass
    ctypedef struct tp_net_post:
        int kind, value, over, stride
        float alpha, beta
        const void *weight
        const void *bias
    tp_net *tp_net_new(int, int) nogil
    void tp_net_free(tp_net *)
    int tp_net_input(tp_net *, const tp_dnn_array *)
    int tp_net_convolution(
        tp_net *, const tp_dnn_problem *, int, const void *, const void *, const tp_net_post *, int)
    int tp_net_linear(tp_net *, const tp_dnn_problem *, int, const void *, const void *)
    int tp_net_pool(tp_net *, const tp_dnn_problem *, int, int, const int64_t *)
    int tp_net_function(tp_net *, int, const tp_net_post *)
    int tp_net_sum(tp_net *, int, int)
    int tp_net_output(tp_net *, int, const tp_dnn_array *)
    size_t tp_net_finish(tp_net *)
    int tp_net_run(tp_net *, void *const *, void *const *, void *) nogil
    const char *tp_net_implementation(const tp_net *, int)

RELU, CLIP, HARDSWISH, SWISH = TP_NET_RELU, TP_NET_CLIP, TP_NET_HARDSWISH, TP_NET_SWISH
HARDSIGMOID, TANH, LOGISTIC, ADD = TP_NET_HARDSIGMOID, TP_NET_TANH, TP_NET_LOGISTIC, TP_NET_ADD
DEPTHWISE = TP_NET_DEPTHWISE
MAX, MEAN, MEAN_WITHOUT_PADDING = TP_NET_MAX, TP_NET_MEAN, TP_NET_MEAN_WITHOUT_PADDING

cdef enum:
    ENDS = 32  # arrays that go in, and that come out
    POSTS = 6

cdef np.dtype BYTE = numpy.dtype("u1")


class Unsupported(Exception):
    """oneDNN has no kernel that is worth a call."""


cdef int checked(int value) except -1:
    if value < 0:
        raise Unsupported("oneDNN has no such primitive")
    return value


cdef int describe(tp_dnn_array *made, tuple shape, tuple strides) except -1:
    cdef int i
    memset(made, 0, sizeof(tp_dnn_array))
    if len(shape) > 6:
        raise Unsupported("too many dimensions")
    made.dims = <int64_t> len(shape)
    for i in range(<int> len(shape)):
        made.shape[i] = shape[i]
        made.strides[i] = strides[i]
    return 0


cdef int fill(tp_dnn_problem *p, tuple shape, tuple result, tuple kernel, tuple stride, tuple padding, tuple dilation) except -1:
    """Set how windows lie over images."""
    cdef int i
    cdef int64_t span
    memset(p, 0, sizeof(tp_dnn_problem))
    p.sort = TP_CONVOLUTION
    p.spatial = <int64_t> len(kernel)
    if not 1 <= p.spatial <= 3:
        raise Unsupported("too many dimensions")
    for i in range(p.spatial):
        p.stride[i] = stride[i]
        p.dilation[i] = dilation[i]
        p.before[i] = padding[i]
        span = p.dilation[i] * (<int64_t> kernel[i] - 1) + 1
        p.after[i] = (<int64_t> result[i + 2] - 1) * p.stride[i] + span - <int64_t> shape[i + 2] - p.before[i]
        if p.after[i] < 0:  # places behind the last window take no part
            if (<int64_t> shape[i + 2] + p.before[i] - span) // p.stride[i] + 1 != <int64_t> result[i + 2]:
                raise Unsupported("windows that lie otherwise")
        if p.before[i] >= span or p.after[i] >= span:
            raise Unsupported("windows within the padding")
    describe(&p.arrays[0], shape, (0,) * len(shape))
    describe(&p.arrays[2], result, (0,) * len(result))
    return 0


cdef np.ndarray constant_of(object value, tuple shape):
    """Return a constant that oneDNN can take."""
    cdef np.ndarray array = numpy.ascontiguousarray(value)
    if type_of(array) != TP_F32 or (<object> array).shape != shape or not numpy.isfinite(array).all():
        raise Unsupported("such constants")
    return array


cdef class Network:
    """Primitives that run one after another; made step by step, then finished, then called.

    Values are numbers. Strides are in elements.
    """

    cdef tp_net *net
    cdef list inputs, outputs
    cdef size_t workspace
    cdef bint busy
    cdef int threads

    def __cinit__(self):
        self.threads = threads_for(1 << 40, 1)
        self.net = tp_net_new(simd_level, self.threads)
        if self.net == NULL:
            raise MemoryError("oneDNN could not be set up")
        self.inputs = []
        self.outputs = []

    def __dealloc__(self):
        tp_net_free(self.net)

    def input(self, tuple shape, tuple strides):
        """Return the value of the next array that goes in."""
        cdef tp_dnn_array array
        if len(self.inputs) >= ENDS:
            raise Unsupported("too many arrays")
        describe(&array, shape, strides)
        self.inputs.append((shape, tuple([4 * stride for stride in strides])))
        return checked(tp_net_input(self.net, &array))

    def convolution(
        self, int source, tuple shape, weight, bias, tuple result, tuple stride, tuple padding, tuple dilation,
        Py_ssize_t groups, list posts, tuple depthwise=(),
    ):
        """Return a convolution with constant weights; `posts` are (kind, alpha, beta, value, over).

        `depthwise` has weight, bias and stride of the post of that kind.
        """
        cdef tp_dnn_problem p
        cdef tp_net_post post[6]
        cdef np.ndarray w = numpy.ascontiguousarray(weight), b = None, more, row
        cdef int i
        if type_of(w) != TP_F32 or len(posts) > POSTS or not numpy.isfinite(w).all():
            raise Unsupported("such weights")
        fill(&p, shape, result, (<object> w).shape[2:], stride, padding, dilation)
        p.groups = groups
        if groups != 1:
            w = w.reshape((groups, np.PyArray_DIM(w, 0) // groups) + (<object> w).shape[1:])
        describe(&p.arrays[1], (<object> w).shape, tuple([s // 4 for s in (<object> w).strides]))
        if bias is not None:
            b = numpy.ascontiguousarray(bias)
            if type_of(b) != TP_F32 or not numpy.isfinite(b).all():
                raise Unsupported("such a bias")
            describe(&p.arrays[3], (<object> b).shape, (1,))
        for i, (kind, alpha, beta, value, over) in enumerate(posts):
            post[i].kind, post[i].value, post[i].over = kind, value, over
            post[i].alpha, post[i].beta = alpha, beta
            if post[i].kind == TP_NET_DEPTHWISE:
                more = constant_of(depthwise[0], (result[1], 1, 3, 3))
                post[i].weight, post[i].bias, post[i].stride = np.PyArray_DATA(more), NULL, depthwise[2]
                if depthwise[1] is not None:
                    row = constant_of(depthwise[1], (result[1],))
                    post[i].bias = np.PyArray_DATA(row)
        return checked(tp_net_convolution(
            self.net, &p, source, np.PyArray_DATA(w), NULL if b is None else np.PyArray_DATA(b), post,
            <int> len(posts),
        ))

    def linear(self, int source, int rows, weight, bias):
        """Return (rows, k) times a transposed constant weight (n, k)."""
        cdef tp_dnn_problem p
        cdef np.ndarray w = numpy.ascontiguousarray(weight), b = None
        cdef Py_ssize_t n = np.PyArray_DIM(w, 0), k = np.PyArray_DIM(w, 1)
        memset(&p, 0, sizeof(p))
        if type_of(w) != TP_F32:
            raise Unsupported("such weights")
        describe(&p.arrays[1], (n, k), (k, 1))
        describe(&p.arrays[2], (rows, n), (n, 1))
        if bias is not None:
            b = numpy.ascontiguousarray(bias)
            if type_of(b) != TP_F32 or (<object> b).shape != (n,):
                raise Unsupported("such a bias")
            describe(&p.arrays[3], (n,), (1,))
        return checked(tp_net_linear(
            self.net, &p, source, np.PyArray_DATA(w), NULL if b is None else np.PyArray_DATA(b),
        ))

    def pool(
        self, int source, int kind, tuple shape, tuple result, tuple kernel, tuple stride, tuple padding,
        tuple dilation,
    ):
        """Return the largest elements of windows, or the means."""
        cdef tp_dnn_problem p
        cdef int64_t window[3]
        cdef int i
        fill(&p, shape, result, kernel, stride, padding, dilation)
        for i in range(p.spatial):
            window[i] = kernel[i]
        return checked(tp_net_pool(self.net, &p, source, kind, window))

    def function(self, int source, int kind, float alpha, float beta):
        """Return a function of the elements."""
        cdef tp_net_post post
        memset(&post, 0, sizeof(post))
        post.kind, post.alpha, post.beta = kind, alpha, beta
        return checked(tp_net_function(self.net, source, &post))

    def sum(self, int source, int other):
        """Return the sum of two values."""
        return checked(tp_net_sum(self.net, source, other))

    def output(self, int source, tuple shape, tuple strides):
        """Let a value come out, as the next array."""
        cdef tp_dnn_array array
        if len(self.outputs) >= ENDS:
            raise Unsupported("too many arrays")
        describe(&array, shape, strides)
        checked(tp_net_output(self.net, source, &array))
        self.outputs.append((shape, tuple([4 * stride for stride in strides])))

    def finish(self):
        """Plan the memory of all that lies between."""
        self.workspace = tp_net_finish(self.net)
        if not self.workspace:
            raise MemoryError("oneDNN could not make its memory objects")

    def implementations(self):
        """Return the names of oneDNN's kernels."""
        found = []
        while tp_net_implementation(self.net, <int> len(found)) != NULL:
            found.append(tp_net_implementation(self.net, <int> len(found)).decode())
        return found

    def __call__(self, arrays):
        """Return the arrays that come out; None for what takes the kernels: other layouts, NaN, infinity."""
        cdef void *given[32]
        cdef void *made[32]
        cdef np.npy_intp sizes[6]
        cdef np.npy_intp steps[6]
        cdef np.npy_intp bytes_ = <np.npy_intp> self.workspace
        cdef np.ndarray array, workspace
        cdef int k, i, failed, threads = threads_for(1 << 40, 1)
        cdef list kept = [], results = []
        if self.busy or threads != self.threads or len(arrays) != len(self.inputs):
            return None
        for k in range(<int> len(self.inputs)):
            array = plain_array(arrays[k])
            shape, strides = self.inputs[k]
            if type_of(array) != TP_F32 or (<object> array).shape != shape or (<object> array).strides != strides:
                return None
            kept.append(array)
            given[k] = np.PyArray_DATA(array)
        for k in range(<int> len(self.outputs)):
            shape, strides = self.outputs[k]
            for i in range(<int> len(shape)):
                sizes[i], steps[i] = shape[i], strides[i]
            array = new_array(<np.dtype> descriptors[TP_F32], <int> len(shape), sizes, steps)
            results.append(array)
            made[k] = np.PyArray_DATA(array)
        workspace = new_array(BYTE, 1, &bytes_, NULL)
        self.busy = True  # one call at a time has the memory objects
        try:
            with nogil:
                failed = tp_net_run(self.net, given, made, np.PyArray_DATA(workspace))
        finally:
            self.busy = False
        if failed == TP_NET_NOT_FINITE:
            return None
        if failed:
            raise_status(failed, "a network")
        return results
