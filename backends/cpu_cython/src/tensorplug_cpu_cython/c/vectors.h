/* Sums over rows by vectors of the level's width. */
#ifndef TENSORPLUG_VECTORS_H
#define TENSORPLUG_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { VECTOR = 64 };
#elif defined(__AVX__)
enum { VECTOR = 32 };
#else
enum { VECTOR = 16 };
#endif

typedef float float_vector __attribute__((vector_size(VECTOR), aligned(4), may_alias));
typedef double double_vector __attribute__((vector_size(VECTOR), aligned(8), may_alias));
typedef int32_t int32_t_vector __attribute__((vector_size(VECTOR), aligned(4), may_alias));
typedef int64_t int64_t_vector __attribute__((vector_size(VECTOR), aligned(8), may_alias));
typedef float float_half __attribute__((vector_size(VECTOR / 2)));
typedef double double_half __attribute__((vector_size(VECTOR / 2)));
typedef int64_t int64_t_half __attribute__((vector_size(VECTOR / 2)));

/* As many numbers as a vector has doubles, as such. Before its version 13 GCC converts a vector of floats by halves. */
static inline double_vector widened_float(const float *x) {
#if defined(__AVX512F__)
    return (double_vector)_mm512_cvtps_pd(_mm256_loadu_ps(x));
#elif defined(__AVX__)
    return (double_vector)_mm256_cvtps_pd(_mm_loadu_ps(x));
#else
    typedef float few __attribute__((vector_size(VECTOR / 2), aligned(4), may_alias));
    return __builtin_convertvector(*(const few *)x, double_vector);
#endif
}
static inline double_vector widened_double(const double *x) { return *(const double_vector *)x; }

/* Declare `total` as the sum of an expression of v: an element of a row of n, or a vector of them. Several sums run
   beside each other, and few elements at the end are added up one by one. */
#define SUM_VECTORS(T, total, row, n, expression)                                                      \
    T total;                                                                                           \
    {                                                                                                  \
        enum { PER = VECTOR / sizeof(T), MANY = 4 };                                                   \
        const T *const row_ = (row);                                                                   \
        const ptrdiff_t count_ = (n);                                                                  \
        ptrdiff_t at_ = 0;                                                                             \
        T whole_ = 0;                                                                                  \
        if (count_ >= PER) {                                                                           \
            T##_vector sums_[MANY] = {{0}};                                                            \
            for (; at_ + MANY * PER <= count_; at_ += MANY * PER)                                      \
                for (int k = 0; k < MANY; k++) {                                                       \
                    const T##_vector v = *(const T##_vector *)(row_ + at_ + k * PER);                  \
                    sums_[k] += (expression);                                                          \
                }                                                                                      \
            for (; at_ + PER <= count_; at_ += PER) {                                                  \
                const T##_vector v = *(const T##_vector *)(row_ + at_);                                \
                sums_[0] += (expression);                                                              \
            }                                                                                          \
            sums_[0] = (sums_[0] + sums_[1]) + (sums_[2] + sums_[3]);                                  \
            T##_half low_;                                                                             \
            T##_half high_;                                                                            \
            memcpy(&low_, &sums_[0], sizeof(low_));                                                    \
            memcpy(&high_, (const char *)&sums_[0] + sizeof(low_), sizeof(high_));                     \
            low_ += high_;                                                                             \
            T lanes_[PER / 2];                                                                         \
            memcpy(lanes_, &low_, sizeof(lanes_));                                                     \
            for (int half = PER / 4; half; half /= 2)                                                  \
                for (int l = 0; l < half; l++) lanes_[l] += lanes_[l + half];                          \
            whole_ = lanes_[0];                                                                        \
        }                                                                                              \
        T even_ = 0;                                                                                   \
        T odd_ = 0;                                                                                    \
        for (; at_ + 2 <= count_; at_ += 2) {                                                          \
            { const T v = row_[at_]; even_ += (expression); }                                          \
            { const T v = row_[at_ + 1]; odd_ += (expression); }                                       \
        }                                                                                              \
        if (at_ < count_) { const T v = row_[at_]; even_ += (expression); }                            \
        total = whole_ + (even_ + odd_);                                                               \
    }

#endif
