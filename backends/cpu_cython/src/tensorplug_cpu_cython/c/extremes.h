/* The largest or smallest of floats by vectors, for the compiler makes branches of such a choice. NaN wins: where
   one was seen is kept aside. Of NaN and a number x86 takes the second operand, which is what is known so far. */
#ifndef TENSORPLUG_EXTREMES_H
#define TENSORPLUG_EXTREMES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vectors.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define LARGER_OF(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define SMALLER_OF(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))

#if defined(__AVX512F__)
#define max_F32_step(x, a) (max_F32_vector)_mm512_max_ps((__m512)(x), (__m512)(a))
#define min_F32_step(x, a) (min_F32_vector)_mm512_min_ps((__m512)(x), (__m512)(a))
#define max_F64_step(x, a) (max_F64_vector)_mm512_max_pd((__m512d)(x), (__m512d)(a))
#define min_F64_step(x, a) (min_F64_vector)_mm512_min_pd((__m512d)(x), (__m512d)(a))
#elif defined(__AVX__)
#define max_F32_step(x, a) (max_F32_vector)_mm256_max_ps((__m256)(x), (__m256)(a))
#define min_F32_step(x, a) (min_F32_vector)_mm256_min_ps((__m256)(x), (__m256)(a))
#define max_F64_step(x, a) (max_F64_vector)_mm256_max_pd((__m256d)(x), (__m256d)(a))
#define min_F64_step(x, a) (min_F64_vector)_mm256_min_pd((__m256d)(x), (__m256d)(a))
#elif defined(__SSE2__)
#define max_F32_step(x, a) (max_F32_vector)_mm_max_ps((__m128)(x), (__m128)(a))
#define min_F32_step(x, a) (min_F32_vector)_mm_min_ps((__m128)(x), (__m128)(a))
#define max_F64_step(x, a) (max_F64_vector)_mm_max_pd((__m128d)(x), (__m128d)(a))
#define min_F64_step(x, a) (min_F64_vector)_mm_min_pd((__m128d)(x), (__m128d)(a))
#else
#define TP_SELECT(name, which, x, a)                                                                   \
    (name##_vector)(((name##_bits)(x) & (name##_bits)(which)) | ((name##_bits)(a) & ~(name##_bits)(which)))
#define max_F32_step(x, a) TP_SELECT(max_F32, (x) > (a), x, a)
#define min_F32_step(x, a) TP_SELECT(min_F32, (x) < (a), x, a)
#define max_F64_step(x, a) TP_SELECT(max_F64, (x) > (a), x, a)
#define min_F64_step(x, a) TP_SELECT(min_F64, (x) < (a), x, a)
#endif
#define EXTREME_ROW(name, T, I, neutral, of)                                                         \
    typedef T name##_vector __attribute__((vector_size(VECTOR), aligned(sizeof(T)), may_alias));       \
    typedef I name##_bits __attribute__((vector_size(VECTOR)));                                        \
    static T name##_row(const T *x, ptrdiff_t n) {                                                     \
        enum { PER = VECTOR / sizeof(T), MANY = 4, STEP = MANY * PER };                                \
        T total = neutral;                                                                             \
        if (n < PER) {                                                                                 \
            for (ptrdiff_t i = 0; i < n; i++) total = of(total, x[i]);                                 \
            return total;                                                                              \
        }                                                                                              \
        const name##_vector first = *(const name##_vector *)x;                                         \
        name##_vector a[MANY] = {first, first, first, first};                                          \
        name##_bits nan[MANY] = {(name##_bits)(first != first)};                                       \
        ptrdiff_t i = PER;                                                                             \
        for (; i + STEP <= n; i += STEP)                                                               \
            for (int k = 0; k < MANY; k++) {                                                           \
                const name##_vector b = *(const name##_vector *)(x + i + k * PER);                     \
                a[k] = name##_step(b, a[k]);                                                           \
                nan[k] |= (name##_bits)(b != b);                                                       \
            }                                                                                          \
        for (; i < n; i += PER) { /* the last ones may be seen twice */                                \
            const name##_vector b = *(const name##_vector *)(x + (i + PER < n ? i : n - PER));         \
            a[0] = name##_step(b, a[0]);                                                               \
            nan[0] |= (name##_bits)(b != b);                                                           \
        }                                                                                              \
        for (int k = 1; k < MANY; k++) {                                                               \
            a[0] = name##_step(a[k], a[0]);                                                            \
            nan[0] |= nan[k];                                                                          \
        }                                                                                              \
        I some = 0;                                                                                    \
        T lanes[PER];                                                                                  \
        memcpy(lanes, &a[0], sizeof(lanes));                                                           \
        for (int l = 0; l < PER; l++) some |= nan[0][l];                                               \
        for (int half = PER / 2; half; half /= 2)                                                      \
            for (int l = 0; l < half; l++) lanes[l] = of(lanes[l], lanes[l + half]);                   \
        return some ? (T)NAN : lanes[0];                                                               \
    }

/* Both at once, for a row of at least one; after EXTREME_ROW of either. */
#define EXTREMES_ROW(S, T, I)                                                                          \
    static void both_row_##S(const T *x, ptrdiff_t n, T *low, T *high) {                               \
        enum { PER = VECTOR / sizeof(T), MANY = 4, STEP = MANY * PER };                                \
        if (n < PER) {                                                                                 \
            *low = min_##S##_row(x, n);                                                                \
            *high = max_##S##_row(x, n);                                                               \
            return;                                                                                    \
        }                                                                                              \
        const max_##S##_vector first = *(const max_##S##_vector *)x;                                   \
        max_##S##_vector a[MANY] = {first, first, first, first};                                       \
        max_##S##_vector b[MANY] = {first, first, first, first};                                       \
        max_##S##_bits nan[MANY] = {(max_##S##_bits)(first != first)};                                 \
        ptrdiff_t i = PER;                                                                             \
        for (; i + STEP <= n; i += STEP)                                                               \
            for (int k = 0; k < MANY; k++) {                                                           \
                const max_##S##_vector v = *(const max_##S##_vector *)(x + i + k * PER);               \
                a[k] = (max_##S##_vector)min_##S##_step(v, a[k]);                                      \
                b[k] = max_##S##_step(v, b[k]);                                                        \
                nan[k] |= (max_##S##_bits)(v != v);                                                    \
            }                                                                                          \
        for (; i < n; i += PER) { /* the last ones may be seen twice */                                \
            const max_##S##_vector v = *(const max_##S##_vector *)(x + (i + PER < n ? i : n - PER));   \
            a[0] = (max_##S##_vector)min_##S##_step(v, a[0]);                                          \
            b[0] = max_##S##_step(v, b[0]);                                                            \
            nan[0] |= (max_##S##_bits)(v != v);                                                        \
        }                                                                                              \
        for (int k = 1; k < MANY; k++) {                                                               \
            a[0] = (max_##S##_vector)min_##S##_step(a[k], a[0]);                                       \
            b[0] = max_##S##_step(b[k], b[0]);                                                         \
            nan[0] |= nan[k];                                                                          \
        }                                                                                              \
        I some = 0;                                                                                    \
        T least[PER];                                                                                  \
        T most[PER];                                                                                   \
        memcpy(least, &a[0], sizeof(least));                                                           \
        memcpy(most, &b[0], sizeof(most));                                                             \
        for (int l = 0; l < PER; l++) {                                                                \
            some |= nan[0][l];                                                                         \
            least[0] = SMALLER_OF(least[0], least[l]);                                                 \
            most[0] = LARGER_OF(most[0], most[l]);                                                     \
        }                                                                                              \
        *low = some ? (T)NAN : least[0];                                                               \
        *high = some ? (T)NAN : most[0];                                                               \
    }

#define EXTREME_COLUMNS(name, T, of)                                                                   \
    static void name##_columns(T *total, const char *row, ptrdiff_t step, ptrdiff_t n, ptrdiff_t width) {\
        enum { PER = VECTOR / sizeof(T), MANY = 4 };                                                   \
        ptrdiff_t j = 0;                                                                               \
        for (; j + MANY * PER <= width; j += MANY * PER) {                                             \
            name##_vector a[MANY];                                                                     \
            name##_bits nan[MANY] = {{0}};                                                             \
            memcpy(a, total + j, sizeof(a));                                                           \
            for (ptrdiff_t i = 0; i < n; i++) {                                                        \
                const T *from = (const T *)(row + i * step) + j;                                       \
                for (int k = 0; k < MANY; k++) {                                                       \
                    const name##_vector b = *(const name##_vector *)(from + k * PER);                  \
                    a[k] = name##_step(b, a[k]);                                                       \
                    nan[k] |= (name##_bits)(b != b);                                                   \
                }                                                                                      \
            }                                                                                          \
            for (int k = 0; k < MANY; k++) a[k] = (name##_vector)((name##_bits)a[k] | nan[k]);         \
            memcpy(total + j, a, sizeof(a));                                                           \
        }                                                                                              \
        for (; j + PER <= width; j += PER) {                                                           \
            name##_vector a = *(const name##_vector *)(total + j);                                     \
            name##_bits nan = {0};                                                                     \
            for (ptrdiff_t i = 0; i < n; i++) {                                                        \
                const name##_vector b = *(const name##_vector *)((const T *)(row + i * step) + j);     \
                a = name##_step(b, a);                                                                 \
                nan |= (name##_bits)(b != b);                                                          \
            }                                                                                          \
            *(name##_vector *)(total + j) = (name##_vector)((name##_bits)a | nan);                     \
        }                                                                                              \
        for (ptrdiff_t i = 0; j < width && i < n; i++) {                                               \
            const T *from = (const T *)(row + i * step);                                               \
            for (ptrdiff_t m = j; m < width; m++) total[m] = of(total[m], from[m]);                    \
        }                                                                                              \
    }

#endif
