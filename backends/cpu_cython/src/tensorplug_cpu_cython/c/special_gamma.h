/* The incomplete gamma functions, and Hurwitz's zeta function in float: part of special_functions.c.

   In double, by blocks. Each pair goes to one of three methods, all pairs of which take as many steps as the slowest;
   what takes too many of them is left to SciPy. */
#ifndef TENSORPLUG_SPECIAL_GAMMA_H
#define TENSORPLUG_SPECIAL_GAMMA_H

#include "special.h"

enum { STEPS = 1000 }; /* at most */

/* Pairs of one method, of which there is a whole number of vectors, and what is made of them. */
typedef struct {
    double a[LANES], x[LANES], value[LANES];
    ptrdiff_t place[LANES], n;
} gamma_pairs;

static void append(gamma_pairs *pairs, double a, double x, ptrdiff_t place) {
    pairs->a[pairs->n] = a;
    pairs->x[pairs->n] = x;
    pairs->place[pairs->n++] = place;
}
static ptrdiff_t filled(gamma_pairs *pairs) {
    const ptrdiff_t lanes = (pairs->n + 7) / 8 * 8;
    for (ptrdiff_t i = pairs->n; i < lanes; i++) pairs->a[i] = pairs->x[i] = 1.0;
    return lanes;
}

/* The logarithm of x^a / gamma(a + 1), a <= 2. */
INLINE double small_power_F64(double a, double x) { return a * m_log_F64(x) - near_lgamma_F64(a - 1.0) * (a - 1.0) * a; }

/* x^a exp(-x) / gamma(a + 1). From 3 on it is by Stirling's formula exp(-a (t - log(1 + t))) / sqrt(2 pi a) of
   t = x / a - 1, https://dlmf.nist.gov/5.11.E1; near 0 the difference is f - log(1 + f) = s (f - rest). */
INLINE double gamma_power_F64(double a, double x) {
    double ratio = x / a, t = (x - a) / a;
    double n, f = log_remainder_F64(ratio, &n);
    f = n == 0.0 ? t : f;
    double s = f / (2.0 + f), bend = s * (f - log_rest_F64(s * s));
    double log_ratio = n * 0x1.62e42fee00000p-1 + (f - (bend - n * 0x1.a39ef35793c76p-33));
    double large = -a * (n == 0.0 ? bend : t - log_ratio) - stirling_rest_F64(a);
    double reduced = a > 2.0 ? a - 1.0 : a;
    double small = small_power_F64(a < 3.0 ? reduced : 1.0, x) - x;
    double power = m_exp_F64(a < 3.0 ? small : large);
    double factor = a > 2.0 ? ratio : 1.0;
    return power * (a < 3.0 ? factor : 1.0 / sqrt(0x1.921fb54442d18p+2 * a)); /* 2 pi */
}

/* P by its power series, https://dlmf.nist.gov/8.11.E4; two terms take one division. */
static void by_series(gamma_pairs *pairs, double tolerance) {
    const ptrdiff_t lanes = filled(pairs);
    double terms[LANES], sums[LANES];
    for (ptrdiff_t i = 0; i < lanes; i++) terms[i] = sums[i] = 1.0;
    int64_t more = pairs->n > 0;
    for (double step = 1.0; more && step < STEPS; step += 4.0) {
        more = 0;
        for (ptrdiff_t i = 0; i < lanes; i++) {
            const double x = pairs->x[i], k = pairs->a[i] + step;
            const double first = terms[i] * (x / (k * (k + 1.0))), second = first * x;
            const double third = second * (x / ((k + 2.0) * (k + 3.0))), fourth = third * x;
            const double sum = sums[i] + ((first * (k + 1.0) + second) + (third * (k + 3.0) + fourth));
            terms[i] = fourth;
            sums[i] = sum;
            more |= fourth > sum * tolerance;
        }
    }
    for (ptrdiff_t i = 0; i < lanes; i++) pairs->value[i] = sums[i] * gamma_power_F64(pairs->a[i], pairs->x[i]);
}

/* Q by the even part of its continued fraction, https://dlmf.nist.gov/8.9.E2. To the precision of double it is computed
   once more, from behind, where errors fade rather than add up, by as many steps and what is between the precisions. */
static void by_fraction(gamma_pairs *pairs, double tolerance) {
    const ptrdiff_t lanes = filled(pairs);
    const double within = fmax(tolerance, 0x1p-46);
    double tops[LANES], bottoms[LANES], tops_before[LANES], bottoms_before[LANES], values[LANES];
    for (ptrdiff_t i = 0; i < lanes; i++) {
        tops_before[i] = values[i] = 0.0;
        tops[i] = bottoms_before[i] = 1.0;
        bottoms[i] = pairs->x[i] + 1.0 - pairs->a[i];
    }
    int64_t more = pairs->n > 0;
    double step = 1.0;
    for (; more && step < STEPS; step += 4.0) {
        more = 0;
        for (ptrdiff_t i = 0; i < lanes; i++) {
            const double x = pairs->x[i], a = pairs->a[i];
            double top = tops[i], bottom = bottoms[i], top_before = tops_before[i], bottom_before = bottoms_before[i];
            for (int j = 0; j < 4; j++) {
                const double k = step + j, by = k * (a - k), plus = x + (2.0 * k + 1.0) - a;
                const double next_top = plus * top + by * top_before, next_bottom = plus * bottom + by * bottom_before;
                top_before = top;
                bottom_before = bottom;
                top = next_top;
                bottom = next_bottom;
            }
            const double scale = 1.0 / bottom, value = top * scale;
            more |= fabs(value - values[i]) > value * within;
            values[i] = value;
            tops[i] = value;
            bottoms[i] = 1.0;
            tops_before[i] = top_before * scale;
            bottoms_before[i] = bottom_before * scale;
        }
    }
    if (within > tolerance && pairs->n) {
        for (ptrdiff_t i = 0; i < lanes; i++) values[i] = INFINITY;
        for (double k = floor(1.4 * step) + 4.0; k > 0.0; k--)
            for (ptrdiff_t i = 0; i < lanes; i++) {
                const double a = pairs->a[i];
                values[i] = (pairs->x[i] - a + (2.0 * k - 1.0)) - k * (k - a) / values[i];
            }
        for (ptrdiff_t i = 0; i < lanes; i++) values[i] = 1.0 / values[i];
    }
    for (ptrdiff_t i = 0; i < lanes; i++) {
        const double a = pairs->a[i];
        pairs->value[i] = values[i] * a * gamma_power_F64(a, pairs->x[i]);
    }
}

/* Q of small numbers without the cancellation of 1 - P, https://dlmf.nist.gov/8.7.E3. */
static void by_powers(gamma_pairs *pairs, double tolerance) {
    const ptrdiff_t lanes = filled(pairs);
    double terms[LANES], sums[LANES];
    for (ptrdiff_t i = 0; i < lanes; i++) {
        terms[i] = 1.0;
        sums[i] = 0.0;
    }
    int64_t more = pairs->n > 0;
    for (double k = 1.0; more && k < STEPS; k += 1.0) {
        const double factor = -1.0 / k;
        more = 0;
        for (ptrdiff_t i = 0; i < lanes; i++) {
            const double term = terms[i] * (pairs->x[i] * factor);
            terms[i] = term;
            sums[i] += term / (pairs->a[i] + k);
            more |= fabs(term) > 0.01 * tolerance;
        }
    }
    for (ptrdiff_t i = 0; i < lanes; i++) {
        const double a = pairs->a[i], power = m_expm1_F64(small_power_F64(a, pairs->x[i]));
        pairs->value[i] = -power - a * (1.0 + power) * sums[i];
    }
}

/* --- pairs to methods ------------------------------------------------------------------------------------- */

typedef double (*tp_of_two)(double, double, int);

/* Of up to LANES pairs, P or, if `upper`, Q. `near`: up to where Q is not by its fraction, which begins slowly. */
static void incomplete_gamma(const double *a, const double *x, double *values, ptrdiff_t n, int upper, double near,
                             double tolerance, tp_of_two scipy) {
    gamma_pairs series, fraction, powers;
    series.n = fraction.n = powers.n = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double b = a[i], y = x[i];
        if (b < 0.0 || y < 0.0) values[i] = NAN;
        else if (!(b > 0.0 && y > 0.0 && b < 1e30 && y < 1e30) || (b > 200.0 && fabs(y - b) < 0.3 * b))
            values[i] = scipy(b, y, 0);
        else if (y <= near && upper && b <= 2.0 && b <= (y > 0.6 ? y : 0.6)) append(&powers, b, y, i);
        else append(y <= b || y <= near ? &series : &fraction, b, y, i);
    }
    by_series(&series, tolerance);
    by_fraction(&fraction, tolerance);
    by_powers(&powers, tolerance);
    for (ptrdiff_t i = 0; i < series.n; i++) values[series.place[i]] = upper ? 1.0 - series.value[i] : series.value[i];
    for (ptrdiff_t i = 0; i < fraction.n; i++)
        values[fraction.place[i]] = upper ? fraction.value[i] : 1.0 - fraction.value[i];
    for (ptrdiff_t i = 0; i < powers.n; i++) values[powers.place[i]] = powers.value[i];
}

#define INCOMPLETE_GAMMA(name, S, T, upper, near, tolerance)                                           \
    static void name##_##S(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {      \
        tp_of_two scipy;                                                                               \
        memcpy(&scipy, p, sizeof(scipy));                                                              \
        for (ptrdiff_t start = 0; start < n; start += LANES) {                                         \
            const ptrdiff_t count = n - start < LANES ? n - start : LANES;                             \
            double a[LANES], x[LANES], values[LANES];                                                  \
            for (ptrdiff_t i = 0; i < count; i++) {                                                    \
                a[i] = (double)AT(T, args[0], start + i, s[0]);                                        \
                x[i] = (double)AT(T, args[1], start + i, s[1]);                                        \
            }                                                                                          \
            incomplete_gamma(a, x, values, count, upper, near, tolerance, scipy);                      \
            for (ptrdiff_t i = 0; i < count; i++) TO(T, args[2], start + i, s[2]) = (T)values[i];      \
        }                                                                                              \
    }
INCOMPLETE_GAMMA(gammainc, F32, float, 0, 3.0, 0x1p-30)
INCOMPLETE_GAMMA(gammainc, F64, double, 0, 3.0, 0x1p-55)
INCOMPLETE_GAMMA(gammaincc, F32, float, 1, 3.0, 0x1p-30)
INCOMPLETE_GAMMA(gammaincc, F64, double, 1, 1.5, 0x1p-55)

/* --- zeta ------------------------------------------------------------------------------------------------- */

/* q^-s */
INLINE double inverse_power_F64(double q, double s) { return m_exp_F64(-s * m_log_F64(q)); }

/* Four terms and the formula of Euler and Maclaurin, https://dlmf.nist.gov/25.11.E28, for the rest, of relative error
   below 2^-32. Beyond 150 all terms but the first are below float's precision, or its smallest number. */
INLINE double m_zeta(double s, double q) {
    const double c = s < 150.0 ? s : 150.0, w = q + 4.0, v = 1.0 / w, z = v * v;
    double rest = (c + 9.0) * (c + 10.0) * z * -0x1.22805d644267fp-31; /* B(2k) / (2k)! */
    rest = (c + 7.0) * (c + 8.0) * z * (0x1.66a8f2bf70ebep-26 + rest);
    rest = (c + 5.0) * (c + 6.0) * z * (-0x1.bbd779334ef0bp-21 + rest);
    rest = (c + 3.0) * (c + 4.0) * z * (0x1.1566abc011567p-15 + rest);
    rest = (c + 1.0) * (c + 2.0) * z * (-0x1.6c16c16c16c17p-10 + rest);
    rest = c * v * (0x1.5555555555555p-4 + rest);
    rest = inverse_power_F64(w, c) * (w / (c - 1.0) + 0.5 + rest);
    rest += inverse_power_F64(q + 3.0, c) + inverse_power_F64(q + 2.0, c) + inverse_power_F64(q + 1.0, c);
    return inverse_power_F64(q, s) + rest;
}

/* Of all others, as SciPy has it. Of a negative q what lies below 0 is a difference. */
static double zeta_beyond(double s, double q) {
    if (s == 1.0) return INFINITY;
    if (s < 1.0) return NAN;
    if (q <= 0.0 && q == floor(q)) return INFINITY;
    if (isnan(s) || isnan(q)) return NAN;
    if (isinf(q)) return 0.0;
    if (isinf(s)) return q < 1.0 ? INFINITY : q == 1.0 ? 1.0 : NAN;
    if (s != floor(s)) return NAN;
    const double f = q - floor(q), below = m_zeta(s, 1.0 - f) - m_zeta(s, 1.0 - q);
    return m_zeta(s, f) + (fmod(s, 2.0) == 0.0 ? below : -below);
}

/* The pairs of a block go to the formula, all at once, to NaN, and to what is left, one by one. */
BINARY_LOOP(zeta_within_F32, float, float, m_zeta((double)x, (double)y))
static void zeta_F32(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {
    for (ptrdiff_t start = 0; start < n; start += LANES) {
        const ptrdiff_t count = n - start < LANES ? n - start : LANES;
        char *ends[3] = {args[0] + start * s[0], args[1] + start * s[1], args[2] + start * s[2]};
        float orders[LANES + 16], from[LANES + 16], values[LANES]; /* the results may lie where the numbers did */
        int within[LANES + 1], beyond[LANES + 1], inside = 0, outside = 0;
        for (ptrdiff_t i = 0; i < count; i++) {
            const float order = AT(float, ends[0], i, s[0]), q = AT(float, ends[1], i, s[1]);
            const int serves = (order > 1.0f) & (order < INFINITY) & (q > 0.0f) & (q < INFINITY);
            const int is_nan = (order < 1.0f) | ((order != floorf(order)) & (q < 0.0f) & (q != floorf(q)));
            orders[inside] = order;
            from[inside] = q;
            within[inside] = beyond[outside] = (int)i;
            values[i] = NAN;
            inside += serves;
            outside += !(serves | is_nan);
        }
        for (int k = 0; k < outside; k++) {
            const ptrdiff_t i = beyond[k];
            values[i] = (float)zeta_beyond((double)AT(float, ends[0], i, s[0]), (double)AT(float, ends[1], i, s[1]));
        }
        const int lanes = (inside + 15) / 16 * 16;
        for (int k = inside; k < lanes; k++) orders[k] = from[k] = 2.0f;
        char *const blocks[3] = {(char *)orders, (char *)from, (char *)orders};
        const ptrdiff_t steps[3] = {sizeof(float), sizeof(float), sizeof(float)};
        zeta_within_F32(blocks, steps, lanes, p);
        for (int k = 0; k < inside; k++) values[within[k]] = orders[k];
        for (ptrdiff_t i = 0; i < count; i++) TO(float, ends[2], i, s[2]) = values[i];
    }
}

#endif
