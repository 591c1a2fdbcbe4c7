/* The Bessel functions of orders 0 and 1 in float, and Airy's, whose values oscillate, made like those of vmath.h.

   The polynomials interpolate at Chebyshev's points, of relative error below 2^-24. Absolute errors are below 2^-21 of
   the amplitude; up to 8 the zeros of J are exact, as are those of Ai from -5 on. Angles are below CIRCULAR_LIMIT. */
#ifndef TENSORPLUG_SPECIAL_OSCILLATING_H
#define TENSORPLUG_SPECIAL_OSCILLATING_H

#include "special.h"

/* --- Bessel functions ------------------------------------------------------------------------------------ */

/* Up to 8, of t = x^2 / 32 - 1: J_0 over its zeros, J_1 over its zeros and x, and what is left of Y without its
   logarithm and pole. In double: the values are far below the coefficients. */
INLINE double near_j0_F64(double t) {
    double q = -2.814972361391357e-09;
    q = q * t + 4.0396686017309846e-08;
    q = q * t + -4.676951922698498e-07;
    q = q * t + 4.366574683461065e-06;
    q = q * t + -3.157343169373516e-05;
    q = q * t + 0.00016977213493066348;
    q = q * t + -0.0006415390638540468;
    q = q * t + 0.0015636431486158418;
    q = q * t + -0.0021197942894954237;
    return q * t + 0.0011434937746958144;
}
INLINE double near_j1_F64(double t) {
    double q = 1.8410337540765356e-09;
    q = q * t + -2.378607568722655e-08;
    q = q * t + 2.4424158278030246e-07;
    q = q * t + -1.988895171336906e-06;
    q = q * t + 1.2242176610567014e-05;
    q = q * t + -5.408008751398332e-05;
    q = q * t + 0.00015860016777185238;
    q = q * t + -0.00026975227053664165;
    return q * t + 0.00019498936985895625;
}
INLINE double rest_y0_F64(double t) {
    double q = -3.2417393050846624e-07;
    q = q * t + 5.3747641792928205e-06;
    q = q * t + -7.279251255763767e-05;
    q = q * t + 0.0008060917281464739;
    q = q * t + -0.007025742801695501;
    q = q * t + 0.046367087828301665;
    q = q * t + -0.21895747045282105;
    q = q * t + 0.672177066630457;
    q = q * t + -1.0775477338852184;
    q = q * t + 0.1441263251573273;
    q = q * t + 1.647096478876819;
    q = q * t + -0.8284358904127583;
    return q * t + -0.382250654459425;
}
INLINE double rest_y1_F64(double t) {
    double q = -1.3234382142345517e-08;
    q = q * t + 2.4006014681533215e-07;
    q = q * t + -3.6008984787002793e-06;
    q = q * t + 4.467181426001024e-05;
    q = q * t + -0.0004438174043691489;
    q = q * t + 0.0034224922500970954;
    q = q * t + -0.019628756815346083;
    q = q * t + 0.07854786878185287;
    q = q * t + -0.19639839860152364;
    q = q * t + 0.23507209212177604;
    q = q * t + 0.02336757172107285;
    q = q * t + -0.24337743079389831;
    return q * t + 0.07075985882118005;
}

/* From 8 on, of t = 2 (8 / x)^2 - 1: the cosine's factor of Abramowitz and Stegun's 9.2.5, and the sine's times x. */
INLINE float cosine_part_0_F32(float t) {
    float q = -2.0650921e-07f;
    q = q * t + 6.1503592e-06f;
    q = q * t + -0.0005363672f;
    return q * t + 0.9994573f;
}
INLINE float sine_part_0_F32(float t) {
    float q = 5.737682e-07f;
    q = q * t + -1.1863146e-05f;
    q = q * t + 0.00054665125f;
    return q * t + -0.12444091f;
}
INLINE float cosine_part_1_F32(float t) {
    float q = 2.4675268e-07f;
    q = q * t + -7.974557e-06f;
    q = q * t + 0.00089880475f;
    return q * t + 1.0009071f;
}
INLINE float sine_part_1_F32(float t) {
    float q = -6.6921336e-07f;
    q = q * t + 1.4621728e-05f;
    q = q * t + -0.000769716f;
    return q * t + 0.37421498f;
}

INLINE double small_j0(double a, double z) {
    (void)a;
    return (z - 5.783185962946784) * (z - 30.471262343662087) * near_j0_F64(z * 0.03125 - 1.0);
}
INLINE double small_j1(double a, double z) {
    return a * (z - 14.681970642123893) * (z - 49.2184563216946) * near_j1_F64(z * 0.03125 - 1.0);
}

/* The sum and the difference of sine and cosine over sqrt(pi a): cosine and sine of a - pi / 4, with their amplitude. */
INLINE void waves_F32(float a, float *sum, float *difference) {
    float s, c;
    int32_t k = sin_and_cos(a, &s, &c);
    float sine = quadrant(k, s, c), cosine = quadrant(k + 1, s, c), scale = 0.5641896f / sqrtf(a);
    *sum = (sine + cosine) * scale;
    *difference = (sine - cosine) * scale;
}

#define FAR_PARTS(order)                                                                               \
    float a = fabsf(x), large = a < 8.0f ? 8.0f : a, w = 8.0f / large;                             \
    double small = a < 8.0f ? a : 8.0f, z = small * small;                                             \
    float t = 2.0f * w * w - 1.0f, sum, difference;                                                    \
    waves_F32(large, &sum, &difference);                                                               \
    float p = cosine_part_##order##_F32(t), q = sine_part_##order##_F32(t) * (w * 0.125f);

INLINE float m_j0_F32(float x) {
    FAR_PARTS(0)
    float y = a < 8.0f ? (float)small_j0(small, z) : p * sum - q * difference;
    return x != x ? x : y;
}
INLINE float m_j1_F32(float x) {
    FAR_PARTS(1)
    float y = a < 8.0f ? (float)small_j1(small, z) : p * difference + q * sum;
    return x != x ? x : copysignf(1.0f, x) * y;
}
INLINE float m_y0_F32(float x) {
    FAR_PARTS(0)
    double near = 0.6366197723675814 * m_log_F32((float)small) * small_j0(small, z) + rest_y0_F64(z * 0.03125 - 1.0);
    float y = a < 8.0f ? (float)near : p * difference + q * sum;
    y = x < 0.0f ? NAN : y;
    return x != x ? x : x == 0.0f ? -INFINITY : y;
}
INLINE float m_y1_F32(float x) {
    FAR_PARTS(1)
    double near = 0.6366197723675814 * (m_log_F32((float)small) * small_j1(small, z) - 1.0 / small) +
                  small * rest_y1_F64(z * 0.03125 - 1.0);
    float y = a < 8.0f ? (float)near : q * difference - p * sum;
    y = x < 0.0f ? NAN : y;
    return x != x ? x : x == 0.0f ? -INFINITY : y;
}

/* --- Airy's function ------------------------------------------------------------------------------------- */

/* In double. From -5 to 2 over its first two zeros, of t = (x + 1.5) / 3.5; beyond, with zeta = 2/3 |x|^(3/2) (9.7 of
   the Digital Library of Mathematical Functions): above times exp(zeta) x^(1/4), of 1 / zeta, and below the factors of
   sine and cosine, of 1 / zeta^2. */
INLINE double middle_ai_F64(double t) {
    double q = -1.5384259288385376e-05;
    q = q * t + 0.00017536641357652488;
    q = q * t + -0.0002252472786340583;
    q = q * t + -0.0011462191622538332;
    q = q * t + 0.0032408249004706896;
    q = q * t + 0.0004563982606281485;
    q = q * t + -0.014208985324231092;
    q = q * t + 0.0216493437832318;
    q = q * t + 0.013683280280670437;
    q = q * t + -0.09265627590740655;
    q = q * t + 0.10455902841317823;
    q = q * t + 0.09913444943880104;
    q = q * t + -0.4053594657911173;
    q = q * t + 0.3254029200646661;
    q = q * t + 0.40354441257589;
    q = q * t + -1.0664917295553433;
    q = q * t + 0.5712843263527323;
    q = q * t + 0.8227774490812872;
    q = q * t + -1.4260384530299197;
    q = q * t + 0.5035377220376723;
    q = q * t + 0.608392102472429;
    q = q * t + -0.6844172624664663;
    return q * t + 0.21404377258595803;
}
INLINE double falling_ai_F64(double t) {
    double q = -6.579000813859759e-08;
    q = q * t + 1.6965252416501031e-07;
    q = q * t + -3.013448183015055e-07;
    q = q * t + 9.571737459583808e-07;
    q = q * t + -3.493857203056153e-06;
    q = q * t + 1.369176467604805e-05;
    q = q * t + -6.427480538340744e-05;
    q = q * t + 0.0003986541592558859;
    q = q * t + -0.004122380618288906;
    return q * t + 0.27749080251416663;
}
INLINE double wave_sine_ai_F64(double t) {
    double q = 6.135499742099876e-09;
    q = q * t + -8.780853137157602e-08;
    q = q * t + 2.329321757059726e-06;
    q = q * t + -0.0001836051350535383;
    return q * t + 0.5640035550994134;
}
INLINE double wave_cosine_ai_F64(double t) {
    double q = 2.155121664355455e-08;
    q = q * t + -2.412255920785201e-07;
    q = q * t + 4.431007510657831e-06;
    q = q * t + -0.00018324052009958386;
    return q * t + 0.03899189768110265;
}
INLINE float m_airy_F32(float number) {
    double x = number, a = fabs(x), large = a < 2.0 ? 2.0 : a > 1e4 ? 1e4 : a;
    double root = sqrt(large), zeta = large * root * (2.0 / 3.0), inverse = 1.0 / zeta, scale = 1.0 / sqrt(root);
    double c = x < -5.0 ? -5.0 : x > 2.0 ? 2.0 : x;
    double near = ((c + 2.338107410459767) * (c + 4.08794944413097)) * middle_ai_F64((c + 1.5) * (1.0 / 3.5));
    double above = falling_ai_F64(inverse * 3.7712361663282534 - 1.0) * scale * m_exp_F64(-zeta);
    double s, cosine, w = inverse * inverse * 111.11111111111111 - 1.0;
    uint64_t k = sin_and_cos_F64(zeta, &s, &cosine);
    double sine = quadrant_F64(k, s, cosine);
    cosine = quadrant_F64(k + 1, s, cosine);
    double p = wave_sine_ai_F64(w), q = wave_cosine_ai_F64(w) * inverse;
    double below = ((sine + cosine) * p - (cosine - sine) * q) * 0.7071067811865476 * scale;
    double y = x > 2.0 ? above : x < -5.0 ? below : near;
    return number != number ? number : (float)y;
}

#endif
