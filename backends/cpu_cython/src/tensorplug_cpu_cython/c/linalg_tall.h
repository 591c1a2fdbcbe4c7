/* Orthogonal factors of matrices with many more rows than columns, by blocks of rows that the nearest cache holds
   (TSQR: Demmel, Grigori, Hoemmen and Langou, 2012). */
#ifndef TENSORPLUG_LINALG_TALL_H
#define TENSORPLUG_LINALG_TALL_H

#include "level.h"

enum {
    TP_TALL_COLUMNS = 32, /* at most */
    TP_TALL_ROWS = 256    /* of a block, and at least */
};

/* Two matrices in C order beside each other; the second may have no columns. */
typedef struct { const void *data[2]; int columns[2]; ptrdiff_t rows; } tp_tall_pair;

typedef struct { /* each of float and double */
    /* Write R, in C order; 0 is returned where a number is not finite, or so large or small that its square is not.
       Unless it is NULL, `kept` gets what expand wants: tp_tall_kept numbers. */
    int (*reduce[2])(const tp_tall_pair *pair, void *r, void *kept);
    /* Write Q times a square matrix, which is overwritten, in C order. */
    void (*expand[2])(const void *kept, ptrdiff_t rows, int columns, void *factor, void *out);
} tp_tall;

static inline ptrdiff_t tp_tall_kept(ptrdiff_t rows, int columns) {
    const ptrdiff_t blocks = (rows - columns + TP_TALL_ROWS - 1) / TP_TALL_ROWS;
    return (ptrdiff_t)columns * columns + blocks * (TP_TALL_ROWS + 1) * columns;
}

TP_DECLARE(const tp_tall, tp_tall_table);

#endif
