/* Batch normalisation of images that lie in rows (NCHW) or channels last (NHWC), forward and backward. */
#ifndef TENSORPLUG_BATCHNORM_H
#define TENSORPLUG_BATCHNORM_H

#include "level.h"

/* `positions` counts the elements of a plane, `columns` those of a row of channels, each of which may have several.
   `workspace` has room for (3 * threads + 3) * columns doubles. */
typedef struct {
    ptrdiff_t samples, channels, positions, columns;
    int channels_last, threads;
    double *workspace;
} tp_images;

typedef struct {
    const void *x, *weight, *bias;
    void *y, *mean, *rstd; /* mean and 1 / sqrt(variance + eps), of each channel */
    double eps;
    double low, high; /* what the images are cut off at; minus infinity and infinity if they are not */
} tp_batch_forward;

typedef struct {
    const void *g, *g_mean, *g_rstd, *x, *weight, *mean, *rstd;
    void *g_x, *g_weight, *g_bias;
} tp_batch_backward;

typedef struct { /* each of float, double, and of bfloat16 and float16 with all but the images in float */
    void (*forward[4])(const tp_images *, const tp_batch_forward *);
    void (*backward[4])(const tp_images *, const tp_batch_backward *);
    void (*by_statistics[4])(const tp_images *, const tp_batch_forward *); /* mean and rstd are given */
} tp_batch_kernels;

TP_DECLARE(const tp_batch_kernels, tp_batch_table);

#endif
