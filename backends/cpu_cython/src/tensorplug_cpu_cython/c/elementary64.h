/* The functions of elementary.h for double, and erf and erfc. At most 2 units in the last place off; 3 are hypot's,
   tan's and the arc functions', 4 atanh's and erfcx's, and erfc's without fused products; powers are exact to 1, and erfc
   with them. */
#ifndef TENSORPLUG_ELEMENTARY64_H
#define TENSORPLUG_ELEMENTARY64_H

#include "vmath.h"

INLINE double m_exp2_F64(double x) {
    double c = x < -1077.0 ? -1077.0 : x;
    c = c > 1025.0 ? 1025.0 : c;
    double shifted = c + WHOLE;
    double r = (c - (shifted - WHOLE)) * 0x1.62e42fefa39efp-1;
    return times_power_of_two_F64(1.0 + reduced_expm1_F64(r), whole_F64(shifted));
}

/* log(1 + f) and the two factors in two parts each, the first of which have exact products. */
INLINE double log_to_base_F64(double x, double unit, double unit_rest, double scale, double scale_rest) {
    double n, f = log_remainder_F64(x, &n), s = f / (2.0 + f), half_square = 0.5 * f * f;
    bits64 high = {.f = f - half_square};
    high.u &= 0xffffffff00000000ULL;
    double low = (f - high.f) - half_square + s * (half_square + log_rest_F64(s * s));
    double whole = n * unit, part = high.f * scale, y = whole + part;
    return log_at_ends_F64(x, y + ((whole - y) + part + n * unit_rest + (low + high.f) * scale_rest + low * scale));
}
INLINE double m_log2_F64(double x) { return log_to_base_F64(x, 1.0, 0.0, 0x1.715476p0, 0x1.4ae0bf85ddf44p-26); }
INLINE double m_log10_F64(double x) {
    return log_to_base_F64(x, 0x1.34413509e0000p-2, 0x1.79fef311f12b3p-38, 0x1.bcb7b1p-2, 0x1.49b9438ca9aaep-28);
}

/* exp(y log(a)), of which the logarithm and its product with y are sums of two, as in "Handbook of Floating-Point
   Arithmetic" (2010), chapter 11: what y is multiplied with must be exact to 2^-63. */
#ifdef __FP_FAST_FMA
/* Rounded for itself: with a plain product the compiler might join a sum, which the rest would not know of. */
INLINE double split_product_F64(double x, double y, double *rest) {
    double product = fma(x, y, 0.0);
    *rest = fma(x, y, -product);
    return product;
}
INLINE double m_power_F64(double x, double y) {
    double a = fabs(x), n, f = log_remainder_F64(a, &n);
    /* s = f / (2 + f) */
    double over = 2.0 + f, over_rest = f - (over - 2.0), inverse = 1.0 / over, s = f * inverse;
    double s_rest = (fma(-s, over, f) - s * over_rest) * inverse;
    double z_rest, z = split_product_F64(s, s, &z_rest);
    z_rest += 2.0 * s * s_rest;
    /* log(1 + f) = 2 s + s (2/3 z + 2/5 z^2 + ...) */
    double q = 2.0 / 25;
    q = q * z + 2.0 / 23;
    q = q * z + 2.0 / 21;
    q = q * z + 2.0 / 19;
    q = q * z + 2.0 / 17;
    q = q * z + 2.0 / 15;
    q = q * z + 2.0 / 13;
    q = q * z + 2.0 / 11;
    q = q * z + 2.0 / 9;
    q = q * z + 2.0 / 7;
    q = q * z + 2.0 / 5;
    double t_rest, third = split_product_F64(z, 0x1.5555555555555p-1, &t_rest), above = z * z * q, t = third + above;
    t_rest += z * 0x1.5555555555555p-55 + z_rest * 0x1.5555555555555p-1 + ((third - t) + above);
    double cubes_rest, cubes = split_product_F64(s, t, &cubes_rest);
    cubes_rest += s * t_rest + s_rest * t;
    double whole = n * 0x1.62e42fefa3800p-1, twice = 2.0 * s, part = whole + twice, most = part + cubes;
    double log_rest = ((whole - part) + twice) + ((part - most) + cubes);
    log_rest += n * 0x1.ef35793c76730p-45 + 2.0 * s_rest + cubes_rest;
    double log = most + log_rest;
    log_rest += most - log;
    log = a == 0.0 ? -(double)INFINITY : a == (double)INFINITY ? a : log;
    double product_rest, product = split_product_F64(y, log, &product_rest);
    product_rest = fabs(product) < 800.0 ? product_rest + y * log_rest : 0.0;
    product = product < -746.0 ? -746.0 : product;
    product = product > 710.0 ? 710.0 : product;
    double shifted = product * 0x1.71547652b82fep0 + WHOLE, doublings = shifted - WHOLE;
    double first = product - doublings * 0x1.62e42fee00000p-1, second = doublings * 0x1.a39ef35793c76p-33 - product_rest;
    double r = first - second, r_rest = (first - r) - second;
    double p = times_power_of_two_F64(1.0 + (reduced_expm1_F64(r) + r_rest), whole_F64(shifted));
    int64_t is_whole = rint(y) == y, is_odd = is_whole && rint(0.5 * y) != 0.5 * y;
    p = is_odd ? copysign(p, x) : p;
    p = x < 0.0 && !is_whole && a != (double)INFINITY ? (double)NAN : p;
    p = a == 1.0 && fabs(y) == (double)INFINITY ? 1.0 : p;
    p = x != x || y != y ? (double)NAN : p;
    return y == 0.0 || x == 1.0 ? 1.0 : p;
}
#else
INLINE double m_power_F64(double x, double y) { return pow(x, y); }
#endif

/* Half of exp(a), which overflows later than exp(a) does; a >= 0. */
INLINE double half_exp_F64(double a) {
    double shifted, r = exp_remainder_F64(a > 712.0 ? 712.0 : a, &shifted);
    return times_power_of_two_F64(1.0 + reduced_expm1_F64(r), whole_F64(shifted) - 1);
}

INLINE double m_sinh_F64(double x) {
    double a = fabs(x), z = x * x, h = half_exp_F64(a);
    double q = 0x1.b40fc20e3bb82p-41;
    q = q * z + 0x1.611cba82ad8adp-33;
    q = q * z + 0x1.ae6460ea6fefdp-26;
    q = q * z + 0x1.71de3a4e25faep-19;
    q = q * z + 0x1.a01a01a01ed71p-13;
    q = q * z + 0x1.11111111110fep-7;
    q = q * z + 0x1.5555555555555p-3;
    double y = copysign(h - 0.25 / h, x);
    y = a < 1.0 ? x + x * z * q : y;
    return x != x ? x : y;
}

INLINE double m_cosh_F64(double x) {
    double h = half_exp_F64(fabs(x));
    return x != x ? x : h + 0.25 / h;
}

INLINE double m_atanh_F64(double x) {
    double a = fabs(x);
    double y = 0.5 * m_log1p_F64(2.0 * a / (1.0 - a));
    y = a > 1.0 ? (double)NAN : y;
    return x != x ? x : copysign(y, x);
}

/* pi / 2 = QUARTER + QUARTER_REST */
#define QUARTER 0x1.921fb54442d18p0
#define QUARTER_REST 0x1.1a62633145c07p-54
#define THREE_EIGHTHS_REST 0x1.a79394c9e8a0ap-54 /* 3 pi / 4, of 3 (QUARTER / 2) as it is rounded */

/* atan(a) of |a| <= tan(pi/8) */
INLINE double atan_below_F64(double a) {
    double z = a * a;
    double q = 0x1.0b0dc43df7658p-6;
    q = q * z + -0x1.1b4f735b46817p-5;
    q = q * z + 0x1.74e935b5ca9fp-5;
    q = q * z + -0x1.ac7d379836198p-5;
    q = q * z + 0x1.e19a752832c14p-5;
    q = q * z + -0x1.110e8c8d730c7p-4;
    q = q * z + 0x1.3b13931ea09fdp-4;
    q = q * z + -0x1.745d166080efap-4;
    q = q * z + 0x1.c71c71c312dc4p-4;
    q = q * z + -0x1.249249248d93p-3;
    q = q * z + 0x1.9999999999955p-3;
    q = q * z + -0x1.5555555555555p-2;
    return a + a * z * q;
}

/* Of quotients above tan(pi/8) the rest to pi/4: their tangent is (low - high) / (low + high). */
INLINE double m_atan2_F64(double y, double x) {
    double ay = fabs(y), ax = fabs(x);
    double low = ay < ax ? ay : ax, high = ay < ax ? ax : ay;
    double scale = high > 1.0 ? 0.25 : 1.0; /* or the sum overflows */
    int64_t near_one = low > 0.4142135623730951 * high || low == (double)INFINITY;
    double top = near_one ? low * scale - high * scale : low;
    double a = top / (near_one ? low * scale + high * scale : high);
    a = high == 0.0 ? 0.0 : a;
    double r = atan_below_F64(a);
    r = low == (double)INFINITY ? 0.0 : r;
    /* Added once, to a multiple of pi/4. */
    double eighths = near_one ? 1.0 : 0.0;
    r = ay > ax ? -r : r;
    eighths = ay > ax ? 2.0 - eighths : eighths;
    r = copysign(1.0, x) < 0.0 ? -r : r;
    eighths = copysign(1.0, x) < 0.0 ? 4.0 - eighths : eighths;
    double rest = eighths == 3.0 ? THREE_EIGHTHS_REST : eighths * (0.5 * QUARTER_REST);
    r = eighths * (0.5 * QUARTER) + (r + rest);
    return x != x || y != y ? x + y : copysign(r, y);
}
/* By itself: of atan2(x, 1) the compiler makes branches. */
INLINE double m_atan_F64(double x) {
    double a = fabs(x);
    int64_t near_one = a > 0.4142135623730951, large = a > 2.414213562373095;
    double top = large ? -1.0 : near_one ? a - 1.0 : a;
    double bottom = large ? a : near_one ? a + 1.0 : 1.0;
    double eighths = large ? 2.0 : near_one ? 1.0 : 0.0;
    double r = atan_below_F64(top / bottom);
    return copysign(eighths * (0.5 * QUARTER) + (r + eighths * (0.5 * QUARTER_REST)), x);
}

/* (asin(s) - s) / s^3 of s^2 = z, z <= 1/4 */
INLINE double asin_rest_F64(double z) {
    double q = 0x1.d92b65268a902p-6;
    q = q * z + -0x1.eca5b88c3936fp-7;
    q = q * z + 0x1.1f0d019de53a4p-6;
    q = q * z + 0x1.62ba48978dc92p-8;
    q = q * z + 0x1.529b7869cae01p-7;
    q = q * z + 0x1.7818444a672bp-7;
    q = q * z + 0x1.c9d0805aaa4dep-7;
    q = q * z + 0x1.1c4d28d14664ep-6;
    q = q * z + 0x1.6e8bb25968293p-6;
    q = q * z + 0x1.f1c71c19f2af9p-6;
    q = q * z + 0x1.6db6db6e384e9p-5;
    q = q * z + 0x1.3333333332e86p-4;
    return q * z + 0x1.5555555555556p-3;
}

INLINE double m_asin_F64(double x) {
    double a = fabs(x);
    double z = a > 0.5 ? 0.5 * (1.0 - a) : a * a;
    double s = a > 0.5 ? sqrt(z) : a;
    double y = s + s * z * asin_rest_F64(z);
    y = a > 0.5 ? QUARTER - (2.0 * y - QUARTER_REST) : y;
    return x != x ? x : copysign(y, x);
}

INLINE double m_acos_F64(double x) {
    double a = fabs(x);
    double z = a > 0.5 ? 0.5 * (1.0 - a) : a * a;
    double s = a > 0.5 ? sqrt(z) : x;
    double y = s + s * z * asin_rest_F64(z);
    double outer = x < 0.0 ? 2.0 * QUARTER - (2.0 * y - 2.0 * QUARTER_REST) : 2.0 * y;
    y = a > 0.5 ? outer : QUARTER - (y - QUARTER_REST);
    return x != x ? x : y;
}

/* Scaled by a power of two, so that no square overflows or vanishes. */
INLINE double m_hypot_F64(double x, double y) {
    double a = fabs(x), b = fabs(y), high = a > b ? a : b;
    double scale = high > 0x1p500 ? 0x1p-600 : high < 0x1p-400 ? 0x1p600 : 1.0;
    double back = high > 0x1p500 ? 0x1p600 : high < 0x1p-400 ? 0x1p-600 : 1.0;
    a *= scale;
    b *= scale;
    double root = sqrt(a * a + b * b) * back;
    return a == (double)INFINITY || b == (double)INFINITY ? (double)INFINITY : root;
}

/* --- the error function ---------------------------------------------------------------------------------- */

/* erf(x) - x for |x| <= 1 */
INLINE double near_erf_rest_F64(double x) {
    double z = x * x;
    double q = -0x1.abae353b8c9f5p-31;
    q = q * z + 0x1.d71b21cf3dcd1p-27;
    q = q * z + -0x1.5c072df7c0e9ep-23;
    q = q * z + 0x1.b97fd5d5cea58p-20;
    q = q * z + -0x1.f4ca4dbca9a02p-17;
    q = q * z + 0x1.f9a2bab00ed8ep-14;
    q = q * z + -0x1.c02db03e3cd72p-11;
    q = q * z + 0x1.565bccf92eaadp-8;
    q = q * z + -0x1.b82ce311fab6fp-6;
    q = q * z + 0x1.ce2f21a040d21p-4;
    q = q * z + -0x1.812746b0379bdp-2;
    return x * (z * q + 0x1.06eba8214db68p-3); /* 2 / sqrt(pi) - 1 */
}
INLINE double near_erf_F64(double x) { return x + near_erf_rest_F64(x); }

/* ((2 c + 1) erfcx(c) - FAR_ERFC) / t of t = (c - 4) / (c + 4), for c from 1/2 to 28: that product hardly varies. */
#define FAR_ERFC 0x1.3ba5916e9fd7fp+0
#define FAR_ERFC_REST -0x1.94807b5ea2483p-55
INLINE double far_erfc_slope_F64(double t) {
    double q = -0x1.67fa3128dee34p-27;
    q = q * t + -0x1.a403ddb107533p-27;
    q = q * t + 0x1.c5e4aa4a32304p-24;
    q = q * t + 0x1.1fde3f8d8313bp-24;
    q = q * t + -0x1.b99bb9bcb0974p-21;
    q = q * t + 0x1.41a5d9b6c3abbp-22;
    q = q * t + 0x1.7f19bc91ad5ccp-18;
    q = q * t + -0x1.78a3b73fcffbfp-17;
    q = q * t + -0x1.9958d66770982p-16;
    q = q * t + 0x1.3be0d61957f14p-13;
    q = q * t + -0x1.a1df222b3ca59p-13;
    q = q * t + -0x1.8d4aa17050e08p-11;
    q = q * t + 0x1.49c6727ace9e5p-8;
    q = q * t + -0x1.0962387dac933p-6;
    q = q * t + 0x1.3079edf6b9159p-5;
    q = q * t + -0x1.0fb06dfe6b25cp-4;
    q = q * t + 0x1.7fee004e106bdp-4;
    q = q * t + -0x1.9ddb23c3e7cf5p-4;
    q = q * t + 0x1.16ecefcfa547fp-4;
    q = q * t + 0x1.f7f5df66fd575p-7;
    q = q * t + -0x1.1df1ad154a28fp-3;
    return q;
}
/* erfcx(c) for c from 1/2 to 28. */
INLINE double far_erfcx_F64(double c) {
    double inverse = 1.0 / ((c + 4.0) * (2.0 * c + 1.0));
    double t = (c - 4.0) * (2.0 * c + 1.0) * inverse;
    double q = FAR_ERFC + (t * far_erfc_slope_F64(t) + FAR_ERFC_REST);
    double divisor = 2.0 * c + 1.0, over = (c + 4.0) * inverse;
    over += over * ((1.0 - divisor * over) - (2.0 * c - (divisor - 1.0)) * over); /* what the quotient lacks */
    return q * over;
}

/* erfc(a) = exp(-a^2) erfcx(a) for a >= 1/2; the part of a^2 that double drops joins the exponent. */
INLINE double far_erfc_F64(double a) {
    double c = a > 28.0 ? 28.0 : a, q = far_erfcx_F64(c);
    bits64 high = {.f = c};
    high.u &= 0xfffffffff8000000ULL;
    double low = (c - high.f) * (c + high.f);
    double shifted, r = exp_remainder_F64(-(high.f * high.f), &shifted) - low;
    return times_power_of_two_F64(q + q * reduced_expm1_F64(r), whole_F64(shifted));
}
/* The same, rounded once, and a third of that for the rest: each factor is a sum of two, of which the first have exact
   products. */
#ifdef __FP_FAST_FMA
INLINE double exact_far_erfc_F64(double a) {
    double c = a > 28.0 ? 28.0 : a;
    double above = c + 4.0, below = c - 4.0, divisor = 2.0 * c + 1.0;
    double above_rest = c > 4.0 ? (c - above) + 4.0 : (4.0 - above) + c, below_rest = c > 4.0 ? (c - below) - 4.0 : c - (below + 4.0);
    double divisor_rest = (2.0 * c - divisor) + 1.0; /* c >= 1/2 */
    double inverse = 1.0 / (above * divisor), over_above = divisor * inverse, over = above * inverse;
    double t = below * over_above;
    t += (fma(-t, above, below) + (below_rest - t * above_rest)) * over_above;
    double over_rest = (fma(-over, divisor, 1.0) - divisor_rest * over) * over;
    double part_rest, part = split_product_F64(t, far_erfc_slope_F64(t), &part_rest);
    double q = FAR_ERFC + part, q_rest = ((FAR_ERFC - q) + part) + (part_rest + FAR_ERFC_REST);
    double p_rest, p = split_product_F64(q, over, &p_rest);
    p_rest += q * over_rest + q_rest * over;

    double square_rest, square = split_product_F64(c, c, &square_rest);
    double shifted = square * -0x1.71547652b82fep0 + WHOLE, n = shifted - WHOLE;
    double first = -square - n * 0x1.62e42fee00000p-1, second = n * 0x1.a39ef35793c76p-33 + square_rest;
    double r = first - second, r_rest = (first - r) - second;
    double power = 1.0 + r, power_rest = ((1.0 - power) + r) + (expm1_rest_F64(r) + r_rest * power);
    double y_rest, y = split_product_F64(p, power, &y_rest);
    return times_power_of_two_F64(y + (y_rest + (p * power_rest + p_rest * power)), whole_F64(shifted));
}
#else
#define exact_far_erfc_F64 far_erfc_F64
#endif

INLINE double m_erf_F64(double x) {
    double a = fabs(x);
    double y = copysign(1.0 - far_erfc_F64(a), x);
    y = a < 1.0 ? near_erf_F64(x) : y;
    return x != x ? x : y;
}
INLINE double erfc_by_F64(double x, double far) {
    double a = fabs(x), near = 1.0 - x;
    far = x < 0.0 ? 2.0 - far : far;
    far = a < 0.625 ? near - (near_erf_rest_F64(x) - ((1.0 - near) - x)) : far;
    return x != x ? x : far;
}
INLINE double m_erfc_F64(double x) { return erfc_by_F64(x, exact_far_erfc_F64(fabs(x))); }
/* Where x itself is rounded, which counts for x^2 times as much. */
INLINE double quick_erfc_F64(double x) { return erfc_by_F64(x, far_erfc_F64(fabs(x))); }
/* exp(x^2) erfc(x). */
INLINE double m_erfcx_F64(double x) {
    double a = fabs(x), inverse = 1.0 / a, z = 0.5 * inverse * inverse;
    double series = -135135.0; /* https://dlmf.nist.gov/7.12.E1 */
    series = series * z + 10395.0;
    series = series * z + -945.0;
    series = series * z + 105.0;
    series = series * z + -15.0;
    series = series * z + 3.0;
    series = series * z + -1.0;
    series = series * z + 1.0;
    double far = a > 28.0 ? series * (inverse * 0x1.20dd750429b6dp-1) : far_erfcx_F64(a > 28.0 ? 28.0 : a); /* 1 / sqrt(pi) */
    double c = a > 27.0 ? 27.0 : a;
    bits64 high = {.f = c};
    high.u &= 0xfffffffff8000000ULL;
    double low = (c - high.f) * (c + high.f);
    double shifted, r = exp_remainder_F64(high.f * high.f, &shifted) + low;
    double power = times_power_of_two_F64(1.0 + reduced_expm1_F64(r), whole_F64(shifted));
    double y = x < 0.0 ? 2.0 * power - far : far;
    y = a < 0.5 ? power * (1.0 - near_erf_F64(x)) : y;
    return x != x ? x : y;
}
/* The logarithm of the normal distribution's area up to x; far down that area underflows. */
INLINE double m_log_ndtr_F64(double x) {
    double scaled = x * 0x1.6a09e667f3bcdp-1;
    double lower = m_log_F64(0.5 * m_erfcx_F64(-scaled)) - 0.5 * x * x;
    double upper = m_log1p_F64(-0.5 * quick_erfc_F64(scaled));
    return x < -1.0 ? lower : upper;
}

/* --- sine, cosine and tangent ---------------------------------------------------------------------------- */

/* Reduce to [-pi/4, pi/4], as a sum of two: pi/2 is in four parts, the first three of which have exact products with
   the number of quarters, up to 2^20; return that number. */
INLINE uint64_t sin_and_cos_F64(double x, double *sine, double *cosine) {
    bits64 quarters = {.f = x * 0x1.45f306dc9c883p-1 + WHOLE};
    double n = quarters.f - WHOLE;
    double a = x - n * 0x1.921fb544p0, part = n * 0x1.0b4611a6p-34;
    double b = a - part, back = b - a, rest = (a - (b - back)) - (part + back);
    part = n * 0x1.3198a2ep-69;
    double r = b - part;
    rest += ((b - r) - part) - n * 0x1.b839a252049c1p-104;
    double z = r * r;
    double s = 0x1.5e095e35c857ep-33;
    s = s * z + -0x1.ae6005e70db8fp-26;
    s = s * z + 0x1.71de3791484ccp-19;
    s = s * z + -0x1.a01a019e7f42fp-13;
    s = s * z + 0x1.1111111110b9ep-7;
    s = s * z + -0x1.5555555555555p-3;
    *sine = r + (r * z * s + (rest - 0.5 * z * rest));
    double c = -0x1.907c3c56a2398p-37;
    c = c * z + 0x1.1eeb66de3fde7p-29;
    c = c * z + -0x1.27e4fa15c6aecp-22;
    c = c * z + 0x1.a01a019f4cf91p-16;
    c = c * z + -0x1.6c16c16c1695fp-10;
    c = c * z + 0x1.5555555555555p-5;
    *cosine = 1.0 - (0.5 * z - (z * z * c - r * rest));
    return quarters.u;
}

INLINE double quadrant_F64(uint64_t k, double sine, double cosine) {
    bits64 y = {.f = k & 1 ? cosine : sine};
    y.u ^= (k & 2) << 62;
    return y.f;
}
INLINE double m_sin_F64(double x) {
    double s, c;
    uint64_t k = sin_and_cos_F64(x, &s, &c);
    return x == 0.0 ? x : quadrant_F64(k, s, c);
}
INLINE double m_cos_F64(double x) {
    double s, c;
    uint64_t k = sin_and_cos_F64(x, &s, &c);
    return quadrant_F64(k + 1, s, c);
}
INLINE double m_tan_F64(double x) {
    double s, c;
    uint64_t k = sin_and_cos_F64(x, &s, &c);
    double y = (k & 1 ? -c : s) / (k & 1 ? s : c);
    return x == 0.0 ? x : y;
}

/* --- remainders ------------------------------------------------------------------------------------------ */

/* Of a quotient below 2^51 the remainder is exact where a product and a sum round once. */
INLINE int is_near_F64(double x, double y) { return fabs(x) < 0x1p51 * fabs(y) && fabs(y) < (double)INFINITY; }
#ifdef __FP_FAST_FMA
INLINE double near_fmod_F64(double x, double y) {
    double a = fabs(x), b = fabs(y);
    double r = fma(-trunc(a / b), b, a); /* below zero where the quotient was rounded up to a whole number */
    return copysign(r < 0.0 ? r + b : r, x);
}
#else
INLINE double near_fmod_F64(double x, double y) { return fmod(x, y); }
#endif

#endif
