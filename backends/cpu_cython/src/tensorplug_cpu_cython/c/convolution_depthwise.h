/* Convolutions in which each channel has a window of its own, over float images that lie in rows. */
#ifndef TENSORPLUG_DEPTHWISE_H
#define TENSORPLUG_DEPTHWISE_H

#include "level.h"

enum { TP_DEPTHWISE_SIDE = 15 }; /* of a window, at most */

/* Two spatial dimensions; of a single one the first has size and window 1. */
typedef struct {
    ptrdiff_t samples, channels;
    ptrdiff_t size[2], where[2], kernel[2], stride[2], before[2], dilation[2];
    int threads;
} tp_depthwise;

typedef struct {
    /* How many floats each thread needs to work with. */
    ptrdiff_t (*space)(const tp_depthwise *);
    void (*forward)(const tp_depthwise *, const float *x, const float *w, const float *bias, float *y, float *space);
    void (*input)(const tp_depthwise *, const float *g, const float *w, float *x, float *space);
    void (*weight)(const tp_depthwise *, const float *x, const float *g, float *w, float *space);
} tp_depthwise_kernels;

TP_DECLARE(const tp_depthwise_kernels, tp_depthwise_table);

#endif
