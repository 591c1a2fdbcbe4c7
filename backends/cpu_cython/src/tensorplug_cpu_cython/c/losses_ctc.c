#include "losses_ctc.h"

#include <math.h>
#include <stdlib.h>

#include "parallel.h"
#include "vmath.h"

/* Stands for the logarithm of zero: minus infinity less itself would be NaN. */
#define NEVER -1e30

/* Before the first state there are two, and behind the last one two, that are never reached. */
enum { EDGE = 2 };

#define CTC(S, T)                                                                                      \
    typedef struct {                                                                                   \
        ptrdiff_t states, length;                                                                      \
        int64_t *path;  /* blanks between the labels, before and after them */                         \
        T *skip;        /* 0 where the state before last may come before, else NEVER */                \
        T *emitted;     /* log probabilities of the states at one step */                              \
        T *scratch;                                                                                    \
        T *alpha;       /* of each step, or of two in turns */                                         \
    } lattice_##S;                                                                                     \
                                                                                                       \
    static void lay_##S(const tp_ctc *s, ptrdiff_t n, lattice_##S *l) {                                \
        const int64_t *labels = s->labels + n * s->longest;                                            \
        l->states = 2 * s->outputs[n] + 1;                                                             \
        l->length = s->inputs[n];                                                                      \
        for (ptrdiff_t i = 0; i < l->states; i++) l->path[i] = i % 2 ? labels[i / 2] : s->blank;       \
        for (ptrdiff_t i = 0; i < l->states + EDGE; i++)                                               \
            l->skip[i] = i < 2 || i >= l->states || l->path[i] == s->blank || l->path[i] == l->path[i - 2] \
                             ? (T)NEVER : 0;                                                           \
    }                                                                                                  \
    static void emit_##S(const tp_ctc *s, const lattice_##S *l, ptrdiff_t t, ptrdiff_t n) {            \
        const T *x = (const T *)s->x + (t * s->samples + n) * s->classes;                              \
        for (ptrdiff_t i = 0; i < l->states; i++) l->emitted[i] = x[l->path[i]];                       \
    }                                                                                                  \
    INLINE T together_##S(T a, T b, T c) {                                                             \
        T most = a > b ? a : b;                                                                        \
        most = c > most ? c : most;                                                                    \
        return most + m_log_##S(m_exp_##S(a - most) + m_exp_##S(b - most) + m_exp_##S(c - most));      \
    }                                                                                                  \
    /* The log likelihood of a sample, with alpha of all steps, or of the last two; the row of step t begins      \
       behind EDGE numbers. */                                                                         \
    static T likelihood_##S(const tp_ctc *s, const lattice_##S *l, ptrdiff_t n, int all) {             \
        const ptrdiff_t width = 2 * s->longest + 1 + 2 * EDGE, states = l->states;                     \
        if (!l->length) return states == 1 ? 0 : (T)NEVER;                                             \
        for (ptrdiff_t t = 0; t < l->length; t++) {                                                    \
            T *row = l->alpha + (all ? t : t % 2) * width + EDGE;                                      \
            const T *before = l->alpha + (all ? t - 1 : (t + 1) % 2) * width + EDGE;                   \
            emit_##S(s, l, t, n);                                                                      \
            row[-1] = row[-2] = (T)NEVER;                                                              \
            if (!t) {                                                                                  \
                for (ptrdiff_t i = 0; i < states; i++) row[i] = i < 2 ? l->emitted[i] : (T)NEVER;      \
            } else {                                                                                   \
                INDEPENDENT for (ptrdiff_t i = 0; i < states; i++)                                     \
                    row[i] = together_##S(before[i], before[i - 1], before[i - 2] + l->skip[i]) + l->emitted[i]; \
            }                                                                                          \
            for (ptrdiff_t i = 0; i < states; i++) row[i] = row[i] < (T)NEVER ? (T)NEVER : row[i];     \
        }                                                                                              \
        const T *row = l->alpha + (all ? l->length - 1 : (l->length - 1) % 2) * width + EDGE;          \
        return together_##S(row[states - 1], states > 1 ? row[states - 2] : (T)NEVER, (T)NEVER);       \
    }                                                                                                  \
    static int allocated_##S(const tp_ctc *s, ptrdiff_t rows, lattice_##S *l) {                        \
        const size_t width = (size_t)(2 * s->longest + 1 + 2 * EDGE);                                  \
        l->path = malloc(width * sizeof(int64_t));                                                     \
        l->skip = malloc(3 * width * sizeof(T));                                                       \
        l->alpha = malloc((size_t)(rows + 2) * width * sizeof(T));                                     \
        l->emitted = l->skip + width;                                                                  \
        l->scratch = l->emitted + width;                                                               \
        return l->path && l->skip && l->alpha;                                                         \
    }                                                                                                  \
    static void freed_##S(lattice_##S *l) {                                                            \
        free(l->path);                                                                                 \
        free(l->skip);                                                                                 \
        free(l->alpha);                                                                                \
    }                                                                                                  \
    static int losses_##S(const tp_ctc *s, void *losses) {                                             \
        int failed = 0;                                                                                \
        TP_PARALLEL(s->samples, s->threads, begin, end, {                                              \
            lattice_##S l;                                                                             \
            const int fits = allocated_##S(s, 0, &l);                                                  \
            if (!fits) failed = 1;                                                                     \
            for (ptrdiff_t n = begin; fits && n < end; n++) {                                          \
                lay_##S(s, n, &l);                                                                     \
                const T found = likelihood_##S(s, &l, n, 0);                                           \
                ((T *)losses)[n] = found < (T)NEVER / 2 ? (T)INFINITY : -found;                        \
            }                                                                                          \
            freed_##S(&l);                                                                             \
        });                                                                                            \
        return !failed;                                                                                \
    }                                                                                                  \
    static void sample_gradient_##S(const tp_ctc *s, const lattice_##S *l, ptrdiff_t n, T total, T g, T *o) { \
        const ptrdiff_t width = 2 * s->longest + 1 + 2 * EDGE, states = l->states;                     \
        T *beta = l->alpha + s->steps * width, *next = beta + width, *share = l->scratch;              \
        for (ptrdiff_t i = 0; i < states + EDGE; i++)                                                  \
            beta[i] = i < states && i >= states - 2 ? 0 : (T)NEVER;                                    \
        for (ptrdiff_t t = l->length - 1; t >= 0; t--) {                                               \
            const T *alpha = l->alpha + t * width + EDGE;                                              \
            T *to = o + (t * s->samples + n) * s->classes;                                             \
            INDEPENDENT for (ptrdiff_t i = 0; i < states; i++)                                         \
                share[i] = g * m_exp_##S(alpha[i] + beta[i] - total);                                  \
            for (ptrdiff_t i = 0; i < states; i++) to[l->path[i]] -= share[i];                         \
            if (!t) break;                                                                             \
            emit_##S(s, l, t, n);                                                                      \
            for (ptrdiff_t i = 0; i < states; i++) {                                                   \
                const T sum = beta[i] + l->emitted[i];                                                 \
                beta[i] = sum < (T)NEVER ? (T)NEVER : sum;                                             \
            }                                                                                          \
            beta[states] = beta[states + 1] = (T)NEVER;                                                \
            INDEPENDENT for (ptrdiff_t i = 0; i < states; i++) {                                       \
                const T sum = together_##S(beta[i], beta[i + 1], beta[i + 2] + l->skip[i + 2]);        \
                next[i] = sum < (T)NEVER ? (T)NEVER : sum;                                             \
            }                                                                                          \
            T *swapped = beta;                                                                         \
            beta = next;                                                                               \
            next = swapped;                                                                            \
        }                                                                                              \
    }                                                                                                  \
    static int gradient_##S(const tp_ctc *s, const void *g, void *o) {                                 \
        int failed = 0;                                                                                \
        TP_PARALLEL(s->samples, s->threads, begin, end, {                                              \
            lattice_##S l;                                                                             \
            const int fits = allocated_##S(s, s->steps, &l);                                           \
            if (!fits) failed = 1;                                                                     \
            for (ptrdiff_t n = begin; fits && n < end; n++) {                                          \
                lay_##S(s, n, &l);                                                                     \
                const T total = likelihood_##S(s, &l, n, 1);                                           \
                if (total < (T)NEVER / 2) continue;                                                    \
                sample_gradient_##S(s, &l, n, total, ((const T *)g)[n], o);                            \
            }                                                                                          \
            freed_##S(&l);                                                                             \
        });                                                                                            \
        return !failed;                                                                                \
    }

CTC(F32, float)
CTC(F64, double)

const tp_ctc_kernels LEVEL(tp_ctc_table) = {
    .losses = {losses_F32, losses_F64},
    .gradient = {gradient_F32, gradient_F64},
};
