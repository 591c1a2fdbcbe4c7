/* Dropout: elements are kept, and scaled, where a random word is large enough. */
#ifndef TENSORPLUG_DROPOUT_H
#define TENSORPLUG_DROPOUT_H

#include "level.h"

typedef struct {
    uint64_t seed, offset, upper; /* of Philox, as for philox_bits */
    uint32_t least;               /* an element is kept if the upper 24 bits of its word are no less */
    double scale;
} tp_dropout;

typedef struct {
    /* out = kept ? x * scale : 0 * x; `kept` gets a byte for each element unless it is NULL. */
    void (*forward[2])(const tp_dropout *d, const void *x, void *out, uint8_t *kept, ptrdiff_t count, int threads);
    /* out = g * kept * scale */
    void (*backward[2])(const void *g, const uint8_t *kept, double scale, void *out, ptrdiff_t count, int threads);
} tp_dropouts;

TP_DECLARE(const tp_dropouts, tp_dropout_table);

#endif
