/* The logarithm of the gamma function near its zeros at negative arguments, in double: part of pointwise.c.

   By the reflection it is log(pi) - log|sin(pi a)| - lgamma(a + 1) at -a. Near a zero these cancel, so the difference
   from the zero's is taken, each part by what keeps its bits. 7 units in the last place. */
#ifndef TENSORPLUG_SPECIAL_GAMMA_ZEROS_H
#define TENSORPLUG_SPECIAL_GAMMA_ZEROS_H

#include "special.h"

/* The zeros' magnitudes, each with what double drops of it, and the cotangents of pi times them: one above 2, then two
   around each whole number, as far as they are more than double's steps away from it. */
static const struct { double high, low, cotangent; } gamma_zeros[] = {
    {0x1.3a7fc9600f86cp+1, 0x1.55f64f98af8d0p-55, 0x1.1631c4bfeda39p-3},
    {0x1.5fb410a1bd901p+1, -0x1.a19a96d2e6f85p-54, -0x1.f8994e0357cb2p-1},
    {0x1.9260dbc9e59afp+1, 0x1.f717cd335a7b3p-53, 0x1.08418bbbc23d1p+1},
    {0x1.fa471547c2fe5p+1, 0x1.70d4561291237p-56, -0x1.c4aff1c592cb4p+2},
    {0x1.0284e78599581p+2, -0x1.e78c1e9e43cfep-53, 0x1.0174c0097befcp+3},
    {0x1.3f7577a6eeafdp+2, -0x1.5de5eab7f12cfp-53, -0x1.2d18bbe2a8c64p+5},
    {0x1.4086a57f0b6d9p+2, 0x1.95262b72ca9cap-55, 0x1.35ca7466f01b0p+5},
    {0x1.7fe92f591f40dp+2, 0x1.7dd4ed62cbd32p-52, -0x1.c92b09ccbb133p+7},
    {0x1.8016b25897c8dp+2, -0x1.27e0f49a4ba72p-54, 0x1.cb8d7b3c1400fp+7},
    {0x1.bffcbf76b86f0p+2, -0x1.853b29347b806p-57, -0x1.90e8f2592abf1p+10},
    {0x1.c0033fdedfe1fp+2, -0x1.20bb7d2324678p-52, 0x1.913b124255993p+10},
    {0x1.ffff97f8159cfp+2, 0x1.e54f415a91586p-55, -0x1.910c95d8945e4p+13},
    {0x1.000034028b3f9p+3, 0x1.f60cb3cec1cedp-52, 0x1.91177ccf00299p+13},
    {0x1.1ffffa3884bd0p+3, 0x1.ff90c9d2ae925p-53, -0x1.c3339321f2b7fp+16},
    {0x1.200005c7768fbp+3, 0x1.b5b610ffb70d4p-54, 0x1.c335021c7954bp+16},
    {0x1.3fffff6c0d7c0p+3, -0x1.197cea8c42d7dp-51, -0x1.1a00a2a98fde6p+20},
    {0x1.40000093f2777p+3, 0x1.927b45d95e154p-52, 0x1.1a00ba9dfab40p+20},
    {0x1.5ffffff28cdd4p+3, -0x1.c9924a65aa486p-53, -0x1.83c0ee9318af8p+23},
    {0x1.6000000d7322ap+3, 0x1.8aecb2d37ff52p-51, 0x1.83c0f1af47c51p+23},
    {0x1.7ffffffee1127p+3, 0x1.ce1f7906b30f5p-54, -0x1.22d0b3ff2967fp+27},
    {0x1.800000011eed9p+3, -0x1.19d5307e1fb5ep-53, 0x1.22d0b4329ef2ap+27},
    {0x1.9fffffffe9edcp+3, -0x1.84f40342d001cp-51, -0x1.d89324a5225e4p+30},
    {0x1.a000000016124p+3, 0x1.84e03341ee8ddp-51, 0x1.d89324abc334fp+30},
    {0x1.bffffffffe6c7p+3, -0x1.d2a30f3dae0fbp-51, -0x1.9d80c0132df53p+34},
    {0x1.c000000001939p+3, 0x1.d2a2f4a73af63p-51, 0x1.9d80c0139aebap+34},
    {0x1.dfffffffffe52p+3, -0x1.fcf9ccfd8867ep-51, -0x1.83a8b4122aabfp+38},
    {0x1.e0000000001aep+3, 0x1.fcf9ccde87210p-51, 0x1.83a8b41231a6dp+38},
    {0x1.fffffffffffe5p+3, 0x1.80c18cc43ea26p-53, -0x1.83a8b4122df04p+42},
    {0x1.000000000000dp+4, 0x1.cfe7ce6768509p-50, 0x1.83a8b4122e628p+42},
    {0x1.0ffffffffffffp+4, 0x1.ab4e23f3d49f1p-51, -0x1.9be33f5351085p+46},
    {0x1.1000000000001p+4, -0x1.ab4e23f3d4bbcp-51, 0x1.9be33f53510fap+46},
};
enum { LAST_WITH_GAMMA_ZEROS = 17 };

/* lgamma(z + d) - lgamma(z) of z > 3 by differences of Stirling's formula, that of its rest as one of a polynomial. */
static double lgamma_difference(double z, double d) {
    const double next = z + d, v = 1.0 / z, w = 1.0 / next, v2 = v * v, w2 = w * w;
    double s = STIRLING_FIRST, slope = 0.0;
#define STIRLING_STEP(coefficient) slope = slope * w2 + s; s = s * v2 + coefficient;
    STIRLING_OTHERS(STIRLING_STEP)
#undef STIRLING_STEP
    const double rest = -d * v * w * (s + w * (w + v) * slope);
    return d * log(z) + ((next - 0.5) * log1p(d * v) - d) + rest;
}

static double lgamma_near_zero(double x) {
    const double a = -x, whole = rint(a);
    const int index = a < 2.61 ? 0 : 2 * ((int)whole - 3) + (a < whole ? 1 : 2);
    const double zero = gamma_zeros[index].high, d = (a - zero) - gamma_zeros[index].low, half = 0.5 * d;
    const double sine = d * sine_of_half_turns_F64(d * d), versed = half * sine_of_half_turns_F64(half * half);
    const double grown = log1p(gamma_zeros[index].cotangent * sine - 2.0 * versed * versed);
    return -grown - lgamma_difference(1.0 + zero, d);
}

/* Blocks in which arguments below -2 lead near 0 are gone through again. */
static void lgamma_F64(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {
    double block[BLOCK];
    for (ptrdiff_t start = 0; start < n; start += BLOCK) {
        const ptrdiff_t count = n - start < BLOCK ? n - start : BLOCK;
        char *ends[2] = {(char *)block, args[1] + start * s[1]};
        const ptrdiff_t steps[2] = {sizeof(double), s[1]};
        int below = 0;
        for (ptrdiff_t i = 0; i < count; i++) {
            block[i] = AT(double, args[0], start + i, s[0]);
            below |= block[i] < -2.0;
        }
        lgamma_plain_F64(ends, steps, count, p);
        for (ptrdiff_t i = 0; below && i < count; i++) {
            double *y = &TO(double, ends[1], i, s[1]);
            if (block[i] < -2.0 && block[i] > -LAST_WITH_GAMMA_ZEROS - 0.5 && fabs(*y) < -0.25 * block[i])
                *y = lgamma_near_zero(block[i]);
        }
    }
}

#endif
