#include "normalization_response.h"

#include <stdlib.h>

#include "parallel.h"
#include "vmath.h"

enum { WIDTH = 64 };

#define RESPONSE(S, T)                                                                                 \
    /* k + alpha times the sum of squares, of `n` positions of channel c; x is of the first channel. */ \
    static void base_##S(const tp_response *s, const T *x, ptrdiff_t c, ptrdiff_t n, T *base) {        \
        const ptrdiff_t first = c < s->before ? 0 : c - s->before;                                     \
        const ptrdiff_t last = c + s->behind < s->channels ? c + s->behind : s->channels - 1;          \
        T total[WIDTH] = {0};                                                                          \
        for (ptrdiff_t j = first; j <= last; j++)                                                      \
            for (ptrdiff_t i = 0; i < n; i++) total[i] += x[j * s->positions + i] * x[j * s->positions + i]; \
        for (ptrdiff_t i = 0; i < n; i++) base[i] = total[i] * (T)s->alpha + (T)s->k;                  \
    }                                                                                                  \
    static void forward_##S(const tp_response *s, const void *x_, void *y_) {                          \
        const ptrdiff_t blocks = (s->positions + WIDTH - 1) / WIDTH, plane = s->channels * s->positions; \
        TP_PARALLEL(s->samples * blocks, s->threads, begin, end, {                                     \
            for (ptrdiff_t unit = begin; unit < end; unit++) {                                         \
                const ptrdiff_t first = unit % blocks * WIDTH;                                         \
                const ptrdiff_t n = s->positions - first < WIDTH ? s->positions - first : WIDTH;       \
                const T *x = (const T *)x_ + unit / blocks * plane + first;                            \
                T *y = (T *)y_ + unit / blocks * plane + first;                                        \
                for (ptrdiff_t c = 0; c < s->channels; c++) {                                          \
                    T base[WIDTH];                                                                     \
                    base_##S(s, x, c, n, base);                                                        \
                    INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)                                      \
                        y[c * s->positions + i] =                                                      \
                            x[c * s->positions + i] * m_exp_##S((T)-s->beta * m_log_##S(base[i]));     \
                }                                                                                      \
            }                                                                                          \
        });                                                                                            \
    }                                                                                                  \
    /* With the power p of channel c: g p, less x times the sum over those that c is a neighbour of, of    \
       2 alpha beta g x p / base. */                                                                   \
    static int backward_##S(const tp_response *s, const void *g_, const void *x_, void *o_) {          \
        const ptrdiff_t blocks = (s->positions + WIDTH - 1) / WIDTH, plane = s->channels * s->positions; \
        int failed = 0;                                                                                \
        TP_PARALLEL(s->samples * blocks, s->threads, begin, end, {                                     \
            T *slopes = malloc((size_t)s->channels * WIDTH * sizeof(T));                               \
            if (!slopes) failed = 1;                                                                   \
            for (ptrdiff_t unit = begin; slopes && unit < end; unit++) {                               \
                const ptrdiff_t first = unit % blocks * WIDTH;                                         \
                const ptrdiff_t n = s->positions - first < WIDTH ? s->positions - first : WIDTH;       \
                const ptrdiff_t at = unit / blocks * plane + first;                                    \
                const T *x = (const T *)x_ + at;                                                       \
                const T *g = (const T *)g_ + at;                                                       \
                T *o = (T *)o_ + at;                                                                   \
                for (ptrdiff_t c = 0; c < s->channels; c++) {                                          \
                    const T *p = g + c * s->positions;                                                 \
                    const T *q = x + c * s->positions;                                                 \
                    T *to = o + c * s->positions;                                                      \
                    T base[WIDTH];                                                                     \
                    base_##S(s, x, c, n, base);                                                        \
                    INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {                                    \
                        to[i] = p[i] * m_exp_##S((T)-s->beta * m_log_##S(base[i]));                    \
                        slopes[c * WIDTH + i] = to[i] * q[i] / base[i] * (T)(2 * s->alpha * s->beta);  \
                    }                                                                                  \
                }                                                                                      \
                for (ptrdiff_t c = 0; c < s->channels; c++) {                                          \
                    const ptrdiff_t low = c < s->behind ? 0 : c - s->behind;                           \
                    const ptrdiff_t high = c + s->before < s->channels ? c + s->before : s->channels - 1; \
                    T total[WIDTH] = {0};                                                              \
                    for (ptrdiff_t j = low; j <= high; j++)                                            \
                        for (ptrdiff_t i = 0; i < n; i++) total[i] += slopes[j * WIDTH + i];           \
                    for (ptrdiff_t i = 0; i < n; i++)                                                  \
                        o[c * s->positions + i] -= x[c * s->positions + i] * total[i];                 \
                }                                                                                      \
            }                                                                                          \
            free(slopes);                                                                              \
        });                                                                                            \
        return !failed;                                                                                \
    }

RESPONSE(F32, float)
RESPONSE(F64, double)

const tp_responses LEVEL(tp_response_table) = {
    .forward = {forward_F32, forward_F64},
    .backward = {backward_F32, backward_F64},
};
