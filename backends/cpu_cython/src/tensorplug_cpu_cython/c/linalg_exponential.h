/* Exponentials of small matrices, several beside each other, so that vectors run over the matrices. */
#ifndef TENSORPLUG_LINALG_EXPONENTIAL_H
#define TENSORPLUG_LINALG_EXPONENTIAL_H

#include "level.h"

enum { TP_EXPONENTIAL = 16 }; /* rows and columns at most */

typedef struct { /* each of float and double, and of complex numbers of these */
    /* Write the exponentials of `count` matrices (n, n); 0 is returned where a power of one is not finite. */
    int (*exponential[4])(const void *a, void *out, int n, ptrdiff_t count);
} tp_exponentials;

TP_DECLARE(const tp_exponentials, tp_exponential_table);

#endif
