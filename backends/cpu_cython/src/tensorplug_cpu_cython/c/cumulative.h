/* Running products, extremes and log-sum-exps of contiguous arrays (before, n, after), along n. */
#ifndef TENSORPLUG_SCANS_H
#define TENSORPLUG_SCANS_H

#include "level.h"
#include "types.h"

/* `places` is where each extreme was last met, or NULL. */
typedef void (*tp_cumulative)(const void *x, void *out, int64_t *places, ptrdiff_t before, ptrdiff_t n, ptrdiff_t after,
                        int threads);

/* The gradient of running products `p` of x: what comes before an element times g[i] + x[i + 1] * (the same of the next). */
typedef void (*tp_product_gradient)(const void *g, const void *x, const void *p, void *out, ptrdiff_t before, ptrdiff_t n,
                                    ptrdiff_t after, int threads);

typedef struct {
    tp_cumulative sum[TP_TYPES], product[TP_TYPES], maximum[TP_TYPES], minimum[TP_TYPES];
    tp_cumulative logarithm[TP_TYPES]; /* of floats */
    /* Of complex numbers of float and double: those, of rows the logarithm (which are finite, the imaginary parts within
       2^20), and the product of all, of which there are before * after. */
    tp_cumulative pair_sum[2], pair_product[2], pair_logarithm[2], pair_total[2];
    tp_product_gradient product_gradient[2]; /* float, double */
} tp_cumulatives;

TP_DECLARE(const tp_cumulatives, tp_cumulative_table);

#endif
