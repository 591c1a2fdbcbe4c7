#include "losses_margin.h"

#include <stdlib.h>

#include "parallel.h"

#define EXISTS(t) ((uint64_t)(t) < (uint64_t)s->classes)

/* Of several labels: those before a negative number, in their order. They are told from the other classes by
   `others`, a factor per class. */
#define LABELS(T, n, others)                                                                           \
    ptrdiff_t n = 0;                                                                                   \
    for (ptrdiff_t j = 0; j < s->classes; j++) others[j] = 1;                                          \
    while (n < s->classes && target[n] >= 0) {                                                         \
        if (!EXISTS(target[n])) {                                                                      \
            failed = TP_NO_CLASS;                                                                               \
            break;                                                                                     \
        }                                                                                              \
        others[target[n++]] = 0;                                                                       \
    }

/* NaN counts: it is not below zero. */
#define PART(T, d) ((d) < 0 ? (T)0 : (d))

#define MARGINS(S, T)                                                                                  \
    static int multi_##S(const tp_margins *s, void *losses) {                                          \
        int failed = TP_DONE;                                                                                 \
        TP_PARALLEL(s->rows, s->threads, begin, end, {                                                 \
            for (ptrdiff_t r = begin; r < end; r++) {                                                  \
                const T *x = (const T *)s->x + r * s->classes;                                         \
                const int64_t t = s->target[r];                                                        \
                if (!EXISTS(t)) {                                                                      \
                    failed = TP_NO_CLASS;                                                                       \
                    continue;                                                                          \
                }                                                                                      \
                const T ahead = (T)s->margin - x[t];                                                   \
                double sum = 0;                                                                        \
                for (ptrdiff_t j = 0; j < s->classes; j++) {                                           \
                    const T part = j == t ? 0 : PART(T, ahead + x[j]);                                 \
                    sum += s->squared ? part * part : part;                                            \
                }                                                                                      \
                if (s->weight) sum *= ((const T *)s->weight)[t];                                       \
                ((T *)losses)[r] = (T)(sum / (double)s->classes);                                      \
            }                                                                                          \
        });                                                                                            \
        return failed;                                                                                 \
    }                                                                                                  \
    static int multi_backward_##S(const tp_margins *s, const void *g, ptrdiff_t step, double scale, void *o_) { \
        int failed = TP_DONE;                                                                                 \
        TP_PARALLEL(s->rows, s->threads, begin, end, {                                                 \
            for (ptrdiff_t r = begin; r < end; r++) {                                                  \
                const T *x = (const T *)s->x + r * s->classes;                                         \
                T *o = (T *)o_ + r * s->classes;                                                       \
                const int64_t t = s->target[r];                                                        \
                if (!EXISTS(t)) {                                                                      \
                    failed = TP_NO_CLASS;                                                                       \
                    continue;                                                                          \
                }                                                                                      \
                T factor = ((const T *)g)[r * step] * (T)(scale / (double)s->classes);                 \
                if (s->weight) factor *= ((const T *)s->weight)[t];                                    \
                double sum = 0;                                                                        \
                for (ptrdiff_t j = 0; j < s->classes; j++) {                                           \
                    const T d = (T)s->margin - x[t] + x[j];                                            \
                    o[j] = d > 0 ? (s->squared ? 2 * d : (T)1) * factor : 0;                          \
                }                                                                                      \
                o[t] = 0;                                                                              \
                for (ptrdiff_t j = 0; j < s->classes; j++) sum += o[j];                                \
                o[t] = (T)-sum;                                                                        \
            }                                                                                          \
        });                                                                                            \
        return failed;                                                                                 \
    }                                                                                                  \
    static int multilabel_##S(const tp_margins *s, void *losses) {                                     \
        int failed = TP_DONE;                                                                                 \
        TP_PARALLEL(s->rows, s->threads, begin, end, {                                                 \
            T *others = malloc(2 * (size_t)s->classes * sizeof(T));                                    \
            T *total = others + s->classes; /* per class: nothing waits for what was added before */   \
            if (!others) failed = TP_NO_MEMORY;                                                        \
            for (ptrdiff_t r = begin; others && r < end; r++) {                                        \
                const T *x = (const T *)s->x + r * s->classes;                                         \
                const int64_t *target = s->target + r * s->classes;                                    \
                double sum = 0;                                                                        \
                LABELS(T, count, others)                                                               \
                for (ptrdiff_t j = 0; j < s->classes; j++) total[j] = 0;                               \
                for (ptrdiff_t k = 0; k < count; k++) {                                                \
                    const T ahead = 1 - x[target[k]];                                                  \
                    for (ptrdiff_t j = 0; j < s->classes; j++) {                                       \
                        const T part = PART(T, ahead + x[j]);                                          \
                        total[j] += others[j] != 0 ? part : 0;                                         \
                    }                                                                                  \
                }                                                                                      \
                for (ptrdiff_t j = 0; j < s->classes; j++) sum += total[j];                            \
                ((T *)losses)[r] = (T)(sum / (double)s->classes);                                      \
            }                                                                                          \
            free(others);                                                                              \
        });                                                                                            \
        return failed;                                                                                 \
    }                                                                                                  \
    static int multilabel_backward_##S(const tp_margins *s, const void *g, ptrdiff_t step, double scale, void *o_) { \
        int failed = TP_DONE;                                                                                 \
        TP_PARALLEL(s->rows, s->threads, begin, end, {                                                 \
            T *others = malloc((size_t)s->classes * sizeof(T));                                        \
            if (!others) failed = TP_NO_MEMORY;                                                        \
            for (ptrdiff_t r = begin; others && r < end; r++) {                                        \
                const T *x = (const T *)s->x + r * s->classes;                                         \
                const int64_t *target = s->target + r * s->classes;                                    \
                T *o = (T *)o_ + r * s->classes;                                                       \
                const T factor = ((const T *)g)[r * step] * (T)(scale / (double)s->classes);           \
                LABELS(T, count, others)                                                               \
                for (ptrdiff_t j = 0; j < s->classes; j++) o[j] = 0;                                   \
                for (ptrdiff_t k = 0; k < count; k++) {                                                \
                    const T ahead = 1 - x[target[k]];                                                  \
                    T sum = 0;                                                                         \
                    for (ptrdiff_t j = 0; j < s->classes; j++) {                                       \
                        const T part = ahead + x[j] > 0 ? others[j] * factor : 0;                     \
                        o[j] += part;                                                                  \
                        sum += part;                                                                   \
                    }                                                                                  \
                    o[target[k]] -= sum;                                                               \
                }                                                                                      \
            }                                                                                          \
            free(others);                                                                              \
        });                                                                                            \
        return failed;                                                                                 \
    }

MARGINS(F32, float)
MARGINS(F64, double)

const tp_margin_kernels LEVEL(tp_margin_table) = {
    .multi = {multi_F32, multi_F64},
    .multi_backward = {multi_backward_F32, multi_backward_F64},
    .multilabel = {multilabel_F32, multilabel_F64},
    .multilabel_backward = {multilabel_backward_F32, multilabel_backward_F64},
};
