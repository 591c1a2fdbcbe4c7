#include "vision.h"

#include <math.h>
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "parallel.h"
#include "vectors.h"

/* Positions are worked on in blocks, so that vectors run over them; each has up to 4 elements along a dimension. */
enum { WIDTH = 64, ALONG = 4, TAPS = 16 };

/* Whether places of the samples that a block may be of can be told from its first one on. Many samples of few positions
   would else leave most of each block empty. */
static inline int together(const tp_sampling *s, size_t index) {
    const double reach = (double)WIDTH * s->channels * s->sizes[0] * s->sizes[1] * s->sizes[2];
    return index > sizeof(int32_t) || reach < INT32_MAX;
}

#define JOINED(type) type##_vector
#define VECTOR_OF(type) JOINED(type)

#define T float
#define INDEX int32_t
#define OF(name) name##_F32
#define FLOOR floorf
#define RINT rintf
#define ABS fabsf
#if defined(__AVX512F__)
#define GATHER(to, from, at) _mm512_storeu_ps(to, _mm512_i32gather_ps(_mm512_loadu_si512(at), from, 4))
#elif defined(__AVX2__)
#define GATHER(to, from, at) _mm256_storeu_ps(to, _mm256_i32gather_ps(from, _mm256_loadu_si256((const void *)(at)), 4))
#endif
#include "vision_body.h"
#undef T
#undef INDEX
#undef OF
#undef FLOOR
#undef RINT
#undef ABS
#define T double
#define INDEX int64_t
#define OF(name) name##_F64
#define FLOOR floor
#define RINT rint
#define ABS fabs
#undef GATHER
#if defined(__AVX512F__)
#define GATHER(to, from, at) _mm512_storeu_pd(to, _mm512_i64gather_pd(_mm512_loadu_si512(at), from, 8))
#elif defined(__AVX2__)
#define GATHER(to, from, at) _mm256_storeu_pd(to, _mm256_i64gather_pd(from, _mm256_loadu_si256((const void *)(at)), 8))
#endif
#include "vision_body.h"

const tp_vision LEVEL(tp_vision_table) = {
    .sample = {sample_F32, sample_F64},
    .gradient = {gradient_F32, gradient_F64},
};
