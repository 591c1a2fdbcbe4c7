/* The modified Bessel functions of the second kind, of orders 0 and 1, in float, made like those of vmath.h.

   The polynomials interpolate at Chebyshev's points, of relative error below 2^-25. Errors are up to 11 units in
   the last place, below 2, and 5 above. */
#ifndef TENSORPLUG_SPECIAL_BESSEL_H
#define TENSORPLUG_SPECIAL_BESSEL_H

#include "bessel.h"

/* Up to 2, of t = x^2 / 2 - 1: I_0, I_1 / x, and what is left of K without its logarithm (K_1: times x); further on K
   times sqrt(x) exp(x), of t = 4 / x - 1. */
INLINE float small_i0_F32(float t) {
    float q = 2.35807e-06f;
    q = q * t + 0.00011986923f;
    q = q * t + 0.003928565f;
    q = q * t + 0.07358985f;
    q = q * t + 0.63586175f;
    return q * t + 1.566083f;
}
INLINE float small_i1_F32(float t) {
    float q = 1.1790759e-05f;
    q = q * t + 0.00047952548f;
    q = q * t + 0.011785694f;
    q = q * t + 0.14717968f;
    return q * t + 0.63586175f;
}
INLINE float rest_k0_F32(float t) {
    float q = 6.094316e-08f;
    q = q * t + 4.0556656e-06f;
    q = q * t + 0.00018280555f;
    q = q * t + 0.005053392f;
    q = q * t + 0.07177701f;
    q = q * t + 0.34049731f;
    return q * t + -0.3036208f;
}
INLINE float rest_k1_F32(float t) {
    float q = -9.0333705e-09f;
    q = q * t + -7.0828406e-07f;
    q = q * t + -3.891869e-05f;
    q = q * t + -0.0013831687f;
    q = q * t + -0.027854236f;
    q = q * t + -0.24383853f;
    q = q * t + -0.33224097f;
    return q * t + 0.88508826f;
}
INLINE float far_k0_F32(float t) {
    float q = -2.8740712e-06f;
    q = q * t + 8.842356e-06f;
    q = q * t + -2.4277191e-05f;
    q = q * t + 9.833483e-05f;
    q = q * t + -0.00047986326f;
    q = q * t + 0.0030331432f;
    q = q * t + -0.031071458f;
    return q * t + 1.2185954f;
}
INLINE float far_k1_F32(float t) {
    float q = 3.5453306e-06f;
    q = q * t + -1.1192865e-05f;
    q = q * t + 3.2297954e-05f;
    q = q * t + -0.00013810638f;
    q = q * t + 0.00073583634f;
    q = q * t + -0.0055670342f;
    q = q * t + 0.10334974f;
    return q * t + 1.3631519f;
}

INLINE float small_k0_F32(float x, float t) { return rest_k0_F32(t) - m_log_F32(0.5f * x) * small_i0_F32(t); }
INLINE float small_k1_F32(float x, float t) { return rest_k1_F32(t) / x + m_log_F32(0.5f * x) * (x * small_i1_F32(t)); }

#define SECOND_KIND(order)                                                                             \
    INLINE float m_k##order##_F32(float x) {                                                           \
        float small = x < 2.0f ? x : 2.0f, large = x < 2.0f ? 2.0f : x;                                \
        float near = small_k##order##_F32(small, small * small * 0.5f - 1.0f);                         \
        float far = m_exp_F32(-large) * (far_k##order##_F32(4.0f / large - 1.0f) / sqrtf(large));      \
        float y = x < 2.0f ? near : far;                                                               \
        y = x < 0.0f ? NAN : y;                                                                        \
        return x != x ? x : x == 0.0f ? INFINITY : y;                                                  \
    }                                                                                                  \
    INLINE float m_k##order##e_F32(float x) {                                                          \
        float small = x < 2.0f ? x : 2.0f, large = x < 2.0f ? 2.0f : x;                                \
        float near = small_k##order##_F32(small, small * small * 0.5f - 1.0f) * m_exp_F32(small);      \
        float far = far_k##order##_F32(4.0f / large - 1.0f) / sqrtf(large);                            \
        float y = x < 2.0f ? near : far;                                                               \
        y = x < 0.0f ? NAN : y;                                                                        \
        return x != x ? x : x == 0.0f ? INFINITY : y;                                                  \
    }
SECOND_KIND(0)
SECOND_KIND(1)

#endif
