/* Means over boxes of images that lie in rows or channels last, and their gradient. */
#ifndef TENSORPLUG_AVERAGES_H
#define TENSORPLUG_AVERAGES_H

#include "level.h"

/* Three spatial dimensions; of fewer the first ones have size 1. Along each one result i is made of the places
   [first[i], behind[i]), neither of which falls, and divided by divisor[i]. */
typedef struct {
    ptrdiff_t samples, channels;
    ptrdiff_t size[3], where[3];
    const int64_t *first[3], *behind[3], *divisor[3];
    int channels_last, threads;
} tp_boxes;

typedef struct { /* each of float, double and int64_t, whose quotients are cut */
    void (*mean[3])(const tp_boxes *, const void *x, void *o);
    void (*gradient[3])(const tp_boxes *, const void *g, void *o); /* adds up into `o`, which holds zeros */
} tp_average_kernels;

TP_DECLARE(const tp_average_kernels, tp_average_table);

#endif
