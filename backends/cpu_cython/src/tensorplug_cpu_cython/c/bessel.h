/* The modified Bessel functions of orders 0 and 1, and the digamma and trigamma functions, made like those of vmath.h.

   The polynomials are minimax fits (Remez) of relative error below 2^-28 (float) and 2^-56 (double). Errors in units
   in the last place: 4 of i0e and i1e, 5 of i0, i1 and trigamma, 7 of that at negative numbers in float. */
#ifndef TENSORPLUG_BESSEL_H
#define TENSORPLUG_BESSEL_H

#include "special.h"

/* --- modified Bessel functions --------------------------------------------------------------------------- */

/* Up to NEAR, I_0(a) = 1 + z near_i0(z) and I_1(a) = a (1/2 + z near_i1(z)) of z = a^2, all of whose terms are
   positive; further on I(a) = exp(a) / sqrt(a) far_i(16 / a - 1), after Abramowitz and Stegun's 9.7.1. */
#define BESSEL_NEAR 8

INLINE float near_i0_F32(float z) {
    float q = 1.3533247e-19f;
    q = q * z + 2.0009456e-17f;
    q = q * z + 1.0057858e-14f;
    q = q * z + 2.3729183e-12f;
    q = q * z + 4.7176896e-10f;
    q = q * z + 6.78031e-08f;
    q = q * z + 6.78182e-06f;
    q = q * z + 0.00043402705f;
    q = q * z + 0.015625002f;
    return q * z + 0.25f;
}
INLINE float far_i0_F32(float t) {
    float q = 1.09006265e-07f;
    q = q * t + 3.6207524e-07f;
    q = q * t + 1.4755311e-06f;
    q = q * t + 1.1112888e-05f;
    q = q * t + 0.00013621744f;
    q = q * t + 0.0033605555f;
    return q * t + 0.4021765f;
}
INLINE float near_i1_F32(float z) {
    float q = 2.741084e-18f;
    q = q * z + 3.529478e-16f;
    q = q * z + 1.6150793e-13f;
    q = q * z + 3.319898e-11f;
    q = q * z + 5.6615566e-09f;
    q = q * z + 6.780325e-07f;
    q = q * z + 5.4254455e-05f;
    q = q * z + 0.0026041635f;
    return q * z + 0.0625f;
}
INLINE float far_i1_F32(float t) {
    float q = -1.2375874e-07f;
    q = q * t + -4.2038786e-07f;
    q = q * t + -1.8240614e-06f;
    q = q * t + -1.5004786e-05f;
    q = q * t + -0.00021923779f;
    q = q * t + -0.009749581f;
    return q * t + 0.38939846f;
}
INLINE double near_i0_F64(double z) {
    double q = 0x1.1c6e20cc0e56bp-110;
    q = q * z + 0x1.10c5101923a6ep-101;
    q = q * z + 0x1.f28c4efbe3437p-92;
    q = q * z + 0x1.40a87fd7c2df4p-82;
    q = q * z + 0x1.69e5b7ed2b16dp-73;
    q = q * z + 0x1.55ff5876e599ap-64;
    q = q * z + 0x1.0b3153145ab45p-55;
    q = q * z + 0x1.522a413d5887dp-47;
    q = q * z + 0x1.522a441fd1456p-39;
    q = q * z + 0x1.02e85c06e148bp-31;
    q = q * z + 0x1.23456789c423ap-24;
    q = q * z + 0x1.c71c71c71abeap-18;
    q = q * z + 0x1.c71c71c71c833p-12;
    q = q * z + 0x1.ffffffffffff5p-7;
    return q * z + 0x1.0000000000000p-2;
}
INLINE double far_i0_F64(double t) {
    double q = -0x1.fc4868b1ddb81p-35;
    q = q * t + -0x1.8ca4ac15e73efp-36;
    q = q * t + 0x1.e50a7407cdcf1p-32;
    q = q * t + 0x1.6c533b8ae34bfp-33;
    q = q * t + -0x1.b1a96a1c98299p-30;
    q = q * t + -0x1.4b8fb06254875p-31;
    q = q * t + 0x1.ebe74695b260cp-29;
    q = q * t + 0x1.ade6359f1f3c8p-30;
    q = q * t + -0x1.957eb2f19a125p-28;
    q = q * t + -0x1.e71e23ed09bc5p-29;
    q = q * t + 0x1.fc7bbedb5be58p-28;
    q = q * t + 0x1.04404daae3d5ep-27;
    q = q * t + -0x1.7295bd093b8aap-28;
    q = q * t + -0x1.cd00f9c36ea86p-27;
    q = q * t + -0x1.cfe780a30f8e1p-28;
    q = q * t + 0x1.03a49c8ac35c2p-27;
    q = q * t + 0x1.7234de37bed6fp-26;
    q = q * t + 0x1.51cdd5d38de59p-25;
    q = q * t + 0x1.7d0f0a44316f3p-24;
    q = q * t + 0x1.3f49a96543690p-22;
    q = q * t + 0x1.8e513a795dc2fp-20;
    q = q * t + 0x1.75e5ee711e6c9p-17;
    q = q * t + 0x1.1daa72b5e2710p-13;
    q = q * t + 0x1.b87969bb93b9bp-9;
    return q * t + 0x1.9bd428ad249a5p-2;
}
INLINE double near_i1_F64(double z) {
    double q = 0x1.0c8d77fd7dda4p-105;
    q = q * z + 0x1.da8dd08aa9ff5p-97;
    q = q * z + 0x1.9584f7b1f8ac7p-87;
    q = q * z + 0x1.e0e78cb0c4861p-78;
    q = q * z + 0x1.f19e5467a690ap-69;
    q = q * z + 0x1.ab7efea379714p-60;
    q = q * z + 0x1.2c977fd15dd4ep-51;
    q = q * z + 0x1.522a4119b89f2p-43;
    q = q * z + 0x1.27e4fb9cc4d0cp-35;
    q = q * z + 0x1.845c8a0a5d412p-28;
    q = q * z + 0x1.6c16c16c329bfp-21;
    q = q * z + 0x1.c71c71c71b0fep-15;
    q = q * z + 0x1.55555555555dfp-9;
    return q * z + 0x1.ffffffffffffbp-5;
}
INLINE double far_i1_F64(double t) {
    double q = 0x1.07b75e772088bp-34;
    q = q * t + 0x1.6ef4c7a638190p-36;
    q = q * t + -0x1.f7ba13711cdf2p-32;
    q = q * t + -0x1.512042e1a9b60p-33;
    q = q * t + 0x1.c2f98e540621ep-30;
    q = q * t + 0x1.34d817455cc45p-31;
    q = q * t + -0x1.006f264e2ef4ap-28;
    q = q * t + -0x1.97c84f248edcbp-30;
    q = q * t + 0x1.a91bdbbe06825p-28;
    q = q * t + 0x1.dc41bba272853p-29;
    q = q * t + -0x1.0de60450147e1p-27;
    q = q * t + -0x1.07596d6eb5434p-27;
    q = q * t + 0x1.99ac2ecfa6cf1p-28;
    q = q * t + 0x1.e27e5c841c55dp-27;
    q = q * t + 0x1.cf034ba701244p-28;
    q = q * t + -0x1.21a472ee7f7c2p-27;
    q = q * t + -0x1.9191e0ff89cd1p-26;
    q = q * t + -0x1.7279731fe3457p-25;
    q = q * t + -0x1.ad8d46c9e9278p-24;
    q = q * t + -0x1.7613810c3a483p-22;
    q = q * t + -0x1.ec8e10776bf9ap-20;
    q = q * t + -0x1.f89c23059fcb2p-17;
    q = q * t + -0x1.cbc54df1e8dadp-13;
    q = q * t + -0x1.3f796198ee632p-7;
    return q * t + 0x1.8ebe783a84030p-2;
}

/* exp(x) y, which may be finite where exp(x) is not. */
INLINE float times_exp_F32(float y, float x) {
    uint32_t power;
    float r = exp_remainder_F32(x, &power);
    return times_power_of_two_F32(y + y * reduced_expm1_F32(r), power);
}
INLINE double times_exp_F64(double y, double x) {
    double shifted, r = exp_remainder_F64(x, &shifted);
    return times_power_of_two_F64(y + y * reduced_expm1_F64(r), whole_F64(shifted));
}

/* MOST is past the end of exp(a) / sqrt(a): I of it is infinite. */
#define BESSEL(S, T, MOST)                                                                             \
    INLINE T m_i0e_##S(T x) {                                                                          \
        T a = C_##S(fabs)(x), c = a > BESSEL_NEAR ? BESSEL_NEAR : a, z = c * c;                \
        T near = times_exp_##S(1 + z * near_i0_##S(z), -c);                                            \
        T far = far_i0_##S(16 / a - 1) / C_##S(sqrt)(a);                                                    \
        return a < BESSEL_NEAR ? near : far;                                                       \
    }                                                                                                  \
    INLINE T m_i1e_##S(T x) {                                                                          \
        T a = C_##S(fabs)(x), c = a > BESSEL_NEAR ? BESSEL_NEAR : a, z = c * c;                \
        T near = times_exp_##S(c * ((T)0.5 + z * near_i1_##S(z)), -c);                                 \
        T far = far_i1_##S(16 / a - 1) / C_##S(sqrt)(a);                                                    \
        return C_##S(copysign)(a < BESSEL_NEAR ? near : far, x);                                   \
    }                                                                                                  \
    INLINE T m_i0_##S(T x) {                                                                           \
        T a = C_##S(fabs)(x), z = a * a, c = a > (T)MOST ? (T)MOST : a;                                \
        T far = times_exp_##S(far_i0_##S(16 / c - 1) / C_##S(sqrt)(c), c);                                  \
        return a < BESSEL_NEAR ? 1 + z * near_i0_##S(z) : far;                                     \
    }                                                                                                  \
    INLINE T m_i1_##S(T x) {                                                                           \
        T a = C_##S(fabs)(x), z = a * a, c = a > (T)MOST ? (T)MOST : a;                                \
        T far = times_exp_##S(far_i1_##S(16 / c - 1) / C_##S(sqrt)(c), c);                                  \
        return C_##S(copysign)(a < BESSEL_NEAR ? a * ((T)0.5 + z * near_i1_##S(z)) : far, x);      \
    }
BESSEL(F32, float, 95)
BESSEL(F64, double, 720)

/* --- the digamma function -------------------------------------------------------------------------------- */

/* In double: by the recurrence eight times, whose terms are taken in pairs, then by the asymptotic series; of negative
   numbers by the reflection, where the distance from a whole number is exact. */
INLINE double m_digamma_F64(double x) {
    const double a = x < 0 ? 1 - x : x, c = a > 1e30 ? 1e30 : a;
    const double q = c * (c + 7), p = q + 6, u = q + 10, v = q + 12;
    const double terms = (2 * c + 7) * ((q + p) / (q * p) + (u + v) / (u * v));
    const double z = 1 / (c + 8), w = z * z;
    double tail = -0x1.5555555555555p-4; /* Bernoulli's numbers over their orders: 1/12, 1/120, 1/252, ... */
    tail = tail * w + 0x1.5995995995996p-6;
    tail = tail * w + -0x1.f07c1f07c1f08p-8;
    tail = tail * w + 0x1.1111111111111p-8;
    tail = tail * w + -0x1.0410410410410p-8;
    tail = tail * w + 0x1.1111111111111p-7;
    tail = tail * w + -0x1.5555555555555p-4;
    const double y = m_log_F64(a + 8) - 0.5 * z + tail * w - terms;
    const double r = x - rint(x), s = 0.5 - fabs(r);
    const double sine = r * sine_of_half_turns_F64(r * r), cosine = s * sine_of_half_turns_F64(s * s);
    const double mirrored = r == 0 ? NAN : y - 0x1.921fb54442d18p1 * cosine / sine;
    const double found = x < 0 ? mirrored : y;
    return x == 0 ? copysign(INFINITY, -x) : found;
}
INLINE float m_digamma_F32(float x) { return (float)m_digamma_F64(x); }

/* --- the trigamma function ------------------------------------------------------------------------------- */

/* x psi'(x) of x = 2 + a, a >= 0, t = (a - 2) / (a + 2) */
INLINE float far_trigamma_F32(float t) {
    float q = 6.8817394e-07f;
    q = q * t + -2.0708711e-07f;
    q = q * t + -1.7552285e-05f;
    q = q * t + -6.848321e-05f;
    q = q * t + 0.00042669126f;
    q = q * t + 0.009710934f;
    q = q * t + -0.1453439f;
    return q * t + 1.1352918f;
}
INLINE double far_trigamma_F64(double t) {
    double q = 0x1.8e20a64d969f9p-43;
    q = q * t + -0x1.147a9a2fa26dbp-38;
    q = q * t + -0x1.cc3b246b22700p-37;
    q = q * t + 0x1.3c3002219577ep-39;
    q = q * t + 0x1.67aada3c766a0p-34;
    q = q * t + 0x1.ee733003f8ab3p-33;
    q = q * t + 0x1.0d1a5263e59a3p-32;
    q = q * t + -0x1.ca6ef3a493cd3p-31;
    q = q * t + -0x1.7164f882b81b3p-28;
    q = q * t + -0x1.b2cd961e22403p-27;
    q = q * t + 0x1.3dd4477ec228dp-27;
    q = q * t + 0x1.a4b1d2a874439p-23;
    q = q * t + 0x1.6aa34d15daa09p-21;
    q = q * t + -0x1.2c7b980ec9407p-21;
    q = q * t + -0x1.263cef0db0f61p-16;
    q = q * t + -0x1.1e5ad7715ebcbp-14;
    q = q * t + 0x1.bf693a58d0a95p-12;
    q = q * t + 0x1.3e34e082db0c8p-7;
    q = q * t + -0x1.29aa0f17f39cbp-3;
    return q * t + 0x1.22a27c22fad85p+0;
}

/* By the recurrence twice, and of negative numbers by the reflection: the distance from a whole number is exact. */
#define TRIGAMMA_OF(S, T)                                                                              \
    INLINE T m_trigamma_##S(T x) {                                                                     \
        T a = x < 0 ? 1 - x : x, c = a > (T)1e30 ? (T)1e30 : a;                                        \
        T u = 1 / a, v = 1 / (a + 1), w = 1 / (a + 2);                                                 \
        T y = u * u + (v * v + w * far_trigamma_##S((c - 2) / (c + 2)));                               \
        T r = x - C_##S(rint)(x), sine = r * sine_of_half_turns_##S(r * r);                            \
        return x < 0 ? (T)9.8696044010893586188 / (sine * sine) - y : y; /* pi^2 */                    \
    }
TRIGAMMA_OF(F32, float)
TRIGAMMA_OF(F64, double)

#endif
