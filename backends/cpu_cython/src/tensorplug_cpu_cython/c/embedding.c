#include "embedding.h"

#include <math.h>

#include "parallel.h"

/* NaN is the largest. */
#define IS_MORE(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))

enum { BLOCK = 32, RUN = 16 };

#define EMBEDDING(S, T)                                                                                \
    /* How many rows of a bag count, in a mean at least one. */                                        \
    static double share_##S(const tp_bags *s, ptrdiff_t b) {                                           \
        ptrdiff_t count = 0;                                                                           \
        if (s->mode != TP_BAG_MEAN) return 1;                                                          \
        for (ptrdiff_t i = s->starts[b]; i < s->starts[b + 1]; i++) count += s->indices[i] != s->padding; \
        return 1 / (double)(count ? count : 1);                                                        \
    }                                                                                                  \
    /* `width` sums of a bag: of RUN rows in registers, of more in double. */                         \
    static inline __attribute__((always_inline)) void sum_block_##S(const tp_bags *s, ptrdiff_t b, ptrdiff_t at, \
                                                                    ptrdiff_t width, double share, T *o) { \
        double sums[BLOCK] = {0};                                                                      \
        for (ptrdiff_t i = s->starts[b]; i < s->starts[b + 1];) {                                      \
            const ptrdiff_t behind = s->starts[b + 1] - i < RUN ? s->starts[b + 1] : i + RUN;          \
            T some[BLOCK] = {0};                                                                       \
            for (; i < behind; i++) {                                                                  \
                const T *row = (const T *)s->table + s->indices[i] * s->features + at;                 \
                const T factor = s->factors ? ((const T *)s->factors)[i] : 1;                          \
                if (s->indices[i] == s->padding) continue;                                             \
                for (ptrdiff_t f = 0; f < width; f++) some[f] += factor * row[f];                      \
            }                                                                                          \
            for (ptrdiff_t f = 0; f < width; f++) sums[f] += some[f];                                  \
        }                                                                                              \
        for (ptrdiff_t f = 0; f < width; f++) o[at + f] = (T)(sums[f] * share);                        \
    }                                                                                                  \
    static void sum_##S(const tp_bags *s, ptrdiff_t b, T *o) {                                         \
        const ptrdiff_t n = s->features;                                                               \
        const double share = share_##S(s, b);                                                          \
        ptrdiff_t at = 0;                                                                              \
        for (; at + BLOCK <= n; at += BLOCK) sum_block_##S(s, b, at, BLOCK, share, o);                 \
        if (at < n) sum_block_##S(s, b, at, n - at, share, o);                                         \
    }                                                                                                  \
    static void largest_##S(const tp_bags *s, ptrdiff_t b, T *o) {                                     \
        const ptrdiff_t n = s->features;                                                               \
        int begun = 0;                                                                                 \
        for (ptrdiff_t f = 0; f < n; f++) o[f] = 0;                                                    \
        for (ptrdiff_t i = s->starts[b]; i < s->starts[b + 1]; i++) {                                  \
            const T *row = (const T *)s->table + s->indices[i] * n;                                    \
            if (s->indices[i] == s->padding) continue;                                                 \
            if (begun) {                                                                               \
                INDEPENDENT for (ptrdiff_t f = 0; f < n; f++) o[f] = IS_MORE(row[f], o[f]) ? row[f] : o[f]; \
            } else {                                                                                   \
                for (ptrdiff_t f = 0; f < n; f++) o[f] = row[f];                                       \
            }                                                                                          \
            begun = 1;                                                                                 \
        }                                                                                              \
    }                                                                                                  \
    static void forward_##S(const tp_bags *s, void *o_) {                                              \
        TP_PARALLEL(s->bags, s->threads, begin, end, {                                                 \
            for (ptrdiff_t b = begin; b < end; b++) {                                                  \
                T *o = (T *)o_ + b * s->features;                                                      \
                if (s->mode == TP_BAG_MAX) largest_##S(s, b, o);                                       \
                else sum_##S(s, b, o);                                                                 \
            }                                                                                          \
        });                                                                                            \
    }                                                                                                  \
    static void largest_back_##S(const tp_bags *s, ptrdiff_t b, const T *g, T *g_table) {              \
        const ptrdiff_t n = s->features;                                                               \
        for (ptrdiff_t f = 0; f < n; f++) {                                                            \
            ptrdiff_t best = -1;                                                                       \
            for (ptrdiff_t i = s->starts[b]; i < s->starts[b + 1]; i++) {                              \
                if (s->indices[i] == s->padding) continue;                                             \
                const T *column = (const T *)s->table + f;                                             \
                if (best < 0 || IS_MORE(column[s->indices[i] * n], column[s->indices[best] * n])) best = i; \
            }                                                                                          \
            if (best >= 0) g_table[s->indices[best] * n + f] += g[f];                                  \
        }                                                                                              \
    }                                                                                                  \
    /* On one thread: rows are named by several bags. */                                               \
    static void backward_##S(const tp_bags *s, const void *g_, void *g_table, void *g_factors) {       \
        const ptrdiff_t n = s->features;                                                               \
        for (ptrdiff_t b = 0; b < s->bags; b++) {                                                      \
            const T *g = (const T *)g_ + b * n;                                                        \
            const double share = share_##S(s, b);                                                          \
            if (s->mode == TP_BAG_MAX) {                                                               \
                largest_back_##S(s, b, g, g_table);                                                    \
                continue;                                                                              \
            }                                                                                          \
            for (ptrdiff_t i = s->starts[b]; i < s->starts[b + 1]; i++) {                              \
                const ptrdiff_t at = s->indices[i];                                                    \
                const T *row = (const T *)s->table + at * n;                                           \
                T *to = (T *)g_table + at * n, factor = s->factors ? ((const T *)s->factors)[i] : share, sum = 0; \
                if (at == s->padding) continue;                                                        \
                if (s->counts) factor /= (T)s->counts[at];                                             \
                INDEPENDENT for (ptrdiff_t f = 0; f < n; f++) to[f] += factor * g[f];                  \
                if (!g_factors) continue;                                                              \
                for (ptrdiff_t f = 0; f < n; f++) sum += row[f] * g[f];                                \
                ((T *)g_factors)[i] = sum;                                                             \
            }                                                                                          \
        }                                                                                              \
    }                                                                                                  \
    static void bound_##S(void *row_, ptrdiff_t n, double most, double p) {                            \
        T *row = row_;                                                                                 \
        double norm = 0;                                                                               \
        for (ptrdiff_t f = 0; f < n; f++) {                                                            \
            const double a = fabs((double)row[f]);                                                     \
            if (p == 2) norm += a * a;                                                                 \
            else if (p == 1) norm += a;                                                                \
            else if (isinf(p)) norm = a > norm || a != a ? a : norm;                                   \
            else if (p == 0) norm += a != 0;                                                           \
            else norm += pow(a, p);                                                                    \
        }                                                                                              \
        if (p == 2) norm = sqrt(norm);                                                                 \
        else if (p != 1 && p != 0 && !isinf(p)) norm = pow(norm, 1 / p);                               \
        if (norm <= most) return;                                                                      \
        const T scale = (T)(most / (norm + 1e-7));                                                     \
        for (ptrdiff_t f = 0; f < n; f++) row[f] *= scale;                                             \
    }

EMBEDDING(F32, float)
EMBEDDING(F64, double)

const tp_embeddings LEVEL(tp_embedding_table) = {
    .forward = {forward_F32, forward_F64},
    .backward = {backward_F32, backward_F64},
    .bound = {bound_F32, bound_F64},
};
