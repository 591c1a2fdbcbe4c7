/* Attention block by block, so that the matrix of all weights never exists. Strides are in elements. */
#ifndef TENSORPLUG_ATTENTION_H
#define TENSORPLUG_ATTENTION_H

#include "level.h"

/* C = alpha op(A) op(B) + beta C for row-major matrices; returns 0 if all went well. */
typedef int (*tp_gemm)(int transposed_a, int transposed_b, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha,
                       const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float beta, float *c,
                       ptrdiff_t ldc);

enum { TP_HEAD_DIMS = 8 };

/* Rows of one array: how far apart they are, and where each head begins. */
typedef struct {
    float *data;
    ptrdiff_t row, heads[TP_HEAD_DIMS];
} tp_head_rows;

typedef struct {
    int dims; /* of the heads' batch */
    ptrdiff_t shape[TP_HEAD_DIMS];
    ptrdiff_t length, source, size, value_size; /* L, S, E, Ev */
    tp_head_rows query, key, value, output;
    tp_head_rows g_output, g_query, g_key, g_value; /* backward only */
    float *logsumexp;                               /* contiguous */
    const float *g_logsumexp;
    const float *added;           /* a mask of numbers, or NULL */
    const unsigned char *allowed; /* a mask of bool, or NULL */
    ptrdiff_t mask_heads[TP_HEAD_DIMS], mask_row, mask_column;
    int causal;
    float scale;
    tp_gemm gemm;
} tp_attention;

typedef struct {
    ptrdiff_t (*workspace)(const tp_attention *a, int backward); /* floats per thread */
    int (*forward)(const tp_attention *a, float *workspace, int threads);
    int (*backward)(const tp_attention *a, float *workspace, int threads);
} tp_attention_kernels;

TP_DECLARE(const tp_attention_kernels, tp_attention_table);

#endif
