#include "normalization_response.h"

#include <stdlib.h>

#include "parallel.h"
#include "vmath.h"

/* Positions are worked on in blocks; small images are put beside each other to make one. */
enum { WIDTH = 64 };

/* A block has `n` positions, and its channels stand `step` apart. */
#define RESPONSE(S, T)                                                                                 \
    /* k + alpha times the sum of squares, of channel c; x is of the first channel. */                 \
    static void base_##S(const tp_response *s, const T *x, ptrdiff_t step, ptrdiff_t c, ptrdiff_t n, T *base) { \
        const ptrdiff_t first = c < s->before ? 0 : c - s->before;                                     \
        const ptrdiff_t last = c + s->behind < s->channels ? c + s->behind : s->channels - 1;          \
        T total[WIDTH] = {0};                                                                          \
        for (ptrdiff_t j = first; j <= last; j++)                                                      \
            for (ptrdiff_t i = 0; i < n; i++) total[i] += x[j * step + i] * x[j * step + i];           \
        for (ptrdiff_t i = 0; i < n; i++) base[i] = total[i] * (T)s->alpha + (T)s->k;                  \
    }                                                                                                  \
    static void divide_##S(const tp_response *s, const T *x, ptrdiff_t step, ptrdiff_t n, T *o) {      \
        for (ptrdiff_t c = 0; c < s->channels; c++) {                                                  \
            T base[WIDTH];                                                                             \
            base_##S(s, x, step, c, n, base);                                                          \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)                                              \
                o[c * step + i] = x[c * step + i] * m_exp_##S((T)-s->beta * m_log_##S(base[i]));       \
        }                                                                                              \
    }                                                                                                  \
    /* With the power p of channel c: g p, less x times the sum over those that c is a neighbour of, of    \
       2 alpha beta g x p / base. */                                                                   \
    static void divide_back_##S(const tp_response *s, const T *g, const T *x, ptrdiff_t step, ptrdiff_t n, T *o, \
                                T *slopes) {                                                           \
        for (ptrdiff_t c = 0; c < s->channels; c++) {                                                  \
            const T *p = g + c * step;                                                                 \
            const T *q = x + c * step;                                                                 \
            T *to = o + c * step;                                                                      \
            T base[WIDTH];                                                                             \
            base_##S(s, x, step, c, n, base);                                                          \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {                                            \
                to[i] = p[i] * m_exp_##S((T)-s->beta * m_log_##S(base[i]));                            \
                slopes[c * WIDTH + i] = to[i] * q[i] / base[i] * (T)(2 * s->alpha * s->beta);          \
            }                                                                                          \
        }                                                                                              \
        for (ptrdiff_t c = 0; c < s->channels; c++) {                                                  \
            const ptrdiff_t low = c < s->behind ? 0 : c - s->behind;                                   \
            const ptrdiff_t high = c + s->before < s->channels ? c + s->before : s->channels - 1;      \
            T total[WIDTH] = {0};                                                                      \
            for (ptrdiff_t j = low; j <= high; j++)                                                    \
                for (ptrdiff_t i = 0; i < n; i++) total[i] += slopes[j * WIDTH + i];                   \
            for (ptrdiff_t i = 0; i < n; i++) o[c * step + i] -= x[c * step + i] * total[i];           \
        }                                                                                              \
    }                                                                                                  \
    /* Move `count` images into a block, or out of it. */                                              \
    static void put_beside_##S(const tp_response *s, T *images, ptrdiff_t count, T *block, int back) { \
        const ptrdiff_t positions = s->positions;                                                      \
        for (ptrdiff_t t = 0; t < count; t++)                                                          \
            for (ptrdiff_t c = 0; c < s->channels; c++, images += positions) {                         \
                T *at = block + c * WIDTH + t * positions;                                             \
                if (back) for (ptrdiff_t i = 0; i < positions; i++) images[i] = at[i];                 \
                else for (ptrdiff_t i = 0; i < positions; i++) at[i] = images[i];                      \
            }                                                                                          \
    }                                                                                                  \
    /* Without `g` forward. */                                                                         \
    static int run_##S(const tp_response *s, const T *g, const T *x, T *o) {                           \
        const ptrdiff_t positions = s->positions, plane = s->channels * positions, size = s->channels * WIDTH; \
        const ptrdiff_t beside = positions && positions <= WIDTH / 2 ? WIDTH / positions : 1;          \
        const ptrdiff_t blocks = (positions + WIDTH - 1) / WIDTH;                                      \
        int failed = 0;                                                                                \
        TP_PARALLEL(beside > 1 ? (s->samples + beside - 1) / beside : s->samples * blocks, s->threads, begin, end, { \
            T *slopes = malloc((size_t)(4 * size) * sizeof(T));                                        \
            if (!slopes) failed = 1;                                                                   \
            T *own = slopes + size;                                                                    \
            T *given = own + size;                                                                     \
            T *found = given + size;                                                                   \
            for (ptrdiff_t unit = begin; slopes && unit < end; unit++) {                               \
                if (beside > 1) {                                                                      \
                    const ptrdiff_t first = unit * beside;                                             \
                    const ptrdiff_t count = s->samples - first < beside ? s->samples - first : beside; \
                    const ptrdiff_t n = count * positions;                                             \
                    put_beside_##S(s, (T *)x + first * plane, count, own, 0);                          \
                    if (g) put_beside_##S(s, (T *)g + first * plane, count, given, 0);                 \
                    if (g) divide_back_##S(s, given, own, WIDTH, n, found, slopes);                    \
                    else divide_##S(s, own, WIDTH, n, found);                                          \
                    put_beside_##S(s, o + first * plane, count, found, 1);                             \
                } else {                                                                               \
                    const ptrdiff_t first = unit % blocks * WIDTH;                                     \
                    const ptrdiff_t n = positions - first < WIDTH ? positions - first : WIDTH;         \
                    const ptrdiff_t at = unit / blocks * plane + first;                                \
                    if (g) divide_back_##S(s, g + at, x + at, positions, n, o + at, slopes);           \
                    else divide_##S(s, x + at, positions, n, o + at);                                  \
                }                                                                                      \
            }                                                                                          \
            free(slopes);                                                                              \
        });                                                                                            \
        return !failed;                                                                                \
    }                                                                                                  \
    static int forward_##S(const tp_response *s, const void *x, void *y) { return run_##S(s, NULL, x, y); } \
    static int backward_##S(const tp_response *s, const void *g, const void *x, void *o) {             \
        return run_##S(s, g, x, o);                                                                    \
    }

RESPONSE(F32, float)
RESPONSE(F64, double)

const tp_responses LEVEL(tp_response_table) = {
    .forward = {forward_F32, forward_F64},
    .backward = {backward_F32, backward_F64},
};
