#include "statistics.h"

#include <math.h>

#include "moments.h"
#include "parallel.h"
#include "vectors.h"

/* So many are summed at once, of a row or of columns: what is summed stays in the cache. Then parts are put together. */
enum { LANES = 32, CHUNK = 4096, WIDTH = 64, DEEP = 64, FEW = 16 };

static inline moments added(moments a, moments b) { return (moments){0, 0, a.squares + b.squares}; }

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
    static moments variance_row_##S(const T *x, ptrdiff_t n) { return moments_##S(x, n); }             \
    static moments norm1_row_##S(const T *x, ptrdiff_t n) {                                            \
        SUM(T, total, x, n, v < 0 ? -v : v)                                                            \
        return (moments){0, 0, total};                                                                 \
    }                                                                                                  \
    static moments norm2_row_##S(const T *x, ptrdiff_t n) {                                            \
        SUM_VECTORS(T, total, x, n, v * v)                                                             \
        return (moments){0, 0, total};                                                                 \
    }                                                                                                  \
    /* The same for `width` columns of at most DEEP elements, added to what is there. */               \
    static void variance_columns_##S(const T *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, moments *parts) { \
        column_moments_##S(x, rows, step, width, parts);                                               \
    }                                                                                                  \
    static void norm1_columns_##S(const T *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, moments *parts) { \
        T total[WIDTH] = {0};                                                                          \
        for (ptrdiff_t i = 0; i < rows; i++)                                                           \
            for (ptrdiff_t j = 0; j < width; j++) { const T v = x[i * step + j]; total[j] += v < 0 ? -v : v; } \
        for (ptrdiff_t j = 0; j < width; j++) parts[j].squares += total[j];                            \
    }                                                                                                  \
    static void norm2_columns_##S(const T *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, moments *parts) { \
        T total[WIDTH] = {0};                                                                          \
        for (ptrdiff_t i = 0; i < rows; i++)                                                           \
            for (ptrdiff_t j = 0; j < width; j++) { const T v = x[i * step + j]; total[j] += v * v; }  \
        for (ptrdiff_t j = 0; j < width; j++) parts[j].squares += total[j];                            \
    }

/* Return a part of rows, `step` apart, and how far apart they then are: of half precision in `room` of CHUNK. */
#define AS_IT_LIES(S, T)                                                                               \
    static inline const T *part_##S(const T *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, T *room, \
                                    ptrdiff_t *apart) {                                                \
        (void)rows, (void)width, (void)room;                                                           \
        *apart = step;                                                                                 \
        return x;                                                                                      \
    }
#define WIDENED(S)                                                                                     \
    static inline const float *part_##S(const uint16_t *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, \
                                        float *room, ptrdiff_t *apart) {                               \
        for (ptrdiff_t i = 0; i < rows; i++) widen_##S(room + i * width, x + i * step, width);         \
        *apart = width;                                                                                \
        return room;                                                                                   \
    }
AS_IT_LIES(F32, float)
AS_IT_LIES(F64, double)
WIDENED(F16)
WIDENED(BF16)

/* Each of `pieces` goes through its part of what is reduced, for all or for a part of what is kept. Short rows are turned,
   so that vectors run over the results. */
#define REDUCE(name, S, STORED, W, T, statistic, join, finish)                                         \
    static void name##_of_##S(const moments *all, T *out, ptrdiff_t n, double divisor) {               \
        for (ptrdiff_t k = 0; k < n; k++) {                                                            \
            const double found = all[k].squares;                                                       \
            out[k] = (T)(finish);                                                                      \
        }                                                                                              \
        (void)divisor;                                                                                 \
    }                                                                                                  \
    static void name##_##S(const void *x_, void *out_, double *partial, double divisor, ptrdiff_t before, \
                           ptrdiff_t kept, ptrdiff_t after, int threads) {                             \
        const STORED *x = x_;                                                                          \
        T *out = out_;                                                                                 \
        moments *parts = (moments *)partial;                                                           \
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
                moments found[WIDTH];                                                                  \
                T room[CHUNK];                                                                         \
                ptrdiff_t step;                                                                        \
                for (ptrdiff_t j = 0; j < width; j++) found[j] = (moments){0, 0, 0};                   \
                if (is_short) {                                                                        \
                    T turned[FEW * WIDTH];                                                             \
                    const T *flat = part_##S(x + k * after, 1, 0, width * after, room, &step);         \
                    for (ptrdiff_t i = 0; i < after; i++)                                              \
                        for (ptrdiff_t j = 0; j < width; j++) turned[i * WIDTH + j] = flat[j * after + i]; \
                    statistic##_columns_##W(turned, after, WIDTH, width, found);                       \
                } else if (by_row) {                                                                   \
                    const ptrdiff_t first = length * piece / pieces;                                   \
                    const ptrdiff_t last = length * (piece + 1) / pieces;                              \
                    for (ptrdiff_t b = 0; b < rows; b++) {                                             \
                        const STORED *row = x + (b * kept + block) * length;                           \
                        for (ptrdiff_t from = first; from < last; from += CHUNK) {                     \
                            const ptrdiff_t some = last - from < CHUNK ? last - from : CHUNK;          \
                            const T *part = part_##S(row + from, 1, 0, some, room, &step);             \
                            found[0] = join(found[0], statistic##_row_##W(part, some));                \
                        }                                                                              \
                    }                                                                                  \
                } else {                                                                               \
                    const ptrdiff_t last = before * (piece + 1) / pieces;                              \
                    for (ptrdiff_t b = before * piece / pieces; b < last; b += DEEP) {                 \
                        const ptrdiff_t some = last - b < DEEP ? last - b : DEEP;                      \
                        const T *part = part_##S(x + b * kept + k, some, kept, width, room, &step);    \
                        statistic##_columns_##W(part, some, step, width, found);                       \
                    }                                                                                  \
                }                                                                                      \
                if (pieces == 1) name##_of_##S(found, out + k, width, divisor);                        \
                else memcpy(parts + piece * kept + k, found, (size_t)width * sizeof(moments));         \
            }                                                                                          \
        });                                                                                            \
        if (pieces == 1) return;                                                                       \
        for (ptrdiff_t k = 0; k < kept; k++) {                                                         \
            moments all = parts[k];                                                                    \
            for (ptrdiff_t piece = 1; piece < pieces; piece++) all = join(all, parts[piece * kept + k]); \
            name##_of_##S(&all, out + k, 1, divisor);                                                  \
        }                                                                                              \
    }

#define FAMILY(S, STORED, W, T)                                                                        \
    REDUCE(variance, S, STORED, W, T, variance, joined, found / divisor)                               \
    REDUCE(deviation, S, STORED, W, T, variance, joined, sqrt(found / divisor))                        \
    REDUCE(norm1, S, STORED, W, T, norm1, added, found)                                                \
    REDUCE(norm2, S, STORED, W, T, norm2, added, sqrt(found))
ROWS(F32, float)
ROWS(F64, double)
FAMILY(F32, float, F32, float)
FAMILY(F64, double, F64, double)
FAMILY(F16, uint16_t, F32, float)
FAMILY(BF16, uint16_t, F32, float)

#define EACH(name) {[TP_F32] = name##_F32, [TP_F64] = name##_F64, [TP_F16] = name##_F16, [TP_BF16] = name##_BF16}
const tp_variances LEVEL(tp_variance_table) = {
    .reduce = {[TP_VARIANCE] = EACH(variance), [TP_DEVIATION] = EACH(deviation), [TP_NORM1] = EACH(norm1),
               [TP_NORM2] = EACH(norm2)},
};
