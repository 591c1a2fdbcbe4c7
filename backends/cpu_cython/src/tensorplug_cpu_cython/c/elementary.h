/* More elementary functions of float, made like those of vmath.h: without branches or calls. Their errors are at
   most 2 units in the last place, those of powers 1. */
#ifndef TENSORPLUG_ELEMENTARY_H
#define TENSORPLUG_ELEMENTARY_H

#include "vmath.h"

INLINE float m_exp2_F32(float x) {
    float c = x < -151.0f ? -151.0f : x;
    c = c > 129.0f ? 129.0f : c;
    uint32_t power;
    float n = rounded_F32(c, &power);
    return times_power_of_two_F32(1.0f + reduced_expm1_F32((c - n) * 0.693147181f), power);
}

/* The logarithm to another base is n times `unit` plus log(1 + f) times `scale`, for which float is too short. */
INLINE float log_to_base(float x, double unit, double scale) {
    float n, f = log_remainder_F32(x, &n), s = f * f;
    float rest = s * (log1p_rest_F32(f) * f - 0.5f);
    return log_at_ends_F32(x, (float)((double)n * unit + ((double)f + (double)rest) * scale));
}
INLINE float m_log2_F32(float x) { return log_to_base(x, 1.0, 0x1.71547652b82fep0); }
INLINE float m_log10_F32(float x) { return log_to_base(x, 0x1.34413509f79ffp-2, 0x1.bcb7b1526e50ep-2); }

/* Half of exp(a), which overflows later than exp(a) does; a >= 0. */
INLINE float half_exp_F32(float a) {
    uint32_t power;
    float r = exp_remainder_F32(a > 90.0f ? 90.0f : a, &power);
    return times_power_of_two_F32(1.0f + reduced_expm1_F32(r), power - (1u << 23));
}

INLINE float m_sinh_F32(float x) {
    float a = fabsf(x), z = x * x, h = half_exp_F32(a);
    float q = 2.81743951e-06f;
    q = q * z + 0.000198360663f;
    q = q * z + 0.00833335053f;
    q = q * z + 0.166666672f;
    float y = copysignf(h - 0.25f / h, x);
    y = a < 1.0f ? x + x * z * q : y;
    return x != x ? x : y;
}

INLINE float m_cosh_F32(float x) {
    float h = half_exp_F32(fabsf(x));
    return x != x ? x : h + 0.25f / h;
}

INLINE float m_asinh_F32(float x) {
    float a = fabsf(x);
    float c = a > 1e9f ? 1e9f : a, z = c * c;
    float y = m_log1p_F32(c + z / (1.0f + sqrtf(1.0f + z)));
    y = a > 1e9f ? m_log_F32(a) + 0.693147181f : y;
    return x != x ? x : copysignf(y, x);
}

/* What is close to 1 takes the root in double; by what float drops of it the logarithm changes as its slope says. */
INLINE float m_acosh_F32(float x) {
    double t = (double)(x > 1e9f ? 1e9f : x) - 1.0, above = t + sqrt(t * (t + 2.0));
    float u = (float)above, rest = (float)(above - (double)u);
    float y = m_log1p_F32(u) + rest / (1.0f + u);
    y = x > 1e9f ? m_log_F32(x) + 0.693147181f : y;
    y = x < 1.0f ? NAN : y;
    return x != x ? x : y;
}

INLINE float m_atanh_F32(float x) {
    float a = fabsf(x);
    float z = a * a;
    float q = 0.176399201f;
    q = q * z + 0.0515896492f;
    q = q * z + 0.118167616f;
    q = q * z + 0.142237455f;
    q = q * z + 0.200024545f;
    q = q * z + 0.333333015f;
    float y = 0.5f * m_log1p_F32(2.0f * a / (1.0f - a));
    y = a < 0.5f ? a + a * (z * q) : y;
    y = a > 1.0f ? NAN : y;
    return x != x ? x : copysignf(y, x);
}

INLINE float m_atan_F32(float x) { return m_atan2_F32(x, 1.0f); }

/* (asin(s) - s) / s^3 of s^2 = z, z <= 1/4 */
INLINE float asin_rest_F32(float z) {
    float q = 0.0422185659f;
    q = q * z + 0.0241476018f;
    q = q * z + 0.0454770997f;
    q = q * z + 0.0749524161f;
    return q * z + 0.166667536f;
}

INLINE float m_asin_F32(float x) {
    float a = fabsf(x);
    float z = a > 0.5f ? 0.5f * (1.0f - a) : a * a;
    float s = a > 0.5f ? sqrtf(z) : a;
    float rest = s * z * asin_rest_F32(z);
    float far = 1.57079637f - 2.0f * s, dropped = (1.57079637f - far) - 2.0f * s;
    float y = a > 0.5f ? far + (dropped - (2.0f * rest + 4.37113883e-08f)) : s + rest;
    return x != x ? x : copysignf(y, x);
}

INLINE float m_acos_F32(float x) {
    float a = fabsf(x);
    float z = a > 0.5f ? 0.5f * (1.0f - a) : a * a;
    float s = a > 0.5f ? sqrtf(z) : x;
    float y = s + s * z * asin_rest_F32(z);
    float outer = x < 0.0f ? 3.14159274f - (2.0f * y + 8.74227766e-08f) : 2.0f * y;
    y = a > 0.5f ? outer : 1.57079637f - (y + 4.37113883e-08f);
    return x != x ? x : y;
}

/* A quotient of polynomials, less exact than m_erf_F32 (6 units in the last place) and twice as fast: for what
   adds 1 to it anyway. */
INLINE float m_coarse_erf_F32(float x) {
    float c = x < -3.95f ? -3.95f : x;
    c = c > 3.95f ? 3.95f : c;
    float z = c * c;
    float p = -1.29672655e-08f;
    p = p * z + 4.64047798e-06f;
    p = p * z + 0.000377938151f;
    p = p * z + 0.00384336221f;
    p = p * z + 0.0542747639f;
    p = p * z + 0.185168743f;
    p = p * z + 1.12837923f;
    float q = 6.26929104e-05f;
    q = q * z + 0.00130406255f;
    q = q * z + 0.0154437069f;
    q = q * z + 0.113910906f;
    q = q * z + 0.497434944f;
    q = q * z + 1.0f;
    float y = c >= 3.92f ? 1.0f : c * p / q;
    return c <= -3.92f ? -1.0f : y;
}

/* exp(a^2 / 2) times the normal distribution's area beyond a, for a from 0 to 15.5, of relative error 2^-23. */
INLINE float scaled_normal_tail_F32(float a) {
    float t = (a - 4.25f) / (a + 4.25f);
    float q = -0.000245951378f;
    q = q * t + 0.00037326751f;
    q = q * t + 0.0021583843f;
    q = q * t + -0.0123229558f;
    q = q * t + 0.0359827243f;
    q = q * t + -0.0751444921f;
    q = q * t + 0.122747228f;
    q = q * t + -0.162904054f;
    return q * t + 0.0893593282f;
}

/* In double, so that the product of exponent and logarithm keeps float's bits; with no more of its own bits than
   that takes: the logarithm is exact to 2^-45, the exponential to 2^-34. */
INLINE double log_of_float(double a) {
    bits64 b = {.f = a};
    uint64_t above = b.u - 0x3fe6a09e667f3bcdULL + ((uint64_t)2048 << 52), k = above >> 52;
    b.u -= (k - 2048) << 52;
    bits64 shifted = {.u = k + 0x4330000000000000ULL};
    double n = (shifted.f - 0x1p52) - 2048.0;
    double f = b.f - 1.0, s = f / (2.0 + f), z = s * s;
    double q = 0x1.9118251c3c4f4p-3;
    q = q * z + 0x1.c62ae9df68320p-3;
    q = q * z + 0x1.2494126632784p-2;
    q = q * z + 0x1.999996a846efap-2;
    q = q * z + 0x1.555555561e977p-1;
    double y = f - s * (f - z * q) + n * 0x1.62e42fefa39efp-1;
    y = a == (double)INFINITY ? a : y;
    return a == 0.0 ? -(double)INFINITY : y;
}

INLINE double exp_for_float(double x) {
    double c = x < -160.0 ? -160.0 : x;
    c = c > 160.0 ? 160.0 : c;
    double shifted = c * 0x1.71547652b82fep0 + WHOLE;
    double r = c - (shifted - WHOLE) * 0x1.62e42fefa39efp-1;
    double q = 0x1.a1b8047b62fa7p-13;
    q = q * r + 0x1.6d9684101caa7p-10;
    q = q * r + 0x1.11107cefa301bp-7;
    q = q * r + 0x1.55548057406e8p-5;
    q = q * r + 0x1.5555559800a72p-3;
    q = q * r + 0x1.00000042eb723p-1;
    return (1.0 + (r + r * r * q)) * power_of_two_F64(whole_F64(shifted));
}

/* erfc(a) = exp(-a^2) erfcx(a). What float drops of a^2 joins the exponent; (2 c + 1) erfcx(c) hardly varies. Both
   factors are near 1: what they have beside it is put together in double. */
INLINE float far_erfc_F32(float a) {
    float c = a > 10.1f ? 10.1f : a, z = c * c;
#ifdef __FP_FAST_FMAF
    float dropped = fmaf(c, c, -z);
#else
    float dropped = (float)((double)c * (double)c - (double)z);
#endif
    float t = (c - 2.0f) / (c + 2.0f);
    float q = -0.00128144654f;
    q = q * t + 0.000930119422f;
    q = q * t + 0.00866997428f;
    q = q * t + -0.00793666299f;
    q = q * t + -0.0542133637f;
    q = q * t + 0.16404061f;
    q = q * t + -0.16603072f;
    q = q * t + -0.0927635059f;
    uint32_t power;
    float r = exp_remainder_F32(-z, &power) - dropped;
    double grown = 1.0 + (double)reduced_expm1_F32(r), slow = 1.27697837 + (double)(q * t);
    return times_power_of_two_F32((float)(grown * slow / (2.0 * (double)c + 1.0)), power);
}

INLINE float m_erfc_F32(float x) {
    float far = far_erfc_F32(fabsf(x));
    float y = x < 0.0f ? 2.0f - far : far;
    y = fabsf(x) < 0.47f ? 1.0f - near_erf_F32(x) : y;
    return x != x ? x : y;
}

INLINE float m_power_F32(float x, float y) {
    double a = fabs((double)x);
    double p = exp_for_float((double)y * log_of_float(a));
    int whole = rintf(y) == y, odd = whole && rintf(y * 0.5f) != y * 0.5f;
    int negative = x < 0.0f || (x == 0.0f && 1.0f / x < 0.0f);
    p = negative && odd ? -p : p;
    p = x < 0.0f && !whole && x != -INFINITY ? (double)NAN : p;
    p = a == 1.0 && fabsf(y) == INFINITY ? 1.0 : p;
    p = x != x || y != y ? (double)NAN : p;
    return y == 0.0f || x == 1.0f ? 1.0f : (float)p;
}

/* fmod of numbers whose quotient is below MOST_QUOTIENT: in double the product is exact, and the quotient is on
   the right side of a whole number. */
#define MOST_QUOTIENT 268435456.0
INLINE int is_near_F32(float x, float y) {
    return fabs((double)x) < MOST_QUOTIENT * fabs((double)y) && fabsf(y) < INFINITY;
}
INLINE float near_fmod_F32(float x, float y) {
    double whole = trunc((double)x / (double)y);
    return copysignf((float)((double)x - whole * (double)y), x);
}

#endif
