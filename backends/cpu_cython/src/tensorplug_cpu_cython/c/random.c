#include "random.h"

#include "parallel.h"
#include "philox.h"
#include "vmath.h"

enum { LANES = TP_PHILOX_LANES };

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

static void uniform(const int64_t *words, float *out, ptrdiff_t count, int threads) {
    TP_PARALLEL(count, threads, begin, end, {
        INDEPENDENT
        for (ptrdiff_t i = begin; i < end; i++) {
            out[i] = (float)(int32_t)(words[i] >> 8) * 0x1p-24f;
        }
    });
}

static void normal(const int64_t *radius, const int64_t *angle, float *out, ptrdiff_t count, int threads) {
    TP_PARALLEL(count, threads, begin, end, {
        INDEPENDENT
        for (ptrdiff_t i = begin; i < end; i++) {
            const float r = (float)(radius[i] + 1) * 0x1p-32f;
            const float turn = (float)(int32_t)(angle[i] >> 8) * 0x1p-24f;
            out[i] = sqrtf(m_log_F32(r) * -2.0f) * m_cos_F32(turn * 6.283185307179586f);
        }
    });
}

const tp_random LEVEL(tp_random_table) = {
    .philox = philox,
    .uniform = uniform,
    .normal = normal,
};
