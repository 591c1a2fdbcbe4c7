/* Philox 4x32-10: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3. */
#ifndef TENSORPLUG_PHILOX_H
#define TENSORPLUG_PHILOX_H

#include <stdint.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

/* Blocks computed at a time, so that the compiler vectorises over them. */
enum { TP_PHILOX_LANES = 16 };

typedef struct { uint32_t word[4][TP_PHILOX_LANES]; } tp_philox_words;

enum { TP_PHILOX_ROUNDS = 10 };
#define TP_FACTOR_A 0xD2511F53u
#define TP_FACTOR_C 0xCD9E8D57u
#define TP_STEP_0 0x9E3779B9u
#define TP_STEP_1 0xBB67AE85u

#ifdef __AVX2__
/* The upper and lower halves of products of eight words: those of even places, and those of odd ones. */
static inline __attribute__((always_inline)) void tp_products(__m256i x, __m256i factor, __m256i *upper, __m256i *lower) {
    const __m256i even = _mm256_mul_epu32(x, factor), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), factor);
    *upper = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    *lower = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

/* Compilers widen the words to multiply them, which takes twice the time. */
static inline __attribute__((always_inline)) void tp_philox_rounds(
    uint32_t *first, uint32_t *second, uint32_t *third, uint32_t *fourth, uint32_t start0, uint32_t start1) {
    const __m256i for_a = _mm256_set1_epi32((int)TP_FACTOR_A), for_c = _mm256_set1_epi32((int)TP_FACTOR_C);
    for (int l = 0; l < TP_PHILOX_LANES; l += 8) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(first + l)), b = _mm256_loadu_si256((const __m256i *)(second + l));
        __m256i c = _mm256_loadu_si256((const __m256i *)(third + l)), d = _mm256_loadu_si256((const __m256i *)(fourth + l));
        uint32_t key0 = start0, key1 = start1;
        for (int round = 0; round < TP_PHILOX_ROUNDS; round++) {
            __m256i upper_a, lower_a, upper_c, lower_c;
            tp_products(a, for_a, &upper_a, &lower_a);
            tp_products(c, for_c, &upper_c, &lower_c);
            a = _mm256_xor_si256(_mm256_xor_si256(upper_c, b), _mm256_set1_epi32((int)key0));
            c = _mm256_xor_si256(_mm256_xor_si256(upper_a, d), _mm256_set1_epi32((int)key1));
            b = lower_c;
            d = lower_a;
            key0 += TP_STEP_0;
            key1 += TP_STEP_1;
        }
        _mm256_storeu_si256((__m256i *)(first + l), a);
        _mm256_storeu_si256((__m256i *)(second + l), b);
        _mm256_storeu_si256((__m256i *)(third + l), c);
        _mm256_storeu_si256((__m256i *)(fourth + l), d);
    }
}
#else
static inline __attribute__((always_inline)) void tp_philox_rounds(
    uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < TP_PHILOX_ROUNDS; round++) {
        for (int l = 0; l < TP_PHILOX_LANES; l++) {
            const uint64_t p = (uint64_t)a[l] * TP_FACTOR_A, q = (uint64_t)c[l] * TP_FACTOR_C;
            const uint32_t x = (uint32_t)(q >> 32) ^ b[l] ^ key0, y = (uint32_t)(p >> 32) ^ d[l] ^ key1;
            a[l] = x;
            b[l] = (uint32_t)q;
            c[l] = y;
            d[l] = (uint32_t)p;
        }
        key0 += TP_STEP_0;
        key1 += TP_STEP_1;
    }
}
#endif

/* The words of TP_PHILOX_LANES blocks from counter (upper, offset + first) on. */
static inline __attribute__((always_inline)) void tp_philox(
    tp_philox_words *out, uint64_t seed, uint64_t offset, uint64_t upper, uint64_t first) {
    uint32_t *a = out->word[0], *b = out->word[1], *c = out->word[2], *d = out->word[3];
    for (int l = 0; l < TP_PHILOX_LANES; l++) {
        const uint64_t low = offset + first + (uint64_t)l, high = upper + (low < offset);
        a[l] = (uint32_t)low;
        b[l] = (uint32_t)(low >> 32);
        c[l] = (uint32_t)high;
        d[l] = (uint32_t)(high >> 32);
    }
    tp_philox_rounds(a, b, c, d, (uint32_t)seed, (uint32_t)(seed >> 32));
}

#endif
