/* Losses that ask classes to keep a distance from target classes, of contiguous scores (rows, classes). */
#ifndef TENSORPLUG_LOSSES_MARGIN_H
#define TENSORPLUG_LOSSES_MARGIN_H

#include "level.h"

typedef struct {
    ptrdiff_t rows, classes;
    const void *x;
    const int64_t *target; /* one per row; of several labels, a row ended by a negative number */
    const void *weight;    /* of a target class, or NULL */
    double margin;
    int squared, threads;
} tp_margins;

/* What the functions return: whether all classes exist, and there was memory. */
enum { TP_DONE, TP_NO_CLASS, TP_NO_MEMORY };

/* Two of each: float and double. `losses` has one per row; row i has the
   gradient g[i * step] * scale, and `o` is written. */
typedef struct {
    int (*multi[2])(const tp_margins *, void *losses);
    int (*multi_backward[2])(const tp_margins *, const void *g, ptrdiff_t step, double scale, void *o);
    int (*multilabel[2])(const tp_margins *, void *losses);
    int (*multilabel_backward[2])(const tp_margins *, const void *g, ptrdiff_t step, double scale, void *o);
} tp_margin_kernels;

TP_DECLARE(const tp_margin_kernels, tp_margin_table);

#endif
