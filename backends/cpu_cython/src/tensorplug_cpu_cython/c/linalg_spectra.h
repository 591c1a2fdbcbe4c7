/* Eigenvalues and singular values of many small matrices, several beside each other, by Jacobi's rotations. */
#ifndef TENSORPLUG_LINALG_SPECTRA_H
#define TENSORPLUG_LINALG_SPECTRA_H

#include "level.h"

enum { TP_SPECTRUM = 8 }; /* rows and columns at most */

typedef struct { /* each of float and double; 0 is returned where a matrix isn't finite, or its rotations go on */
    /* Ascending values (count, n), and unless NULL vectors (count, n, n), of symmetric matrices' upper or lower halves. */
    int (*eigh[2])(const void *a, void *values, void *vectors, int n, int upper, ptrdiff_t count);
    /* Descending values, and unless NULL both sides' vectors, of all rows and columns if `whole`. */
    int (*svd[2])(const void *a, void *u, void *values, void *vh, int rows, int columns, int whole, ptrdiff_t count);
} tp_spectra;

TP_DECLARE(const tp_spectra, tp_spectrum_table);

#endif
