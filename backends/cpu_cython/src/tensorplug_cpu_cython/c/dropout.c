#include "dropout.h"

#include "parallel.h"
#include "philox.h"

enum { LANES = TP_PHILOX_LANES, GROUP = 4 * LANES };

/* Put the upper 24 bits of a group's words in the order of the elements. */
static inline __attribute__((always_inline)) void group_bits(const tp_dropout *d, ptrdiff_t group, uint32_t *bits) {
    tp_philox_words w;
    tp_philox(&w, d->seed, d->offset, d->upper, (uint64_t)group * LANES);
    for (int l = 0; l < LANES; l++) {
        bits[4 * l] = w.word[0][l] >> 8;
        bits[4 * l + 1] = w.word[1][l] >> 8;
        bits[4 * l + 2] = w.word[2][l] >> 8;
        bits[4 * l + 3] = w.word[3][l] >> 8;
    }
}

#define DROPOUT(S, T)                                                                                  \
    static void forward_##S(const tp_dropout *d, const void *x_, void *out_, uint8_t *kept, ptrdiff_t count, \
                            int threads) {                                                             \
        const T *x = x_;                                                                               \
        T *out = out_;                                                                                 \
        const T scale = (T)d->scale;                                                                   \
        const uint32_t least = d->least;                                                               \
        TP_PARALLEL((count + GROUP - 1) / GROUP, threads, begin, end, {                                \
            for (ptrdiff_t group = begin; group < end; group++) {                                      \
                uint32_t bits[GROUP];                                                                  \
                group_bits(d, group, bits);                                                            \
                const ptrdiff_t at = group * GROUP;                                                    \
                const ptrdiff_t width = count - at < GROUP ? count - at : GROUP;                       \
                if (width == GROUP) {                                                                  \
                    INDEPENDENT for (int i = 0; i < GROUP; i++)                                        \
                        out[at + i] = x[at + i] * (bits[i] >= least ? scale : (T)0);                   \
                    if (kept) INDEPENDENT for (int i = 0; i < GROUP; i++) kept[at + i] = bits[i] >= least; \
                } else {                                                                               \
                    for (ptrdiff_t i = 0; i < width; i++)                                              \
                        out[at + i] = x[at + i] * (bits[i] >= least ? scale : (T)0);                   \
                    if (kept) for (ptrdiff_t i = 0; i < width; i++) kept[at + i] = bits[i] >= least;   \
                }                                                                                      \
            }                                                                                          \
        });                                                                                            \
    }                                                                                                  \
    static void backward_##S(const void *g_, const uint8_t *kept, double scale_, void *out_, ptrdiff_t count, \
                             int threads) {                                                            \
        const T *g = g_;                                                                               \
        T *out = out_;                                                                                 \
        const T scale = (T)scale_;                                                                     \
        TP_PARALLEL(count, threads, begin, end, {                                                      \
            INDEPENDENT for (ptrdiff_t i = begin; i < end; i++) out[i] = g[i] * (kept[i] ? scale : (T)0); \
        });                                                                                            \
    }
DROPOUT(F32, float)
DROPOUT(F64, double)

const tp_dropouts LEVEL(tp_dropout_table) = {
    .forward = {forward_F32, forward_F64},
    .backward = {backward_F32, backward_F64},
};
