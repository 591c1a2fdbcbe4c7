/* The logarithm of the gamma function, the inverse of the error function and others, made like those of vmath.h.

   Errors in units in the last place: sinc and ndtri 3; erfinv 2; lgamma 1, of double 5; near its
   zeros at negative arguments the absolute error is below 2^-30, and of double special_gamma_zeros.h serves. */
#ifndef TENSORPLUG_SPECIAL_H
#define TENSORPLUG_SPECIAL_H

#include "elementary.h"
#include "elementary64.h"

/* --- the inverse of erf ----------------------------------------------------------------------------------- */

/* erfinv(a) / a as two polynomials, by w = -log((1 - a) (1 + a)) (M. Giles, "Approximating the erfinv function", 2010),
   of relative error 2^-25. */
INLINE double erfinv_start_F64(double a, double w) {
    double z = w - 2.5;
    double near = -8.79044038e-09;
    near = near * z + 2.32327366e-08;
    near = near * z + 4.66162192e-07;
    near = near * z + -3.46270326e-06;
    near = near * z + -4.96330995e-06;
    near = near * z + 0.000218344416;
    near = near * z + -0.0012527419;
    near = near * z + -0.00417738687;
    near = near * z + 0.24664028;
    near = near * z + 1.50140941;
    z = sqrt(w) - 4.0;
    double far = -3.97978113e-07;
    far = far * z + 1.59989725e-06;
    far = far * z + 1.53841677e-06;
    far = far * z + -1.56308106e-05;
    far = far * z + 2.52164955e-05;
    far = far * z + -2.07976536e-05;
    far = far * z + 4.49163454e-05;
    far = far * z + -0.000128595988;
    far = far * z + 0.000328519702;
    far = far * z + -0.000864489179;
    far = far * z + 0.00125797233;
    far = far * z + 1.00949264;
    far = far * z + 3.83978391;
    return a * (w < 5.0 ? near : far);
}

/* What rounds to float's bits, in double so that what is lost on the way does not count; near zero by a third
   polynomial of w itself. */
INLINE double erfinv_for_float(double a, double w) {
    double q = -3.42032831e-06;
    q = q * w + 5.82509565e-05;
    q = q * w + -0.000140516466;
    q = q * w + -0.00232829549;
    q = q * w + 0.0115476381;
    q = q * w + 0.232013807;
    return w < 1.75 ? a * (w * q + (0.886226952 - 2.66232002e-08)) : erfinv_start_F64(a, w);
}

INLINE float m_erfinv_F32(float x) {
    double a = fabsf(x), y = erfinv_for_float(a, -log_of_float((1.0 - a) * (1.0 + a)));
    y = a == 1.0 ? (double)INFINITY : y;
    y = a > 1.0 ? (double)NAN : y;
    return x != x ? x : copysignf((float)y, x);
}

/* One step of Halley's, whose error is the third power of the start's; near 1 by exp(y^2) erfc(y), since 1 - a is exact. */
INLINE double m_erfinv_F64(double x) {
    double a = fabs(x);
    double y = erfinv_start_F64(a, -log_of_float((1.0 - a) * (1.0 + a)));
    double grown = m_exp_F64(y * y);
    double gap = a < 0.53 ? (near_erf_F64(y) - a) * grown : (1.0 - a) * grown - far_erfcx_F64(y > 28.0 ? 28.0 : y);
    gap *= 0x1.c5bf891b4ef6ap-1; /* over the slope of erf */
    y -= gap * (1.0 - y * gap);
    y = a == 1.0 ? (double)INFINITY : y;
    y = a > 1.0 ? (double)NAN : y;
    return x != x ? x : copysign(y, x);
}

/* The inverse of erf further out, where its argument is close to 1, by Chebyshev's points and of relative error 2^-27. */
INLINE double outer_erfinv(double w) {
    double root = sqrt(w), u = 1.0 / root;
    double far = -0x1.02bd27fa9378fp+12;
    far = far * u + 0x1.fb3b8195c325cp+11;
    far = far * u + -0x1.b8ee892e1f02bp+10;
    far = far * u + 0x1.c5478b85b2221p+8;
    far = far * u + -0x1.3d4c661bb3ba6p+6;
    far = far * u + 0x1.6dcdd8542fe1ap+3;
    far = far * u + -0x1.a4a8413ed5bcbp+0;
    far = far * u + -0x1.894050575689ap-7;
    far = far * u + 0x1.0003f840fec97p+0;
    return far * root;
}

/* The argument at which the normal distribution's area is p: erfinv by the complement, which keeps small areas' bits. */
INLINE float m_ndtri_F32(float p) {
    double c = 2.0 * (p < 0.5f ? (double)p : 1.0 - p), a = 1.0 - c, w = -log_of_float(c * (2.0 - c));
    double y = (w < 35.0 ? erfinv_for_float(a, w) : outer_erfinv(w)) * 0x1.6a09e667f3bcdp+0; /* sqrt(2) */
    y = c == 0.0 ? (double)INFINITY : y;
    y = p < 0.5f ? -y : y;
    return p >= 0.0f && p <= 1.0f ? (float)y : NAN;
}
INLINE double m_ndtri_F64(double p) {
    double c = 2.0 * (p < 0.5 ? p : 1.0 - p), a = 1.0 - c;
    int tiny = c < 0x1p-900;
    double w = (tiny ? 0x1.1542457337d43p+6 : 0.0) - log_of_float((tiny ? c * 0x1p100 : c) * (2.0 - c));
    double y = w < 35.0 ? erfinv_start_F64(a, w) : outer_erfinv(w);
    double grown = m_exp_F64(0.5 * y * y); /* its square, the exponential of y^2, might overflow */
    double gap = a < 0.53 ? (near_erf_F64(y) - a) * grown * grown
                          : c * grown * grown - far_erfcx_F64(y < 0.5 ? 0.5 : y > 28.0 ? 28.0 : y);
    gap *= 0x1.c5bf891b4ef6ap-1; /* over the slope of erf */
    y -= gap * (1.0 - y * gap);
    y *= 0x1.6a09e667f3bcdp+0; /* sqrt(2) */
    y = c == 0.0 ? (double)INFINITY : y;
    y = p < 0.5 ? -y : y;
    return p >= 0.0 && p <= 1.0 ? y : (double)NAN;
}

/* --- the gamma function ---------------------------------------------------------------------------------- */

/* sin(pi r) / r of r^2 = z, |r| <= 1/2 */
INLINE float sine_of_half_turns_F32(float z) {
    float q = 0.077560477f;
    q = q * z + -0.598242164f;
    q = q * z + 2.55006981f;
    q = q * z + -5.16770983f;
    return q * z + 3.14159274f;
}
INLINE double sine_of_half_turns_F64(double z) {
    double q = 0x1.9d1b5a5cce06bp-21;
    q = q * z + -0x1.6f7975ba6e749p-16;
    q = q * z + 0x1.e8f35e953592ap-12;
    q = q * z + -0x1.e3074ddd03709p-8;
    q = q * z + 0x1.5078348518dedp-4;
    q = q * z + -0x1.32d2cce62753dp-1;
    q = q * z + 0x1.466bc6775aa6ep1;
    q = q * z + -0x1.4abbce625be52p2;
    return q * z + 0x1.921fb54442d18p1;
}

/* In double. Up to 3 as the zeros at 1 and 2 times a polynomial, below 1 by the recurrence; further on by Stirling's
   series; of negative numbers by the reflection. */
INLINE float m_lgamma_F32(float number) {
    double x = number, a = fabs(x), l = log_of_float(a);
    double u = a < 1.0 ? a - 1.0 : a - 2.0;
    double q = -0x1.4a85b5f00900fp-19;
    q = q * u + 0x1.46d88dcb57debp-18;
    q = q * u + -0x1.d87fc90b60047p-22;
    q = q * u + 0x1.2fabbf932c21p-19;
    q = q * u + -0x1.62b9ea4d9e6a9p-16;
    q = q * u + 0x1.6e7ab14d8c6bp-15;
    q = q * u + -0x1.54553d90e6b48p-14;
    q = q * u + 0x1.791b9201e3289p-13;
    q = q * u + -0x1.aa0e208c26957p-12;
    q = q * u + 0x1.e04cc7881418cp-11;
    q = q * u + -0x1.144dc5f157868p-9;
    q = q * u + 0x1.4795b9b82807fp-8;
    q = q * u + -0x1.95ce31f429c6cp-7;
    q = q * u + 0x1.0e0ca05e96feap-5;
    q = q * u + -0x1.9ae65093f1963p-4;
    q = q * u + 0x1.b0ee60716bcd3p-2;
    double near = q * u * (u + 1.0);
    near = a < 1.0 ? near - l : near + 0.0; /* of 1 not -0 */
    double v = 1.0 / a, z = v * v;
    double s = -0x1.b358b4a3d16acp-11;
    s = s * z + 0x1.822e4bf02ca9ep-11;
    s = s * z + -0x1.3549987358b8ep-11;
    s = s * z + 0x1.a008e09b077dfp-11;
    s = s * z + -0x1.6c16b79be4668p-9;
    s = s * z + 0x1.5555555538102p-4;
    double y = (a - 0.5) * l - a + (0x1.d67f1c864beb5p-1 + v * s); /* log(2 pi) / 2 */
    y = a < 3.0 ? near : y;
    double r = a - rint(a);
    double sine = fabs(r) * sine_of_half_turns_F64(r * r);
    double mirrored = 0x1.250d048e7a1bdp0 - log_of_float(a * sine) - y; /* log(pi) */
    y = x < 0.0 ? mirrored : y;
    y = a == 0.0 || a == (double)INFINITY ? (double)INFINITY : y;
    return number != number ? number : (float)y;
}

/* The same to the precision of double: longer polynomials, by interpolation at Chebyshev's points, of relative error
   2^-54, and logarithms of double. First lgamma(u + 2) / (u (u + 1)) of |u| <= 1. */
INLINE double near_lgamma_F64(double u) {
    double q = 0x1.95a1a3aa9df99p-30;
    q = q * u + -0x1.a283564541250p-29;
    q = q * u + -0x1.f88206a4a8bbbp-29;
    q = q * u + 0x1.034ff4e678816p-27;
    q = q * u + 0x1.ed386b522dfd8p-27;
    q = q * u + -0x1.fe0f43107e644p-26;
    q = q * u + 0x1.349389c70a1dbp-27;
    q = q * u + -0x1.491818361fe5dp-26;
    q = q * u + 0x1.b15da15ef66ecp-24;
    q = q * u + -0x1.c6697b4306415p-23;
    q = q * u + 0x1.aba9aae2643cfp-22;
    q = q * u + -0x1.c3ee6fd3f4078p-21;
    q = q * u + 0x1.e5ebc24390cd7p-20;
    q = q * u + -0x1.027a77320de46p-18;
    q = q * u + 0x1.13df5c29f7946p-17;
    q = q * u + -0x1.284b7b7570031p-16;
    q = q * u + 0x1.402f44c69de2cp-15;
    q = q * u + -0x1.5c86ebc7a274cp-14;
    q = q * u + 0x1.7ed732472e58fp-13;
    q = q * u + -0x1.a96a3ea2d22dbp-12;
    q = q * u + 0x1.dfebcf93da4a6p-11;
    q = q * u + -0x1.145121fc5cf96p-9;
    q = q * u + 0x1.47974853a554bp-8;
    q = q * u + -0x1.95ce223a97d37p-7;
    q = q * u + 0x1.0e0c9df293546p-5;
    q = q * u + -0x1.9ae6509ea10b4p-4;
    return q * u + 0x1.b0ee6072093cep-2;
}
/* What Stirling's formula leaves, a >= 3: 1 / a times a polynomial of its square, whose first coefficient comes first. */
#define STIRLING_FIRST -0x1.42593c7e1f9dbp+0
#define STIRLING_OTHERS(X)                                                                              \
    X(0x1.0953f9f7b3684p+0) X(-0x1.a6f12de4e5280p-2) X(0x1.cbf7990eae6c5p-4)               \
    X(-0x1.a8a27132db91bp-6) X(0x1.9aabfe19aa4b2p-8) X(-0x1.f5a098f66523bp-10)              \
    X(0x1.b94839823eb39p-11) X(-0x1.3813661cb3f7ep-11) X(0x1.a01a01781724cp-11)              \
    X(-0x1.6c16c16c10e31p-9) X(0x1.5555555555555p-4)
INLINE double stirling_rest_F64(double a) {
    double v = 1.0 / a, z = v * v, s = STIRLING_FIRST;
#define STIRLING_STEP(coefficient) s = s * z + coefficient;
    STIRLING_OTHERS(STIRLING_STEP)
#undef STIRLING_STEP
    return v * s;
}
INLINE double m_lgamma_F64(double x) {
    double a = fabs(x), l = m_log_F64(a);
    double u = a < 1.0 ? a - 1.0 : a - 2.0;
    double near = near_lgamma_F64(u) * u * (u + 1.0);
    near = a < 1.0 ? near - l : near + 0.0; /* of 1 not -0 */
    double y = (a - 0.5) * l - a + (0x1.d67f1c864beb5p-1 + stirling_rest_F64(a));
    y = a < 3.0 ? near : y;
    double r = a - rint(a);
    double sine = fabs(r) * sine_of_half_turns_F64(r * r);
    double mirrored = 0x1.250d048e7a1bdp0 - m_log_F64(a * sine) - y;
    y = x < -0x1p-60 ? mirrored : y; /* nearer to 0 the sign does not matter, and a * sine would underflow */
    y = a == 0.0 || a == (double)INFINITY || (x < 0.0 && r == 0.0) ? (double)INFINITY : y;
    return x != x ? x : y;
}

/* --- others ---------------------------------------------------------------------------------------------- */

/* sin(pi x) / (pi x): the distance from a whole number is exact. */
#define SINC_OF(S, T)                                                                                  \
    INLINE T m_sinc_##S(T x) {                                                                         \
        T n = C_##S(rint)(x), r = x - n, half = n * (T)0.5;                                            \
        T sine = r * sine_of_half_turns_##S(r * r);                                                    \
        sine = half != C_##S(rint)(half) ? -sine : sine;                                               \
        return x == 0 ? (T)1 : sine / (x * (T)3.14159265358979323846);                                 \
    }
SINC_OF(F32, float)
SINC_OF(F64, double)

/* Numbers of one sign are in the order of their bits. */
#define NEXTAFTER(S, T, bits)                                                                          \
    INLINE T m_nextafter_##S(T x, T y) {                                                               \
        bits b = {.f = x}, one = {.u = 1};                                                             \
        b.u += (y > x) == (x > 0) ? 1 : -1;                                                            \
        T moved = x == 0 ? C_##S(copysign)(one.f, y) : b.f;                                            \
        moved = x == y ? y : moved;                                                                    \
        return x != x || y != y ? x + y : moved;                                                       \
    }
NEXTAFTER(F32, float, bits32)
NEXTAFTER(F64, double, bits64)
/* Of both sorts of half precision, which differ in the bits of infinity. */
INLINE uint16_t nextafter_half(uint16_t x, uint16_t y, int infinity) {
    const int a = x & 0x7fff, b = y & 0x7fff, from = x & 0x8000 ? -a : a, to = y & 0x8000 ? -b : b;
    const int moved = from + (from < to ? 1 : -1);
    const int bits = moved < 0 ? 0x8000 - moved : moved ? moved : x & 0x8000;
    const int next = from == to ? y : bits;
    return (uint16_t)(a > infinity ? x : b > infinity ? y : next);
}

#endif
