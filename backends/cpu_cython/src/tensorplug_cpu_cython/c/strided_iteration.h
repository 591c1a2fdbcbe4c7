/* A iteration over arrays of one shape with any strides: sorted and merged dimensions, shared among threads. */
#ifndef TENSORPLUG_WALK_H
#define TENSORPLUG_WALK_H

#include "pointwise.h"

enum { TP_OPERANDS = 4, TP_DIMS = 64 };

typedef struct {
    int dims, operands;
    int copies; /* whether the loop writes its only input as it is */
    ptrdiff_t shape[TP_DIMS];
    ptrdiff_t strides[TP_OPERANDS][TP_DIMS]; /* in bytes; 0 where an operand is broadcast */
    ptrdiff_t itemsize[TP_OPERANDS];         /* where there is more than one dimension */
    int axis[TP_DIMS];                       /* which dimension of the caller's each one is */
} tp_iteration;

/* Put the dimensions in the order of NumPy's iterator, fastest first; the caller's have the slowest first. */
void tp_iteration_sort(tp_iteration *iteration);

/* Make the strides of operand `k` those of a new array whose memory lies in the iteration's order. */
void tp_iteration_lay_out(tp_iteration *iteration, int k, ptrdiff_t itemsize);

/* Merge dimensions that lie behind each other in all operands. */
void tp_iteration_merge(tp_iteration *iteration);

/* Run over blocks of short rows at once; return 0 for an iteration that has none, or is better run otherwise. */
int tp_iteration_run_blocks(const tp_iteration *iteration, char *const *data, tp_loop loop, const double *parameters,
                            int threads);

void tp_iteration_run(const tp_iteration *iteration, char *const *data, tp_loop loop, const double *parameters, int threads);

#endif
