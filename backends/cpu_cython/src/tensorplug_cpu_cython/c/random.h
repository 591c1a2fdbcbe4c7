/* Random bits. */
#ifndef TENSORPLUG_SEQUENCES_H
#define TENSORPLUG_SEQUENCES_H

#include "level.h"

typedef struct {
    /* 32-bit words of Philox 4x32-10 as int64; `offset` counts blocks of four, its upper half is `upper`. */
    void (*philox)(int64_t *out, ptrdiff_t count, uint64_t seed, uint64_t offset, uint64_t upper, int threads);
    /* Of words, numbers from 0 to below 1, of 24 bits, and normal ones (Box and Muller 1958). */
    void (*uniform)(const int64_t *words, float *out, ptrdiff_t count, int threads);
    void (*normal)(const int64_t *radius, const int64_t *angle, float *out, ptrdiff_t count, int threads);
} tp_random;

TP_DECLARE(const tp_random, tp_random_table);

#endif
