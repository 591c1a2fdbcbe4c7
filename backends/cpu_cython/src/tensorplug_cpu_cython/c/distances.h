/* Norms of the differences between vectors, pair by pair, and their gradients. */
#ifndef TENSORPLUG_DISTANCES_H
#define TENSORPLUG_DISTANCES_H

#include "level.h"

/* From rows of `length` numbers to others, which lie as columns (length, others), so that vectors run over them;
   `batch` times. With `triangle` both are the same, and only pairs (i, j) with i < j count, one after the other. */
typedef struct {
    ptrdiff_t batch, rows, others, length;
    double p; /* of the norm: from 0 to infinity */
    int triangle, threads;
} tp_distances;

typedef struct { /* each of float and double */
    void (*forward[2])(const tp_distances *, const void *rows, const void *columns, void *result);
    /* Both gradients hold zeros, and get sums; that of the others lies as columns do. */
    void (*backward[2])(const tp_distances *, const void *g, const void *result, const void *rows,
                        const void *columns, void *g_rows, void *g_columns);
} tp_distance_kernels;

TP_DECLARE(const tp_distance_kernels, tp_distance_table);

#endif
