#include "upsampling.h"

#include <stdlib.h>

#include "parallel.h"
#include "upsampling_bytes.h"

/* Where a row of the result lies: counted on, since rows may be so short that divisions count. */
typedef struct { ptrdiff_t plane, z, y; } place;

static place placed(const tp_upsampling *s, ptrdiff_t row) {
    const ptrdiff_t rows = s->where[0] * s->where[1];
    return (place){row / rows, row % rows / s->where[1], row % s->where[1]};
}

static inline void onwards(const tp_upsampling *s, place *at) {
    if (++at->y < s->where[1]) return;
    at->y = 0;
    if (++at->z < s->where[0]) return;
    at->z = 0;
    at->plane++;
}

/* How many images, of one row each, are so short that they are done beside each other. */
static ptrdiff_t joinable(const tp_upsampling *s) {
    enum { LONG = 256 };
    const ptrdiff_t length = s->size[2] > s->where[2] ? s->size[2] : s->where[2];
    if (length < 1) return 1;
    if (s->size[0] * s->size[1] * s->where[0] * s->where[1] != 1 || length > LONG / 2) return 1;
    return s->planes < LONG / length ? s->planes : LONG / length;
}

/* For each (z, y) of the result: the rows that it is made of, put together to one, then that along x. */
#define UPSAMPLING(S, T)                                                                               \
    /* Row (z, y) of the result before x is resampled; `row` has room for it. */                       \
    static const T *together_##S(const tp_upsampling *s, const T *x, ptrdiff_t z, ptrdiff_t y, T *row) { \
        const ptrdiff_t n = s->size[2];                                                                \
        const T *u = s->weight[0], *v = s->weight[1];                                                  \
        int begun = 0;                                                                                 \
        for (ptrdiff_t a = 0; a < s->taps[0]; a++)                                                     \
            for (ptrdiff_t b = 0; b < s->taps[1]; b++) {                                               \
                const ptrdiff_t i = a * s->where[0] + z, j = b * s->where[1] + y;                      \
                const T *from = x + (s->at[0][i] * s->size[1] + s->at[1][j]) * n;                      \
                const T weight = u[i] * v[j];                                                          \
                if (s->taps[0] * s->taps[1] == 1 && weight == 1) return from;                          \
                if (begun) {                                                                           \
                    INDEPENDENT for (ptrdiff_t k = 0; k < n; k++) row[k] += weight * from[k];          \
                } else {                                                                               \
                    INDEPENDENT for (ptrdiff_t k = 0; k < n; k++) row[k] = weight * from[k];           \
                }                                                                                      \
                begun = 1;                                                                             \
            }                                                                                          \
        return row;                                                                                    \
    }                                                                                                  \
    static void along_##S(const tp_upsampling *s, const T *row, T *o) {                                \
        const ptrdiff_t n = s->where[2], taps = s->taps[2];                                            \
        const int32_t *at = s->at[2];                                                                  \
        const T *w = s->weight[2];                                                                     \
        if (taps == 1) {                                                                               \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) o[i] = w[i] * row[at[i]];                    \
        } else if (taps == 2) {                                                                        \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)                                              \
                o[i] = w[i] * row[at[i]] + w[n + i] * row[at[n + i]];                                  \
        } else if (taps == 4) {                                                                        \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)                                              \
                o[i] = w[i] * row[at[i]] + w[n + i] * row[at[n + i]] +                                 \
                       w[2 * n + i] * row[at[2 * n + i]] + w[3 * n + i] * row[at[3 * n + i]];          \
        } else {                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++) o[i] = 0;                                                \
            for (ptrdiff_t k = 0; k < taps; k++)                                                       \
                INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) o[i] += w[k * n + i] * row[at[k * n + i]]; \
        }                                                                                              \
    }                                                                                                  \
    static int forward_rows_##S(const tp_upsampling *s, const void *x_, void *y_) {                        \
        const ptrdiff_t plane = s->size[0] * s->size[1] * s->size[2], rows = s->where[0] * s->where[1]; \
        int failed = 0;                                                                                \
        TP_PARALLEL(s->planes * rows, s->threads, begin, end, {                                        \
            T *row = malloc((size_t)s->size[2] * sizeof(T));                                           \
            if (!row) failed = 1;                                                                      \
            place at = placed(s, begin);                                                               \
            for (ptrdiff_t r = begin; row && r < end; r++, onwards(s, &at)) {                          \
                const T *from = together_##S(s, (const T *)x_ + at.plane * plane, at.z, at.y, row);    \
                along_##S(s, from, (T *)y_ + r * s->where[2]);                                         \
            }                                                                                          \
            free(row);                                                                                 \
        });                                                                                            \
        return !failed;                                                                                \
    }                                                                                                  \
    static int backward_rows_##S(const tp_upsampling *s, const void *g_, void *g_x_) {                    \
        const ptrdiff_t plane = s->size[0] * s->size[1] * s->size[2], rows = s->where[0] * s->where[1]; \
        const ptrdiff_t n = s->size[2], columns = s->where[2];                                         \
        const T *u = s->weight[0], *v = s->weight[1], *w = s->weight[2];                               \
        const int32_t *at = s->at[2];                                                                  \
        int failed = 0;                                                                                \
        /* A plane is one thread's alone, so that no two write to the same place. */                   \
        TP_PARALLEL(s->planes, s->threads, begin, end, {                                               \
            T *row = malloc((size_t)n * sizeof(T));                                                    \
            if (!row) failed = 1;                                                                      \
            place p = placed(s, begin * rows);                                                         \
            for (ptrdiff_t r = begin * rows; row && r < end * rows; r++, onwards(s, &p)) {             \
                const ptrdiff_t z = p.z;                                                               \
                const ptrdiff_t y = p.y;                                                               \
                const T *g = (const T *)g_ + r * columns;                                              \
                T *to = (T *)g_x_ + p.plane * plane;                                                   \
                if (s->taps[0] * s->taps[1] * s->taps[2] == 1) {                                       \
                    T *sum = to + (s->at[0][z] * s->size[1] + s->at[1][y]) * n;                        \
                    for (ptrdiff_t i = 0; i < columns; i++) sum[at[i]] += g[i];                        \
                    continue;                                                                          \
                }                                                                                      \
                for (ptrdiff_t i = 0; i < n; i++) row[i] = 0;                                          \
                for (ptrdiff_t k = 0; k < s->taps[2]; k++)                                             \
                    for (ptrdiff_t i = 0; i < columns; i++)                                            \
                        row[at[k * columns + i]] += w[k * columns + i] * g[i];                         \
                for (ptrdiff_t a = 0; a < s->taps[0]; a++)                                             \
                    for (ptrdiff_t b = 0; b < s->taps[1]; b++) {                                       \
                        const ptrdiff_t i = a * s->where[0] + z;                                       \
                        const ptrdiff_t j = b * s->where[1] + y;                                       \
                        T *sum = to + (s->at[0][i] * s->size[1] + s->at[1][j]) * n;                    \
                        const T weight = u[i] * v[j];                                                  \
                        INDEPENDENT for (ptrdiff_t m = 0; m < n; m++) sum[m] += weight * row[m];       \
                    }                                                                                  \
            }                                                                                          \
            free(row);                                                                                 \
        });                                                                                            \
        return !failed;                                                                                \
    }                                                                                                  \
    /* Do rows that are short as long ones, each of several images beside each other. */               \
    static int joined_##S(const tp_upsampling *s, const void *from, void *to, int back) {              \
        int (*const rows)(const tp_upsampling *, const void *, void *) = back ? backward_rows_##S : forward_rows_##S; \
        const ptrdiff_t times = joinable(s), n = s->where[2], count = times * n;                       \
        if (times < 2) return rows(s, from, to);                                                       \
        int32_t *at = malloc((size_t)(s->taps[2] * count) * sizeof *at);                               \
        T *weight = malloc((size_t)(s->taps[2] * count) * sizeof *weight);                             \
        int done = at && weight;                                                                       \
        for (ptrdiff_t k = 0; done && k < s->taps[2]; k++)                                             \
            for (ptrdiff_t t = 0; t < times; t++)                                                      \
                for (ptrdiff_t i = 0; i < n; i++) {                                                    \
                    at[k * count + t * n + i] = s->at[2][k * n + i] + (int32_t)(t * s->size[2]);       \
                    weight[k * count + t * n + i] = ((const T *)s->weight[2])[k * n + i];              \
                }                                                                                      \
        tp_upsampling wide = *s, rest = *s;                                                            \
        wide.planes = s->planes / times;                                                               \
        wide.size[2] = times * s->size[2];                                                             \
        wide.where[2] = count;                                                                         \
        wide.at[2] = at;                                                                               \
        wide.weight[2] = weight;                                                                       \
        rest.planes = s->planes % times;                                                               \
        const ptrdiff_t inputs = (s->planes - rest.planes) * s->size[2];                               \
        const ptrdiff_t results = (s->planes - rest.planes) * n;                                       \
        done = done && rows(&wide, from, to) &&                                                        \
               rows(&rest, (const T *)from + (back ? results : inputs), (T *)to + (back ? inputs : results)); \
        free(at);                                                                                      \
        free(weight);                                                                                  \
        return done;                                                                                   \
    }                                                                                                  \
    static int forward_##S(const tp_upsampling *s, const void *x, void *y) { return joined_##S(s, x, y, 0); } \
    static int backward_##S(const tp_upsampling *s, const void *g, void *g_x) { return joined_##S(s, g, g_x, 1); }

UPSAMPLING(F32, float)
UPSAMPLING(F64, double)

const tp_upsamplings LEVEL(tp_upsampling_table) = {
    .forward = {forward_F32, forward_F64},
    .backward = {backward_F32, backward_F64},
    .bytes = forward_bytes,
};
