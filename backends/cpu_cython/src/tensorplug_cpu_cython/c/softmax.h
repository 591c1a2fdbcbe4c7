/* Softmax, its kin, and standardisation, forward and backward, of contiguous arrays. */
#ifndef TENSORPLUG_ROWS_H
#define TENSORPLUG_ROWS_H

#include "level.h"

/* (before, n, after), over n. Backward `a` is the gradient and `b` the result. */
typedef void (*tp_softmax)(const void *a, const void *b, void *out, ptrdiff_t before, ptrdiff_t n,
                        ptrdiff_t after, int threads);

/* (before, kept, after), over before and after. */
typedef void (*tp_standardize)(const void *x, void *out, void *mean, void *rstd, double eps, ptrdiff_t before,
                               ptrdiff_t kept, ptrdiff_t after, int threads);
typedef void (*tp_standardize_backward)(const void *g, const void *g_mean, const void *g_rstd, const void *y,
                                        const void *rstd, void *out, ptrdiff_t before, ptrdiff_t kept,
                                        ptrdiff_t after, int threads);

typedef struct {
    tp_softmax softmax[2], log_softmax[2], softmax_gradient[2], log_softmax_gradient[2]; /* float, double */
    tp_softmax logsumexp[2]; /* into (before, after); b is not used */
    tp_standardize standardize[2];
    tp_standardize_backward standardize_backward[2];
} tp_softmax_kernels;

TP_DECLARE(const tp_softmax_kernels, tp_softmax_table);

#endif
