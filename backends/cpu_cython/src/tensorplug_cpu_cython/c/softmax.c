#include "softmax.h"

#include <math.h>

#include "extremes.h"
#include "parallel.h"
#include "sums.h"
#include "vmath.h"

enum { WIDTH = 128, RUN = 512 };

EXTREME_ROW(max_F32, float, int32_t, -INFINITY, LARGER_OF)
EXTREME_ROW(max_F64, double, int64_t, -INFINITY, LARGER_OF)
EXTREME_COLUMNS(max_F32, float, LARGER_OF)
EXTREME_COLUMNS(max_F64, double, LARGER_OF)

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
    static void softmax_columns_##S(const T *x, T *o, ptrdiff_t n, ptrdiff_t step, ptrdiff_t width, int logarithm) {\
        T peak[WIDTH], total[WIDTH];                                                                   \
        for (ptrdiff_t j = 0; j < width; j++) { peak[j] = -(T)INFINITY; total[j] = 0; }                \
        max_##S##_columns(peak, (const char *)x, step * (ptrdiff_t)sizeof(T), n, width);               \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                        \
                const T shifted = x[i * step + j] - peak[j];                                           \
                const T e = m_exp_##S(shifted);                                                        \
                total[j] += e;                                                                         \
                o[i * step + j] = e;                                                                   \
            }                                                                                          \
        if (logarithm) {                                                                               \
            for (ptrdiff_t j = 0; j < width; j++) total[j] = m_log_##S(total[j]);                      \
            for (ptrdiff_t i = 0; i < n; i++)                                                          \
                INDEPENDENT for (ptrdiff_t j = 0; j < width; j++)                                      \
                    o[i * step + j] = (x[i * step + j] - peak[j]) - total[j];                          \
            return;                                                                                    \
        }                                                                                              \
        for (ptrdiff_t j = 0; j < width; j++) total[j] = 1 / total[j];                                 \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) o[i * step + j] *= total[j];             \
    }                                                                                                  \
    static void gradient_columns_##S(const T *g, const T *y, T *o, ptrdiff_t n, ptrdiff_t step,        \
                                     ptrdiff_t width, int logarithm) {                                 \
        T total[WIDTH] = {0};                                                                          \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            for (ptrdiff_t j = 0; j < width; j++)                                                      \
                total[j] += logarithm ? g[i * step + j] : g[i * step + j] * y[i * step + j];           \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                        \
                const T a = g[i * step + j], b = y[i * step + j];                                      \
                o[i * step + j] = logarithm ? a - m_exp_##S(b) * total[j] : b * (a - total[j]);        \
            }                                                                                          \
    }

/* Share rows, or blocks of columns, among threads; `to` is the place of their one result. */
#define DRIVER(name, S, T, by_row, by_columns)                                                         \
    static void name##_##S(const void *a_, const void *b_, void *o_, ptrdiff_t before, ptrdiff_t n,    \
                           ptrdiff_t after, int threads) {                                             \
        const T *a = a_, *b = b_;                                                                      \
        T *o = o_;                                                                                     \
        (void)b;                                                                                       \
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
    static void logsumexp_columns_##S(const T *x, T *o, ptrdiff_t n, ptrdiff_t step, ptrdiff_t width) { \
        T shift[WIDTH];                                                                                \
        T total[WIDTH] = {0};                                                                          \
        for (ptrdiff_t j = 0; j < width; j++) shift[j] = -(T)INFINITY;                                 \
        max_##S##_columns(shift, (const char *)x, step * (ptrdiff_t)sizeof(T), n, width);              \
        for (ptrdiff_t j = 0; j < width; j++) shift[j] = isinf(shift[j]) ? 0 : shift[j];               \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) total[j] += m_exp_##S(x[i * step + j] - shift[j]); \
        for (ptrdiff_t j = 0; j < width; j++) o[j] = m_log_##S(total[j]) + shift[j];                   \
    }

#define NORMS(S, T)                                                                                    \
    static void standardize_##S(const void *x_, void *o_, void *mean_, void *rstd_, double eps,        \
                                ptrdiff_t before, ptrdiff_t kept, ptrdiff_t after, int threads) {      \
        const T *x = x_;                                                                               \
        T *o = o_, *mean = mean_, *rstd = rstd_;                                                       \
        const double count = (double)(before * after);                                                 \
        if (after > 1 || before == 1) {                                                                \
            TP_PARALLEL(kept, threads, begin, end, {                                                   \
                for (ptrdiff_t k = begin; k < end; k++) {                                              \
                    double sum = 0;                                                                    \
                    double squares = 0;                                                                \
                    for (ptrdiff_t b = 0; b < before; b++) {                                           \
                        const T *row = x + (b * kept + k) * after;                                     \
                        SUM_ROW(T, after, total, row[i])                                               \
                        sum += total;                                                                  \
                    }                                                                                  \
                    const T middle = (T)(sum / count);                                                 \
                    for (ptrdiff_t b = 0; b < before; b++) {                                           \
                        const T *row = x + (b * kept + k) * after;                                     \
                        SUM_ROW(T, after, total, (row[i] - middle) * (row[i] - middle))                \
                        squares += total;                                                              \
                    }                                                                                  \
                    const T scale = (T)(1 / sqrt(squares / count + eps));                              \
                    for (ptrdiff_t b = 0; b < before; b++) {                                           \
                        const ptrdiff_t at = (b * kept + k) * after;                                   \
                        INDEPENDENT for (ptrdiff_t i = 0; i < after; i++) o[at + i] = (x[at + i] - middle) * scale; \
                    }                                                                                  \
                    mean[k] = middle;                                                                  \
                    rstd[k] = scale;                                                                   \
                }                                                                                      \
            });                                                                                        \
            return;                                                                                    \
        }                                                                                              \
        TP_PARALLEL((kept + WIDTH - 1) / WIDTH, threads, begin, end, {                                 \
            for (ptrdiff_t block = begin; block < end; block++) {                                      \
                const ptrdiff_t k = block * WIDTH;                                                     \
                const ptrdiff_t width = kept - k < WIDTH ? kept - k : WIDTH;                           \
                double sum[WIDTH] = {0};                                                               \
                double squares[WIDTH] = {0};                                                           \
                for (ptrdiff_t b = 0; b < before; b++)                                                 \
                    for (ptrdiff_t j = 0; j < width; j++) sum[j] += x[b * kept + k + j];               \
                for (ptrdiff_t j = 0; j < width; j++) mean[k + j] = (T)(sum[j] / count);               \
                for (ptrdiff_t b = 0; b < before; b++)                                                 \
                    for (ptrdiff_t j = 0; j < width; j++) {                                            \
                        const T d = x[b * kept + k + j] - mean[k + j];                                 \
                        squares[j] += d * d;                                                           \
                    }                                                                                  \
                for (ptrdiff_t j = 0; j < width; j++) rstd[k + j] = (T)(1 / sqrt(squares[j] / count + eps)); \
                for (ptrdiff_t b = 0; b < before; b++)                                                 \
                    INDEPENDENT for (ptrdiff_t j = 0; j < width; j++)                                  \
                        o[b * kept + k + j] = (x[b * kept + k + j] - mean[k + j]) * rstd[k + j];       \
            }                                                                                          \
        });                                                                                            \
    }                                                                                                  \
    static void standardize_backward_##S(const void *g_, const void *g_mean_, const void *g_rstd_,     \
                                         const void *y_, const void *rstd_, void *o_, ptrdiff_t before, \
                                         ptrdiff_t kept, ptrdiff_t after, int threads) {               \
        const T *g = g_, *g_mean = g_mean_, *g_rstd = g_rstd_, *y = y_, *rstd = rstd_;                 \
        T *o = o_;                                                                                     \
        const double count = (double)(before * after);                                                 \
        if (after > 1 || before == 1) {                                                                \
            TP_PARALLEL(kept, threads, begin, end, {                                                   \
                for (ptrdiff_t k = begin; k < end; k++) {                                              \
                    double sum = 0;                                                                    \
                    double products = 0;                                                               \
                    for (ptrdiff_t b = 0; b < before; b++) {                                           \
                        const T *p = g + (b * kept + k) * after;                                       \
                        const T *q = y + (b * kept + k) * after;                                       \
                        SUM_ROW(T, after, total, p[i])                                                 \
                        SUM_ROW(T, after, product, p[i] * q[i])                                        \
                        sum += total;                                                                  \
                        products += product;                                                           \
                    }                                                                                  \
                    const double r = rstd[k];                                                          \
                    const T along = (T)((products * r + g_rstd[k] * r * r) / count);                   \
                    const T constant = (T)((sum * r - g_mean[k]) / count);                             \
                    const T scale = rstd[k];                                                           \
                    for (ptrdiff_t b = 0; b < before; b++) {                                           \
                        const ptrdiff_t at = (b * kept + k) * after;                                   \
                        INDEPENDENT for (ptrdiff_t i = 0; i < after; i++)                              \
                            o[at + i] = g[at + i] * scale - y[at + i] * along - constant;              \
                    }                                                                                  \
                }                                                                                      \
            });                                                                                        \
            return;                                                                                    \
        }                                                                                              \
        TP_PARALLEL((kept + WIDTH - 1) / WIDTH, threads, begin, end, {                                 \
            for (ptrdiff_t block = begin; block < end; block++) {                                      \
                const ptrdiff_t k = block * WIDTH;                                                     \
                const ptrdiff_t width = kept - k < WIDTH ? kept - k : WIDTH;                           \
                double sum[WIDTH] = {0};                                                               \
                double products[WIDTH] = {0};                                                          \
                T along[WIDTH];                                                                        \
                T constant[WIDTH];                                                                     \
                for (ptrdiff_t b = 0; b < before; b++)                                                 \
                    for (ptrdiff_t j = 0; j < width; j++) {                                            \
                        const T p = g[b * kept + k + j];                                               \
                        sum[j] += p;                                                                   \
                        products[j] += p * y[b * kept + k + j];                                        \
                    }                                                                                  \
                for (ptrdiff_t j = 0; j < width; j++) {                                                \
                    const double r = rstd[k + j];                                                      \
                    along[j] = (T)((products[j] * r + g_rstd[k + j] * r * r) / count);                 \
                    constant[j] = (T)((sum[j] * r - g_mean[k + j]) / count);                           \
                }                                                                                      \
                for (ptrdiff_t b = 0; b < before; b++)                                                 \
                    INDEPENDENT for (ptrdiff_t j = 0; j < width; j++)                                  \
                        o[b * kept + k + j] = g[b * kept + k + j] * rstd[k + j] -                      \
                                              y[b * kept + k + j] * along[j] - constant[j];            \
            }                                                                                          \
        });                                                                                            \
    }

#define FAMILY(S, T)                                                                                   \
    ROWS(S, T)                                                                                         \
    DRIVER(softmax, S, T, softmax_row_##S(a + at, o + at, n),                                          \
           softmax_columns_##S(a + at, o + at, n, after, width, 0))                                    \
    DRIVER(log_softmax, S, T, log_softmax_row_##S(a + at, o + at, n),                                  \
           softmax_columns_##S(a + at, o + at, n, after, width, 1))                                    \
    DRIVER(softmax_gradient, S, T, softmax_gradient_row_##S(a + at, b + at, o + at, n),                \
           gradient_columns_##S(a + at, b + at, o + at, n, after, width, 0))                           \
    DRIVER(log_softmax_gradient, S, T, log_softmax_gradient_row_##S(a + at, b + at, o + at, n),        \
           gradient_columns_##S(a + at, b + at, o + at, n, after, width, 1))                           \
    LOGSUMEXP(S, T)                                                                                    \
    DRIVER(logsumexp, S, T, o[to] = logsumexp_row_##S(a + at, n),                                      \
           logsumexp_columns_##S(a + at, o + to, n, after, width))                                     \
    NORMS(S, T)
FAMILY(F32, float)
FAMILY(F64, double)

#define BOTH(name) {name##_F32, name##_F64}
const tp_softmax_kernels LEVEL(tp_softmax_table) = {
    .softmax = BOTH(softmax), .log_softmax = BOTH(log_softmax), .softmax_gradient = BOTH(softmax_gradient),
    .log_softmax_gradient = BOTH(log_softmax_gradient), .logsumexp = BOTH(logsumexp), .standardize = BOTH(standardize),
    .standardize_backward = BOTH(standardize_backward),
};
