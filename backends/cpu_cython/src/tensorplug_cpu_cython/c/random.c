#include "random.h"

#include <string.h>

#include "parallel.h"
#include "philox.h"
#include "types.h"
#include "elementary64.h"

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

/* Below x86-64-v4 no vectors of wide integers are converted: halves are, exactly, and their sum is rounded once. */
static inline float above_zero(uint32_t word) {
    return ((float)(int32_t)(word >> 16) * 0x1p16f + (float)(int32_t)((word & 0xffff) + 1)) * 0x1p-32f;
}

static void normal(const int64_t *radius, const int64_t *angle, float *out, ptrdiff_t count, int threads) {
    TP_PARALLEL(count, threads, begin, end, {
        INDEPENDENT
        for (ptrdiff_t i = begin; i < end; i++) {
            const float r = above_zero((uint32_t)radius[i]);
            const float turn = (float)(int32_t)(angle[i] >> 8) * 0x1p-24f;
            out[i] = sqrtf(m_log_F32(r) * -2.0f) * m_cos_F32(turn * 6.283185307179586f);
        }
    });
}

/* --- numbers drawn in one go: a group of words at a time, which stay in the first cache ------------------- */

enum { GROUP = 4 * LANES, FEW = 16 /* numbers, for which no whole group is computed */ };

/* The words of a group of blocks, in the order of their numbers. */
static __attribute__((noinline)) void words_of(uint32_t *to, tp_counter first, ptrdiff_t group) {
    tp_philox_words w;
    tp_philox(&w, first.seed, first.offset, first.upper, (uint64_t)group * LANES);
    for (int l = 0; l < LANES; l++) {
        to[4 * l] = w.word[0][l];
        to[4 * l + 1] = w.word[1][l];
        to[4 * l + 2] = w.word[2][l];
        to[4 * l + 3] = w.word[3][l];
    }
}

static inline tp_counter after(tp_counter first, uint64_t blocks) {
    const uint64_t offset = first.offset + blocks;
    return (tp_counter){first.seed, offset, first.upper + (offset < blocks)};
}

/* Fill `out`, of T, by an expression of `i`, a place in the group, and of w[0][i] to w[WORDS - 1][i]; what was made of a
   group, of type MADE, is stored at once. */
#define DRAW_AND(STORE, T, MADE, WORDS, EXPRESSION)                                                           \
    const ptrdiff_t blocks = (count + 3) / 4, groups = (blocks + LANES - 1) / LANES;                          \
    TP_PARALLEL(groups, threads, begin, end, {                                                                \
        for (ptrdiff_t group = begin; group < end; group++) {                                                 \
            uint32_t w[WORDS][GROUP];                                                                         \
            MADE made[GROUP];                                                                                 \
            for (int k = 0; k < WORDS; k++) words_of(w[k], after(first, (uint64_t)(k * blocks)), group);      \
            const ptrdiff_t place = group * GROUP, left = count - place < GROUP ? count - place : GROUP;      \
            if (left <= FEW) {                                                                                \
                for (int i = 0; i < FEW; i++) made[i] = (EXPRESSION);                                         \
            } else {                                                                                          \
                for (int i = 0; i < GROUP; i++) made[i] = (EXPRESSION);                                       \
            }                                                                                                 \
            STORE((T *)out + place, made, left);                                                              \
        }                                                                                                     \
    })
#define COPIED(to, from, n) memcpy(to, from, (size_t)(n) * sizeof(*(to)))
#define DRAW(T, WORDS, EXPRESSION) DRAW_AND(COPIED, T, T, WORDS, EXPRESSION)
#define DRAW_HALF(S, WORDS, EXPRESSION) DRAW_AND(narrow_run_##S, half_##S, float, WORDS, EXPRESSION)

static inline float single_of(uint32_t word) { return (float)(int32_t)(word >> 8) * 0x1p-24f; }

static inline double double_of(uint32_t high, uint32_t low) {
    return ((double)(int32_t)(high >> 5) * 0x1p26 + (double)(int32_t)((high & 31) << 21 | low >> 11)) * 0x1p-53;
}

static void uniform_F32(void *out, ptrdiff_t count, tp_counter first, int threads) {
    DRAW(float, 1, single_of(w[0][i]));
}

#define HALF_UNIFORM(S, BITS)                                                                                  \
    static void uniform_##S(void *out, ptrdiff_t count, tp_counter first, int threads) {                       \
        DRAW_HALF(S, 1, (float)(int32_t)(w[0][i] >> (32 - BITS)) * (1.0f / (1 << BITS)));                      \
    }
HALF_UNIFORM(F16, 11)
HALF_UNIFORM(BF16, 8)

static void uniform_F64(void *out, ptrdiff_t count, tp_counter first, int threads) {
    DRAW(double, 2, double_of(w[0][i], w[1][i]));
}

static inline float normal_of_F32(uint32_t radius, uint32_t angle) {
    return sqrtf(m_log_F32(above_zero(radius)) * -2.0f) * m_cos_F32(single_of(angle) * 6.283185307179586f);
}

static void normal_F32(void *out, ptrdiff_t count, tp_counter first, int threads) {
    DRAW(float, 2, normal_of_F32(w[0][i], w[1][i]));
}

#define HALF_NORMAL(S)                                                                                         \
    static void normal_##S(void *out, ptrdiff_t count, tp_counter first, int threads) {                        \
        DRAW_HALF(S, 2, normal_of_F32(w[0][i], w[1][i]));                                                      \
    }
HALF_NORMAL(F16)
HALF_NORMAL(BF16)

static void normal_F64(void *out, ptrdiff_t count, tp_counter first, int threads) {
    DRAW(double, 4, sqrt(m_log_F64(1.0 - double_of(w[0][i], w[1][i])) * -2.0)
                        * m_cos_F64(double_of(w[2][i], w[3][i]) * 6.283185307179586));
}

#define BERNOULLI(S, T, WORDS, UNIFORM)                                                                        \
    static void bernoulli_##S(                                                                                 \
        void *out, const void *chance, ptrdiff_t step, ptrdiff_t count, tp_counter first, int threads) {       \
        const T *p = chance;                                                                                   \
        if (step) {                                                                                            \
            DRAW(T, WORDS, i < left ? (T)((UNIFORM) < p[place + i]) : (T)0);                                   \
        } else {                                                                                               \
            const T all = *p;                                                                                  \
            DRAW(T, WORDS, (T)((UNIFORM) < all));                                                              \
        }                                                                                                      \
    }
BERNOULLI(F32, float, 1, single_of(w[0][i]))
BERNOULLI(F64, double, 2, double_of(w[0][i], w[1][i]))

/* Of other types, for one chance of float. */
#define ONES(S, T, ONE)                                                                                        \
    static void bernoulli_##S(                                                                                 \
        void *out, const void *chance, ptrdiff_t step, ptrdiff_t count, tp_counter first, int threads) {       \
        const float all = *(const float *)chance;                                                              \
        (void)step;                                                                                            \
        DRAW(T, 1, (T)(single_of(w[0][i]) < all ? ONE : 0));                                                   \
    }
#define ONES_OF(S, T) ONES(S, T, 1)
TP_INTEGERS(ONES_OF)
ONES(BOOL, uint8_t, 1)
ONES(F16, half_F16, 0x3c00)
ONES(BF16, half_BF16, 0x3f80)

/* Up to 2**16 numbers are made of one word, as many as 2**63 of two. */
#define INTEGERS(S, T)                                                                                         \
    static void integers_##S(                                                                                  \
        void *out, int64_t low, uint64_t span, ptrdiff_t count, tp_counter first, int threads) {               \
        if (span <= 1u << 16) {                                                                                \
            DRAW(T, 1, (T)(int64_t)((uint64_t)low + (w[0][i] * span >> 32)));                                  \
        } else if (span & (span - 1)) {                                                                        \
            DRAW(T, 2, (T)(int64_t)((uint64_t)low + (((uint64_t)(w[0][i] & 0x7fffffff) << 32 | w[1][i]) % span))); \
        } else {                                                                                               \
            DRAW(T, 2, (T)(int64_t)((uint64_t)low + (((uint64_t)(w[0][i] & 0x7fffffff) << 32 | w[1][i]) & (span - 1)))); \
        }                                                                                                      \
    }
TP_FLOATS(INTEGERS)
TP_INTEGERS(INTEGERS)

/* Of these types up to 2**16 numbers, which float holds exactly. */
#define FEW_INTEGERS(S, T, CONVERT)                                                                            \
    static void integers_##S(                                                                                  \
        void *out, int64_t low, uint64_t span, ptrdiff_t count, tp_counter first, int threads) {               \
        DRAW(T, 1, CONVERT((float)(int64_t)((uint64_t)low + (w[0][i] * span >> 32))));                         \
    }
#define IS_TRUE(x) ((x) != 0.0f)
FEW_INTEGERS(BOOL, uint8_t, IS_TRUE)
FEW_INTEGERS(F16, half_F16, narrow_F16)
FEW_INTEGERS(BF16, half_BF16, narrow_BF16)

#define ALL_TYPES(name)                                                                                        \
    {                                                                                                          \
        [TP_F32] = name##_F32, [TP_F64] = name##_F64, [TP_I64] = name##_I64, [TP_I32] = name##_I32,            \
        [TP_I16] = name##_I16, [TP_I8] = name##_I8, [TP_U8] = name##_U8, [TP_BOOL] = name##_BOOL,              \
        [TP_F16] = name##_F16, [TP_BF16] = name##_BF16,                                                        \
    }
#define FLOAT_TYPES(name)                                                                                      \
    { [TP_F32] = name##_F32, [TP_F64] = name##_F64, [TP_F16] = name##_F16, [TP_BF16] = name##_BF16 }

const tp_random LEVEL(tp_random_table) = {
    .philox = philox,
    .uniform = uniform,
    .normal = normal,
    .uniform_new = FLOAT_TYPES(uniform),
    .normal_new = FLOAT_TYPES(normal),
    .bernoulli_new = ALL_TYPES(bernoulli),
    .integers_new = ALL_TYPES(integers),
};
