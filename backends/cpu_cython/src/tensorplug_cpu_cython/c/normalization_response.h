/* Images divided by a power of the mean square over neighbouring channels (Krizhevsky et al. 2012), and the gradient. */
#ifndef TENSORPLUG_NORMALIZATION_RESPONSE_H
#define TENSORPLUG_NORMALIZATION_RESPONSE_H

#include "level.h"

/* Contiguous (samples, channels, positions); channel c has those from c - before to c + behind as neighbours, of
   which those that exist are summed. */
typedef struct {
    ptrdiff_t samples, channels, positions, before, behind;
    double alpha, beta, k; /* (k + alpha times the sum of squares) ** beta */
    int threads;
} tp_response;

typedef struct { /* each of float and double; both return whether there was memory */
    int (*forward[2])(const tp_response *, const void *x, void *y);
    int (*backward[2])(const tp_response *, const void *g, const void *x, void *o);
} tp_responses;

TP_DECLARE(const tp_responses, tp_response_table);

#endif
