/* Selection by rank along the rows of contiguous arrays, without sorting them; NaN is the largest. */
#ifndef TENSORPLUG_SELECTIONS_H
#define TENSORPLUG_SELECTIONS_H

#include "level.h"
#include "types.h"

/* Medians are the lower of two in the middle: of all elements, where a NaN wins over all, or of the numbers. */
enum { TP_RANKED, TP_MEDIAN, TP_NANMEDIAN };

typedef struct {
    const void *x;
    void *values;
    int64_t *places; /* NULL if they are not wanted; of equal elements the stable order decides */
    ptrdiff_t before, n, after;
    ptrdiff_t rank; /* from 0, of TP_RANKED */
    int which;
} tp_selection;

enum { TP_LINEAR, TP_LOWER, TP_HIGHER, TP_MIDPOINT, TP_NEAREST };

/* Quantiles at `count` levels of rows of n; `out` is (rows, count). */
typedef struct {
    const void *x;
    const void *levels;
    void *out;
    ptrdiff_t rows, n, count;
    int ignore_nan, interpolation;
    int ordered; /* whether the rows are sorted */
} tp_quantiles;

/* Both return whether there was memory enough. */
typedef int (*tp_select)(const tp_selection *o, int threads);
typedef int (*tp_quantile)(const tp_quantiles *o, int threads);

typedef struct {
    tp_select select[TP_TYPES];
    tp_quantile quantiles[2]; /* float, double */
} tp_selections;

TP_DECLARE(const tp_selections, tp_selection_table);

#endif
