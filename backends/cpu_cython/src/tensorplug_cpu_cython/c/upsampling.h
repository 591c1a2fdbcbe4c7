/* Images resampled to another size, each dimension by weighted sums of some of its elements, and the gradient. */
#ifndef TENSORPLUG_UPSAMPLING_H
#define TENSORPLUG_UPSAMPLING_H

#include "level.h"

/* Contiguous planes of three spatial dimensions; of fewer the first ones have size 1. Element i of the result is,
   along dimension d, the sum over k of weight[d][k * where[d] + i] times element at[d][k * where[d] + i]. */
typedef struct {
    ptrdiff_t planes, size[3], where[3];
    ptrdiff_t taps[3];
    const int32_t *at[3];
    const void *weight[3]; /* of the elements' type; of bytes int32_t, with so many bits after the point: */
    int bits[3];
    int threads;
} tp_upsampling;

typedef struct { /* each of float and double; they return whether there was memory for a row per thread */
    int (*forward[2])(const tp_upsampling *, const void *x, void *y);
    /* `g_x` holds zeros, and gets sums. */
    int (*backward[2])(const tp_upsampling *, const void *g, void *g_x);
    int (*bytes)(const tp_upsampling *, const void *x, void *y); /* one tap along the first dimension */
} tp_upsamplings;

TP_DECLARE(const tp_upsamplings, tp_upsampling_table);

#endif
