/* Normalisation of rows, and of channels by given statistics, forward and backward, of dense arrays. */
#ifndef TENSORPLUG_NORMS_H
#define TENSORPLUG_NORMS_H

#include "level.h"

/* Rows of `length` elements. Of `weights` (none: 0), taken in turn, each counts for `repeat` elements; a row is
   of whole ones. The backward pass goes through `pieces` parts of the rows, so that what is added up does not
   depend on the number of threads; `workspace` has room for 4 * pieces * weights doubles. */
typedef struct {
    ptrdiff_t rows, length, repeat, weights, pieces;
    int centred, threads; /* centred: the mean is taken off */
    double eps;
    double *workspace;
} tp_norm_rows;

/* (N, C, positions) in rows or channels last; `workspace` has room for 4 * (pieces + 1) * channels doubles. */
typedef struct {
    ptrdiff_t samples, channels, positions, pieces;
    int channels_last, threads;
    double eps;
    double *workspace;
} tp_norm_channels;

/* Weight and bias may be NULL; so may g_weight and g_bias, both or neither. Two of each: float and double. */
typedef struct {
    void (*rows[2])(const tp_norm_rows *, const void *x, const void *weight, const void *bias, void *y);
    void (*row_statistics[2])(const tp_norm_rows *, const void *x, void *mean, void *rstd);
    void (*rows_gradient[2])(const tp_norm_rows *, const void *g, const void *x, const void *weight, void *g_x,
                             void *g_weight, void *g_bias);
    void (*channels[2])(const tp_norm_channels *, const void *x, const void *mean, const void *variance,
                        const void *weight, const void *bias, void *y);
    void (*channels_backward[2])(const tp_norm_channels *, const void *g, const void *x, const void *mean,
                                 const void *variance, const void *weight, void *g_x, void *g_weight, void *g_bias);
    /* Division by the 2-norm along n of (before, n, after), which counts as at least eps. */
    void (*unit[2])(const void *x, void *y, double eps, ptrdiff_t before, ptrdiff_t n, ptrdiff_t after, int threads);
    void (*unit_backward[2])(const void *g, const void *x, void *g_x, double eps, ptrdiff_t before, ptrdiff_t n,
                             ptrdiff_t after, int threads);
} tp_norm_kernels;

TP_DECLARE(const tp_norm_kernels, tp_norm_table);

#endif
