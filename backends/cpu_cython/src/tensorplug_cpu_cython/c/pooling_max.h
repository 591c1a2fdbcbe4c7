/* Maxima over windows of images that lie in rows or channels last, and their gradient. */
#ifndef TENSORPLUG_POOLING_H
#define TENSORPLUG_POOLING_H

#include "level.h"

/* Three spatial dimensions; of fewer the first ones have size and window 1. */
typedef struct {
    ptrdiff_t samples, channels;
    ptrdiff_t size[3], where[3], kernel[3], stride[3], padding[3], dilation[3];
    int channels_last, threads;
} tp_pool;

typedef struct { /* each of float and double, the maximum also of int64_t; `places` may be NULL */
    void (*maximum[3])(const tp_pool *, const void *x, void *values, int64_t *places);
    /* Adds up into `o`, which holds zeros; returns whether a place was outside of its plane. */
    int (*gradient[2])(const tp_pool *, const void *g, const int64_t *places, void *o);
} tp_pool_kernels;

TP_DECLARE(const tp_pool_kernels, tp_pool_table);

#endif
