/* The dtypes that the kernels know, complex numbers last: these pointwise ops alone have loops for. Half precision is
   computed in float, block by block. */
#ifndef TENSORPLUG_TYPES_H
#define TENSORPLUG_TYPES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif
/* With AVX2 the compiler narrows with twice the steps, and through memory; with AVX-512 it finds the instruction. */
#if defined(__AVX2__) && !defined(__AVX512F__)
#define TP_EIGHT_BF16
#endif

enum tp_type { TP_F32, TP_F64, TP_I64, TP_I32, TP_I16, TP_I8, TP_U8, TP_BOOL, TP_F16, TP_BF16, TP_TYPES,
               TP_C64 = TP_TYPES, TP_C128, TP_ELEMENTS };

#define TP_INTEGERS(X) X(I64, int64_t) X(I32, int32_t) X(I16, int16_t) X(I8, int8_t) X(U8, uint8_t)
#define TP_FLOATS(X) X(F32, float) X(F64, double)

typedef uint16_t half_F16, half_BF16;

/* Round to nearest, ties to even; a NaN stays one. */
static inline float wide_BF16(uint16_t h) {
    union { uint32_t u; float f; } b = {.u = (uint32_t)h << 16};
    return b.f;
}
static inline uint16_t narrow_BF16(float x) {
    union { float f; uint32_t u; } b = {.f = x};
    uint32_t rounded = b.u + 0x7fff + (b.u >> 16 & 1);
    return (uint16_t)((x != x ? b.u | 0x400000 : rounded) >> 16);
}

#if defined(__F16C__) || defined(__aarch64__)
static inline float wide_F16(uint16_t h) { _Float16 x; memcpy(&x, &h, 2); return (float)x; }
static inline uint16_t narrow_F16(float f) { _Float16 x = (_Float16)f; uint16_t h; memcpy(&h, &x, 2); return h; }
#else
static inline float wide_F16(uint16_t h) {
    union { uint32_t u; float f; } b = {.u = (uint32_t)(h & 0x7fff) << 13};
    b.f *= 0x1p112f; /* from half's bias to float's; subnormals become normal */
    if ((h & 0x7c00) == 0x7c00) b.u = 0x7f800000 | (uint32_t)(h & 0x3ff) << 13;
    b.u |= (uint32_t)(h & 0x8000) << 16;
    return b.f;
}
static inline uint16_t narrow_F16(float x) {
    union { float f; uint32_t u; } b = {.f = x}, m = {.f = 0.0f};
    uint32_t sign = b.u >> 16 & 0x8000, a = b.u & 0x7fffffff;
    uint32_t normal = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
    m.u = a;
    m.f += 0.5f; /* the bits of a subnormal half end where those of 0.5 do */
    uint32_t tiny = m.u - 0x3f000000;
    uint32_t y = a < 0x38800000 ? tiny : normal;
    y = a >= 0x47800000 ? 0x7c00 : y;
    y = a > 0x7f800000 ? 0x7e00 : y;
    return (uint16_t)(y | sign);
}
#endif

/* Whole runs; there are instructions for half precision that the compiler does not use by itself. */
static inline void widen_BF16(float *to, const uint16_t *from, ptrdiff_t n) {
    ptrdiff_t i = 0;
#ifdef TP_EIGHT_BF16
    for (; i + 8 <= n; i += 8) {
        const __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(from + i)));
        _mm256_storeu_ps(to + i, _mm256_castsi256_ps(_mm256_slli_epi32(x, 16)));
    }
#endif
    for (; i < n; i++) to[i] = wide_BF16(from[i]);
}
static inline void narrow_run_BF16(uint16_t *to, const float *from, ptrdiff_t n) {
    ptrdiff_t i = 0;
#ifdef TP_EIGHT_BF16
    for (; i + 8 <= n; i += 8) {
        const __m256 x = _mm256_loadu_ps(from + i), nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
        const __m256i bits = _mm256_castps_si256(x), last = _mm256_srli_epi32(_mm256_slli_epi32(bits, 15), 31);
        const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), last);
        const __m256 quiet = _mm256_or_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x400000)));
        const __m256i y = _mm256_srli_epi32(_mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(up), quiet, nan)), 16);
        _mm_storeu_si128((__m128i *)(to + i),
                         _mm_packus_epi32(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1)));
    }
#endif
    for (; i < n; i++) to[i] = narrow_BF16(from[i]);
}
static inline void widen_F16(float *to, const uint16_t *from, ptrdiff_t n) {
    ptrdiff_t i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
#endif
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
#endif
    for (; i < n; i++) to[i] = wide_F16(from[i]);
}
static inline void narrow_run_F16(uint16_t *to, const float *from, ptrdiff_t n) {
    ptrdiff_t i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(to + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++) to[i] = narrow_F16(from[i]);
}

#endif
