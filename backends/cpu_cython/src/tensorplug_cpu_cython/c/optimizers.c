/* Each step reads and writes every array once. The formulas are those of tensorplug.optim. */
#include "optimizers.h"

#include <math.h>

#include "parallel.h"

#define ROOT_float sqrtf
#define ROOT_double sqrt

/* Without decay an infinite parameter must not make NaN. */
#define DECAY(x) (decay != 0 ? decay * (x) : 0)

#define EACH(count, threads, statement)                                                                \
    TP_PARALLEL(count, threads, begin, end, {                                                          \
        INDEPENDENT for (ptrdiff_t i = begin; i < end; i++) { statement }                              \
    })

#define STEPS(S, T)                                                                                    \
    static void sgd_##S(void *p_, const void *g_, void *const *state, ptrdiff_t n, const tp_options *o, int threads) { \
        T *p = p_, *buffer = state[0];                                                                 \
        const T *g = g_;                                                                               \
        const T sign = o->maximize ? -1 : 1, decay = (T)o->decay, lr = (T)o->lr;                       \
        const T momentum = (T)o->momentum, rest = (T)(1 - o->dampening);                               \
        if (!buffer) {                                                                                 \
            EACH(n, threads, p[i] -= lr * (sign * g[i] + DECAY(p[i])););                              \
        } else if (o->first) {                                                                         \
            const T take = o->nesterov ? 1 + momentum : 1;                                             \
            EACH(n, threads, const T d = sign * g[i] + DECAY(p[i]); buffer[i] = d; p[i] -= lr * (take * d);); \
        } else if (o->nesterov) {                                                                      \
            EACH(n, threads, const T d = sign * g[i] + DECAY(p[i]);                                   \
                 const T b = momentum * buffer[i] + rest * d; buffer[i] = b; p[i] -= lr * (d + momentum * b);); \
        } else {                                                                                       \
            EACH(n, threads, const T d = sign * g[i] + DECAY(p[i]);                                   \
                 const T b = momentum * buffer[i] + rest * d; buffer[i] = b; p[i] -= lr * b;);         \
        }                                                                                              \
    }                                                                                                  \
    static void adam_##S(void *p_, const void *g_, void *const *state, ptrdiff_t n, const tp_options *o, int threads) { \
        T *p = p_, *average = state[0], *square = state[1], *largest = state[2];                       \
        const T *g = g_;                                                                               \
        const T sign = o->maximize ? -1 : 1, decay = (T)o->decay, shrink = (T)o->shrink, eps = (T)o->eps; \
        const T beta2 = (T)o->beta2, new1 = (T)(1 - o->beta1), new2 = (T)(1 - o->beta2);               \
        const T size = (T)o->step_size, root = (T)o->root;                                             \
        if (largest) {                                                                                 \
            EACH(n, threads, const T x = p[i] * shrink; const T d = sign * g[i] + DECAY(x);           \
                 const T a = average[i] + new1 * (d - average[i]); const T s = beta2 * square[i] + new2 * d * d; \
                 const T l = s > largest[i] || s != s ? s : largest[i];                                \
                 average[i] = a; square[i] = s; largest[i] = l;                                        \
                 p[i] = x - size * (a / (ROOT_##T(l) / root + eps)););                                 \
        } else {                                                                                       \
            EACH(n, threads, const T x = p[i] * shrink; const T d = sign * g[i] + DECAY(x);           \
                 const T a = average[i] + new1 * (d - average[i]); const T s = beta2 * square[i] + new2 * d * d; \
                 average[i] = a; square[i] = s;                                                        \
                 p[i] = x - size * (a / (ROOT_##T(s) / root + eps)););                                 \
        }                                                                                              \
    }                                                                                                  \
    static void adagrad_##S(void *p_, const void *g_, void *const *state, ptrdiff_t n, const tp_options *o, int threads) { \
        T *p = p_, *total = state[0];                                                                  \
        const T *g = g_;                                                                               \
        const T sign = o->maximize ? -1 : 1, decay = (T)o->decay, lr = (T)o->lr, eps = (T)o->eps;      \
        EACH(n, threads, const T d = sign * g[i] + DECAY(p[i]); const T s = total[i] + d * d;         \
             total[i] = s; p[i] -= lr * (d / (ROOT_##T(s) + eps)););                                   \
    }                                                                                                  \
    static void rmsprop_##S(void *p_, const void *g_, void *const *state, ptrdiff_t n, const tp_options *o, int threads) { \
        T *p = p_, *square = state[0], *mean = state[1], *buffer = state[2];                           \
        const T *g = g_;                                                                               \
        const T sign = o->maximize ? -1 : 1, decay = (T)o->decay, lr = (T)o->lr, eps = (T)o->eps;      \
        const T alpha = (T)o->beta2, rest = (T)(1 - o->beta2), momentum = (T)o->momentum;              \
        EACH(n, threads, const T d = sign * g[i] + DECAY(p[i]); const T s = alpha * square[i] + rest * d * d; \
             T v = s; square[i] = s;                                                                   \
             if (mean) { const T m = mean[i] + rest * (d - mean[i]); mean[i] = m; v -= m * m; }        \
             T step = d / (ROOT_##T(v) + eps);                                                         \
             if (buffer) { step += momentum * buffer[i]; buffer[i] = step; }                           \
             p[i] -= lr * step;);                                                                      \
    }
STEPS(F32, float)
STEPS(F64, double)

#define BOTH(name) {name##_F32, name##_F64}
const tp_optimizers LEVEL(tp_optimizer_table) = {
    .sgd = BOTH(sgd), .adam = BOTH(adam), .adagrad = BOTH(adagrad), .rmsprop = BOTH(rmsprop),
};
