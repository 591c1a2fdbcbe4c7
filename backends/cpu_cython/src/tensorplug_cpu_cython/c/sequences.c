#include "sequences.h"

#include <string.h>

#include "parallel.h"

enum { ROUNDS = 10, WIDTH = 256, LANES = 16 };

/* Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3. Several blocks at a time,
   so that the compiler vectorises over them. */
static void philox(int64_t *out, ptrdiff_t count, uint64_t seed, uint64_t offset, uint64_t upper, int threads) {
    const ptrdiff_t blocks = (count + 3) / 4, groups = (blocks + LANES - 1) / LANES;
    TP_PARALLEL(groups, threads, begin, end, {
        for (ptrdiff_t group = begin; group < end; group++) {
            uint32_t a[LANES];
            uint32_t b[LANES];
            uint32_t c[LANES];
            uint32_t d[LANES];
            uint32_t key0 = (uint32_t)seed;
            uint32_t key1 = (uint32_t)(seed >> 32);
            for (int l = 0; l < LANES; l++) {
                const uint64_t low = offset + (uint64_t)(group * LANES + l);
                const uint64_t high = upper + (low < offset);
                a[l] = (uint32_t)low;
                b[l] = (uint32_t)(low >> 32);
                c[l] = (uint32_t)high;
                d[l] = (uint32_t)(high >> 32);
            }
            for (int round = 0; round < ROUNDS; round++) {
                for (int l = 0; l < LANES; l++) {
                    const uint64_t p = (uint64_t)a[l] * 0xD2511F53u;
                    const uint64_t q = (uint64_t)c[l] * 0xCD9E8D57u;
                    const uint32_t x = (uint32_t)(q >> 32) ^ b[l] ^ key0;
                    const uint32_t y = (uint32_t)(p >> 32) ^ d[l] ^ key1;
                    a[l] = x;
                    b[l] = (uint32_t)q;
                    c[l] = y;
                    d[l] = (uint32_t)p;
                }
                key0 += 0x9E3779B9u;
                key1 += 0xBB67AE85u;
            }
            int64_t *to = out + group * LANES * 4;
            const ptrdiff_t left = count - group * LANES * 4;
            if (left >= LANES * 4) {
                for (int l = 0; l < LANES; l++) {
                    to[4 * l] = a[l];
                    to[4 * l + 1] = b[l];
                    to[4 * l + 2] = c[l];
                    to[4 * l + 3] = d[l];
                }
            } else {
                for (ptrdiff_t i = 0; i < left; i++) {
                    const uint32_t *const words[4] = {a, b, c, d};
                    to[i] = words[i & 3][i >> 2];
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

static void join(char *out, const char *const *from, const ptrdiff_t *bytes, ptrdiff_t sources, ptrdiff_t rows,
                 int threads) {
    ptrdiff_t row = 0;
    for (ptrdiff_t k = 0; k < sources; k++) row += bytes[k];
    /* The threads share the bytes of the result, for there may be one row only. */
    TP_PARALLEL(row * rows, threads, begin, end, {
        for (ptrdiff_t r = begin / row; r * row < end; r++) {
            ptrdiff_t at = r * row;
            for (ptrdiff_t k = 0; k < sources; k++) {
                const ptrdiff_t first = at < begin ? begin - at : 0;
                const ptrdiff_t stop = at + bytes[k] > end ? end - at : bytes[k];
                if (first < stop) memcpy(out + at + first, from[k] + r * bytes[k] + first, (size_t)(stop - first));
                at += bytes[k];
            }
        }
    });
}

const tp_sequences LEVEL(tp_sequence_table) = {
    .philox = philox,
    .join = join,
    .cumsum = {cumsum_F32, cumsum_F64, cumsum_I64},
};
