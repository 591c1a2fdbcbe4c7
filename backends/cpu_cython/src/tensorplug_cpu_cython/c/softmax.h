/* Softmax and its kin, forward and backward, of contiguous arrays. */
#ifndef TENSORPLUG_ROWS_H
#define TENSORPLUG_ROWS_H

#include "level.h"

/* (before, n, after), over n. Backward `a` is the gradient and `b` the result. */
typedef void (*tp_softmax)(const void *a, const void *b, void *out, ptrdiff_t before, ptrdiff_t n,
                        ptrdiff_t after, int threads);

typedef struct {
    tp_softmax softmax[2], log_softmax[2], softmax_gradient[2], log_softmax_gradient[2]; /* float, double */
    tp_softmax logsumexp[2]; /* into (before, after); b is not used */
} tp_softmax_kernels;

TP_DECLARE(const tp_softmax_kernels, tp_softmax_table);

#endif
