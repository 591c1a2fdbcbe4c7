#include "statistics.h"

#include <math.h>

#include "parallel.h"
#include "vectors.h"

/* What is summed at once stays in the cache, so that it can be gone through twice: the squares are of
   distances from the mean of so many. Then parts are put together (Chan, Golub and LeVeque 1983). */
enum { LANES = 32, CHUNK = 4096, WIDTH = 64, DEEP = 64, FEW = 16 };

typedef struct { double count, mean, squares; } part;

static inline part joined(part a, part b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const double count = a.count + b.count, distance = b.mean - a.mean;
    return (part){count, a.mean + distance * (b.count / count),
                  a.squares + b.squares + distance * distance * (a.count * (b.count / count))};
}
static inline part added(part a, part b) { return (part){0, 0, a.squares + b.squares}; }

#define FOLD(T, lanes)                                                                                 \
    for (int half = LANES / 2; half; half /= 2)                                                        \
        for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];

/* Sum an expression of v, an element of a row of at most CHUNK. */
#define SUM(T, total, row, n, expression)                                                              \
    T total;                                                                                           \
    {                                                                                                  \
        T lanes[LANES] = {0};                                                                          \
        ptrdiff_t base = 0;                                                                            \
        for (; base + LANES <= (n); base += LANES)                                                     \
            for (int l = 0; l < LANES; l++) { const T v = (row)[base + l]; lanes[l] += (expression); } \
        for (; base < (n); base++) { const T v = (row)[base]; lanes[0] += (expression); }              \
        FOLD(T, lanes)                                                                                 \
        total = lanes[0];                                                                              \
    }

#define ROWS(S, T)                                                                                     \
    /* Of numbers whose sum or squares are beyond their type, or none at all. */                       \
    static part wide_variance_##S(const T *x, ptrdiff_t n, ptrdiff_t step) {                           \
        long double sum = 0, squares = 0;                                                              \
        for (ptrdiff_t i = 0; i < n; i++) sum += x[i * step];                                          \
        for (ptrdiff_t i = 0; i < n; i++) squares += (x[i * step] - sum / n) * (x[i * step] - sum / n); \
        return (part){(double)n, (double)(sum / n), (double)squares};                                  \
    }                                                                                                  \
    static part variance_row_##S(const T *x, ptrdiff_t n) {                                            \
        SUM_VECTORS(T, sum, x, n, v)                                                                   \
        const T mean = sum / (T)n;                                                                     \
        SUM_VECTORS(T, rest, x, n, v - mean)                                                           \
        SUM_VECTORS(T, squares, x, n, (v - mean) * (v - mean))                                         \
        if (!isfinite(squares)) return wide_variance_##S(x, n, 1);                                     \
        /* The mean is rounded: what is left of it counts for all. */                                  \
        const double off = (double)rest / (double)n;                                                   \
        return (part){(double)n, (double)mean + off, (double)squares - off * (double)rest};            \
    }                                                                                                  \
    static part norm1_row_##S(const T *x, ptrdiff_t n) {                                               \
        SUM(T, total, x, n, v < 0 ? -v : v)                                                            \
        return (part){0, 0, total};                                                                    \
    }                                                                                                  \
    static part norm2_row_##S(const T *x, ptrdiff_t n) {                                               \
        SUM_VECTORS(T, total, x, n, v * v)                                                             \
        return (part){0, 0, total};                                                                    \
    }                                                                                                  \
    /* The same for `width` columns of at most DEEP elements, added to what is there. */               \
    static void variance_columns_##S(const T *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, part *parts) { \
        T mean[WIDTH] = {0};                                                                           \
        T rest[WIDTH] = {0};                                                                           \
        T squares[WIDTH] = {0};                                                                        \
        for (ptrdiff_t i = 0; i < rows; i++)                                                           \
            for (ptrdiff_t j = 0; j < width; j++) mean[j] += x[i * step + j];                          \
        for (ptrdiff_t j = 0; j < width; j++) mean[j] /= (T)rows;                                      \
        for (ptrdiff_t i = 0; i < rows; i++)                                                           \
            for (ptrdiff_t j = 0; j < width; j++) {                                                    \
                const T d = x[i * step + j] - mean[j];                                                 \
                rest[j] += d;                                                                          \
                squares[j] += d * d;                                                                   \
            }                                                                                          \
        for (ptrdiff_t j = 0; j < width; j++) {                                                        \
            const double off = (double)rest[j] / (double)rows;                                         \
            const part found = {(double)rows, (double)mean[j] + off, (double)squares[j] - off * (double)rest[j]}; \
            parts[j] = joined(parts[j], isfinite(squares[j]) ? found : wide_variance_##S(x + j, rows, step)); \
        }                                                                                              \
    }                                                                                                  \
    static void norm1_columns_##S(const T *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, part *parts) { \
        T total[WIDTH] = {0};                                                                          \
        for (ptrdiff_t i = 0; i < rows; i++)                                                           \
            for (ptrdiff_t j = 0; j < width; j++) { const T v = x[i * step + j]; total[j] += v < 0 ? -v : v; } \
        for (ptrdiff_t j = 0; j < width; j++) parts[j].squares += total[j];                            \
    }                                                                                                  \
    static void norm2_columns_##S(const T *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, part *parts) { \
        T total[WIDTH] = {0};                                                                          \
        for (ptrdiff_t i = 0; i < rows; i++)                                                           \
            for (ptrdiff_t j = 0; j < width; j++) { const T v = x[i * step + j]; total[j] += v * v; }  \
        for (ptrdiff_t j = 0; j < width; j++) parts[j].squares += total[j];                            \
    }

/* Each of `pieces` goes through its part of what is reduced, for all or for a part of what is kept. Short rows are turned,
   so that vectors run over the results. */
#define REDUCE(name, S, T, statistic, join, finish)                                                    \
    static void name##_of_##S(const part *all, T *out, ptrdiff_t n, double divisor) {                  \
        for (ptrdiff_t k = 0; k < n; k++) {                                                            \
            const double found = all[k].squares;                                                       \
            out[k] = (T)(finish);                                                                      \
        }                                                                                              \
        (void)divisor;                                                                                 \
    }                                                                                                  \
    static void name##_##S(const void *x_, void *out_, double *partial, double divisor, ptrdiff_t before, \
                           ptrdiff_t kept, ptrdiff_t after, int threads) {                             \
        const T *x = x_;                                                                               \
        T *out = out_;                                                                                 \
        part *parts = (part *)partial;                                                                 \
        const int is_short = before == 1 && kept > 1 && after > 1 && after <= FEW;                     \
        const int by_row = !is_short && (after > 1 || kept == 1);                                      \
        const ptrdiff_t rows = kept == 1 ? 1 : before, length = kept == 1 ? before * after : after;    \
        const ptrdiff_t blocks = by_row ? kept : (kept + WIDTH - 1) / WIDTH;                           \
        const ptrdiff_t pieces = is_short || blocks >= threads ? 1 : threads;                          \
        TP_PARALLEL(blocks * pieces, threads, begin, end, {                                            \
            for (ptrdiff_t unit = begin; unit < end; unit++) {                                         \
                const ptrdiff_t piece = unit % pieces;                                                 \
                const ptrdiff_t block = unit / pieces;                                                 \
                const ptrdiff_t k = by_row ? block : block * WIDTH;                                    \
                const ptrdiff_t width = by_row ? 1 : kept - k < WIDTH ? kept - k : WIDTH;              \
                part found[WIDTH];                                                                     \
                for (ptrdiff_t j = 0; j < width; j++) found[j] = (part){0, 0, 0};                      \
                if (is_short) {                                                                        \
                    T turned[FEW * WIDTH];                                                             \
                    for (ptrdiff_t i = 0; i < after; i++)                                              \
                        for (ptrdiff_t j = 0; j < width; j++) turned[i * WIDTH + j] = x[(k + j) * after + i]; \
                    statistic##_columns_##S(turned, after, WIDTH, width, found);                       \
                } else if (by_row) {                                                                   \
                    const ptrdiff_t first = length * piece / pieces;                                   \
                    const ptrdiff_t last = length * (piece + 1) / pieces;                              \
                    for (ptrdiff_t b = 0; b < rows; b++) {                                             \
                        const T *row = x + (b * kept + block) * length;                                \
                        for (ptrdiff_t from = first; from < last; from += CHUNK)                       \
                            found[0] = join(found[0], statistic##_row_##S(                             \
                                                          row + from, last - from < CHUNK ? last - from : CHUNK)); \
                    }                                                                                  \
                } else {                                                                               \
                    const ptrdiff_t last = before * (piece + 1) / pieces;                              \
                    for (ptrdiff_t b = before * piece / pieces; b < last; b += DEEP)                   \
                        statistic##_columns_##S(x + b * kept + k, last - b < DEEP ? last - b : DEEP, kept, width, \
                                                found);                                                \
                }                                                                                      \
                if (pieces == 1) name##_of_##S(found, out + k, width, divisor);                        \
                else memcpy(parts + piece * kept + k, found, (size_t)width * sizeof(part));            \
            }                                                                                          \
        });                                                                                            \
        if (pieces == 1) return;                                                                       \
        for (ptrdiff_t k = 0; k < kept; k++) {                                                         \
            part all = parts[k];                                                                       \
            for (ptrdiff_t piece = 1; piece < pieces; piece++) all = join(all, parts[piece * kept + k]); \
            name##_of_##S(&all, out + k, 1, divisor);                                                  \
        }                                                                                              \
    }

#define FAMILY(S, T)                                                                                   \
    ROWS(S, T)                                                                                         \
    REDUCE(variance, S, T, variance, joined, found / divisor)                                          \
    REDUCE(deviation, S, T, variance, joined, sqrt(found / divisor))                                   \
    REDUCE(norm1, S, T, norm1, added, found)                                                           \
    REDUCE(norm2, S, T, norm2, added, sqrt(found))
FAMILY(F32, float)
FAMILY(F64, double)

#define BOTH(name) {name##_F32, name##_F64}
const tp_variances LEVEL(tp_variance_table) = {
    .reduce = {[TP_VARIANCE] = BOTH(variance), [TP_DEVIATION] = BOTH(deviation), [TP_NORM1] = BOTH(norm1),
               [TP_NORM2] = BOTH(norm2)},
};
