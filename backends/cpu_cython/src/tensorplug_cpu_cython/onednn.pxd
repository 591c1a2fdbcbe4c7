"""oneDNN's primitives, for the modules that describe problems."""

cimport numpy as np
from libc.stdint cimport int64_t

cdef extern from "c/onednn.h":
    enum:
        TP_CONVOLUTION, TP_CONVOLUTION_INPUT, TP_CONVOLUTION_WEIGHT, TP_MATMUL
        TP_DNN_F32, TP_DNN_BF16, TP_DNN_DIMS, TP_DNN_ARRAYS
    ctypedef struct tp_dnn_array:
        int64_t dims
        int64_t shape[6]
        int64_t strides[6]
        int64_t kept
    ctypedef struct tp_dnn_problem:
        int64_t sort, type, threads, groups, spatial, has_bias
        int64_t stride[3]
        int64_t dilation[3]
        int64_t before[3]
        int64_t after[3]
        tp_dnn_array arrays[4]
    ctypedef struct tp_dnn_operation:
        pass
    ctypedef struct tp_dnn_call:
        pass
    int tp_dnn_make(tp_dnn_operation **, const tp_dnn_problem *)
    void tp_dnn_free(tp_dnn_operation *)
    size_t tp_dnn_workspace(const tp_dnn_operation *)
    const char *tp_dnn_implementation(const tp_dnn_operation *)
    tp_dnn_call *tp_dnn_call_new(const tp_dnn_operation *)
    void tp_dnn_call_free(tp_dnn_call *)
    int tp_dnn_run(const tp_dnn_operation *, tp_dnn_call *, void **, void *, int) noexcept nogil
    bint tp_dnn_has_bf16()


cdef class Operation:
    cdef tp_dnn_operation *operation
    cdef tp_dnn_call *spare[8]
    cdef int spares
    cdef size_t workspace

    cdef int run(self, void **data, int threads) except -1


cdef Operation find(tp_dnn_problem *problem)
cdef int raise_status(int status, str what) except -1
