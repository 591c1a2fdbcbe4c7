/* Loops of what takes several steps elsewhere, as expressions of x, y and z and of the numbers p. */
#include "pointwise_fused.h"

#include <complex.h>
#include <math.h>

#include "bessel.h"
#include "complex_product.h"
#include "loops.h"
#include "pointwise_links.h"

/* A second or third array may be one element, or one of a row, repeated. */
#define TERNARY_LOOP(name, T, expression)                                                              \
    static void name(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *given) {        \
        const double p[4] = {given[0], given[1], given[2], given[3]};                                  \
        (void)p;                                                                                       \
        const T *a = (const T *)args[0], *b = (const T *)args[1], *c = (const T *)args[2];             \
        T *o = (T *)args[3];                                                                           \
        const ptrdiff_t size = sizeof(T);                                                              \
        const int dense = s[0] == size && s[3] == size;                                                \
        if (dense && s[1] == size && s[2] == size) {                                                   \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {                                            \
                const T x = a[i], y = b[i], z = c[i];                                                  \
                o[i] = expression;                                                                     \
            }                                                                                          \
        } else if (dense && s[1] == size && !s[2]) {                                                   \
            const T z = *c;                                                                            \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {                                            \
                const T x = a[i], y = b[i];                                                            \
                o[i] = expression;                                                                     \
            }                                                                                          \
        } else if (dense && !s[1] && s[2] == size) {                                                   \
            const T y = *b;                                                                            \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {                                            \
                const T x = a[i], z = c[i];                                                            \
                o[i] = expression;                                                                     \
            }                                                                                          \
        } else if (dense && !s[1] && !s[2]) {                                                          \
            const T y = *b, z = *c;                                                                    \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) { const T x = a[i]; o[i] = expression; }     \
        } else {                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++) {                                                        \
                const T x = AT(T, args[0], i, s[0]), y = AT(T, args[1], i, s[1]);                      \
                const T z = AT(T, args[2], i, s[2]);                                                   \
                TO(T, args[3], i, s[3]) = expression;                                                  \
            }                                                                                          \
        }                                                                                              \
    }

#define P(k, T) ((T)p[k])

#define HALVES(name, arrays, result)                                                                   \
    HALF_LOOP(name##_F16, arrays, F16, name##_F32, result)                                             \
    HALF_LOOP(name##_BF16, arrays, BF16, name##_F32, result)
#define SHORT_HALVES(name, arrays, expression)                                                         \
    SHORT_F16(name##_F16, arrays, name##_F32, expression)                                              \
    SHORT_BF16(name##_BF16, arrays, name##_F32, expression)
#define FUSED_1(name, expression)                                                                      \
    LONG_UNARY(name##_F32, float, expression(F32, float))                                              \
    LONG_UNARY(name##_F64, double, expression(F64, double))                                            \
    HALVES(name, 1, TO_HALF)
#define FUSED_TRUTH(name, expression)                                                                  \
    UNARY_LOOP(name##_F32, float, uint8_t, expression(F32, float))                                     \
    UNARY_LOOP(name##_F64, double, uint8_t, expression(F64, double))                                   \
    HALVES(name, 1, TO_BOOL)
#define FUSED_2(name, expression)                                                                      \
    LONG_BINARY(name##_F32, float, expression(F32, float))                                             \
    LONG_BINARY(name##_F64, double, expression(F64, double))                                           \
    HALVES(name, 2, TO_HALF)
#define FUSED_3(name, expression)                                                                      \
    LONG_TERNARY(name##_F32, float, expression(F32, float))                                            \
    LONG_TERNARY(name##_F64, double, expression(F64, double))                                          \
    HALVES(name, 3, TO_HALF)

/* Of few steps, or of which much need not be done again where y is one number. */
#define SHORT_1(name, expression)                                                                      \
    UNARY_LOOP(name##_F32, float, float, expression(F32, float))                                       \
    UNARY_LOOP(name##_F64, double, double, expression(F64, double))                                    \
    SHORT_HALVES(name, 1, expression(F32, float))
#define SHORT_2(name, expression)                                                                      \
    BINARY_LOOP(name##_F32, float, float, expression(F32, float))                                      \
    BINARY_LOOP(name##_F64, double, double, expression(F64, double))                                   \
    SHORT_HALVES(name, 2, expression(F32, float))
#define SHORT_3(name, expression)                                                                      \
    TERNARY_LOOP(name##_F32, float, expression(F32, float))                                            \
    TERNARY_LOOP(name##_F64, double, expression(F64, double))                                          \
    SHORT_HALVES(name, 3, expression(F32, float))

/* With links for chains. */
#define LINKED_1(name, expression)                                                                     \
    SHORT_1(name, expression) LINKS(name, LINK_OF_ONE, expression(F32, float), expression(F64, double))
#define LINKED_2(name, expression)                                                                     \
    SHORT_2(name, expression) LINKS(name, LINK_OF_TWO, expression(F32, float), expression(F64, double))
#define LINKED_3(name, expression)                                                                     \
    SHORT_3(name, expression) LINKS(name, LINK_OF_THREE, expression(F32, float), expression(F64, double))

#define FRAC(S, T) (x - C_##S(trunc)(x))
/* A power of ten, and whether it is that of decimals rather than of tens. */
#define ROUND(S, T)                                                                                    \
    (p[1] != 0 ? C_##S(rint)(x * P(0, T)) / P(0, T) : C_##S(rint)(x / P(0, T)) * P(0, T))
/* nan, then what replaces the infinities */
#define REPLACED(S, T)                                                                                 \
    INLINE T replaced_##S(T x, T nan, T high, T low) {                                                 \
        T r = x != x ? nan : x;                                                                        \
        r = x == (T)INFINITY ? high : r;                                                               \
        return x == -(T)INFINITY ? low : r;                                                            \
    }
REPLACED(F32, float)
REPLACED(F64, double)
#define NAN_TO_NUM(S, T) replaced_##S(x, P(0, T), P(1, T), P(2, T))
/* The lower bound first: where it is above the upper one, that counts. No bound is nan. */
#define ABOVE(bound, x) ((bound) > (x) ? (bound) : (x))
#define BELOW(bound, x) ((bound) < (x) ? (bound) : (x))
#define CLAMP_NUMBERS(S, T) BELOW(P(1, T), ABOVE(P(0, T), x))
#define CLAMP_GRADIENT(S, T) (y >= P(0, T) && y <= P(1, T) ? x : (T)0)
/* Both bounds, which are infinite where there are none; the lower one first, as it may be above the other. */
#define LOGIT_OF(S, T, x) m_log_##S((x) / ((T)1 - (x)))
#define LOGIT(S, T) LOGIT_OF(S, T, (x < P(0, T) ? P(0, T) : BELOW(P(1, T), x)))
/* The third number is what holds beyond the bounds. */
#define LOGIT_GRADIENT(S, T) (y < P(0, T) || y > P(1, T) ? P(2, T) : x / (y * ((T)1 - y)))
/* times zero: NaN stays */
#define SOFTSHRINK(S, T) (x > P(0, T) ? x - P(0, T) : x < -P(0, T) ? x + P(0, T) : x * 0)
#define HARDSHRINK(S, T) (x >= -P(0, T) && x <= P(0, T) ? (T)0 : x)
#define SHRINK_GRADIENT(S, T) (y >= -P(0, T) && y <= P(0, T) ? (T)0 : x)
#define SINC(S, T) m_sinc_##S(x)
/* NaN wins, and then zero. */
#define TIMES_LOG(S, T, x, y, log) ((y) != (y) ? (y) : (x) == 0 ? (T)0 : (x) * (log))
#define XLOGY(S, T) TIMES_LOG(S, T, x, y, m_log_##S(y))
#define XLOG1PY(S, T) TIMES_LOG(S, T, x, y, m_log1p_##S(y))
#define ENTR(S, T) (x < 0 ? -(T)INFINITY : TIMES_LOG(S, T, -x, x, m_log_##S(x)))
#define NDTR(S, T) ((T)0.5 * m_erfc_##S(x * (T)-0.70710678118654752440))
#define I0(S, T) m_i0_##S(x)
#define I0E(S, T) m_i0e_##S(x)
#define I1(S, T) m_i1_##S(x)
#define I1E(S, T) m_i1e_##S(x)
#define DIGAMMA(S, T) m_digamma_##S(x)
#define TRIGAMMA(S, T) m_trigamma_##S(x)
/* In double, also of float. */
#define ERFCX(S, T) (T)m_erfcx_F64((double)x)
#define LOG_NDTR(S, T) (T)m_log_ndtr_F64((double)x)
#define NDTRI(S, T) m_ndtri_##S(x)
#define ISINF(S, T) (C_##S(fabs)(x) == (T)INFINITY)
#define ISFINITE(S, T) (C_##S(fabs)(x) < (T)INFINITY)
/* Rounded once where that is one instruction, also where the product is the same for a whole loop. */
#if defined(__FP_FAST_FMAF) && defined(__FP_FAST_FMA)
#define PLUS_PRODUCT(S, x, y, z) C_##S(fma)(y, z, x)
#else
#define PLUS_PRODUCT(S, x, y, z) ((x) + (y) * (z))
#endif
#define ADD_SCALED(S, T) PLUS_PRODUCT(S, x, P(0, T), y)
/* The distance from the nearer end, and whether that is x: so both ends are met exactly. */
#define LERP(S, T) ((p[1] != 0 ? x : y) + P(0, T) * (y - x))
#define LERP_TENSOR(S, T)                                                                              \
    ((C_##S(fabs)(z) < (T)0.5 ? x : y) + (C_##S(fabs)(z) < (T)0.5 ? z : z - (T)1) * (y - x))
#define ADDCMUL(S, T) PLUS_PRODUCT(S, x, P(0, T) * y, z)
#define ADDCDIV(S, T) (x + P(0, T) * y / z)
/* NaN wins, of whichever. */
#define BOUNDED(S, T)                                                                                  \
    INLINE T bounded_##S(T x, T low, T high) {                                                         \
        T a = ABOVE(low, x);                                                                           \
        a = low != low ? low : a;                                                                      \
        const T r = BELOW(high, a);                                                                    \
        return high != high ? high : r;                                                                \
    }
BOUNDED(F32, float)
BOUNDED(F64, double)
#define CLAMP_TENSORS(S, T) bounded_##S(x, y, z)
#define GATED(S, T) (x * m_sigmoid_##S(y))
#define GATED_GRADIENT(S, T) (x * y * (m_sigmoid_##S(z) * ((T)1 - m_sigmoid_##S(z))))

INLINE float hypot_of_F32(float x, float y) {
    const double a = x, b = y; /* whose squares neither overflow nor vanish */
    const float root = (float)sqrt(a * a + b * b);
    return fabsf(x) == INFINITY || fabsf(y) == INFINITY ? INFINITY : root;
}
INLINE double hypot_of_F64(double x, double y) { return m_hypot_F64(x, y); }
#define HYPOT(S, T) hypot_of_##S(x, y)
#define TRUNC_DIVIDE(S, T) C_##S(trunc)(x / y)
#define LOGADDEXP(S, T)                                                                                \
    (x == y ? x + (T)0.69314718055994530942                                                            \
            : ABOVE(x, y) + m_log1p_##S(m_exp_##S(-C_##S(fabs)(x - y))))
#define LOGADDEXP2(S, T)                                                                               \
    (x == y ? x + (T)1                                                                                 \
            : ABOVE(x, y) + m_log1p_##S(m_exp2_##S(-C_##S(fabs)(x - y))) * (T)1.44269504088896340736)

#define PRELU(S, T) (x > 0 ? x : y * x)
/* p: beta or delta, and one over beta. A difference that is NaN is within. */
#define SMOOTH_L1(S, T)                                                                                \
    (C_##S(fabs)(x - y) >= P(0, T) ? C_##S(fabs)(x - y) - (T)0.5 * P(0, T)                             \
                                   : (x - y) * (x - y) * (T)0.5 * P(1, T))
#define HUBER(S, T)                                                                                    \
    (C_##S(fabs)(x - y) >= P(0, T) ? P(0, T) * (C_##S(fabs)(x - y) - (T)0.5 * P(0, T))                 \
                                   : (x - y) * (x - y) * (T)0.5)
#define SQUARE_ERROR(S, T) ((x - y) * (x - y))
/* z is the gradient of the loss of x and y, p[1] its factor. */
#define HUBER_GRADIENT(S, T) (BELOW(P(0, T), ABOVE(-P(0, T), x - y)) * (z * P(1, T)))

LINKED_1(frac, FRAC)
LINKED_1(round, ROUND)
LINKED_1(nan_to_num, NAN_TO_NUM)
LINKED_1(clamp_numbers, CLAMP_NUMBERS)
FUSED_1(logit, LOGIT)
LINKED_1(softshrink, SOFTSHRINK)
LINKED_1(hardshrink, HARDSHRINK)
FUSED_1(sinc, SINC)
FUSED_1(entr, ENTR)
FUSED_1(ndtr, NDTR)
FUSED_1(i0, I0)
FUSED_1(i0e, I0E)
FUSED_1(i1, I1)
FUSED_1(i1e, I1E)
FUSED_1(digamma, DIGAMMA)
FUSED_1(trigamma, TRIGAMMA)
FUSED_1(erfcx, ERFCX)
FUSED_1(log_ndtr, LOG_NDTR)
FUSED_1(ndtri, NDTRI)
FUSED_TRUTH(isinf, ISINF)
FUSED_TRUTH(isfinite, ISFINITE)
LINKED_2(add_scaled, ADD_SCALED)
LINKED_2(prelu, PRELU)
LINKED_2(smooth_l1, SMOOTH_L1)
LINKED_2(huber, HUBER)
LINKED_2(square_error, SQUARE_ERROR)
LINKED_2(lerp, LERP)
FUSED_2(hypot, HYPOT)
SHORT_2(trunc_divide, TRUNC_DIVIDE)
FUSED_2(logaddexp, LOGADDEXP)
FUSED_2(logaddexp2, LOGADDEXP2)
SHORT_2(xlogy, XLOGY)
SHORT_2(xlog1py, XLOG1PY)
LINKED_2(shrink_gradient, SHRINK_GRADIENT)
LINKED_2(gated, GATED)
LINKED_2(clamp_gradient, CLAMP_GRADIENT)
FUSED_2(logit_gradient, LOGIT_GRADIENT)
LINKED_3(lerp_tensor, LERP_TENSOR)
LINKED_3(huber_gradient, HUBER_GRADIENT)
LINKED_3(addcmul, ADDCMUL)
LINKED_3(addcdiv, ADDCDIV)
LINKED_3(clamp_tensors, CLAMP_TENSORS)
FUSED_3(gated_backward, GATED_GRADIENT)

/* Of complex numbers: the real and imaginary part of a number by which is multiplied. */
#define COMPLEX_SUMS(C, T)                                                                             \
    BINARY_LOOP(add_scaled_##C, T _Complex, T _Complex, x + COMPLEX_PRODUCT(COMPLEX_NUMBER(T), y))     \
    TERNARY_LOOP(addcmul_##C, T _Complex, x + COMPLEX_PRODUCT(COMPLEX_PRODUCT(COMPLEX_NUMBER(T), y), z)) \
    BINARY_LOOP(lerp_##C, T _Complex, T _Complex, (p[2] != 0 ? x : y) + COMPLEX_PRODUCT(COMPLEX_NUMBER(T), y - x)) \
    TERNARY_LOOP(lerp_tensor_##C, T _Complex,                                                          \
                 (IS_NEAR(T, z) ? x : y) + COMPLEX_PRODUCT(IS_NEAR(T, z) ? z : z - 1, y - x))
#define IS_NEAR(T, z) (RE(z) * RE(z) + IM(z) * IM(z) < (T)0.25)
#define COMPLEX_NUMBER(T) __builtin_complex((T)p[0], (T)p[1])
COMPLEX_SUMS(C64, float)
COMPLEX_SUMS(C128, double)

/* In double, which float's need not be told from. Two infinities have no difference, and nan would vanish beside one. */
static double _Complex logaddexp_complex(double _Complex x, double _Complex y) {
    const int first = creal(x) >= creal(y);
    const double _Complex high = first ? x : y, low = first ? y : x;
    if (x != x || y != y) return __builtin_complex((double)NAN, (double)NAN);
    if (creal(high) != creal(low) || !isinf(creal(high))) return high + clog(cexp(low - high) + 1);
    return creal(high) < 0 ? low : clog(cexp(low) + cexp(high));
}
BINARY_LOOP(logaddexp_C64, float _Complex, float _Complex, (float _Complex)logaddexp_complex(x, y))
BINARY_LOOP(logaddexp_C128, double _Complex, double _Complex, logaddexp_complex(x, y))

/* Of integers. As numbers the bounds are those that double and T have. */
#define WHOLE_BOUNDS(S, T)                                                                             \
    TERNARY_LOOP(clamp_tensors_##S, T, BELOW(z, ABOVE(y, x)))                                          \
    UNARY_LOOP(clamp_numbers_##S, T, T, BELOW(P(1, T), ABOVE(P(0, T), x)))
TP_INTEGERS(WHOLE_BOUNDS)

#define ENTRIES(name, arrays, grain, truth)                                                            \
    [TP_FUSED_##name] = {[TP_F32] = name##_F32, [TP_F64] = name##_F64, [TP_F16] = name##_F16,           \
                         [TP_BF16] = name##_BF16},
#define WHOLE_ENTRY(S, T)                                                                              \
    [TP_FUSED_clamp_tensors][TP_##S] = clamp_tensors_##S,                                              \
    [TP_FUSED_clamp_numbers][TP_##S] = clamp_numbers_##S,
#define COMPLEX_ENTRIES(name) [TP_FUSED_##name][TP_C64] = name##_C64, [TP_FUSED_##name][TP_C128] = name##_C128,
const tp_fused LEVEL(tp_fused_table) = {
    .loops = {TP_FUSED(ENTRIES) TP_INTEGERS(WHOLE_ENTRY) COMPLEX_ENTRIES(add_scaled) COMPLEX_ENTRIES(addcmul)
              COMPLEX_ENTRIES(logaddexp) COMPLEX_ENTRIES(lerp) COMPLEX_ENTRIES(lerp_tensor)}};

const tp_links LEVEL(tp_fused_links) = {{
    LINKED(frac) LINKED(round) LINKED(nan_to_num) LINKED(clamp_numbers) LINKED(softshrink) LINKED(hardshrink)
    LINKED(add_scaled) LINKED(prelu) LINKED(smooth_l1) LINKED(huber) LINKED(square_error) LINKED(lerp)
    LINKED(shrink_gradient) LINKED(gated) LINKED(clamp_gradient) LINKED(lerp_tensor)
    LINKED(huber_gradient) LINKED(addcmul) LINKED(addcdiv) LINKED(clamp_tensors)
}};
