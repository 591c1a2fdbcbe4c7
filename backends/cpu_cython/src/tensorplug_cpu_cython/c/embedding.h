/* Bags of rows of a table, and rows whose norms are bounded. */
#ifndef TENSORPLUG_EMBEDDING_H
#define TENSORPLUG_EMBEDDING_H

#include "level.h"

enum { TP_BAG_SUM, TP_BAG_MEAN, TP_BAG_MAX };

/* Bag b holds the rows that indices from starts[b] to starts[b + 1] name, all of which exist, but for `padding`.
   Of rows that are taken in turn, each may count by a factor, and its gradient be divided by how often it is named. */
typedef struct {
    ptrdiff_t bags, features;
    const void *table;
    const int64_t *indices, *starts;
    int64_t padding; /* -1: none */
    const void *factors;   /* or NULL */
    const int64_t *counts; /* per row of the table, or NULL */
    int mode, threads;
} tp_bags;

typedef struct { /* each of float and double */
    void (*forward[2])(const tp_bags *, void *o);
    /* `g_table` holds zeros, and gets sums; `g_factors` is written, or NULL. */
    void (*backward[2])(const tp_bags *, const void *g, void *g_table, void *g_factors);
    /* Scale a row whose p-norm is above `most` down to it. */
    void (*bound[2])(void *row, ptrdiff_t features, double most, double p);
} tp_embeddings;

TP_DECLARE(const tp_embeddings, tp_embedding_table);

#endif
