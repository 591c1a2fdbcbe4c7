#include "softmax.h"

#include <math.h>

#include "extremes.h"
#include "parallel.h"
#include "sums.h"
#include "vmath.h"

enum { WIDTH = 128, RUN = 512, SHORT = 16 };

EXTREME_ROW(max_F32, float, int32_t, -INFINITY, LARGER_OF)
EXTREME_ROW(max_F64, double, int64_t, -INFINITY, LARGER_OF)
EXTREME_COLUMNS(max_F32, float, LARGER_OF)
EXTREME_COLUMNS(max_F64, double, LARGER_OF)

/* The sums of columns, in short runs, so that they are exact: `step` adds to some[j] what is in row i, column j. */
#define SUM_COLUMNS(T, n, width, total, step)                                                          \
    {                                                                                                  \
        enum { ROWS_AT_ONCE = 64 };                                                                    \
        double exact[WIDTH];                                                                           \
        for (ptrdiff_t j = 0; j < width; j++) exact[j] = 0;                                            \
        for (ptrdiff_t from = 0; from < n; from += ROWS_AT_ONCE) {                                     \
            const ptrdiff_t to = n - from < ROWS_AT_ONCE ? n : from + ROWS_AT_ONCE;                    \
            T some[WIDTH];                                                                             \
            for (ptrdiff_t j = 0; j < width; j++) some[j] = 0;                                         \
            for (ptrdiff_t i = from; i < to; i++)                                                      \
                INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) { step }                             \
            for (ptrdiff_t j = 0; j < width; j++) exact[j] += some[j];                                 \
        }                                                                                              \
        for (ptrdiff_t j = 0; j < width; j++) total[j] = (T)exact[j];                                  \
    }

#define ROWS(S, T)                                                                                     \
    static void softmax_row_##S(const T *x, T *o, ptrdiff_t n) {                                       \
        const T peak = max_##S##_row(x, n);                                                              \
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) o[i] = m_exp_##S(x[i] - peak);                   \
        SUM_ROW(T, n, total, o[i])                                                                     \
        const T scale = (T)(1 / total);                                                                \
        for (ptrdiff_t i = 0; i < n; i++) o[i] *= scale;                                               \
    }                                                                                                  \
    static void log_softmax_row_##S(const T *x, T *o, ptrdiff_t n) {                                   \
        const T peak = max_##S##_row(x, n);                                                              \
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) o[i] = m_exp_##S(x[i] - peak);                   \
        SUM_ROW(T, n, total, o[i])                                                                     \
        const T shift = (T)log(total);                                                                 \
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) o[i] = (x[i] - peak) - shift;                    \
    }                                                                                                  \
    static void softmax_gradient_row_##S(const T *g, const T *y, T *o, ptrdiff_t n) {                  \
        SUM_ROW(T, n, total, g[i] * y[i])                                                              \
        const T along = (T)total;                                                                      \
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) o[i] = y[i] * (g[i] - along);                    \
    }                                                                                                  \
    static void log_softmax_gradient_row_##S(const T *g, const T *y, T *o, ptrdiff_t n) {              \
        SUM_ROW(T, n, total, g[i])                                                                     \
        const T along = (T)total;                                                                      \
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) o[i] = g[i] - m_exp_##S(y[i]) * along;           \
    }                                                                                                  \
    /* The same for a block of columns. */                                                             \
    static void softmax_columns_##S(const T *x, T *o, ptrdiff_t n, ptrdiff_t apart, ptrdiff_t width, int logarithm) {\
        T peak[WIDTH], total[WIDTH];                                                                   \
        for (ptrdiff_t j = 0; j < width; j++) peak[j] = -(T)INFINITY;                                  \
        max_##S##_columns(peak, (const char *)x, apart * (ptrdiff_t)sizeof(T), n, width);               \
        SUM_COLUMNS(T, n, width, total, {                                                              \
            const T shifted = x[i * apart + j] - peak[j];                                               \
            some[j] += o[i * apart + j] = m_exp_##S(shifted);                                           \
        })                                                                                             \
        if (logarithm) {                                                                               \
            for (ptrdiff_t j = 0; j < width; j++) total[j] = m_log_##S(total[j]);                      \
            for (ptrdiff_t i = 0; i < n; i++)                                                          \
                INDEPENDENT for (ptrdiff_t j = 0; j < width; j++)                                      \
                    o[i * apart + j] = (x[i * apart + j] - peak[j]) - total[j];                          \
            return;                                                                                    \
        }                                                                                              \
        for (ptrdiff_t j = 0; j < width; j++) total[j] = 1 / total[j];                                 \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) o[i * apart + j] *= total[j];             \
    }                                                                                                  \
    static void gradient_columns_##S(const T *g, const T *y, T *o, ptrdiff_t n, ptrdiff_t apart,        \
                                     ptrdiff_t width, int logarithm) {                                 \
        T total[WIDTH];                                                                                \
        SUM_COLUMNS(T, n, width, total, {                                                              \
            some[j] += logarithm ? g[i * apart + j] : g[i * apart + j] * y[i * apart + j];                \
        })                                                                                             \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                        \
                const T a = g[i * apart + j], b = y[i * apart + j];                                      \
                o[i * apart + j] = logarithm ? a - m_exp_##S(b) * total[j] : b * (a - total[j]);        \
            }                                                                                          \
    }

/* A block of short rows as columns of WIDTH, and back. */
#define TURN(S, T)                                                                                     \
    INLINE void gather_##S(T *restrict to, const T *restrict x, ptrdiff_t n, ptrdiff_t width) {        \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            for (ptrdiff_t j = 0; j < width; j++) to[i * WIDTH + j] = x[j * n + i];                    \
    }                                                                                                  \
    INLINE void scatter_##S(T *restrict to, const T *restrict x, ptrdiff_t n, ptrdiff_t width) {       \
        for (ptrdiff_t j = 0; j < width; j++)                                                          \
            for (ptrdiff_t i = 0; i < n; i++) to[j * n + i] = x[i * WIDTH + j];                        \
    }
TURN(F32, float)
TURN(F64, double)

/* Share rows, or blocks of columns, among threads; `to` is the place of their one result, of which a row has
   `results`. Short rows are taken as columns, which fill vectors. */
#define DRIVER(name, S, T, results, by_row, by_columns)                                                       \
    static void name##_##S(const void *a_, const void *b_, void *o_, ptrdiff_t before, ptrdiff_t n,    \
                           ptrdiff_t after, int threads) {                                             \
        const T *a = a_, *b = b_;                                                                      \
        T *o = o_;                                                                                     \
        (void)b;                                                                                       \
        if (after == 1 && n > 1 && n < SHORT && before >= SHORT) {                                     \
            TP_PARALLEL((before + WIDTH - 1) / WIDTH, threads, begin, end, {                           \
                T block[3][SHORT * WIDTH];                                                             \
                for (ptrdiff_t k = begin; k < end; k++) {                                              \
                    const ptrdiff_t first = k * WIDTH;                                                 \
                    const ptrdiff_t width = before - first < WIDTH ? before - first : WIDTH;           \
                    T *const target = o + first * (results);                                           \
                    gather_##S(block[0], a + first * n, n, width);                                     \
                    if (b) gather_##S(block[1], b + first * n, n, width);                              \
                    {                                                                                  \
                        const T *a = block[0];                                                         \
                        const T *b = block[1];                                                         \
                        T *o = block[2];                                                               \
                        const ptrdiff_t at = 0;                                                        \
                        const ptrdiff_t to = 0;                                                        \
                        const ptrdiff_t after = WIDTH;                                                 \
                        (void)b, (void)at, (void)to, (void)after;                                      \
                        by_columns;                                                                    \
                    }                                                                                  \
                    scatter_##S(target, block[2], results, width);                                     \
                }                                                                                      \
            });                                                                                        \
            return;                                                                                    \
        }                                                                                              \
        if (after == 1) {                                                                              \
            TP_PARALLEL(before, threads, begin, end, {                                                 \
                for (ptrdiff_t k = begin; k < end; k++) {                                              \
                    const ptrdiff_t at = k * n;                                                        \
                    const ptrdiff_t to = k;                                                            \
                    (void)to;                                                                          \
                    by_row;                                                                            \
                }                                                                                      \
            });                                                                                        \
            return;                                                                                    \
        }                                                                                              \
        const ptrdiff_t blocks = (after + WIDTH - 1) / WIDTH;                                          \
        TP_PARALLEL(before * blocks, threads, begin, end, {                                            \
            for (ptrdiff_t k = begin; k < end; k++) {                                                  \
                const ptrdiff_t first = k % blocks * WIDTH, at = k / blocks * n * after + first;       \
                const ptrdiff_t width = after - first < WIDTH ? after - first : WIDTH;                 \
                const ptrdiff_t to = k / blocks * after + first;                                       \
                (void)to;                                                                              \
                by_columns;                                                                            \
            }                                                                                          \
        });                                                                                            \
    }

/* The logarithm of the sum of the exponentials; an infinite extreme is not taken off. */
#define LOGSUMEXP(S, T)                                                                                \
    static T logsumexp_row_##S(const T *x, ptrdiff_t n) {                                              \
        const T peak = max_##S##_row(x, n);                                                            \
        const T shift = isinf(peak) ? 0 : peak;                                                        \
        double total = 0;                                                                              \
        for (ptrdiff_t from = 0; from < n; from += RUN) {                                              \
            const ptrdiff_t count = n - from < RUN ? n - from : RUN;                                   \
            T powers[RUN];                                                                             \
            INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) powers[i] = m_exp_##S(x[from + i] - shift); \
            SUM_ROW(T, count, sum, powers[i])                                                          \
            total += sum;                                                                              \
        }                                                                                              \
        return (T)log(total) + shift;                                                                  \
    }                                                                                                  \
    static void logsumexp_columns_##S(const T *x, T *o, ptrdiff_t n, ptrdiff_t apart, ptrdiff_t width) { \
        T shift[WIDTH];                                                                                \
        T total[WIDTH];                                                                                \
        for (ptrdiff_t j = 0; j < width; j++) shift[j] = -(T)INFINITY;                                 \
        max_##S##_columns(shift, (const char *)x, apart * (ptrdiff_t)sizeof(T), n, width);              \
        for (ptrdiff_t j = 0; j < width; j++) shift[j] = isinf(shift[j]) ? 0 : shift[j];               \
        SUM_COLUMNS(T, n, width, total, some[j] += m_exp_##S(x[i * apart + j] - shift[j]);)            \
        for (ptrdiff_t j = 0; j < width; j++) o[j] = m_log_##S(total[j]) + shift[j];                   \
    }

#define FAMILY(S, T)                                                                                   \
    ROWS(S, T)                                                                                         \
    DRIVER(softmax, S, T, n, softmax_row_##S(a + at, o + at, n),                                          \
           softmax_columns_##S(a + at, o + at, n, after, width, 0))                                    \
    DRIVER(log_softmax, S, T, n, log_softmax_row_##S(a + at, o + at, n),                                  \
           softmax_columns_##S(a + at, o + at, n, after, width, 1))                                    \
    DRIVER(softmax_gradient, S, T, n, softmax_gradient_row_##S(a + at, b + at, o + at, n),                \
           gradient_columns_##S(a + at, b + at, o + at, n, after, width, 0))                           \
    DRIVER(log_softmax_gradient, S, T, n, log_softmax_gradient_row_##S(a + at, b + at, o + at, n),        \
           gradient_columns_##S(a + at, b + at, o + at, n, after, width, 1))                           \
    LOGSUMEXP(S, T)                                                                                    \
    DRIVER(logsumexp, S, T, 1, o[to] = logsumexp_row_##S(a + at, n),                                      \
           logsumexp_columns_##S(a + at, o + to, n, after, width))
FAMILY(F32, float)
FAMILY(F64, double)

#define BOTH(name) {name##_F32, name##_F64}
const tp_softmax_kernels LEVEL(tp_softmax_table) = {
    .softmax = BOTH(softmax), .log_softmax = BOTH(log_softmax), .softmax_gradient = BOTH(softmax_gradient),
    .log_softmax_gradient = BOTH(log_softmax_gradient), .logsumexp = BOTH(logsumexp),
};
