/* A walk over arrays of one shape with any strides: sorted and merged dimensions, shared among threads. */
#ifndef TENSORPLUG_WALK_H
#define TENSORPLUG_WALK_H

#include "pointwise.h"

enum { TP_OPERANDS = 4, TP_DIMS = 64 };

typedef struct {
    int dims, operands;
    ptrdiff_t shape[TP_DIMS];
    ptrdiff_t strides[TP_OPERANDS][TP_DIMS]; /* in bytes; 0 where an operand is broadcast */
    int axis[TP_DIMS];                       /* which dimension of the caller's each one is */
} tp_walk;

/* Put the dimensions in the order of NumPy's iterator, fastest first; the caller's have the slowest first. */
void tp_walk_sort(tp_walk *walk);

/* Make the strides of operand `k` those of a new array whose memory lies in the walk's order. */
void tp_walk_lay_out(tp_walk *walk, int k, ptrdiff_t itemsize);

/* Merge dimensions that lie behind each other in all operands. */
void tp_walk_merge(tp_walk *walk);

void tp_walk_run(const tp_walk *walk, char *const *data, tp_loop loop, const double *parameters, int threads);

#endif
