/* Numbers of distributions, and orders, drawn by counter. */
#ifndef TENSORPLUG_RANDOM_DISTRIBUTIONS_H
#define TENSORPLUG_RANDOM_DISTRIBUTIONS_H

#include "random.h"

typedef struct {
    /* Poisson numbers of float or double rates. Number i makes its choices by the blocks i, i + count, i + 2 count …
     * from the counter on, as many as it takes: two uniform numbers each, the upper word of each first. */
    void (*poisson[2])(const void *rates, void *out, ptrdiff_t count, tp_counter first);
    /* In each of some rows, where uniform numbers of the same type fall among its weights' running sums; `sums` has
     * room for those of a row. */
    void (*choices[2])(
        const void *weights, const void *draws, void *sums, int64_t *out, ptrdiff_t rows, ptrdiff_t categories,
        ptrdiff_t count);
    /* The fewest positive weights of a row; -1 if a weight is negative, infinite or NaN. */
    ptrdiff_t (*fewest[2])(const void *weights, ptrdiff_t rows, ptrdiff_t categories);
    /* The order of numbers of 63 bits, each of two words, the upper ones of which come first; 0 without memory. */
    int (*permutation)(int64_t *out, ptrdiff_t count, tp_counter first);
} tp_distributions;

TP_DECLARE(const tp_distributions, tp_distributions_table);

#endif
