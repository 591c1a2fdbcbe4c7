#include "distances.h"

#include <math.h>

#include "parallel.h"

enum { WIDTH = 64 };

/* Of batches of fewer others than these, so many elements of their points at most, WIDTH are gone through at a time. */
enum { NARROW = 16, ROOM = 64 };

/* Of row i: where its results begin, and the first of the others that it is paired with. */
static ptrdiff_t first_of(const tp_distances *s, ptrdiff_t i) { return s->triangle ? i + 1 : 0; }
static ptrdiff_t start_of(const tp_distances *s, ptrdiff_t i) {
    return s->triangle ? i * (2 * s->rows - i - 1) / 2 : i * s->others;
}

/* Add up an expression of d, a difference, over the numbers of `n` pairs. */
#define OVER(T, expression)                                                                            \
    for (ptrdiff_t m = 0; m < s->length; m++) {                                                        \
        const T value = row[m], *column = columns + m * s->others;                                     \
        for (ptrdiff_t j = 0; j < n; j++) {                                                            \
            const T d = value - column[j];                                                             \
            expression;                                                                                \
        }                                                                                              \
    }

/* The gradient of each number from an expression of d and of the pair's factor. */
#define BACK(T, expression)                                                                            \
    for (ptrdiff_t m = 0; m < s->length; m++) {                                                        \
        const T value = row[m], *column = columns + m * s->others;                                     \
        T *to = g_columns + m * s->others, part[WIDTH], sum = 0;                                       \
        for (ptrdiff_t j = 0; j < n; j++) {                                                            \
            const T d = value - column[j];                                                             \
            part[j] = (expression) * factor[j];                                                        \
        }                                                                                              \
        for (ptrdiff_t j = 0; j < n; j++) to[j] -= part[j];                                            \
        for (ptrdiff_t j = 0; j < n; j++) sum += part[j];                                              \
        g_row[m] += sum;                                                                               \
    }

#define SIGN(T, d) ((d) != (d) ? (d) : (T)(((d) > 0) - ((d) < 0)))

#define DISTANCES(S, T, fabs, sqrt, pow)                                                               \
    /* Of a row and `n` columns, at most WIDTH. */                                                     \
    static void pairs_##S(const tp_distances *s, const T *row, const T *columns, ptrdiff_t n, T *o) {  \
        const T p = (T)s->p;                                                                           \
        T total[WIDTH] = {0};                                                                          \
        if (s->p == 0) { OVER(T, total[j] += d != 0) }                                                 \
        else if (s->p == 1) { OVER(T, total[j] += fabs(d)) }                                           \
        else if (s->p == 2) { OVER(T, total[j] += d * d) }                                             \
        else if (isinf(s->p)) { OVER(T, total[j] = fabs(d) > total[j] || d != d ? fabs(d) : total[j]) } \
        else if (s->p == 3) { OVER(T, total[j] += fabs(d) * d * d) }                                   \
        else { OVER(T, total[j] += pow(fabs(d), p)) }                                                  \
        if (s->p == 2) for (ptrdiff_t j = 0; j < n; j++) o[j] = sqrt(total[j]);                        \
        else if (s->p == 0 || s->p == 1 || isinf(s->p)) for (ptrdiff_t j = 0; j < n; j++) o[j] = total[j]; \
        else for (ptrdiff_t j = 0; j < n; j++) o[j] = pow(total[j], 1 / p);                            \
    }                                                                                                  \
    /* All pairs of WIDTH small batches, or fewer: one pair of each at a time, whose difference is to nought. */ \
    static void beside_##S(const tp_distances *s, const T *rows, const T *columns, ptrdiff_t width, T *o) { \
        static const T nought[ROOM];                                                                   \
        const ptrdiff_t length = s->length, others = s->others, one = s->rows * length, other = length * others; \
        const ptrdiff_t results = s->rows * others;                                                    \
        T a[ROOM][WIDTH], b[ROOM][WIDTH], differences[ROOM][WIDTH], found[WIDTH];                      \
        tp_distances pair = *s;                                                                        \
        pair.others = WIDTH;                                                                           \
        for (ptrdiff_t w = 0; w < width; w++) {                                                        \
            for (ptrdiff_t k = 0; k < one; k++) a[k][w] = rows[w * one + k];                           \
            for (ptrdiff_t k = 0; k < other; k++) b[k][w] = columns[w * other + k];                    \
        }                                                                                              \
        for (ptrdiff_t i = 0; i < s->rows; i++)                                                        \
            for (ptrdiff_t j = 0; j < others; j++, o++) {                                              \
                for (ptrdiff_t m = 0; m < length; m++)                                                 \
                    for (ptrdiff_t w = 0; w < width; w++)                                              \
                        differences[m][w] = a[i * length + m][w] - b[m * others + j][w];               \
                pairs_##S(&pair, nought, differences[0], width, found);                                \
                for (ptrdiff_t w = 0; w < width; w++) o[w * results] = found[w];                       \
            }                                                                                          \
    }                                                                                                  \
    static void forward_##S(const tp_distances *s, const void *rows, const void *columns, void *result) { \
        const ptrdiff_t results = start_of(s, s->rows);                                                \
        const ptrdiff_t most = s->rows > s->others ? s->rows : s->others;                              \
        if (!s->triangle && s->batch > 1 && s->others < NARROW && most * s->length <= ROOM) {          \
            TP_PARALLEL(s->batch, s->threads, begin, end, {                                            \
                for (ptrdiff_t b = begin; b < end; b += WIDTH)                                         \
                    beside_##S(s, (const T *)rows + b * s->rows * s->length,                           \
                               (const T *)columns + b * s->length * s->others, end - b < WIDTH ? end - b : WIDTH, \
                               (T *)result + b * results);                                             \
            });                                                                                        \
            return;                                                                                    \
        }                                                                                              \
        TP_PARALLEL(s->batch * s->rows, s->threads, begin, end, {                                      \
            for (ptrdiff_t r = begin; r < end; r++) {                                                  \
                const ptrdiff_t b = r / s->rows;                                                       \
                const ptrdiff_t first = first_of(s, r % s->rows);                                      \
                const T *from = (const T *)columns + b * s->length * s->others;                        \
                T *to = (T *)result + b * results + start_of(s, r % s->rows) - first;                  \
                for (ptrdiff_t j = first; j < s->others; j += WIDTH)                                   \
                    pairs_##S(s, (const T *)rows + r * s->length, from + j,                            \
                              s->others - j < WIDTH ? s->others - j : WIDTH, to + j);                  \
            }                                                                                          \
        });                                                                                            \
    }                                                                                                  \
    /* The slope of a distance that is zero is zero; of equal largest differences each has its share. */ \
    static void pairs_back_##S(const tp_distances *s, const T *g, const T *dist, const T *row, const T *columns, \
                               ptrdiff_t n, T *g_row, T *g_columns) {                                  \
        const T p = (T)s->p;                                                                           \
        T factor[WIDTH] = {0};                                                                         \
        if (s->p == 1) {                                                                               \
            for (ptrdiff_t j = 0; j < n; j++) factor[j] = g[j];                                        \
            BACK(T, SIGN(T, d))                                                                        \
        } else if (s->p == 2) {                                                                        \
            for (ptrdiff_t j = 0; j < n; j++) factor[j] = dist[j] == 0 ? 0 : g[j] / dist[j];           \
            BACK(T, d)                                                                                 \
        } else if (isinf(s->p)) {                                                                      \
            OVER(T, factor[j] += fabs(d) == dist[j] || (d != d && dist[j] != dist[j]))                 \
            for (ptrdiff_t j = 0; j < n; j++) factor[j] = g[j] / factor[j];                            \
            BACK(T, fabs(d) == dist[j] || (d != d && dist[j] != dist[j]) ? SIGN(T, d) : 0)             \
        } else if (s->p < 1) {                                                                         \
            for (ptrdiff_t j = 0; j < n; j++) factor[j] = g[j] * pow(dist[j] == 0 ? 1 : dist[j], 1 - p); \
            BACK(T, d == 0 ? 0 : SIGN(T, d) * pow(fabs(d), p - 1))                                     \
        } else {                                                                                       \
            for (ptrdiff_t j = 0; j < n; j++) factor[j] = dist[j] == 0 ? 0 : g[j] / pow(dist[j], p - 1); \
            if (s->p == 3) { BACK(T, d * fabs(d)) }                                                    \
            else { BACK(T, d == 0 ? 0 : SIGN(T, d) * pow(fabs(d), p - 1)) }                            \
        }                                                                                              \
    }                                                                                                  \
    static void backward_##S(const tp_distances *s, const void *g, const void *result, const void *rows, \
                             const void *columns, void *g_rows, void *g_columns) {                     \
        const ptrdiff_t results = start_of(s, s->rows);                                                \
        if (s->p == 0) return;                                                                         \
        /* Those of a batch add to the same columns. */                                                \
        TP_PARALLEL(s->batch, s->threads, begin, end, {                                                \
            for (ptrdiff_t r = begin * s->rows; r < end * s->rows; r++) {                              \
                const ptrdiff_t b = r / s->rows;                                                       \
                const ptrdiff_t first = first_of(s, r % s->rows);                                      \
                const ptrdiff_t at = b * results + start_of(s, r % s->rows) - first;                   \
                const ptrdiff_t plane = b * s->length * s->others;                                     \
                for (ptrdiff_t j = first; j < s->others; j += WIDTH)                                   \
                    pairs_back_##S(s, (const T *)g + at + j, (const T *)result + at + j,               \
                                   (const T *)rows + r * s->length, (const T *)columns + plane + j,    \
                                   s->others - j < WIDTH ? s->others - j : WIDTH,                      \
                                   (T *)g_rows + r * s->length, (T *)g_columns + plane + j);           \
            }                                                                                          \
        });                                                                                            \
    }

DISTANCES(F32, float, fabsf, sqrtf, powf)
DISTANCES(F64, double, fabs, sqrt, pow)

const tp_distance_kernels LEVEL(tp_distance_table) = {
    .forward = {forward_F32, forward_F64},
    .backward = {backward_F32, backward_F64},
};
