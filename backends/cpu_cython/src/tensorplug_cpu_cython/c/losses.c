#include "losses.h"

#include <math.h>
#include <string.h>

#include "parallel.h"
#include "vmath.h"

/* Rows up to SHORT are copied and padded, so that whole vectors are computed only. */
enum { LANES = 32, SHORT = 512, FEW = 12, NEAR = 4096, BLOCK = TP_LOSS_BLOCK };

/* Whether a sample of class t does: what forward refuses, backward must not trip over. */
#define COUNTS(t) ((uint64_t)(t) < (uint64_t)c->n && (t) != c->ignored)

#define LOSSES(S, T)                                                                                   \
    static T largest_##S(const T *x, ptrdiff_t n) { /* n is a multiple of LANES; NaN may be missed */  \
        T lanes[LANES];                                                                                \
        for (int l = 0; l < LANES; l++) lanes[l] = x[l];                                               \
        for (ptrdiff_t i = LANES; i < n; i += LANES)                                                   \
            for (int l = 0; l < LANES; l++) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];      \
        for (int half = LANES / 2; half; half /= 2)                                                    \
            for (int l = 0; l < half; l++) lanes[l] = lanes[l + half] > lanes[l] ? lanes[l + half] : lanes[l]; \
        return lanes[0];                                                                               \
    }                                                                                                  \
    /* Write exp(x - peak) to e, which has room for a padded short row; return their sum. */           \
    static double exponentials_##S(const T *x, T *e, ptrdiff_t n, T *largest) {                        \
        T row[SHORT];                                                                                  \
        T peak;                                                                                        \
        double sum = 0;                                                                                \
        if (n <= SHORT) {                                                                              \
            const ptrdiff_t padded = (n + LANES - 1) / LANES * LANES;                                  \
            for (ptrdiff_t i = 0; i < n; i++) row[i] = x[i];                                           \
            for (ptrdiff_t i = n; i < padded; i++) row[i] = -(T)INFINITY;                              \
            peak = largest_##S(row, padded);                                                           \
            T lanes[LANES] = {0};                                                                      \
            for (ptrdiff_t i = 0; i < padded; i += LANES)                                              \
                for (int l = 0; l < LANES; l++) {                                                      \
                    const T value = m_exp_##S(row[i + l] - peak);                                      \
                    e[i + l] = value;                                                                  \
                    lanes[l] += value;                                                                 \
                }                                                                                      \
            for (int half = LANES / 2; half; half /= 2)                                                \
                for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];                            \
            sum = lanes[0];                                                                            \
        } else {                                                                                       \
            const ptrdiff_t whole = n / LANES * LANES;                                                 \
            peak = largest_##S(x, whole);                                                              \
            for (ptrdiff_t i = whole; i < n; i++) peak = x[i] > peak ? x[i] : peak;                    \
            for (ptrdiff_t from = 0; from < n; from += 4096) {                                         \
                const ptrdiff_t to = n - from < 4096 ? n : from + 4096;                                \
                T lanes[LANES] = {0};                                                                  \
                ptrdiff_t i = from;                                                                    \
                for (; i + LANES <= to; i += LANES)                                                    \
                    for (int l = 0; l < LANES; l++) {                                                  \
                        const T value = m_exp_##S(x[i + l] - peak);                                    \
                        e[i + l] = value;                                                              \
                        lanes[l] += value;                                                             \
                    }                                                                                  \
                for (; i < to; i++) lanes[0] += e[i] = m_exp_##S(x[i] - peak);                         \
                for (int half = LANES / 2; half; half /= 2)                                            \
                    for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];                        \
                sum += lanes[0];                                                                       \
            }                                                                                          \
        }                                                                                              \
        *largest = peak;                                                                               \
        return sum;                                                                                    \
    }                                                                                                  \
    /* The sum of the exponentials alone. */                                                           \
    static double denominator_##S(const T *x, ptrdiff_t n, T *largest) {                               \
        T e[SHORT];                                                                                    \
        if (n <= SHORT) return exponentials_##S(x, e, n, largest);                                     \
        const ptrdiff_t whole = n / LANES * LANES;                                                     \
        T peak = largest_##S(x, whole);                                                                \
        for (ptrdiff_t i = whole; i < n; i++) peak = x[i] > peak ? x[i] : peak;                        \
        double sum = 0;                                                                                \
        for (ptrdiff_t from = 0; from < n; from += 4096) {                                             \
            const ptrdiff_t to = n - from < 4096 ? n : from + 4096;                                    \
            T lanes[LANES] = {0};                                                                      \
            ptrdiff_t i = from;                                                                        \
            for (; i + LANES <= to; i += LANES)                                                        \
                for (int l = 0; l < LANES; l++) lanes[l] += m_exp_##S(x[i + l] - peak);                \
            for (; i < to; i++) lanes[0] += m_exp_##S(x[i] - peak);                                    \
            for (int half = LANES / 2; half; half /= 2)                                                \
                for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];                            \
            sum += lanes[0];                                                                           \
        }                                                                                              \
        *largest = peak;                                                                               \
        return sum;                                                                                    \
    }                                                                                                  \
    /* Those of a block of rows of few classes: vectors run over the rows. `e` may be NULL. */          \
    INLINE void few_##S(const T *x, T *e, ptrdiff_t n, ptrdiff_t count, T *peak, T *total) {           \
        for (ptrdiff_t j = 0; j < count; j++) { peak[j] = x[j * n]; total[j] = 0; }                    \
        for (ptrdiff_t i = 1; i < n; i++)                                                              \
            for (ptrdiff_t j = 0; j < count; j++) peak[j] = x[j * n + i] > peak[j] ? x[j * n + i] : peak[j]; \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            INDEPENDENT for (ptrdiff_t j = 0; j < count; j++) {                                        \
                const T value = m_exp_##S(x[j * n + i] - peak[j]);                                     \
                total[j] += value;                                                                     \
                if (e) e[i * BLOCK + j] = value;                                                       \
            }                                                                                          \
    }                                                                                                  \
    static int forward_##S(const tp_classes *c, void *losses_, double *sums, int threads) {            \
        const T *x = c->x, *weight = c->weight;                                                        \
        T *losses = losses_;                                                                           \
        const ptrdiff_t n = c->n, after = c->after, across = (after + BLOCK - 1) / BLOCK;              \
        int wrong = 0;                                                                                 \
        TP_PARALLEL(tp_loss_blocks(c), threads, begin, end, {                                          \
            for (ptrdiff_t block = begin; block < end; block++) {                                      \
                double lost = 0;                                                                       \
                double weighed = 0;                                                                    \
                T peak[BLOCK];                                                                         \
                T total[BLOCK];                                                                        \
                ptrdiff_t first; /* sample */                                                          \
                ptrdiff_t count;                                                                       \
                const T *from;                                                                         \
                if (after == 1) {                                                                      \
                    first = block * BLOCK;                                                             \
                    count = c->before - first < BLOCK ? c->before - first : BLOCK;                     \
                    from = x + first * n;                                                              \
                    if (n <= FEW) few_##S(from, NULL, n, count, peak, total);                          \
                    else                                                                               \
                        for (ptrdiff_t j = 0; j < count; j++)                                          \
                            total[j] = (T)denominator_##S(from + j * n, n, &peak[j]);                  \
                } else {                                                                               \
                    const ptrdiff_t start = block % across * BLOCK;                                    \
                    first = block / across * after + start;                                            \
                    count = after - start < BLOCK ? after - start : BLOCK;                             \
                    from = x + block / across * n * after + start;                                     \
                    for (ptrdiff_t j = 0; j < count; j++) peak[j] = from[j];                           \
                    for (ptrdiff_t i = 1; i < n; i++)                                                  \
                        for (ptrdiff_t j = 0; j < count; j++)                                          \
                            peak[j] = from[i * after + j] > peak[j] ? from[i * after + j] : peak[j];   \
                    for (ptrdiff_t j = 0; j < count; j++) total[j] = 0;                                \
                    for (ptrdiff_t i = 0; i < n; i++)                                                  \
                        for (ptrdiff_t j = 0; j < count; j++)                                          \
                            total[j] += m_exp_##S(from[i * after + j] - peak[j]);                      \
                }                                                                                      \
                for (ptrdiff_t j = 0; j < count; j++) total[j] = m_log_##S(total[j]);                  \
                for (ptrdiff_t j = 0; j < count; j++) {                                                \
                    const int64_t t = c->target[first + j];                                            \
                    T loss = 0;                                                                        \
                    if (t != c->ignored) {                                                             \
                        if ((uint64_t)t >= (uint64_t)n) {                                              \
                            _Pragma("omp atomic write") wrong = 1;                                     \
                            continue;                                                                  \
                        }                                                                              \
                        const T value = after == 1 ? from[j * n + t] : from[t * after + j];            \
                        const T w = weight ? weight[t] : 1;                                            \
                        loss = (total[j] - (value - peak[j])) * w;                                     \
                        lost += loss;                                                                  \
                        weighed += w;                                                                  \
                    }                                                                                  \
                    if (losses) losses[first + j] = loss;                                              \
                }                                                                                      \
                sums[2 * block] = lost;                                                                \
                sums[2 * block + 1] = weighed;                                                         \
            }                                                                                          \
        });                                                                                            \
        return !wrong;                                                                                 \
    }                                                                                                  \
    static void backward_##S(const tp_classes *c, const void *g_, ptrdiff_t step, double scale, void *out_, \
                             int threads) {                                                            \
        const T *x = c->x, *weight = c->weight, *g = g_;                                               \
        T *out = out_;                                                                                 \
        const ptrdiff_t n = c->n, after = c->after, across = (after + BLOCK - 1) / BLOCK;              \
        TP_PARALLEL(tp_loss_blocks(c), threads, begin, end, {                                          \
            for (ptrdiff_t block = begin; block < end; block++) {                                      \
                T share[BLOCK];                                                                        \
                const ptrdiff_t start = after == 1 ? 0 : block % across * BLOCK;                       \
                const ptrdiff_t first = after == 1 ? block * BLOCK : block / across * after + start;   \
                const ptrdiff_t left = after == 1 ? c->before - first : after - start;                 \
                const ptrdiff_t count = left < BLOCK ? left : BLOCK;                                   \
                for (ptrdiff_t j = 0; j < count; j++) {                                                \
                    const int64_t t = c->target[first + j];                                            \
                    share[j] = COUNTS(t) ? (T)(g[(first + j) * step] * scale * (weight ? weight[t] : 1)) : 0; \
                }                                                                                      \
                if (after == 1 && n <= FEW) {                                                          \
                    T e[FEW * BLOCK];                                                                  \
                    T highest[BLOCK];                                                                  \
                    T sum[BLOCK];                                                                      \
                    T *to = out + first * n;                                                           \
                    few_##S(x + first * n, e, n, count, highest, sum);                                 \
                    for (ptrdiff_t j = 0; j < count; j++) {                                            \
                        const int64_t t = c->target[first + j];                                        \
                        const T factor = share[j] / sum[j];                                            \
                        if (!COUNTS(t)) {                                                              \
                            for (ptrdiff_t i = 0; i < n; i++) to[j * n + i] = 0;                       \
                            continue;                                                                  \
                        }                                                                              \
                        for (ptrdiff_t i = 0; i < n; i++) to[j * n + i] = e[i * BLOCK + j] * factor;   \
                        to[j * n + t] -= share[j];                                                     \
                    }                                                                                  \
                    continue;                                                                          \
                }                                                                                      \
                if (after == 1) {                                                                      \
                    T short_row[SHORT];                                                                \
                    for (ptrdiff_t j = 0; j < count; j++) {                                            \
                        const ptrdiff_t at = (first + j) * n;                                          \
                        const int64_t t = c->target[first + j];                                        \
                        T *e = n <= SHORT ? short_row : out + at;                                      \
                        T peak;                                                                        \
                        if (!COUNTS(t)) {                                                              \
                            for (ptrdiff_t i = 0; i < n; i++) out[at + i] = 0;                         \
                            continue;                                                                  \
                        }                                                                              \
                        const T factor = (T)(share[j] / exponentials_##S(x + at, e, n, &peak));        \
                        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) out[at + i] = e[i] * factor;     \
                        out[at + t] -= share[j];                                                       \
                    }                                                                                  \
                    continue;                                                                          \
                }                                                                                      \
                T peak[BLOCK];                                                                         \
                T total[BLOCK];                                                                        \
                const T *from = x + block / across * n * after + start;                                \
                T *to = out + block / across * n * after + start;                                      \
                for (ptrdiff_t j = 0; j < count; j++) { peak[j] = from[j]; total[j] = 0; }             \
                for (ptrdiff_t i = 1; i < n; i++)                                                      \
                    for (ptrdiff_t j = 0; j < count; j++)                                              \
                        peak[j] = from[i * after + j] > peak[j] ? from[i * after + j] : peak[j];       \
                for (ptrdiff_t i = 0; i < n; i++)                                                      \
                    INDEPENDENT for (ptrdiff_t j = 0; j < count; j++) {                                \
                        const T e = m_exp_##S(from[i * after + j] - peak[j]);                          \
                        to[i * after + j] = e;                                                         \
                        total[j] += e;                                                                 \
                    }                                                                                  \
                for (ptrdiff_t j = 0; j < count; j++) total[j] = share[j] / total[j];                  \
                for (ptrdiff_t i = 0; i < n; i++)                                                      \
                    INDEPENDENT for (ptrdiff_t j = 0; j < count; j++) to[i * after + j] *= total[j];   \
                for (ptrdiff_t j = 0; j < count; j++) {                                                \
                    const int64_t t = c->target[first + j];                                            \
                    if (COUNTS(t)) to[t * after + j] -= share[j];                                      \
                    else for (ptrdiff_t i = 0; i < n; i++) to[i * after + j] = 0;                      \
                }                                                                                      \
            }                                                                                          \
        });                                                                                            \
    }                                                                                                  \
    static double total_##S(const tp_classes *c) {                                                     \
        const T *weight = c->weight;                                                                   \
        const ptrdiff_t count = c->before * c->after;                                                  \
        if (!weight) {                                                                                 \
            int64_t some = 0;                                                                          \
            for (ptrdiff_t i = 0; i < count; i++) some += COUNTS(c->target[i]);                        \
            return (double)some;                                                                       \
        }                                                                                              \
        double total = 0;                                                                              \
        for (ptrdiff_t i = 0; i < count; i++)                                                          \
            if (COUNTS(c->target[i])) total += weight[c->target[i]];                                   \
        return total;                                                                                  \
    }                                                                                                  \
    /* The losses of a block are looked up first, then summed by vectors. */                            \
    static int likelihood_##S(const tp_classes *c, void *losses_, double *sums, int threads) {          \
        const T *weight = c->weight;                                                                   \
        T *losses = losses_;                                                                           \
        const ptrdiff_t samples = c->before * c->after, after = c->after, size = c->n * after;         \
        int wrong = 0;                                                                                 \
        TP_PARALLEL((samples + BLOCK - 1) / BLOCK, threads, begin, end, {                              \
            ptrdiff_t at = begin * BLOCK % after; /* in the row */                                     \
            const T *row = (const T *)c->x + begin * BLOCK / after * size;                             \
            for (ptrdiff_t block = begin; block < end; block++) {                                      \
                const ptrdiff_t first = block * BLOCK;                                                 \
                const ptrdiff_t count = samples - first < BLOCK ? samples - first : BLOCK;             \
                T loss[BLOCK] = {0};                                                                   \
                T weights[BLOCK] = {0};                                                                \
                int some_wrong = 0;                                                                    \
                for (ptrdiff_t j = 0; j < count; j++) {                                                \
                    const int64_t t = c->target[first + j];                                            \
                    const int is_there = (uint64_t)t < (uint64_t)c->n;                                 \
                    const int64_t class = is_there ? t : 0;                                            \
                    const T w = t == c->ignored ? 0 : weight ? weight[class] : 1;                      \
                    some_wrong |= !is_there && t != c->ignored;                                        \
                    loss[j] = t == c->ignored ? 0 : -row[class * after + at] * w;                      \
                    weights[j] = w;                                                                    \
                    if (++at == after) {                                                               \
                        at = 0;                                                                        \
                        row += size;                                                                   \
                    }                                                                                  \
                }                                                                                      \
                if (some_wrong) {                                                                      \
                    _Pragma("omp atomic write") wrong = 1;                                             \
                }                                                                                      \
                if (losses) { /* nobody wants their sums */                                            \
                    memcpy(losses + first, loss, (size_t)count * sizeof(T));                           \
                    continue;                                                                          \
                }                                                                                      \
                double lost[LANES] = {0};                                                              \
                double weighed[LANES] = {0};                                                           \
                for (ptrdiff_t j = 0; j < BLOCK; j += LANES)                                           \
                    for (int l = 0; l < LANES; l++) {                                                  \
                        lost[l] += loss[j + l];                                                        \
                        weighed[l] += weights[j + l];                                                  \
                    }                                                                                  \
                for (int half = LANES / 2; half; half /= 2)                                            \
                    for (int l = 0; l < half; l++) {                                                   \
                        lost[l] += lost[l + half];                                                     \
                        weighed[l] += weighed[l + half];                                               \
                    }                                                                                  \
                sums[2 * block] = lost[0];                                                             \
                sums[2 * block + 1] = weighed[0];                                                      \
            }                                                                                          \
        });                                                                                            \
        return !wrong;                                                                                 \
    }                                                                                                  \
    /* Some rows at a time, which are still in the cache when their classes are filled in. */          \
    static void likelihood_backward_##S(const tp_classes *c, const void *g_, ptrdiff_t step, double scale,\
                                        void *out_, int threads) {                                     \
        const T *weight = c->weight, *g = g_;                                                          \
        const ptrdiff_t after = c->after, size = c->n * after, some = size < NEAR ? NEAR / size : 1;   \
        TP_PARALLEL(c->before, threads, begin, end, {                                                  \
            for (ptrdiff_t first = begin; first < end; first += some) {                                \
                const ptrdiff_t last = end - first < some ? end : first + some;                        \
                T *row = (T *)out_ + first * size;                                                     \
                memset(row, 0, (size_t)((last - first) * size) * sizeof(T));                           \
                for (ptrdiff_t i = first * after; i < last * after; row += size)                       \
                    for (ptrdiff_t at = 0; at < after; at++, i++) {                                    \
                        const int64_t t = c->target[i];                                                \
                        if (COUNTS(t)) row[t * after + at] = -(T)(g[i * step] * scale * (weight ? weight[t] : 1)); \
                    }                                                                                  \
            }                                                                                          \
        });                                                                                            \
    }

LOSSES(F32, float)
LOSSES(F64, double)

#define BOTH(name) {name##_F32, name##_F64}
const tp_losses LEVEL(tp_loss_table) = {
    .forward = BOTH(forward), .backward = BOTH(backward), .total = BOTH(total), .likelihood = BOTH(likelihood),
    .likelihood_backward = BOTH(likelihood_backward),
};
