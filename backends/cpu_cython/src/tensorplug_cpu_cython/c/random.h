/* Random bits, and numbers made of them. */
#ifndef TENSORPLUG_SEQUENCES_H
#define TENSORPLUG_SEQUENCES_H

#include "level.h"
#include "types.h"

/* Key and first block of words; the counter has 128 bits. */
typedef struct { uint64_t seed, offset, upper; } tp_counter;

typedef struct {
    /* 32-bit words of Philox 4x32-10 as int64; `offset` counts blocks of four, its upper half is `upper`. */
    void (*philox)(int64_t *out, ptrdiff_t count, uint64_t seed, uint64_t offset, uint64_t upper, int threads);
    /* Of words, numbers from 0 to below 1, of 24 bits, and normal ones (Box and Muller 1958). */
    void (*uniform)(const int64_t *words, float *out, ptrdiff_t count, int threads);
    void (*normal)(const int64_t *radius, const int64_t *angle, float *out, ptrdiff_t count, int threads);
    /* The same of the words from a counter on, by tp_type, of floats. */
    void (*uniform_new[TP_TYPES])(void *out, ptrdiff_t count, tp_counter first, int threads);
    void (*normal_new[TP_TYPES])(void *out, ptrdiff_t count, tp_counter first, int threads);
    /* Ones where the uniform number is less than its chance; `step` is 0 where there is one for all, as it is
     * but for float and double. The chance is a double beside double, else a float. */
    void (*bernoulli_new[TP_TYPES])(
        void *out, const void *chance, ptrdiff_t step, ptrdiff_t count, tp_counter first, int threads);
    /* Whole numbers of `low` and the `span` from there, which is at most 2**63; but for numbers that a float
     * holds exactly, and at most 2**16 of them, as half or bool. */
    void (*integers_new[TP_TYPES])(
        void *out, int64_t low, uint64_t span, ptrdiff_t count, tp_counter first, int threads);
} tp_random;

TP_DECLARE(const tp_random, tp_random_table);

#endif
