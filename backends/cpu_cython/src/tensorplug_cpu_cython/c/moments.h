/* Variances and norms of contiguous arrays (before, kept, after), over before and after. */
#ifndef TENSORPLUG_MOMENTS_H
#define TENSORPLUG_MOMENTS_H

#include "level.h"

enum tp_moment { TP_VARIANCE, TP_DEVIATION, TP_NORM1, TP_NORM2, TP_MOMENTS };

/* The numbers of doubles that `partial` needs room for. */
static inline ptrdiff_t tp_moment_room(ptrdiff_t kept, int threads) { return 3 * kept * threads; }

typedef void (*tp_moment_function)(const void *x, void *out, double *partial, double divisor, ptrdiff_t before,
                                   ptrdiff_t kept, ptrdiff_t after, int threads);

typedef struct {
    tp_moment_function reduce[TP_MOMENTS][2]; /* float, double */
} tp_moments;

TP_DECLARE(const tp_moments, tp_moment_table);

#endif
