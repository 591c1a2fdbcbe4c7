/* Random bits, and sums along a dimension. */
#ifndef TENSORPLUG_SEQUENCES_H
#define TENSORPLUG_SEQUENCES_H

#include "level.h"

typedef struct {
    /* 32-bit words of Philox 4x32-10 as int64; `offset` counts blocks of four, its upper half is `upper`. */
    void (*philox)(int64_t *out, ptrdiff_t count, uint64_t seed, uint64_t offset, uint64_t upper, int threads);
    /* (before, n, after): sums of each element and all before it along n. */
    void (*cumsum[3])(const void *x, void *out, ptrdiff_t before, ptrdiff_t n, ptrdiff_t after, int threads);
} tp_sequences;

TP_DECLARE(const tp_sequences, tp_sequence_table);

#endif
