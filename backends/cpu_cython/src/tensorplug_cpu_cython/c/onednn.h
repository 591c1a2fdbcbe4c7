/* oneDNN's primitives with all that a call needs: reorders into the layouts they want, and workspace. */
#ifndef TENSORPLUG_ONEDNN_H
#define TENSORPLUG_ONEDNN_H

#include <stddef.h>
#include <stdint.h>

enum { TP_CONVOLUTION, TP_CONVOLUTION_INPUT, TP_CONVOLUTION_WEIGHT, TP_MATMUL };
enum { TP_DNN_F32, TP_DNN_BF16 };
enum { TP_DNN_DIMS = 6, TP_DNN_ARRAYS = 4 };

/* One array: what the primitive is told of it. No padding bytes, so that a problem is its own key. */
typedef struct {
    int64_t dims;
    int64_t shape[TP_DNN_DIMS], strides[TP_DNN_DIMS]; /* in elements */
    int64_t kept;                                     /* whether the primitive has to take these strides */
} tp_dnn_array;

/* Convolutions: the arrays are the two operands, the result, and the bias if there is one. The shapes are
   those of the memory at hand; for groups the weight has them as its first dimension. */
typedef struct {
    int64_t sort, type, threads, groups, spatial, has_bias;
    int64_t stride[3], dilation[3], before[3], after[3];
    tp_dnn_array arrays[TP_DNN_ARRAYS];
} tp_dnn_problem;

typedef struct tp_dnn_operation tp_dnn_operation;

/* Return 0 and the operation; 1 if oneDNN has no kernel that is worth a call; 2 for an error. */
int tp_dnn_make(tp_dnn_operation **operation, const tp_dnn_problem *problem);
void tp_dnn_free(tp_dnn_operation *operation);
size_t tp_dnn_workspace(const tp_dnn_operation *operation);
const char *tp_dnn_implementation(const tp_dnn_operation *operation);

/* What one call at a time holds: memory objects and a stream. */
typedef struct tp_dnn_call tp_dnn_call;
tp_dnn_call *tp_dnn_call_new(const tp_dnn_operation *operation);
void tp_dnn_call_free(tp_dnn_call *call);

/* Run it on `threads` threads; `data` in the problem's order. What runs returns oneDNN's status: 0 if all went
   well, 1 where there is no memory. */
int tp_dnn_run(const tp_dnn_operation *operation, tp_dnn_call *call, void *const *data, void *workspace,
               int threads);

/* C = A B + bias, of row-major matrices; A and B may lie transposed in memory. */
typedef struct {
    int transposed_a, transposed_b;
    int64_t m, n, k, lda, ldb;
    const float *bias; /* of n elements, or NULL */
} tp_sgemm;

int tp_dnn_sgemm(const tp_sgemm *product, const float *a, const float *b, float *c, int threads);

/* Many of them, in batches of any strides (in elements; 0 where an operand is broadcast). */
typedef struct {
    int dims;
    ptrdiff_t shape[64], strides_a[64], strides_b[64];
} tp_sgemm_batch;

int tp_dnn_sgemm_batch(const tp_sgemm *product, const tp_sgemm_batch *batch, const float *a, const float *b,
                       float *c, int threads);

/* C = alpha op(A) op(B) + beta C on this thread alone. */
int tp_dnn_gemm(int transposed_a, int transposed_b, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha,
                const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float beta, float *c,
                ptrdiff_t ldc);

int tp_dnn_has_bf16(void);

#endif
