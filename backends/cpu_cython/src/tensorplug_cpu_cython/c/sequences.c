#include "sequences.h"

#include "parallel.h"
#include "philox.h"

enum { WIDTH = 256, LANES = TP_PHILOX_LANES };

static void philox(int64_t *out, ptrdiff_t count, uint64_t seed, uint64_t offset, uint64_t upper, int threads) {
    const ptrdiff_t blocks = (count + 3) / 4, groups = (blocks + LANES - 1) / LANES;
    TP_PARALLEL(groups, threads, begin, end, {
        for (ptrdiff_t group = begin; group < end; group++) {
            tp_philox_words w;
            tp_philox(&w, seed, offset, upper, (uint64_t)group * LANES);
            int64_t *to = out + group * LANES * 4;
            const ptrdiff_t left = count - group * LANES * 4;
            if (left >= LANES * 4) {
                for (int l = 0; l < LANES; l++) {
                    to[4 * l] = w.word[0][l];
                    to[4 * l + 1] = w.word[1][l];
                    to[4 * l + 2] = w.word[2][l];
                    to[4 * l + 3] = w.word[3][l];
                }
            } else {
                for (ptrdiff_t i = 0; i < left; i++) {
                    to[i] = w.word[i & 3][i >> 2];
                }
            }
        }
    });
}

#define CUMSUM(S, T, LONG)                                                                             \
    static void cumsum_##S(const void *x_, void *o_, ptrdiff_t before, ptrdiff_t n, ptrdiff_t after, int threads) { \
        const T *x = x_;                                                                               \
        T *o = o_;                                                                                     \
        if (after == 1) {                                                                              \
            TP_PARALLEL(before, threads, begin, end, {                                                 \
                for (ptrdiff_t k = begin; k < end; k++) {                                              \
                    LONG total = 0;                                                                    \
                    for (ptrdiff_t i = k * n; i < (k + 1) * n; i++) { total += x[i]; o[i] = (T)total; } \
                }                                                                                      \
            });                                                                                        \
            return;                                                                                    \
        }                                                                                              \
        const ptrdiff_t blocks = (after + WIDTH - 1) / WIDTH;                                          \
        TP_PARALLEL(before * blocks, threads, begin, end, {                                            \
            for (ptrdiff_t k = begin; k < end; k++) {                                                  \
                const ptrdiff_t first = k % blocks * WIDTH;                                            \
                const ptrdiff_t width = after - first < WIDTH ? after - first : WIDTH;                 \
                LONG total[WIDTH];                                                                     \
                for (ptrdiff_t j = 0; j < width; j++) total[j] = 0;                                    \
                for (ptrdiff_t i = 0; i < n; i++) {                                                    \
                    const ptrdiff_t at = (k / blocks * n + i) * after + first;                         \
                    INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                \
                        total[j] += x[at + j];                                                         \
                        o[at + j] = (T)total[j];                                                       \
                    }                                                                                  \
                }                                                                                      \
            }                                                                                          \
        });                                                                                            \
    }
CUMSUM(F32, float, double)
CUMSUM(F64, double, double)
CUMSUM(I64, int64_t, int64_t)

const tp_sequences LEVEL(tp_sequence_table) = {
    .philox = philox,
    .cumsum = {cumsum_F32, cumsum_F64, cumsum_I64},
};
