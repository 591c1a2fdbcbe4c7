/* The shapes that loops of pointwise ops have, around an expression of x and y. */
#ifndef TENSORPLUG_LOOPS_H
#define TENSORPLUG_LOOPS_H

#include "pointwise.h"

#define AT(type, pointer, i, stride) (*(const type *)((pointer) + (i) * (stride)))
#define TO(type, pointer, i, stride) (*(type *)((pointer) + (i) * (stride)))

#define UNARY_LOOP(name, T, R, expression)                                                             \
    static void name(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *given) {        \
        const double p[4] = {given[0], given[1], given[2], given[3]};                                  \
        (void)p;                                                                                       \
        if (s[0] == sizeof(T) && s[1] == sizeof(R)) {                                                  \
            const T *a = (const T *)args[0];                                                           \
            R *o = (R *)args[1];                                                                       \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) { const T x = a[i]; o[i] = (R)(expression); }\
        } else if (!s[0] && s[1] == sizeof(R)) {                                                       \
            const T x = *(const T *)args[0];                                                           \
            const R y = (R)(expression);                                                               \
            R *o = (R *)args[1];                                                                       \
            for (ptrdiff_t i = 0; i < n; i++) o[i] = y;                                                \
        } else if (s[0] == -(ptrdiff_t)sizeof(T) && s[1] == sizeof(R)) {                               \
            const T *a = (const T *)args[0];                                                           \
            R *o = (R *)args[1];                                                                       \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) { const T x = a[-i]; o[i] = (R)(expression); }\
        } else {                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++) {                                                        \
                const T x = AT(T, args[0], i, s[0]);                                                   \
                TO(R, args[1], i, s[1]) = (R)(expression);                                             \
            }                                                                                          \
        }                                                                                              \
    }

#define BINARY_LOOP(name, T, R, expression)                                                            \
    static void name(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *given) {        \
        const double p[4] = {given[0], given[1], given[2], given[3]};                                  \
        (void)p;                                                                                       \
        const T *a = (const T *)args[0], *b = (const T *)args[1];                                      \
        R *o = (R *)args[2];                                                                           \
        if (s[2] == sizeof(R) && s[0] == sizeof(T) && s[1] == sizeof(T)) {                             \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {                                            \
                const T x = a[i], y = b[i];                                                            \
                o[i] = (R)(expression);                                                                \
            }                                                                                          \
        } else if (s[2] == sizeof(R) && s[0] == sizeof(T) && !s[1]) {                                  \
            const T y = *b;                                                                            \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) { const T x = a[i]; o[i] = (R)(expression); }\
        } else if (s[2] == sizeof(R) && !s[0] && s[1] == sizeof(T)) {                                  \
            const T x = *a;                                                                            \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) { const T y = b[i]; o[i] = (R)(expression); }\
        } else {                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++) {                                                        \
                const T x = AT(T, args[0], i, s[0]), y = AT(T, args[1], i, s[1]);                      \
                TO(R, args[2], i, s[2]) = (R)(expression);                                             \
            }                                                                                          \
        }                                                                                              \
    }

/* Blocks of elements stay in the cache. */
enum { BLOCK = 512 };

/* Expressions of many steps are compiled once, for elements that lie behind each other: others go through blocks. */
static __attribute__((noinline, unused)) void moved(ptrdiff_t size, char *to, ptrdiff_t to_step, const char *from,
                                                    ptrdiff_t step, ptrdiff_t n) {
#define MOVED(type)                                                                                    \
    case sizeof(type):                                                                                 \
        if (!step && to_step == sizeof(type)) {                                                        \
            const type same = *(const type *)from;                                                     \
            for (ptrdiff_t i = 0; i < n; i++) ((type *)to)[i] = same;                                  \
        } else {                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++) TO(type, to, i, to_step) = AT(type, from, i, step);      \
        }                                                                                              \
        break;
    switch (size) { MOVED(uint8_t) MOVED(uint16_t) MOVED(uint32_t) MOVED(uint64_t) }
#undef MOVED
}

static __attribute__((noinline, unused)) void in_blocks(tp_loop dense, int inputs, ptrdiff_t size,
                                                        char *const *args, const ptrdiff_t *s, ptrdiff_t n,
                                                        const double *p) {
    uint64_t buffer[4][BLOCK];
    char *now[4];
    int is_one = 1;
    for (int k = 0; k < inputs; k++) {
        now[k] = args[k];
        is_one &= !s[k];
    }
    if (is_one && n) { /* one result, written again and again */
        now[inputs] = (char *)buffer;
        dense(now, s, 1, p);
        moved(size, args[inputs], s[inputs], now[inputs], 0, n);
        return;
    }
    for (int k = 0; k < inputs; k++)
        if (!s[k]) moved(size, (char *)buffer[k], size, args[k], 0, n < BLOCK ? n : BLOCK);
    for (ptrdiff_t start = 0; start < n; start += BLOCK) {
        const ptrdiff_t count = n - start < BLOCK ? n - start : BLOCK;
        char *to = args[inputs] + start * s[inputs];
        for (int k = 0; k < inputs; k++) {
            now[k] = s[k] == size ? args[k] + start * size : (char *)buffer[k];
            if (s[k] && s[k] != size) moved(size, now[k], size, args[k] + start * s[k], s[k], count);
        }
        now[inputs] = s[inputs] == size ? to : (char *)buffer[inputs];
        dense(now, s, count, p);
        if (s[inputs] != size) moved(size, to, s[inputs], now[inputs], size, count);
    }
}

#define LONG_LOOP(name, inputs, T, elements, expression)                                               \
    static void name##_dense(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *given) {\
        const double p[4] = {given[0], given[1], given[2], given[3]};                                  \
        const T *a = (const T *)args[0], *b = (const T *)args[inputs > 1], *c = (const T *)args[inputs > 2 ? 2 : 0]; \
        T *o = (T *)args[inputs];                                                                      \
        (void)p, (void)s, (void)b, (void)c;                                                            \
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) { elements(T) o[i] = (T)(expression); }          \
    }                                                                                                  \
    static void name(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {            \
        int is_dense = 1;                                                                              \
        for (int k = 0; k <= inputs; k++) is_dense &= s[k] == sizeof(T);                               \
        if (is_dense) name##_dense(args, s, n, p);                                                     \
        else in_blocks(name##_dense, inputs, sizeof(T), args, s, n, p);                                \
    }
#define ELEMENTS_1(T) const T x = a[i];
#define ELEMENTS_2(T) const T x = a[i], y = b[i];
#define ELEMENTS_3(T) const T x = a[i], y = b[i], z = c[i];
#define LONG_UNARY(name, T, expression) LONG_LOOP(name, 1, T, ELEMENTS_1, expression)
#define LONG_BINARY(name, T, expression) LONG_LOOP(name, 2, T, ELEMENTS_2, expression)
#define LONG_TERNARY(name, T, expression) LONG_LOOP(name, 3, T, ELEMENTS_3, expression)

/* Half precision goes through blocks of float. */
#define HALF_LOADS(H)                                                                                  \
    static __attribute__((noinline, unused)) void load_##H(float *to, const char *from, ptrdiff_t stride, ptrdiff_t n) {          \
        if (stride == 2) {                                                                             \
            widen_##H(to, (const uint16_t *)from, n);                                                  \
        } else {                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++) to[i] = wide_##H(AT(uint16_t, from, i, stride));         \
        }                                                                                              \
    }                                                                                                  \
    static __attribute__((noinline, unused)) void store_##H(char *to, ptrdiff_t stride, const float *from, ptrdiff_t n) {         \
        if (stride == 2) {                                                                             \
            narrow_run_##H((uint16_t *)to, from, n);                                                   \
        } else {                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++) TO(uint16_t, to, i, stride) = narrow_##H(from[i]);       \
        }                                                                                              \
    }
HALF_LOADS(F16)
HALF_LOADS(BF16)

#define HALF_LOOP(name, inputs, H, whole, result)                                                      \
    static void name(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {            \
        float buffer[inputs + 1][BLOCK];                                                               \
        for (ptrdiff_t start = 0; start < n; start += BLOCK) {                                         \
            const ptrdiff_t count = n - start < BLOCK ? n - start : BLOCK;                             \
            char *blocks[inputs + 1];                                                                  \
            ptrdiff_t strides[inputs + 1];                                                             \
            for (int k = 0; k < inputs; k++) {                                                         \
                const ptrdiff_t some = s[k] ? count : 1;                                               \
                load_##H(buffer[k], args[k] + start * s[k], s[k], some);                               \
                blocks[k] = (char *)buffer[k];                                                         \
                strides[k] = s[k] ? (ptrdiff_t)sizeof(float) : 0;                                      \
            }                                                                                          \
            char *to = args[inputs] + start * s[inputs];                                               \
            result(whole, H)                                                                           \
        }                                                                                              \
    }
#define TO_HALF(whole, H)                                                                              \
    const int last = (int)(sizeof(buffer) / sizeof(buffer[0])) - 1;                                    \
    blocks[last] = (char *)buffer[last];                                                               \
    strides[last] = sizeof(float);                                                                     \
    whole(blocks, strides, count, p);                                                                  \
    store_##H(to, s[last], buffer[last], count);
/* Of few steps, vector by vector: the blocks would cost as much as these do. What is repeated is written out once. */
#if defined(__F16C__) || defined(__aarch64__)
#if defined(__AVX512F__)
enum { HALF_LANES = 16 };
#else
enum { HALF_LANES = 8 };
#endif
#define SHORT_HALF(name, H, inputs, whole, expression)                                                 \
    HALF_LOOP(name##_blocks, inputs, H, whole, TO_HALF)                                                \
    static void name(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *given) {        \
        const double p[4] = {given[0], given[1], given[2], given[3]};                                  \
        uint16_t same[inputs][HALF_LANES];                                                             \
        const uint16_t *from[3] = {NULL};                                                              \
        ptrdiff_t moves[3] = {0}, i = 0;                                                               \
        int is_dense = s[inputs] == 2;                                                                 \
        for (int k = 0; k < inputs; k++) is_dense &= s[k] == 2 || !s[k];                               \
        (void)p;                                                                                       \
        if (is_dense && n >= HALF_LANES) {                                                             \
            uint16_t *to = (uint16_t *)args[inputs];                                                   \
            for (int k = 0; k < inputs; k++) {                                                         \
                from[k] = (const uint16_t *)args[k];                                                   \
                moves[k] = s[k] / 2;                                                                   \
                if (moves[k]) continue;                                                                \
                for (int j = 0; j < HALF_LANES; j++) same[k][j] = *from[k];                            \
                from[k] = same[k];                                                                     \
            }                                                                                          \
            for (; i + HALF_LANES <= n; i += HALF_LANES) {                                             \
                float x_[HALF_LANES], y_[HALF_LANES], z_[HALF_LANES];                                  \
                widen_##H(x_, from[0] + i * moves[0], HALF_LANES);                                     \
                if (inputs > 1) widen_##H(y_, from[1] + i * moves[1], HALF_LANES);                     \
                if (inputs > 2) widen_##H(z_, from[2] + i * moves[2], HALF_LANES);                     \
                for (int j = 0; j < HALF_LANES; j++) {                                                 \
                    const float x = x_[j], y = inputs > 1 ? y_[j] : 0, z = inputs > 2 ? z_[j] : 0;     \
                    (void)y, (void)z;                                                                  \
                    x_[j] = (float)(expression);                                                       \
                }                                                                                      \
                narrow_run_##H(to + i, x_, HALF_LANES);                                                \
            }                                                                                          \
        }                                                                                              \
        if (i == n) return;                                                                            \
        char *ends[inputs + 1];                                                                        \
        for (int k = 0; k <= inputs; k++) ends[k] = args[k] + i * s[k];                                \
        name##_blocks(ends, s, n - i, given);                                                          \
    }
#define SHORT_F16(name, inputs, whole, expression) SHORT_HALF(name, F16, inputs, whole, expression)
/* Without instructions for it the conversion takes longer than what is computed. */
#else
#define SHORT_F16(name, inputs, whole, expression) HALF_LOOP(name, inputs, F16, whole, TO_HALF)
#endif
#ifdef TP_EIGHT_BF16
#define SHORT_BF16(name, inputs, whole, expression) SHORT_HALF(name, BF16, inputs, whole, expression)
#else
/* Two inputs behind each other in one loop, which the compiler makes vectors of; of one a block takes no longer. */
#define SHORT_BF16(name, inputs, whole, expression) SHORT_BF16_##inputs(name, whole, expression)
#define SHORT_BF16_1(name, whole, expression) HALF_LOOP(name, 1, BF16, whole, TO_HALF)
#define SHORT_BF16_3(name, whole, expression) HALF_LOOP(name, 3, BF16, whole, TO_HALF)
#define SHORT_BF16_2(name, whole, expression)                                                          \
    HALF_LOOP(name##_blocks, 2, BF16, whole, TO_HALF)                                                  \
    static void name(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *given) {        \
        const double p[4] = {given[0], given[1], given[2], given[3]};                                  \
        const uint16_t *a = (const uint16_t *)args[0], *b = (const uint16_t *)args[1];                 \
        uint16_t *o = (uint16_t *)args[2];                                                             \
        (void)p;                                                                                       \
        if (s[0] == 2 && s[1] == 2 && s[2] == 2) {                                                     \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {                                            \
                const float x = wide_BF16(a[i]), y = wide_BF16(b[i]);                                  \
                o[i] = narrow_BF16((float)(expression));                                               \
            }                                                                                          \
        } else {                                                                                       \
            name##_blocks(args, s, n, given);                                                          \
        }                                                                                              \
    }
#endif
#define TO_BOOL(whole, H)                                                                              \
    const int last = (int)(sizeof(buffer) / sizeof(buffer[0])) - 1;                                    \
    blocks[last] = to;                                                                                 \
    strides[last] = s[last];                                                                           \
    whole(blocks, strides, count, p);

#endif
