/* Variances and norms of contiguous arrays (before, kept, after), over before and after. */
#ifndef TENSORPLUG_STATISTICS_H
#define TENSORPLUG_STATISTICS_H

#include "level.h"
#include "types.h"

enum tp_variance { TP_VARIANCE, TP_DEVIATION, TP_NORM1, TP_NORM2, TP_VARIANCES };

/* The numbers of doubles that `partial` needs room for. */
static inline ptrdiff_t tp_variance_room(ptrdiff_t kept, int threads) { return 3 * kept * threads; }

typedef void (*tp_variance_function)(const void *x, void *out, double *partial, double divisor, ptrdiff_t before,
                                   ptrdiff_t kept, ptrdiff_t after, int threads);

typedef struct {
    tp_variance_function reduce[TP_VARIANCES][TP_TYPES]; /* of floating-point types; of halves the results are float */
} tp_variances;

TP_DECLARE(const tp_variances, tp_variance_table);

#endif
