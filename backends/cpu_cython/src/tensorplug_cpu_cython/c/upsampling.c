#include "upsampling.h"

#include <stdlib.h>
#include <string.h>

#include "parallel.h"

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
    static int forward_##S(const tp_upsampling *s, const void *x_, void *y_) {                         \
        const ptrdiff_t plane = s->size[0] * s->size[1] * s->size[2], rows = s->where[0] * s->where[1]; \
        int failed = 0;                                                                                \
        TP_PARALLEL(s->planes * rows, s->threads, begin, end, {                                        \
            T *row = malloc((size_t)s->size[2] * sizeof(T));                                           \
            if (!row) failed = 1;                                                                      \
            for (ptrdiff_t r = begin; row && r < end; r++) {                                           \
                const ptrdiff_t z = r % rows / s->where[1];                                            \
                const ptrdiff_t y = r % s->where[1];                                                   \
                const T *from = together_##S(s, (const T *)x_ + r / rows * plane, z, y, row);          \
                along_##S(s, from, (T *)y_ + r * s->where[2]);                                         \
            }                                                                                          \
            free(row);                                                                                 \
        });                                                                                            \
        return !failed;                                                                                \
    }                                                                                                  \
    static int backward_##S(const tp_upsampling *s, const void *g_, void *g_x_) {                      \
        const ptrdiff_t plane = s->size[0] * s->size[1] * s->size[2], rows = s->where[0] * s->where[1]; \
        const ptrdiff_t n = s->size[2], columns = s->where[2];                                         \
        const T *u = s->weight[0], *v = s->weight[1], *w = s->weight[2];                               \
        const int32_t *at = s->at[2];                                                                  \
        int failed = 0;                                                                                \
        /* A plane is one thread's alone, so that no two write to the same place. */                   \
        TP_PARALLEL(s->planes, s->threads, begin, end, {                                               \
            T *row = malloc((size_t)n * sizeof(T));                                                    \
            if (!row) failed = 1;                                                                      \
            for (ptrdiff_t r = begin * rows; row && r < end * rows; r++) {                             \
                const ptrdiff_t z = r % rows / s->where[1];                                            \
                const ptrdiff_t y = r % s->where[1];                                                   \
                const T *g = (const T *)g_ + r * columns;                                              \
                T *to = (T *)g_x_ + r / rows * plane;                                                  \
                memset(row, 0, (size_t)n * sizeof(T));                                                 \
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
    }

UPSAMPLING(F32, float)
UPSAMPLING(F64, double)

const tp_upsamplings LEVEL(tp_upsampling_table) = {
    .forward = {forward_F32, forward_F64},
    .backward = {backward_F32, backward_F64},
};
