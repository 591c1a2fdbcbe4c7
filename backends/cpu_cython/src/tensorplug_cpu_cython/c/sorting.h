/* Sorting and selecting along the rows of contiguous arrays (rows, n), stably; NaN is the largest. */
#ifndef TENSORPLUG_ORDERS_H
#define TENSORPLUG_ORDERS_H

#include "level.h"
#include "types.h"

typedef struct {
    const void *x;
    void *values;   /* NULL if they are not wanted */
    int64_t *places;
    ptrdiff_t before, n, after; /* sorted along n */
    ptrdiff_t k;                /* of selections: how many are wanted, places are (before, k, after) */
    int descending;
} tp_sort;

/* Returns whether there was memory enough. */
typedef int (*tp_sort_function)(const tp_sort *o, int threads);

typedef struct {
    tp_sort_function sort[TP_TYPES], top[TP_TYPES];
} tp_sorts;

TP_DECLARE(const tp_sorts, tp_sort_table);

#endif
