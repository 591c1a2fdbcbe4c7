/* Elementary functions without branches or calls, which the compiler can vectorise.

   Reductions of the argument follow Cody and Waite, "Software Manual for the Elementary Functions" (1980);
   the polynomials are minimax fits (Lawson's algorithm) of relative error below 2^-27 (float) and
   2^-55 (double). Errors in units in the last place, measured against the double or 80-bit result:
   at most 1.5 for exp, log, log1p, sin, cos, tanh, sqrt-like ones, 2 for expm1, tan and erf, 4 for what
   is made of them. Subnormal results and arguments, infinities, NaN and signed zeros are as in C. */
#ifndef TENSORPLUG_VMATH_H
#define TENSORPLUG_VMATH_H

#include <math.h>
#include <stdint.h>

/* C's function of each type. */
#define C_F32(name) name##f
#define C_F64(name) name

#define INLINE static inline __attribute__((always_inline))

typedef union { float f; int32_t i; uint32_t u; } bits32;
typedef union { double f; int64_t i; uint64_t u; } bits64;

/* From here on `power` is n << 23, which moves the exponent of a float by n. */
INLINE float power_of_two_F32(uint32_t power) { bits32 b = {.u = power + 0x3f800000u}; return b.f; }
INLINE double power_of_two_F64(int64_t n) { bits64 b = {.u = ((uint64_t)n + 1023u) << 52}; return b.f; }

/* Adding 1.5 * 2^52 leaves a whole number in the low bits: there is no vector conversion before AVX-512. */
#define WHOLE 0x1.8p52
INLINE int64_t whole_F64(double shifted) { bits64 b = {.f = shifted}, w = {.f = WHOLE}; return (int64_t)(b.u - w.u); }
/* Half a float's bits do for what is below 2^22; the shift drops those of the number that was added. */
#define WHOLE_F32 0x1.8p23f
INLINE float rounded_F32(float x, uint32_t *power) {
    bits32 shifted = {.f = x + WHOLE_F32};
    *power = shifted.u << 23;
    return shifted.f - WHOLE_F32;
}

/* r + r^2 q(r) = exp(r) - 1 for |r| <= ln(2) / 2. */
INLINE float reduced_expm1_F32(float r) {
    float q = 0.00138145441f;
    q = q * r + 0.00836872216f;
    q = q * r + 0.0416683890f;
    q = q * r + 0.166665211f;
    q = q * r + 0.49999994f;
    return r + r * r * q;
}

INLINE double expm1_rest_F64(double r) {
    double q = 0x1.1e3d0ee6d9df2p-29;
    q = q * r + 0x1.af6becb9727e4p-26;
    q = q * r + 0x1.27e5b45ef842ap-22;
    q = q * r + 0x1.71ddf01da8a1bp-19;
    q = q * r + 0x1.a01a0136803f8p-16;
    q = q * r + 0x1.a01a01b37fae2p-13;
    q = q * r + 0x1.6c16c16c304d2p-10;
    q = q * r + 0x1.111111110ec59p-7;
    q = q * r + 0x1.5555555555503p-5;
    q = q * r + 0x1.555555555555bp-3;
    q = q * r + 0.5;
    return r * r * q;
}
INLINE double reduced_expm1_F64(double r) { return r + expm1_rest_F64(r); }

/* Return r of x = n ln(2) + r, |r| <= ln(2) / 2. */
INLINE float exp_remainder_F32(float x, uint32_t *power) {
    const float n = rounded_F32(x * 1.44269504f, power);
    return (x - n * 0.693359375f) - n * -2.12194440e-4f;
}
INLINE double exp_remainder_F64(double x, double *shifted) {
    *shifted = x * 0x1.71547652b82fep0 + WHOLE;
    const double n = *shifted - WHOLE;
    return (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
}
/* Times 2^n, which may be more than there is, or less, where half of n is not. */
INLINE float times_power_of_two_F32(float p, uint32_t power) {
    const uint32_t half = (uint32_t)((int32_t)power >> 24) << 23;
    return p * power_of_two_F32(half) * power_of_two_F32(power - half);
}

/* An arithmetic shift of 64 bits is scalar before AVX-512: halve with an offset. */
INLINE double times_power_of_two_F64(double p, int64_t k) {
    int64_t half = (int64_t)((uint64_t)(k + 4096) >> 1) - 2048;
    return p * power_of_two_F64(half) * power_of_two_F64(k - half);
}

/* What vanishes is chosen at the end, whatever was computed of it: a product that underflows, as minus infinity in a
   masked softmax would have if it were cut off before, takes processors up to a hundred cycles. */
INLINE float m_exp_F32(float x) {
    float c = x > 89.0f ? 89.0f : x;
    uint32_t power;
    float r = exp_remainder_F32(c, &power);
    float y = times_power_of_two_F32(1.0f + reduced_expm1_F32(r), power);
    return x < -104.0f ? 0.0f : y;
}

INLINE double m_exp_F64(double x) {
    double c = x < -746.0 ? -746.0 : x;
    c = c > 710.0 ? 710.0 : c;
    double shifted, r = exp_remainder_F64(c, &shifted);
    return times_power_of_two_F64(1.0 + reduced_expm1_F64(r), whole_F64(shifted));
}

INLINE float m_expm1_F32(float x) {
    float c = x < -20.0f ? -20.0f : x;
    c = c > 89.0f ? 89.0f : c;
    uint32_t power;
    float r = exp_remainder_F32(c, &power);
    float s = power_of_two_F32(power - (1u << 23));
    float y = 2.0f * (s * reduced_expm1_F32(r) + (s - 0.5f));
    y = power == 0 ? reduced_expm1_F32(r) : y;
    return x == 0.0f ? x : y;
}

INLINE double m_expm1_F64(double x) {
    double c = x < -40.0 ? -40.0 : x;
    c = c > 710.0 ? 710.0 : c;
    double shifted, r = exp_remainder_F64(c, &shifted), n = shifted - WHOLE;
    double s = power_of_two_F64(whole_F64(shifted) - 1);
    double m = reduced_expm1_F64(r);
    double y = 2.0 * (s * m + (s - 0.5));
    y = n == 0.0 ? m : y;
    return x == 0.0 ? x : y;
}

/* (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f in [sqrt(1/2), sqrt(2)). */
INLINE float log1p_rest_F32(float f) {
    float q = 0.0674943104f;
    q = q * f + -0.116783507f;
    q = q * f + 0.118883193f;
    q = q * f + -0.124050878f;
    q = q * f + 0.142194554f;
    q = q * f + -0.166680261f;
    q = q * f + 0.200021252f;
    q = q * f + -0.250000089f;
    return q * f + 0.333333135f;
}

/* Return f of x = 2^n (1 + f), with 1 + f in [sqrt(1/2), sqrt(2)). */
INLINE float log_remainder_F32(float x, float *n) {
    int small = x < 1.17549435e-38f;
    bits32 b = {.f = small ? x * 8388608.0f : x};
    int32_t k = (int32_t)(b.u - 0x3f3504f3u) >> 23;
    b.u -= (uint32_t)k << 23;
    *n = (float)(k - (small ? 23 : 0));
    return b.f - 1.0f;
}
/* The logarithm y of x, unless x is zero, negative, infinite or NaN. */
INLINE float log_at_ends_F32(float x, float y) {
    y = x == INFINITY ? x : y;
    y = x == 0.0f ? -INFINITY : y;
    y = x < 0.0f ? NAN : y;
    return x != x ? x : y;
}

INLINE float m_log_F32(float x) {
    float n, f = log_remainder_F32(x, &n), s = f * f;
    float y = log1p_rest_F32(f) * s * f + n * -2.12194440e-4f;
    y = f + (y - 0.5f * s) + n * 0.693359375f;
    return log_at_ends_F32(x, y);
}

INLINE double log_remainder_F64(double x, double *n) {
    int64_t small = x < 2.2250738585072014e-308;
    bits64 b = {.f = small ? x * 18014398509481984.0 : x};
    /* As a whole number of positive sign the exponent needs no arithmetic shift. */
    uint64_t above = b.u - 0x3fe6a09e667f3bcdULL + ((uint64_t)2048 << 52);
    uint64_t k = above >> 52;
    b.u -= (k - 2048) << 52;
    bits64 shifted = {.u = k + 0x4330000000000000ULL}; /* 2^52 + k */
    *n = (shifted.f - 0x1p52) - (small ? 2102.0 : 2048.0);
    return b.f - 1.0;
}
/* log(1 + f) = f - s (f - rest(s^2)) of s = f / (2 + f): the leading f is exact. */
INLINE double log_rest_F64(double z) {
    double q = 0x1.0f6abe1c3c3d1p-3;
    q = q * z + 0x1.0f5bf1972fed7p-3;
    q = q * z + 0x1.3b20b5182d592p-3;
    q = q * z + 0x1.745cddfde001ep-3;
    q = q * z + 0x1.c71c7259b0079p-3;
    q = q * z + 0x1.249249242aa95p-2;
    q = q * z + 0x1.9999999999e07p-2;
    q = q * z + 0x1.5555555555555p-1;
    return z * q;
}
INLINE double log_at_ends_F64(double x, double y) {
    y = x == (double)INFINITY ? x : y;
    y = x == 0.0 ? -(double)INFINITY : y;
    y = x < 0.0 ? (double)NAN : y;
    return x != x ? x : y;
}

INLINE double m_log_F64(double x) {
    double n, f = log_remainder_F64(x, &n), s = f / (2.0 + f);
    double y = f - (s * (f - log_rest_F64(s * s)) - n * 0x1.a39ef35793c76p-33);
    return log_at_ends_F64(x, y + n * 0x1.62e42fee00000p-1);
}

/* What rounding lost of 1 + x joins the remainder. A tiny number is its own result: its powers, which may be subnormal
   and so take several times as long, are those of 1. */
INLINE float m_log1p_F32(float given) {
    const float x = fabsf(given) < 0x1p-25f ? 1.0f : given;
    float u = 1.0f + x, n, f = log_remainder_F32(u, &n);
    float lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
    lost *= power_of_two_F32((uint32_t)(-(int32_t)n) << 23);
    f = x > 1e9f ? f : f + lost;
    float s = f * f;
    float y = log1p_rest_F32(f) * s * f + n * -2.12194440e-4f;
    y = log_at_ends_F32(u, f + (y - 0.5f * s) + n * 0.693359375f);
    return fabsf(given) < 0x1p-25f ? given : y;
}

INLINE double m_log1p_F64(double given) {
    const double x = fabs(given) < 0x1p-54 ? 1.0 : given;
    double u = 1.0 + x, n, f = log_remainder_F64(u, &n);
    double lost = x < 1.0 ? x - (u - 1.0) : 1.0 - (u - x);
    lost *= power_of_two_F64(whole_F64(WHOLE - n));
    f = x > 1e18 ? f : f + lost;
    double s = f / (2.0 + f);
    double y = f - (s * (f - log_rest_F64(s * s)) - n * 0x1.a39ef35793c76p-33);
    y = log_at_ends_F64(u, y + n * 0x1.62e42fee00000p-1);
    return fabs(given) < 0x1p-54 ? given : y;
}

/* 1 - 2 / (exp(2 |x|) + 1), which is 1 from 10 on; near zero, where that cancels, a polynomial. */
INLINE float m_tanh_F32(float x) {
    float a = fabsf(x), z = x * x;
    float q = -0.0056922962f;
    q = q * z + 0.0206281673f;
    q = q * z + -0.0537365153f;
    q = q * z + 0.133314058f;
    q = q * z + -0.333332807f;
    float c = a > 10.0f ? 20.0f : 2.0f * a;
    uint32_t power;
    float r = exp_remainder_F32(c, &power), s = power_of_two_F32(power);
    float y = 1.0f - 2.0f / (1.0f + (s + s * reduced_expm1_F32(r)));
    return copysignf(a < 0.625f ? a + a * (z * q) : y, x);
}

/* Near zero x + x z r(z) of z = x^2, r a quotient of polynomials of relative error 2^-55; else as in float. */
INLINE double m_tanh_F64(double x) {
    double a = fabs(x), z = x * x;
    double p = -0x1.edc3f919776aep-1 * z + -0x1.8d0395f350e18p+6;
    p = (p * z + -0x1.937ec8a642fe3p+10) * z * a;
    double q = ((z + 0x1.c319339519c12p+6) * z + 0x1.175134d8f7c4fp+11) * z + 0x1.2e9f167cb23ebp+12;
    double shifted, r = exp_remainder_F64(a > 22.0 ? 44.0 : 2.0 * a, &shifted);
    double s = power_of_two_F64(whole_F64(shifted)), above = 1.0 + (s + s * reduced_expm1_F64(r));
    double y = (a < 0.625 ? a : 1.0) + (a < 0.625 ? p : -2.0) / (a < 0.625 ? q : above);
    return x != x ? x : copysign(y, x);
}

/* s / (s + s exp(-x)) of s = 2^-24, with which exp(105) is a number: neither end takes a second factor. */
INLINE float m_sigmoid_F32(float x) {
    float c = -x < -20.0f ? -20.0f : -x;
    c = c > 105.0f ? 105.0f : c;
    uint32_t power;
    float r = exp_remainder_F32(c, &power), s = power_of_two_F32(power - (24u << 23));
    return 0x1p-24f / (0x1p-24f + (s + s * reduced_expm1_F32(r)));
}
INLINE double m_sigmoid_F64(double x) { return 1.0 / (1.0 + m_exp_F64(-x)); }

/* Of |x| <= 1. */
INLINE float near_erf_F32(float x) {
    float z = x * x;
    float q = 7.88903853e-05f;
    q = q * z + -0.000802081719f;
    q = q * z + 0.00518953241f;
    q = q * z + -0.0268544424f;
    q = q * z + 0.112836003f;
    q = q * z + -0.37612626f;
    return x + x * (z * q + 0.128379167f);
}

INLINE float m_erf_F32(float x) {
    float a = fabsf(x), small = near_erf_F32(x);
    float t = a > 4.0f ? 4.0f : a;
    float e = -3.64223206e-06f;
    e = e * t + 2.94949441e-05f;
    e = e * t + 0.000133232941f;
    e = e * t + -0.00316641876f;
    e = e * t + 0.0230657719f;
    e = e * t + -0.105643876f;
    e = e * t + -0.635423481f;
    e = e * t + -1.12859666f;
    float large = copysignf(1.0f - m_exp_F32(e * t), x);
    large = a < 1.0f ? small : large;
    return x != x ? x : large;
}

/* Of |r| <= pi/4. */
INLINE void reduced_sin_and_cos(float r, float *sine, float *cosine) {
    float z = r * r;
    float s = 2.7182723e-06f;
    s = s * z + -0.000198393303f;
    s = s * z + 0.00833332911f;
    s = s * z + -0.166666672f;
    *sine = r + r * z * s;
    float c = -2.72098589e-07f;
    c = c * z + 2.47995158e-05f;
    c = c * z + -0.00138888834f;
    c = c * z + 0.0416666679f;
    *cosine = 1.0f - (0.5f * z - z * z * c);
}

/* Reduce to [-pi/4, pi/4] in double: exact up to 2^20 quarters, beyond which the caller takes C's own. */
#define CIRCULAR_LIMIT 1.6e6f
INLINE double circular_remainder(float x, int32_t *quarters) {
    double shifted = (double)x * 0x1.45f306dc9c883p-1 + WHOLE;
    double n = shifted - WHOLE;
    *quarters = (int32_t)n;
    return ((double)x - n * 0x1.921fb54400000p0) - n * 0x1.0b4611a626331p-34;
}
INLINE int32_t sin_and_cos(float x, float *sine, float *cosine) {
    int32_t k;
    reduced_sin_and_cos((float)circular_remainder(x, &k), sine, cosine);
    return k;
}

/* In float, where a product and a sum round once: there pi/2 in three parts leaves what is exact. */
#ifdef __FP_FAST_FMAF
#define NEAR_LIMIT 65536.0f
INLINE int32_t near_sin_and_cos(float x, float *sine, float *cosine) {
    float n = rintf(x * 0.636619772f);
    float r = fmaf(n, -0x1.921fb6p0f, x);
    r = fmaf(n, 0x1.777a5cp-25f, r);
    r = fmaf(n, 0x1.ee59dap-50f, r);
    reduced_sin_and_cos(r, sine, cosine);
    return (int32_t)n;
}
#else
#define NEAR_LIMIT -1.0f
#define near_sin_and_cos sin_and_cos
#endif

INLINE float quadrant(int32_t k, float sine, float cosine) {
    float y = k & 1 ? cosine : sine;
    return k & 2 ? -y : y;
}
#define CIRCULAR_FUNCTIONS(name, reduced)                                                              \
    INLINE float name##_sin_F32(float x) {                                                             \
        float s, c;                                                                                    \
        int32_t k = reduced(x, &s, &c);                                                                \
        return x == 0.0f ? x : quadrant(k, s, c);                                                      \
    }                                                                                                  \
    INLINE float name##_cos_F32(float x) {                                                             \
        float s, c;                                                                                    \
        int32_t k = reduced(x, &s, &c);                                                                \
        return quadrant(k + 1, s, c);                                                                  \
    }
CIRCULAR_FUNCTIONS(m, sin_and_cos)
CIRCULAR_FUNCTIONS(near, near_sin_and_cos)

/* The slope is up to 2, so that what a float drops of the remainder is made up for. */
INLINE float m_tan_F32(float x) {
    int32_t k;
    double remainder = circular_remainder(x, &k);
    float r = (float)remainder, low = (float)(remainder - (double)r), z = r * r;
    float q = 0.00438094046f;
    q = q * z + 8.28861448e-05f;
    q = q * z + 0.0108383046f;
    q = q * z + 0.0212826114f;
    q = q * z + 0.0540594608f;
    q = q * z + 0.133326724f;
    q = q * z + 0.333333492f;
    float y = r + (r * z * q + (low + low * z));
    y = k & 1 ? -1.0f / y : y;
    return x == 0.0f ? x : y;
}
#define near_tan_F32 m_tan_F32

INLINE float m_atan2_F32(float y, float x) {
    float ay = fabsf(y), ax = fabsf(x);
    float low = ay < ax ? ay : ax, high = ay < ax ? ax : ay;
    float a = low / high;
    a = high == 0.0f ? 0.0f : a;
    a = low == INFINITY ? 1.0f : a;
    float z = a * a;
    float q = -0.00182652508f;
    q = q * z + 0.0110613741f;
    q = q * z + -0.0314500146f;
    q = q * z + 0.0582288764f;
    q = q * z + -0.0841913074f;
    q = q * z + 0.109574653f;
    q = q * z + -0.142652243f;
    q = q * z + 0.199986368f;
    q = q * z + -0.333333015f;
    float r = a + a * z * q;
    r = ay > ax ? 1.57079637f - (r + 4.37113883e-08f) : r;
    r = copysignf(1.0f, x) < 0.0f ? 3.14159274f - (r + 8.74227766e-08f) : r;
    r = copysignf(r, y);
    return x != x || y != y ? x + y : r;
}

#endif
