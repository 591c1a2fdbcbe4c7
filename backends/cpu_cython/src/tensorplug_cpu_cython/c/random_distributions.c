#include "random_distributions.h"

#include <math.h>
#include <stdlib.h>

#include "philox.h"

enum { LANES = TP_PHILOX_LANES };

static inline tp_counter after(tp_counter first, uint64_t blocks) {
    const uint64_t offset = first.offset + blocks;
    return (tp_counter){first.seed, offset, first.upper + (offset < blocks)};
}

static inline double uniform_of(uint32_t high, uint32_t low) {
    return (double)(int64_t)((uint64_t)high << 21 | low >> 11) * 0x1p-53;
}

/* --- Poisson numbers --------------------------------------------------------------------------------------- */

static double by_inversion(double rate, double draw) {
    double chance = exp(-rate), below = chance, count = 0;
    for (int step = 1; step <= 100 && draw >= below; step++) {
        count++;
        chance = chance * rate / step;
        below += chance;
    }
    return count;
}

/* Transformed rejection (PTRS, Hörmann 1993): whether u and v decide for a number, which is k. */
static int by_rejection(double rate, double u, double v, double *k) {
    const double b = sqrt(rate) * 2.53 + 0.931, a = b * 0.02483 - 0.059, us = 0.5 - fabs(u);
    *k = floor((a * 2.0 / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2.0)) return 1;
    if (*k < 0 || (us < 0.013 && v > us)) return 0;
    int sign;
    const double left = log(v) + log(1.1239 + 1.1328 / (b - 3.4)) - log(a / (us * us) + b);
    return left <= *k * log(rate) - rate - lgamma_r(*k + 1.0, &sign);
}

#define POISSON(S, T)                                                                                          \
    static void poisson_##S(const void *rates, void *out, ptrdiff_t count, tp_counter first) {                 \
        for (ptrdiff_t begin = 0; begin < count; begin += LANES) {                                             \
            const T *rate = (const T *)rates + begin;                                                          \
            T *made = (T *)out + begin;                                                                        \
            const int lanes = count - begin < LANES ? (int)(count - begin) : LANES;                            \
            unsigned open = (1u << lanes) - 1;                                                                 \
            for (uint64_t round = 0; open; round++) {                                                          \
                const tp_counter from = after(first, round * (uint64_t)count);                                 \
                tp_philox_words w;                                                                             \
                tp_philox(&w, from.seed, from.offset, from.upper, (uint64_t)begin);                            \
                for (int l = 0; l < lanes; l++) {                                                              \
                    const double u = uniform_of(w.word[0][l], w.word[1][l]);                                   \
                    double k;                                                                                  \
                    if (!(open >> l & 1)) continue;                                                            \
                    if (rate[l] < 10) k = by_inversion(rate[l], u);                                            \
                    else if (!by_rejection(rate[l], u - 0.5, 1.0 - uniform_of(w.word[2][l], w.word[3][l]), &k)) \
                        continue;                                                                              \
                    made[l] = (T)k;                                                                            \
                    open &= ~(1u << l);                                                                        \
                }                                                                                              \
            }                                                                                                  \
        }                                                                                                      \
    }
POISSON(F32, float)
POISSON(F64, double)

/* --- choices among weights --------------------------------------------------------------------------------- */

/* The first place whose sum is above the number, searched without branches. */
#define CHOICES(S, T)                                                                                          \
    static void choices_##S(const void *weights, const void *draws, void *sums, int64_t *out, ptrdiff_t rows,   \
                            ptrdiff_t categories, ptrdiff_t count) {                                           \
        T *to = sums;                                                                                          \
        for (ptrdiff_t r = 0; r < rows; r++) {                                                                 \
            const T *w = (const T *)weights + r * categories;                                                  \
            const T *draw = (const T *)draws + r * count;                                                      \
            T total = 0;                                                                                       \
            for (ptrdiff_t i = 0; i < categories; i++) to[i] = total += w[i];                                  \
            for (ptrdiff_t i = 0; i < categories; i++) to[i] /= total;                                         \
            for (ptrdiff_t i = 0; i < count; i++) {                                                            \
                const T *at = to;                                                                              \
                for (ptrdiff_t left = categories; left > 1; left -= left / 2)                                  \
                    at += at[left / 2 - 1] <= draw[i] ? left / 2 : 0;                                          \
                out[r * count + i] = at - to + (*at <= draw[i]);                                               \
            }                                                                                                  \
        }                                                                                                      \
    }                                                                                                          \
    static ptrdiff_t fewest_##S(const void *weights, ptrdiff_t rows, ptrdiff_t categories) {                   \
        ptrdiff_t fewest = rows ? categories : 1;                                                              \
        for (ptrdiff_t r = 0; r < rows; r++) {                                                                 \
            const T *w = (const T *)weights + r * categories;                                                  \
            ptrdiff_t positive = 0;                                                                            \
            int fine = 1;                                                                                      \
            for (ptrdiff_t i = 0; i < categories; i++) {                                                       \
                fine &= (w[i] >= 0) & (w[i] < (T)INFINITY);                                                    \
                positive += w[i] > 0;                                                                          \
            }                                                                                                  \
            if (!fine) return -1;                                                                              \
            if (positive < fewest) fewest = positive;                                                          \
        }                                                                                                      \
        return fewest;                                                                                         \
    }
CHOICES(F32, float)
CHOICES(F64, double)

/* --- orders ------------------------------------------------------------------------------------------------ */

typedef struct { uint64_t number; int64_t place; } drawn;

/* The numbers are spread evenly: in buckets by their upper bits, one a bucket on average, they are nearly sorted. */
static int permutation(int64_t *out, ptrdiff_t count, tp_counter first) {
    if (!count) return 1;
    int bits = 1;
    while (bits < 31 && (ptrdiff_t)1 << bits < count) bits++;
    const ptrdiff_t buckets = (ptrdiff_t)1 << bits;
    const uint64_t blocks = (uint64_t)(count + 3) / 4;
    const tp_counter second = after(first, blocks);
    uint64_t *numbers = malloc((size_t)(count + 4 * LANES) * sizeof *numbers);
    drawn *sorted = malloc((size_t)count * sizeof *sorted);
    ptrdiff_t *starts = calloc((size_t)buckets + 1, sizeof *starts);
    const int room = numbers && sorted && starts;
    if (room) {
        for (ptrdiff_t begin = 0; begin < count; begin += 4 * LANES) {
            tp_philox_words upper, lower;
            tp_philox(&upper, first.seed, first.offset, first.upper, (uint64_t)begin / 4);
            tp_philox(&lower, second.seed, second.offset, second.upper, (uint64_t)begin / 4);
            for (int l = 0; l < LANES; l++)
                for (int k = 0; k < 4; k++)
                    numbers[begin + 4 * l + k] = (uint64_t)(upper.word[k][l] & 0x7fffffff) << 32 | lower.word[k][l];
        }
        for (ptrdiff_t i = 0; i < count; i++) starts[(numbers[i] >> (63 - bits)) + 1]++;
        for (ptrdiff_t b = 1; b < buckets; b++) starts[b] += starts[b - 1];
        for (ptrdiff_t i = 0; i < count; i++)
            sorted[starts[numbers[i] >> (63 - bits)]++] = (drawn){numbers[i], i};
        for (ptrdiff_t i = 0; i < count; i++) {
            const drawn one = sorted[i];
            ptrdiff_t j = i;
            for (; j && sorted[j - 1].number > one.number; j--) sorted[j] = sorted[j - 1];
            sorted[j] = one;
        }
        for (ptrdiff_t i = 0; i < count; i++) out[i] = sorted[i].place;
    }
    free(numbers);
    free(sorted);
    free(starts);
    return room;
}

const tp_distributions LEVEL(tp_distributions_table) = {
    .poisson = {poisson_F32, poisson_F64},
    .choices = {choices_F32, choices_F64},
    .fewest = {fewest_F32, fewest_F64},
    .permutation = permutation,
};
