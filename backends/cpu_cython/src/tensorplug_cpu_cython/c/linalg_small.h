/* Equations of many small matrices, several beside each other, so that vectors run over the matrices. */
#ifndef TENSORPLUG_LINALG_SMALL_H
#define TENSORPLUG_LINALG_SMALL_H

#include "level.h"

enum { TP_SMALL = 12 }; /* rows and columns at most */

typedef struct { /* each of float and double */
    /* LU in the place of `count` matrices (rows, n); rows that were exchanged, from 1, and the first pivot that is zero,
       from 1, or 0. */
    void (*factor[2])(void *a, int *pivots, int *info, int rows, int n, ptrdiff_t count);
    /* Solutions in the place of right sides (n, columns), by such factors. */
    void (*solve[2])(const void *a, const int *pivots, void *b, int n, ptrdiff_t columns, ptrdiff_t count);
} tp_equations;

TP_DECLARE(const tp_equations, tp_equation_table);

#endif
