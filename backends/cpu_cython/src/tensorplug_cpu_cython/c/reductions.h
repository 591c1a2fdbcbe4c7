/* Reductions over any dimensions of any strides. */
#ifndef TENSORPLUG_REDUCTIONS_H
#define TENSORPLUG_REDUCTIONS_H

#include "level.h"
#include "types.h"

/* How many elements are not zero, and how many are numbers and not NaN, is of int64. */
enum { TP_SUM, TP_MAX, TP_MIN, TP_PROD, TP_NANSUM, TP_FILLED, TP_NUMBERS, TP_REDUCTIONS };

/* Up to two dimensions that are kept and two that are reduced, the faster one second; strides in bytes.
   The result is contiguous, in the order of the kept dimensions. */
typedef struct {
    ptrdiff_t kept[2], reduced[2], kept_strides[2], reduced_strides[2];
    double divisor; /* of a mean; 1 for others */
} tp_reduction;

/* Reduce into `out`; `partial` has room for threads * kept numbers of 8 bytes. */
typedef void (*tp_reduce)(const char *in, char *out, const tp_reduction *shape, char *partial, int threads);

/* Where along a dimension of `n` the first of the largest (or smallest) elements is. NaN is beyond all. */
typedef void (*tp_arg)(const char *in, int64_t *out, ptrdiff_t before, ptrdiff_t n, ptrdiff_t after,
                       int threads);

/* The smallest and the largest of each row. */
typedef void (*tp_both)(const void *in, void *low, void *high, ptrdiff_t rows, ptrdiff_t n, int threads);

typedef struct {
    tp_reduce reduce[TP_REDUCTIONS][TP_TYPES];
    tp_arg arg[2][TP_TYPES]; /* largest, smallest; of contiguous arrays (before, n, after) */
    tp_both both[TP_TYPES]; /* of contiguous rows */
} tp_reductions;

TP_DECLARE(const tp_reductions, tp_reductions_table);

#endif
