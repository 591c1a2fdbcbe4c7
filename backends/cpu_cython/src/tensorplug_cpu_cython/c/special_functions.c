/* Special functions: of float without branches, and orthogonal polynomials by their recurrences. */
#include "special_functions.h"

#include <math.h>
#include <string.h>

#include "special_bessel.h"
#include "loops.h"
#include "special_oscillating.h"

/* --- functions of one number ----------------------------------------------------------------------------- */

LONG_UNARY(k0_F32, float, m_k0_F32(x))
LONG_UNARY(k0e_F32, float, m_k0e_F32(x))
LONG_UNARY(k1_F32, float, m_k1_F32(x))
LONG_UNARY(k1e_F32, float, m_k1e_F32(x))

/* Blocks that hold an angle which is too large are done again, by C's own. */
#define OF_ANGLES(name, S, T, limit, expression, huge)                                                 \
    LONG_UNARY(name##_within_##S, T, expression)                                                       \
    static void name##_##S(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {      \
        for (ptrdiff_t start = 0; start < n; start += BLOCK) {                                         \
            const ptrdiff_t count = n - start < BLOCK ? n - start : BLOCK;                             \
            char *ends[2] = {args[0] + start * s[0], args[1] + start * s[1]};                          \
            T block[BLOCK]; /* the results may lie where the numbers did */                            \
            int any = 0;                                                                               \
            for (ptrdiff_t i = 0; i < count; i++) {                                                    \
                block[i] = AT(T, ends[0], i, s[0]);                                                    \
                any |= C_##S(fabs)(block[i]) > (T)(limit);                                             \
            }                                                                                          \
            ends[0] = (char *)block;                                                                   \
            const ptrdiff_t steps[2] = {sizeof(T), s[1]};                                              \
            name##_within_##S(ends, steps, count, p);                                                  \
            for (ptrdiff_t i = 0; any && i < count; i++) {                                             \
                const double x = (double)block[i];                                                     \
                if (fabs(x) > (limit)) TO(T, ends[1], i, s[1]) = (T)(huge);                            \
            }                                                                                          \
        }                                                                                              \
    }

#define PI 3.14159265358979323846

/* The leading term, from the sum and the difference of sine and cosine; NaN of infinities. */
static double wave(double x, double sum, double difference) {
    return (sum * (sin(fabs(x)) + cos(x)) + difference * (sin(fabs(x)) - cos(x))) / sqrt(PI * fabs(x));
}
OF_ANGLES(j0, F32, float, CIRCULAR_LIMIT, m_j0_F32(x), wave(x, 1.0, 0.0))
OF_ANGLES(j1, F32, float, CIRCULAR_LIMIT, m_j1_F32(x), copysign(1.0, x) * wave(x, 0.0, 1.0))
OF_ANGLES(y0, F32, float, CIRCULAR_LIMIT, m_y0_F32(x), x < 0.0 ? NAN : wave(x, 0.0, 1.0))
OF_ANGLES(y1, F32, float, CIRCULAR_LIMIT, m_y1_F32(x), x < 0.0 ? NAN : wave(x, -1.0, 0.0))
OF_ANGLES(spherical_j0, F32, float, CIRCULAR_LIMIT, x == 0.0f ? 1.0f : m_sin_F32(x) / x, isinf(x) ? 0.0 : sin(x) / x)
OF_ANGLES(spherical_j0, F64, double, CIRCULAR_LIMIT, x == 0.0 ? 1.0 : m_sin_F64(x) / x, isinf(x) ? 0.0 : sin(x) / x)

/* Beyond, zeta is too large an angle; above 0 it is an exponent, and the function vanishes long before. */
static double far_airy(double x) {
    const double zeta = sqrt(fabs(x)) * fabs(x) * (2.0 / 3.0);
    return x > 0.0 ? 0.0 : (sin(zeta) + cos(zeta)) / sqrt(2.0 * PI * sqrt(fabs(x)));
}
OF_ANGLES(airy, F32, float, 1e4, m_airy_F32(x), far_airy(x))

/* --- orthogonal polynomials ------------------------------------------------------------------------------ */

/* All numbers of a block take as many steps as the highest degree, after its own each keeps its value. Of a degree,
   a fraction does not count; of none below 0 there is a polynomial. */
enum { LANES = 128 };

/* Degrees above take too many steps. There angles give Chebyshev's polynomials within [-1, 1], its ends and 0 others;
   what is left is NaN (Abramowitz and Stegun, 22.3.15, 22.3.16 and 22.4). */
#define MOST_STEPS 1e6
static double sign_of_power(double x, double n) { return x < 0 && fmod(n, 2.0) != 0.0 ? -1.0 : 1.0; }
#define HIGH(name, within, at_ends)                                                                    \
    static double high_##name(double x, double n) {                                                    \
        const double sign = sign_of_power(x, n), angle = acos(x);                                      \
        (void)sign, (void)angle;                                                                       \
        return fabs(x) == 1.0 ? (at_ends) : (within);                                                  \
    }
HIGH(chebyshev_t, cos(n * angle), sign)
HIGH(chebyshev_u, sin((n + 1) * angle) / sin(angle), (n + 1) * sign)
HIGH(chebyshev_v, cos((n + 0.5) * angle) / cos(angle / 2), x > 0 ? 1 : (2 * n + 1) * sign)
HIGH(chebyshev_w, sin((n + 0.5) * angle) / sin(angle / 2), x > 0 ? 2 * n + 1 : sign)
HIGH(hermite_h, NAN, NAN)
HIGH(hermite_he, NAN, NAN)
HIGH(laguerre_l, x == 0.0 ? 1.0 : NAN, NAN)
HIGH(legendre_p, NAN, sign)

#define ENDS(S, T)                                                                                     \
    static void load_##S(T *to, const char *from, ptrdiff_t stride, ptrdiff_t n) {                     \
        if (stride == sizeof(T)) memcpy(to, from, (size_t)n * sizeof(T));                              \
        else for (ptrdiff_t i = 0; i < n; i++) to[i] = AT(T, from, i, stride);                         \
        for (ptrdiff_t i = n; i < (n + 15) / 16 * 16; i++) to[i] = 0;                                             \
    }                                                                                                  \
    static void store_##S(char *to, ptrdiff_t stride, const T *from, ptrdiff_t n) {                    \
        if (stride == sizeof(T)) memcpy(to, from, (size_t)n * sizeof(T));                              \
        else for (ptrdiff_t i = 0; i < n; i++) TO(T, to, i, stride) = from[i];                         \
    }
ENDS(F32, float)
ENDS(F64, double)

#define POLYNOMIAL(name, S, T, first, next)                                                            \
    static void name##_##S(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {      \
        (void)p;                                                                                       \
        for (ptrdiff_t start = 0; start < n; start += LANES) {                                         \
            const ptrdiff_t count = n - start < LANES ? n - start : LANES;                             \
            const ptrdiff_t lanes = (count + 15) / 16 * 16;                                            \
            T points[LANES], degrees[LANES], values[LANES], earlier[LANES];                            \
            load_##S(points, args[0] + start * s[0], s[0], count);                                     \
            load_##S(degrees, args[1] + start * s[1], s[1], count);                                    \
            int more = 0;                                                                              \
            for (ptrdiff_t i = 0; i < lanes; i++) {                                                         \
                const T x = points[i], given = degrees[i], degree = C_##S(trunc)(given);               \
                const int is_one = degree >= 0 && degree < (T)0x1p63;                  \
                const int by_steps = is_one && degree <= (T)MOST_STEPS;                                \
                const T one = degree == 0 ? (T)1 : (T)(first);                                         \
                degrees[i] = by_steps ? degree : (T)0;                                                 \
                earlier[i] = 1;                                                                        \
                values[i] = by_steps ? one : is_one ? (T)high_##name(x, degree) : (T)0;                \
                more |= degrees[i] > 1;                                                                \
            }                                                                                          \
            for (ptrdiff_t step = 1; more; step++) {                                                   \
                const T k = (T)step, following = (T)(step + 1);                                        \
                more = 0;                                                                              \
                for (ptrdiff_t i = 0; i < lanes; i++) {                                                     \
                    const T x = points[i], last = values[i], before = earlier[i];                      \
                    const T value = (next);                                                            \
                    earlier[i] = last;                                                                 \
                    values[i] = k < degrees[i] ? value : last;                                         \
                    more |= following < degrees[i];                                                    \
                }                                                                                      \
            }                                                                                          \
            store_##S(args[2] + start * s[2], s[2], values, count);                                    \
        }                                                                                              \
    }

#define POLYNOMIALS(S, T)                                                                              \
    POLYNOMIAL(chebyshev_t, S, T, x, 2 * x * last - before)                                            \
    POLYNOMIAL(chebyshev_u, S, T, 2 * x, 2 * x * last - before)                                        \
    POLYNOMIAL(chebyshev_v, S, T, 2 * x - 1, 2 * x * last - before)                                    \
    POLYNOMIAL(chebyshev_w, S, T, 2 * x + 1, 2 * x * last - before)                                    \
    POLYNOMIAL(hermite_h, S, T, 2 * x, 2 * (x * last - k * before))                                    \
    POLYNOMIAL(hermite_he, S, T, x, x * last - k * before)                                             \
    POLYNOMIAL(laguerre_l, S, T, 1 - x, ((2 * k + 1 - x) * last - k * before) / (k + 1))               \
    POLYNOMIAL(legendre_p, S, T, x, ((2 * k + 1) * x * last - k * before) / (k + 1))
POLYNOMIALS(F32, float)
POLYNOMIALS(F64, double)

#include "special_gamma.h"

#define OF_FLOAT(name) {#name, 0, {[TP_F32] = name##_F32}},
#define OF_BOTH(name) {#name, 0, {[TP_F32] = name##_F32, [TP_F64] = name##_F64}},
#define ASKING(name) {#name, 1, {[TP_F32] = name##_F32, [TP_F64] = name##_F64}},
const tp_specials LEVEL(tp_special_table) = {
    {TP_SPECIAL_OF_FLOAT(OF_FLOAT) TP_SPECIAL(OF_BOTH) TP_SPECIAL_ASKING(ASKING)}};
