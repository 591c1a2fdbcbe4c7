/* The loops of pointwise ops, written once as expressions of x and y. */
#include "pointwise.h"

#include <math.h>
#include <string.h>

#include "complex_product.h"
#include "loops.h"
#include "pointwise_links.h"
#include "special.h"

/* --- ops --------------------------------------------------------------------------------------------- */

#define HALVES(name, inputs)                                                                           \
    HALF_LOOP(name##_F16, inputs, F16, name##_F32, TO_HALF)                                            \
    HALF_LOOP(name##_BF16, inputs, BF16, name##_F32, TO_HALF)
#define UNARY_FLOAT(name, expression32, expression64)                                                  \
    LONG_UNARY(name##_F32, float, expression32) LONG_UNARY(name##_F64, double, expression64) HALVES(name, 1)
#define BINARY_LONG(name, expression32, expression64)                                                  \
    LONG_BINARY(name##_F32, float, expression32) LONG_BINARY(name##_F64, double, expression64) HALVES(name, 2)
#define BINARY_SHORT(name, expression32, expression64)                                                 \
    BINARY_LOOP(name##_F32, float, float, expression32)                                                \
    BINARY_LOOP(name##_F64, double, double, expression64)                                              \
    SHORT_F16(name##_F16, 2, name##_F32, expression32) SHORT_BF16(name##_BF16, 2, name##_F32, expression32)
/* With links for chains: what is not many times a load and a store. */
#define UNARY_LONG(name, expression32, expression64)                                                   \
    UNARY_FLOAT(name, expression32, expression64) LINKS(name, LINK_OF_ONE, expression32, expression64)
#define UNARY_SHORT(name, expression32, expression64)                                                  \
    UNARY_LOOP(name##_F32, float, float, expression32)                                                 \
    UNARY_LOOP(name##_F64, double, double, expression64)                                               \
    SHORT_F16(name##_F16, 1, name##_F32, expression32)                                                 \
    SHORT_BF16(name##_BF16, 1, name##_F32, expression32) LINKS(name, LINK_OF_ONE, expression32, expression64)
#define BINARY_LINKED(name, expression)                                                                \
    BINARY_SHORT(name, expression, expression) LINKS(name, LINK_OF_TWO, expression, expression)        \
    LINKS_TURNED(name, expression)
/* What concerns the sign alone, which is the same bit in both sorts of half precision. */
#define UNARY_SIGN(name, expression32, expression64, bits)                                             \
    UNARY_LOOP(name##_F32, float, float, expression32)                                                 \
    UNARY_LOOP(name##_F64, double, double, expression64)                                               \
    UNARY_LOOP(name##_F16, uint16_t, uint16_t, bits)                                                   \
    UNARY_LOOP(name##_BF16, uint16_t, uint16_t, bits)                                                  \
    LINKS(name, LINK_OF_ONE, expression32, expression64)
#define COMPARE_FLOAT(name, expression)                                                                \
    BINARY_LOOP(name##_F32, float, uint8_t, expression)                                                \
    BINARY_LOOP(name##_F64, double, uint8_t, expression)                                               \
    HALF_LOOP(name##_F16, 2, F16, name##_F32, TO_BOOL)                                                 \
    HALF_LOOP(name##_BF16, 2, BF16, name##_F32, TO_BOOL)

#define INTEGER_UNARY(name, expression)                                                                \
    UNARY_LOOP(name##_I64, int64_t, int64_t, expression) UNARY_LOOP(name##_I32, int32_t, int32_t, expression) \
    UNARY_LOOP(name##_I16, int16_t, int16_t, expression) UNARY_LOOP(name##_I8, int8_t, int8_t, expression)    \
    UNARY_LOOP(name##_U8, uint8_t, uint8_t, expression)
/* Arithmetic wraps around: unsigned it is defined. */
#define WRAP(name, operator)                                                                           \
    BINARY_LOOP(name##_I64, int64_t, int64_t, (uint64_t)x operator (uint64_t)y)                        \
    BINARY_LOOP(name##_I32, int32_t, int32_t, (uint32_t)x operator (uint32_t)y)                        \
    BINARY_LOOP(name##_I16, int16_t, int16_t, (uint32_t)x operator (uint32_t)y)                        \
    BINARY_LOOP(name##_I8, int8_t, int8_t, (uint32_t)x operator (uint32_t)y)                           \
    BINARY_LOOP(name##_U8, uint8_t, uint8_t, (uint32_t)x operator (uint32_t)y)
#define INTEGER_BINARY(name, expression)                                                               \
    BINARY_LOOP(name##_I64, int64_t, int64_t, expression) BINARY_LOOP(name##_I32, int32_t, int32_t, expression) \
    BINARY_LOOP(name##_I16, int16_t, int16_t, expression) BINARY_LOOP(name##_I8, int8_t, int8_t, expression)    \
    BINARY_LOOP(name##_U8, uint8_t, uint8_t, expression)
#define INTEGER_COMPARE(name, expression)                                                              \
    BINARY_LOOP(name##_I64, int64_t, uint8_t, expression) BINARY_LOOP(name##_I32, int32_t, uint8_t, expression) \
    BINARY_LOOP(name##_I16, int16_t, uint8_t, expression) BINARY_LOOP(name##_I8, int8_t, uint8_t, expression)   \
    BINARY_LOOP(name##_U8, uint8_t, uint8_t, expression)

#define ARITHMETIC(name, operator) BINARY_LINKED(name, x operator y) WRAP(name, operator)
ARITHMETIC(add, +)
ARITHMETIC(sub, -)
ARITHMETIC(mul, *)
BINARY_LINKED(true_divide, x / y)

/* NaN wins. */
BINARY_LINKED(maximum, x >= y || x != x ? x : y)
BINARY_LINKED(minimum, x <= y || x != x ? x : y)
INTEGER_BINARY(maximum, x > y ? x : y)
INTEGER_BINARY(minimum, x < y ? x : y)

#define COMPARISON(name, operator)                                                                     \
    COMPARE_FLOAT(name, x operator y) INTEGER_COMPARE(name, x operator y)
COMPARISON(eq, ==)
COMPARISON(ne, !=)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)

BINARY_LOOP(copysign_F32, float, float, copysignf(x, y))
BINARY_LOOP(copysign_F64, double, double, copysign(x, y))
BINARY_LOOP(copysign_F16, uint16_t, uint16_t, (x & 0x7fff) | (y & 0x8000))
BINARY_LOOP(copysign_BF16, uint16_t, uint16_t, (x & 0x7fff) | (y & 0x8000))
LONG_BINARY(nextafter_F32, float, m_nextafter_F32(x, y))
LONG_BINARY(nextafter_F64, double, m_nextafter_F64(x, y))
BINARY_LOOP(nextafter_F16, uint16_t, uint16_t, nextafter_half(x, y, 0x7c00))
BINARY_LOOP(nextafter_BF16, uint16_t, uint16_t, nextafter_half(x, y, 0x7f80))

/* Exponents that need no logarithm. The square root of C has -0 and -infinity otherwise. */
#define POWERS(S, T, of_two)                                                                           \
    UNARY_LOOP(square_##S##_loop, T, T, x * x)                                                         \
    UNARY_LOOP(cube_##S##_loop, T, T, x * x * x)                                                       \
    UNARY_LOOP(root_##S##_loop, T, T, x == -(T)INFINITY ? (T)INFINITY : C_##S(sqrt)(x + 0))            \
    UNARY_LOOP(inverse_##S##_loop, T, T, 1 / x)                                                        \
    UNARY_LOOP(inverse_square_##S##_loop, T, T, 1 / (x * x))                                           \
    UNARY_LOOP(inverse_root_##S##_loop, T, T, x == -(T)INFINITY ? (T)0 : 1 / C_##S(sqrt)(x + 0))       \
    UNARY_LOOP(same_##S##_loop, T, T, x)                                                               \
    LONG_BINARY(any_power_##S, T, of_two)                                                              \
    static void pow_##S(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {       \
        static const struct { T exponent; tp_loop loop; } known[] = {                                  \
            {2, square_##S##_loop}, {3, cube_##S##_loop}, {(T)0.5, root_##S##_loop},                   \
            {-1, inverse_##S##_loop}, {-2, inverse_square_##S##_loop},                                 \
            {(T)-0.5, inverse_root_##S##_loop}, {1, same_##S##_loop}};                                 \
        const T exponent = n ? *(const T *)args[1] : 0; /* of no elements there may be no exponent */  \
        for (int k = 0; !s[1] && k < (int)(sizeof(known) / sizeof(known[0])); k++)                     \
            if (known[k].exponent == exponent) {                                                       \
                char *const ends[2] = {args[0], args[2]};                                              \
                const ptrdiff_t steps[2] = {s[0], s[2]};                                               \
                known[k].loop(ends, steps, n, p);                                                      \
                return;                                                                                \
            }                                                                                          \
        any_power_##S(args, s, n, p);                                                                  \
    }
POWERS(F32, float, m_power_F32(x, y))
POWERS(F64, double, m_power_F64(x, y))
HALVES(pow, 2)

BINARY_LONG(atan2, m_atan2_F32(x, y), m_atan2_F64(x, y))
#include "division.h"
#include "numeric_divisors.h"

#define BITWISE(name, operator)                                                                        \
    INTEGER_BINARY(name, x operator y) BINARY_LOOP(name##_BOOL, uint8_t, uint8_t, (x operator y) & 1)
BITWISE(bitwise_and, &)
BITWISE(bitwise_or, |)
BITWISE(bitwise_xor, ^)
INTEGER_UNARY(bitwise_not, ~x)

/* By as many bits as there are, or by a negative number, all are shifted out, and what is left is the sign. An
   arithmetic shift of 64 bits is scalar before AVX-512: shift the number or, of a negative one, its complement. */
#define BITS(T) (8 * sizeof(T))
#define SHIFTS(S, T, U, right)                                                                         \
    BINARY_LOOP(bitwise_left_shift_##S, T, T, (U)y < BITS(T) ? (U)((U)x << ((U)y & (BITS(T) - 1))) : 0) \
    BINARY_LOOP(bitwise_right_shift_##S, T, T, right)
#define SIGNED_SHIFTS(S, T, U) SHIFTS(S, T, U, (T)(x >> ((U)y < BITS(T) ? (U)y : BITS(T) - 1)))
SIGNED_SHIFTS(I32, int32_t, uint32_t)
SIGNED_SHIFTS(I16, int16_t, uint16_t)
SIGNED_SHIFTS(I8, int8_t, uint8_t)
SHIFTS(U8, uint8_t, uint8_t, (uint8_t)(y < 8 ? x >> y : 0))
INLINE int64_t right_shifted(int64_t x, int64_t y) {
    const uint64_t sign = x < 0 ? ~(uint64_t)0 : 0;
    const uint64_t bits = (uint64_t)x ^ sign;
    return (int64_t)(((uint64_t)y < 64 ? bits >> ((uint64_t)y & 63) : 0) ^ sign);
}
SHIFTS(I64, int64_t, uint64_t, right_shifted(x, y))
UNARY_LOOP(bitwise_not_BOOL, uint8_t, uint8_t, !x)

UNARY_SIGN(neg, -x, -x, x ^ 0x8000)
INTEGER_UNARY(neg, (uint64_t)0 - (uint64_t)x)
UNARY_SIGN(abs, fabsf(x), fabs(x), x & 0x7fff)
INTEGER_UNARY(abs, (int64_t)x < 0 ? (uint64_t)0 - (uint64_t)x : (uint64_t)x)
UNARY_SHORT(square, x * x, x * x)
INTEGER_UNARY(square, (uint64_t)x * (uint64_t)x)
TP_INTEGERS(WHOLE_POWERS)
UNARY_SHORT(sqrt, sqrtf(x), sqrt(x))
UNARY_SHORT(rsqrt, 1.0f / sqrtf(x), 1.0 / sqrt(x))
UNARY_LONG(exp, m_exp_F32(x), m_exp_F64(x))
UNARY_LONG(exp2, m_exp2_F32(x), m_exp2_F64(x))
UNARY_LONG(expm1, m_expm1_F32(x), m_expm1_F64(x))
UNARY_LONG(log, m_log_F32(x), m_log_F64(x))
/* The last bits of float, for which these need double, no half has. */
#define LOG_TO_BASE(name, factor)                                                                      \
    LONG_UNARY(name##_F32, float, m_##name##_F32(x)) LONG_UNARY(name##_F64, double, m_##name##_F64(x)) \
    LONG_UNARY(name##_coarse, float, m_log_F32(x) * factor)                                            \
    HALF_LOOP(name##_F16, 1, F16, name##_coarse, TO_HALF) HALF_LOOP(name##_BF16, 1, BF16, name##_coarse, TO_HALF)
LOG_TO_BASE(log2, 1.44269504f)
LOG_TO_BASE(log10, 0.434294482f)
UNARY_LONG(log1p, m_log1p_F32(x), m_log1p_F64(x))
UNARY_LONG(tanh, m_tanh_F32(x), m_tanh_F64(x))
UNARY_LONG(sigmoid, m_sigmoid_F32(x), m_sigmoid_F64(x))
UNARY_SHORT(relu, x < 0 ? 0 : x, x < 0 ? 0 : x)
INTEGER_UNARY(relu, x < 0 ? 0 : x)
UNARY_SHORT(floor, floorf(x), floor(x))
UNARY_SHORT(ceil, ceilf(x), ceil(x))
UNARY_SHORT(trunc, truncf(x), trunc(x))
UNARY_SHORT(rint, rintf(x), rint(x))
UNARY_SHORT(sign, (float)((x > 0) - (x < 0)), (double)((x > 0) - (x < 0)))
INTEGER_UNARY(sign, (x > 0) - (x < 0))
UNARY_FLOAT(angle, x < 0 ? 3.14159265f : x != x ? x : 0, x < 0 ? 3.14159265358979323846 : x != x ? x : 0)
UNARY_LONG(erf, m_erf_F32(x), m_erf_F64(x))
UNARY_FLOAT(erfc, m_erfc_F32(x), m_erfc_F64(x))
UNARY_FLOAT(erfinv, m_erfinv_F32(x), m_erfinv_F64(x))
LONG_UNARY(lgamma_F32, float, m_lgamma_F32(x))
LONG_UNARY(lgamma_plain_F64, double, m_lgamma_F64(x))
#include "special_gamma_zeros.h"
HALVES(lgamma, 1)
UNARY_FLOAT(asin, m_asin_F32(x), m_asin_F64(x))
UNARY_FLOAT(acos, m_acos_F32(x), m_acos_F64(x))
UNARY_FLOAT(atan, m_atan_F32(x), m_atan_F64(x))
UNARY_FLOAT(sinh, m_sinh_F32(x), m_sinh_F64(x))
UNARY_FLOAT(cosh, m_cosh_F32(x), m_cosh_F64(x))
UNARY_FLOAT(asinh, m_asinh_F32(x), asinh(x))
UNARY_FLOAT(acosh, m_acosh_F32(x), acosh(x))
UNARY_FLOAT(atanh, m_atanh_F32(x), m_atanh_F64(x))

#include "circular.h"

/* --- activations, and the products of a gradient x with their derivatives at y -------------------------- */

#define ACTIVATION(steps, name, expression)                                                            \
    INLINE float name##_of_F32(float x, const double *p) { (void)p; return expression(F32, float); }   \
    INLINE double name##_of_F64(double x, const double *p) { (void)p; return expression(F64, double); }\
    UNARY_##steps(name, name##_of_F32(x, p), name##_of_F64(x, p))
#define SLOPE(steps, name, expression)                                                                 \
    INLINE float name##_of_F32(float x, float y, const double *p) { (void)p; return expression(F32, float); }    \
    INLINE double name##_of_F64(double x, double y, const double *p) { (void)p; return expression(F64, double); }\
    BINARY_##steps(name, name##_of_F32(x, y, p), name##_of_F64(x, y, p))                               \
    LINKS(name, LINK_OF_TWO, name##_of_F32(x, y, p), name##_of_F64(x, y, p))
#define P(k, T) ((T)p[k])

#define LEAKY_RELU(S, T) (x > 0 ? x : x * P(0, T))
#define LEAKY_RELU_GRADIENT(S, T) (y > 0 ? x : x * P(0, T))
/* alpha, scale, input_scale */
#define ELU(S, T) (x > 0 ? x * P(1, T) : m_expm1_##S((x > 0 ? 0 : x) * P(2, T)) * (T)(p[0] * p[1]))
#define ELU_GRADIENT(S, T)                                                                             \
    (y > 0 ? x * P(1, T) : x * m_exp_##S((y > 0 ? 0 : y) * P(2, T)) * (T)(p[0] * p[1] * p[2]))
#define ROOT_HALF 0.70710678118654752440
/* The normal distribution's area up to x. Below 0 it keeps its bits, which 1 + erf loses. */
INLINE float normal_area_F32(float x, float density) {
    const float a = fabsf(x), tail = density * scaled_normal_tail_F32(a > 15.5f ? 15.5f : a);
    return x < 0.0f ? tail : 1.0f - tail;
}
INLINE double normal_area_F64(double x, double density) { (void)density; return 0.5 * quick_erfc_F64(x * -ROOT_HALF); }
/* Of float the far tail keeps no bits, without an exponential in two thirds of the time. */
#define GELU_F32 (x * 0.5f * (1.0f + m_coarse_erf_F32(x * (float)ROOT_HALF)))
#define GELU_F64 (x * normal_area_F64(x, 0.0))
#define GELU(S, T) GELU_##S
#define GELU_SLOPES(S, T)                                                                              \
    INLINE T gelu_slope_##S(T y) {                                                                     \
        const T density = m_exp_##S(y * y * (T)-0.5);                                                  \
        return normal_area_##S(y, density) + y * density * (T)0.39894228040143267794;                  \
    }
GELU_SLOPES(F32, float)
GELU_SLOPES(F64, double)
#define GELU_GRADIENT(S, T) (x * gelu_slope_##S(y))
#define ROOT_TWO_OVER_PI 0.79788456080286535588
#define GELU_INNER(S, T, x) ((T)ROOT_TWO_OVER_PI * (x + (T)0.044715 * x * x * x))
/* (1 + tanh(u)) / 2 is the logistic function of 2 u, which keeps its bits below 0. */
#define GELU_TANH(S, T) (x * m_sigmoid_##S(2 * GELU_INNER(S, T, x)))
#define SILU(S, T) (x * m_sigmoid_##S(x))
/* Computed beside x, not instead: in lanes that are not asked for a compiler may put what makes subnormal numbers. */
#define SOFTPLUS_UP_TO(S, T)                                                                           \
    INLINE T softplus_up_to_##S(T x, T beta, T threshold) {                                            \
        const T scaled = x * beta, inner = threshold < scaled ? threshold : scaled;                    \
        const T below = m_log1p_##S(m_exp_##S(inner)) / beta;                                          \
        return scaled > threshold ? x : below;                                                         \
    }
SOFTPLUS_UP_TO(F32, float)
SOFTPLUS_UP_TO(F64, double)
#define SOFTPLUS(S, T) softplus_up_to_##S(x, P(0, T), P(1, T))
#define SOFTPLUS_GRADIENT(S, T) (y * P(0, T) > P(1, T) ? x : x * m_sigmoid_##S(y * P(0, T)))
#define LOG_SIGMOID(S, T) ((x > 0 ? (T)0 : x) - m_log1p_##S(m_exp_##S(-C_##S(fabs)(x))))
#define LOG_SIGMOID_GRADIENT(S, T) (x * m_sigmoid_##S(-y))
/* From 20 on the hyperbolic tangent is 1. */
#define MISH(S, T) (x * m_tanh_##S(m_log1p_##S(m_exp_##S(20 < x ? (T)20 : x))))
#define HARDTANH(S, T) (x < P(0, T) ? P(0, T) : x > P(1, T) ? P(1, T) : x)
#define HARDTANH_GRADIENT(S, T) (y > P(0, T) && y < P(1, T) ? x : (T)0)
#define SIXTH(T, x) ((x) < 0 ? (T)0 : (x) > 6 ? (T)6 : (x))
#define HARDSIGMOID(S, T) (SIXTH(T, x + 3) / 6)
#define HARDSIGMOID_GRADIENT(S, T) (y > -3 && y < 3 ? x * (T)(1.0 / 6) : (T)0)
#define HARDSWISH(S, T) (x * SIXTH(T, x + 3) / 6)
#define HARDSWISH_GRADIENT(S, T) (y <= -3 ? (T)0 : y < 3 ? x * (y / 3 + (T)0.5) : x)
#define THRESHOLD(S, T) (x <= P(0, T) ? P(1, T) : x)
#define THRESHOLD_GRADIENT(S, T) (y <= P(0, T) ? (T)0 : x)
#define RELU_GRADIENT(S, T) (y <= 0 ? (T)0 : x)
#define SIGMOID_GRADIENT(S, T) (x * (y * ((T)1 - y)))
#define TANH_GRADIENT(S, T) (x * ((T)1 - y * y))

ACTIVATION(SHORT, leaky_relu, LEAKY_RELU)
ACTIVATION(LONG, elu, ELU)
ACTIVATION(LONG, gelu, GELU)
ACTIVATION(LONG, gelu_tanh, GELU_TANH)
ACTIVATION(LONG, silu, SILU)
ACTIVATION(LONG, softplus, SOFTPLUS)
ACTIVATION(LONG, log_sigmoid, LOG_SIGMOID)
ACTIVATION(LONG, mish, MISH)
ACTIVATION(SHORT, hardtanh, HARDTANH)
ACTIVATION(SHORT, hardsigmoid, HARDSIGMOID)
ACTIVATION(SHORT, hardswish, HARDSWISH)
ACTIVATION(SHORT, threshold, THRESHOLD)
#define WHOLE_ACTIVATIONS(S, T)                                                                        \
    UNARY_LOOP(hardtanh_##S, T, T, HARDTANH(S, T)) UNARY_LOOP(threshold_##S, T, T, THRESHOLD(S, T))
TP_INTEGERS(WHOLE_ACTIVATIONS)
SLOPE(SHORT, relu_gradient, RELU_GRADIENT)
SLOPE(SHORT, sigmoid_backward, SIGMOID_GRADIENT)
SLOPE(SHORT, tanh_backward, TANH_GRADIENT)
SLOPE(SHORT, leaky_relu_gradient, LEAKY_RELU_GRADIENT)
SLOPE(LONG, elu_gradient, ELU_GRADIENT)
SLOPE(LONG, gelu_gradient, GELU_GRADIENT)
SLOPE(LONG, softplus_gradient, SOFTPLUS_GRADIENT)
SLOPE(LONG, log_sigmoid_gradient, LOG_SIGMOID_GRADIENT)
SLOPE(SHORT, hardtanh_gradient, HARDTANH_GRADIENT)
SLOPE(SHORT, hardsigmoid_gradient, HARDSIGMOID_GRADIENT)
SLOPE(SHORT, hardswish_gradient, HARDSWISH_GRADIENT)
SLOPE(SHORT, threshold_backward, THRESHOLD_GRADIENT)

#define LONGER_SLOPES(S, T)                                                                            \
    INLINE T silu_gradient_of_##S(T x, T y) {                                                          \
        const T s = m_sigmoid_##S(y);                                                                    \
        return x * (s * ((T)1 + y * ((T)1 - s)));                                                      \
    }                                                                                                  \
    INLINE T gelu_tanh_backward_of_##S(T x, T y) {                                                     \
        const T area = m_sigmoid_##S(2 * GELU_INNER(S, T, y));                                         \
        const T inner = (T)ROOT_TWO_OVER_PI * ((T)1 + (T)(3 * 0.044715) * y * y);                      \
        return x * (area + 2 * y * area * ((T)1 - area) * inner);                                      \
    }                                                                                                  \
    INLINE T mish_backward_of_##S(T x, T y) {                                                          \
        const T t = m_tanh_##S(y > 20 ? y : m_log1p_##S(m_exp_##S(y > 20 ? (T)20 : y)));                     \
        return x * (t + y * ((T)1 - t * t) * m_sigmoid_##S(y));                                          \
    }
LONGER_SLOPES(F32, float)
LONGER_SLOPES(F64, double)
BINARY_LONG(silu_gradient, silu_gradient_of_F32(x, y), silu_gradient_of_F64(x, y))
BINARY_LONG(gelu_tanh_backward, gelu_tanh_backward_of_F32(x, y), gelu_tanh_backward_of_F64(x, y))
BINARY_LONG(mish_backward, mish_backward_of_F32(x, y), mish_backward_of_F64(x, y))

/* --- selection and copies ------------------------------------------------------------------------------ */

#define CHOOSE_LOOP(T)                                                                                 \
    static void choose_##T(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {      \
        (void)p;                                                                                       \
        const uint8_t *c = (const uint8_t *)args[0];                                                   \
        const T *a = (const T *)args[1], *b = (const T *)args[2];                                      \
        T *o = (T *)args[3];                                                                           \
        if (s[0] == 1 && s[3] == sizeof(T) && s[1] == sizeof(T) && s[2] == sizeof(T)) {                \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {                                            \
                const T x = a[i], y = b[i];                                                            \
                o[i] = c[i] ? x : y;                                                                   \
            }                                                                                          \
        } else if (s[0] == 1 && s[3] == sizeof(T) && s[1] == sizeof(T) && !s[2]) {                     \
            const T y = *b;                                                                            \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) { const T x = a[i]; o[i] = c[i] ? x : y; }   \
        } else if (s[0] == 1 && s[3] == sizeof(T) && !s[1] && s[2] == sizeof(T)) {                     \
            const T x = *a;                                                                            \
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) { const T y = b[i]; o[i] = c[i] ? x : y; }   \
        } else {                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++)                                                          \
                TO(T, args[3], i, s[3]) = AT(uint8_t, args[0], i, s[0]) ? AT(T, args[1], i, s[1])      \
                                                                        : AT(T, args[2], i, s[2]);     \
        }                                                                                              \
    }
CHOOSE_LOOP(uint8_t)
CHOOSE_LOOP(uint16_t)
CHOOSE_LOOP(uint32_t)
CHOOSE_LOOP(uint64_t)

#define CLONE_LOOP(T)                                                                                  \
    UNARY_LOOP(clone_any_##T, T, T, x)                                                                 \
    static void clone_##T(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {       \
        if (s[0] == sizeof(T) && s[1] == sizeof(T)) memmove(args[1], args[0], (size_t)n * sizeof(T));  \
        else clone_any_##T(args, s, n, p);                                                             \
    }
CLONE_LOOP(uint8_t)
CLONE_LOOP(uint16_t)
CLONE_LOOP(uint32_t)
CLONE_LOOP(uint64_t)

/* A complex number of doubles. */
typedef struct { uint64_t real, imaginary; } two_words;
CHOOSE_LOOP(two_words)
CLONE_LOOP(two_words)

#include "complex_loops.h"

/* From each type to each other. A float out of the range of integers is as undefined here as in C. */
#define CASTS_TO(R, type)                                                                              \
    UNARY_LOOP(cast_F32_##R, float, type, x) UNARY_LOOP(cast_F64_##R, double, type, x)                 \
    UNARY_LOOP(cast_I64_##R, int64_t, type, x) UNARY_LOOP(cast_I32_##R, int32_t, type, x)              \
    UNARY_LOOP(cast_I16_##R, int16_t, type, x) UNARY_LOOP(cast_I8_##R, int8_t, type, x)                \
    UNARY_LOOP(cast_U8_##R, uint8_t, type, x) UNARY_LOOP(cast_BOOL_##R, uint8_t, type, x)              \
    UNARY_LOOP(cast_F16_##R##_any, uint16_t, type, wide_F16(x)) UNARY_LOOP(cast_BF16_##R, uint16_t, type, wide_BF16(x)) \
    UNARY_LOOP(cast_C64_##R, complex_C64, type, x) UNARY_LOOP(cast_C128_##R, complex_C128, type, x)
CASTS_TO(F32, float)
CASTS_TO(F64, double)
CASTS_TO(I64, int64_t)
CASTS_TO(I32, int32_t)
CASTS_TO(I16, int16_t)
CASTS_TO(I8, int8_t)
CASTS_TO(U8, uint8_t)
CASTS_TO(C64, complex_C64)
CASTS_TO(C128, complex_C128)
#define TRUTHS(S, T, R) UNARY_LOOP(cast_##S##_BOOL, T, uint8_t, x != 0)
TRUTHS(F32, float, 0) TRUTHS(F64, double, 0) TRUTHS(I64, int64_t, 0) TRUTHS(I32, int32_t, 0)
TRUTHS(I16, int16_t, 0) TRUTHS(I8, int8_t, 0) TRUTHS(U8, uint8_t, 0) TRUTHS(C64, complex_C64, 0)
TRUTHS(C128, complex_C128, 0)
UNARY_LOOP(cast_F16_BOOL, uint16_t, uint8_t, (x & 0x7fff) != 0)
UNARY_LOOP(cast_BF16_BOOL, uint16_t, uint8_t, (x & 0x7fff) != 0)
UNARY_LOOP(cast_F32_F16_any, float, uint16_t, narrow_F16(x))
UNARY_LOOP(cast_F32_BF16_any, float, uint16_t, narrow_BF16(x))
#define RUNS(name, run, type, other)                                                             \
    static void name(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {            \
        if (s[0] == sizeof(type) && s[1] == sizeof(other)) run((other *)args[1], (const type *)args[0], n); \
        else name##_any(args, s, n, p);                                                                \
    }
RUNS(cast_F16_F32, widen_F16, uint16_t, float)
RUNS(cast_F32_F16, narrow_run_F16, float, uint16_t)
RUNS(cast_F32_BF16, narrow_run_BF16, float, uint16_t)
UNARY_LOOP(cast_BF16_F16, uint16_t, uint16_t, narrow_F16(wide_BF16(x)))
UNARY_LOOP(cast_F16_BF16, uint16_t, uint16_t, narrow_BF16(wide_F16(x)))
/* By way of float, as ml_dtypes converts them. */
UNARY_LOOP(cast_F64_BF16, double, uint16_t, narrow_BF16((float)x))
UNARY_LOOP(cast_I64_BF16, int64_t, uint16_t, narrow_BF16((float)x))
UNARY_LOOP(cast_I32_BF16, int32_t, uint16_t, narrow_BF16((float)x))
UNARY_LOOP(cast_U8_BF16, uint8_t, uint16_t, narrow_BF16((float)x))

/* Rounded to odd, a float keeps what the rounding to half has to know of a double (Boldo and Melquiond, "Emulation of
   FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008). */
static inline float odd_float(double x) {
    const float nearest = (float)x;
    union { float f; uint32_t u; } b = {.f = nearest};
    const uint32_t down = b.u - (fabs((double)nearest) > fabs(x));
    const int is_exact = (double)nearest == x || x != x;
    b.u = is_exact ? b.u : down | 1;
    return b.f;
}
static void cast_F64_F16(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {
    float block[BLOCK];
    (void)p;
    for (ptrdiff_t start = 0; start < n; start += BLOCK) {
        const ptrdiff_t count = n - start < BLOCK ? n - start : BLOCK;
        const char *from = args[0] + start * s[0];
        if (s[0] == sizeof(double))
            for (ptrdiff_t i = 0; i < count; i++) block[i] = odd_float(((const double *)from)[i]);
        else
            for (ptrdiff_t i = 0; i < count; i++) block[i] = odd_float(AT(double, from, i, s[0]));
        store_F16(args[1] + start * s[1], s[1], block, count);
    }
}

/* --- the table ------------------------------------------------------------------------------------------ */

#define ENTRY(name, S) [TP_##S] = name##_##S
#define FLOATING(name) ENTRY(name, F32), ENTRY(name, F64), ENTRY(name, F16), ENTRY(name, BF16)
#define INTEGRAL(name) ENTRY(name, I64), ENTRY(name, I32), ENTRY(name, I16), ENTRY(name, I8), ENTRY(name, U8)
#define REAL(name) FLOATING(name), INTEGRAL(name)
#define TRUE_BYTES(name) [TP_BOOL] = name##_U8
#define BY_SIZE(name)                                                                                  \
    [TP_F32] = name##_uint32_t, [TP_F64] = name##_uint64_t, [TP_I64] = name##_uint64_t,                \
    [TP_I32] = name##_uint32_t, [TP_I16] = name##_uint16_t, [TP_I8] = name##_uint8_t,                  \
    [TP_U8] = name##_uint8_t, [TP_BOOL] = name##_uint8_t, [TP_F16] = name##_uint16_t,                  \
    [TP_BF16] = name##_uint16_t, [TP_C64] = name##_uint64_t, [TP_C128] = name##_two_words
#define COMPLEX(name) ENTRY(name, C64), ENTRY(name, C128)
#define B(name, ...) [TP_OP_##name] = {__VA_ARGS__}
#define cast_F16_F64 cast_F16_F64_any
#define cast_F16_I64 cast_F16_I64_any
#define cast_F16_I32 cast_F16_I32_any
#define cast_F16_I16 cast_F16_I16_any
#define cast_F16_I8 cast_F16_I8_any
#define cast_F16_U8 cast_F16_U8_any
#define cast_F16_C64 cast_F16_C64_any
#define cast_F16_C128 cast_F16_C128_any
#define CAST_ROW(S)                                                                                    \
    [TP_##S] = {[TP_F32] = cast_##S##_F32, [TP_F64] = cast_##S##_F64, [TP_I64] = cast_##S##_I64,       \
                [TP_I32] = cast_##S##_I32, [TP_I16] = cast_##S##_I16, [TP_I8] = cast_##S##_I8,         \
                [TP_U8] = cast_##S##_U8, [TP_BOOL] = cast_##S##_BOOL,      \
                [TP_C64] = cast_##S##_C64, [TP_C128] = cast_##S##_C128 CAST_MORE_##S}
#define CAST_MORE_F32 , [TP_F16] = cast_F32_F16, [TP_BF16] = cast_F32_BF16
#define CAST_MORE_F64 , [TP_F16] = cast_F64_F16, [TP_BF16] = cast_F64_BF16
#define CAST_MORE_I64 , [TP_BF16] = cast_I64_BF16
#define CAST_MORE_I32 , [TP_BF16] = cast_I32_BF16
#define CAST_MORE_I16
#define CAST_MORE_I8
#define CAST_MORE_U8 , [TP_BF16] = cast_U8_BF16
#define CAST_MORE_F16 , [TP_BF16] = cast_F16_BF16
#define CAST_MORE_BF16 , [TP_F16] = cast_BF16_F16
#define CAST_MORE_C64
#define CAST_MORE_C128

const tp_pointwise LEVEL(tp_pointwise_table) = {
    .binary = {
        B(add, REAL(add), COMPLEX(add)), B(sub, REAL(sub), COMPLEX(sub)), B(mul, REAL(mul), COMPLEX(mul)), B(true_divide, FLOATING(true_divide), COMPLEX(true_divide)),
        B(maximum, REAL(maximum), TRUE_BYTES(maximum)), B(minimum, REAL(minimum), TRUE_BYTES(minimum)),
        B(clamp_min, REAL(maximum)), B(clamp_max, REAL(minimum)),
        B(eq, REAL(eq), TRUE_BYTES(eq), COMPLEX(eq)), B(ne, REAL(ne), TRUE_BYTES(ne), COMPLEX(ne)), B(lt, REAL(lt)), B(le, REAL(le)),
        B(gt, REAL(gt)), B(ge, REAL(ge)), B(copysign, FLOATING(copysign)), B(nextafter, FLOATING(nextafter)), B(pow, REAL(pow)),
        B(atan2, FLOATING(atan2)), B(fmod, REAL(fmod)), B(remainder, REAL(remainder)),
        B(floor_divide, REAL(floor_divide)), B(gcd, INTEGRAL(gcd)), B(lcm, INTEGRAL(lcm)),
        B(bitwise_and, INTEGRAL(bitwise_and), ENTRY(bitwise_and, BOOL)),
        B(bitwise_or, INTEGRAL(bitwise_or), ENTRY(bitwise_or, BOOL)),
        B(bitwise_xor, INTEGRAL(bitwise_xor), ENTRY(bitwise_xor, BOOL)),
        B(bitwise_left_shift, INTEGRAL(bitwise_left_shift)), B(bitwise_right_shift, INTEGRAL(bitwise_right_shift)),
        B(relu_gradient, FLOATING(relu_gradient)), B(sigmoid_backward, FLOATING(sigmoid_backward)),
        B(tanh_backward, FLOATING(tanh_backward)), B(silu_gradient, FLOATING(silu_gradient)),
        B(gelu_gradient, FLOATING(gelu_gradient)), B(gelu_tanh_backward, FLOATING(gelu_tanh_backward)),
        B(leaky_relu_gradient, FLOATING(leaky_relu_gradient)), B(elu_gradient, FLOATING(elu_gradient)),
        B(softplus_gradient, FLOATING(softplus_gradient)),
        B(log_sigmoid_gradient, FLOATING(log_sigmoid_gradient)),
        B(hardtanh_gradient, FLOATING(hardtanh_gradient)),
        B(hardsigmoid_gradient, FLOATING(hardsigmoid_gradient)),
        B(hardswish_gradient, FLOATING(hardswish_gradient)),
        B(threshold_backward, FLOATING(threshold_backward)), B(mish_backward, FLOATING(mish_backward)),
    },
    .unary = {
        B(neg, FLOATING(neg), ENTRY(neg, I64), ENTRY(neg, I32), ENTRY(neg, I16), ENTRY(neg, I8), ENTRY(neg, U8), COMPLEX(neg)),
        B(abs, REAL(abs)), B(square, REAL(square), COMPLEX(square)), B(sqrt, FLOATING(sqrt)), B(rsqrt, FLOATING(rsqrt)),
        B(exp, FLOATING(exp)), B(exp2, FLOATING(exp2)), B(expm1, FLOATING(expm1)), B(log, FLOATING(log)),
        B(log2, FLOATING(log2)), B(log10, FLOATING(log10)), B(log1p, FLOATING(log1p)),
        B(sin, FLOATING(sin_loop)), B(cos, FLOATING(cos_loop)), B(tan, FLOATING(tan_loop)),
        B(tanh, FLOATING(tanh)), B(sigmoid, FLOATING(sigmoid)), B(relu, REAL(relu)),
        B(floor, FLOATING(floor)), B(ceil, FLOATING(ceil)), B(trunc, FLOATING(trunc)),
        B(rint, FLOATING(rint)), B(sign, REAL(sign)), B(angle, FLOATING(angle)), B(erf, FLOATING(erf)), B(erfc, FLOATING(erfc)),
        B(erfinv, FLOATING(erfinv)), B(lgamma, FLOATING(lgamma)),
        B(asin, FLOATING(asin)), B(acos, FLOATING(acos)), B(atan, FLOATING(atan)), B(sinh, FLOATING(sinh)),
        B(cosh, FLOATING(cosh)), B(asinh, FLOATING(asinh)), B(acosh, FLOATING(acosh)),
        B(atanh, FLOATING(atanh)), B(bitwise_not, INTEGRAL(bitwise_not), ENTRY(bitwise_not, BOOL)),
        B(clone, BY_SIZE(clone)),
        B(leaky_relu, FLOATING(leaky_relu)), B(elu, FLOATING(elu)), B(gelu, FLOATING(gelu)),
        B(gelu_tanh, FLOATING(gelu_tanh)), B(silu, FLOATING(silu)), B(softplus, FLOATING(softplus)),
        B(log_sigmoid, FLOATING(log_sigmoid)), B(mish, FLOATING(mish)), B(hardtanh, REAL(hardtanh)),
        B(hardsigmoid, FLOATING(hardsigmoid)), B(hardswish, FLOATING(hardswish)),
        B(threshold, REAL(threshold)),
    },
    .choose = {BY_SIZE(choose)},
    .cast = {
        CAST_ROW(F32), CAST_ROW(F64), CAST_ROW(I64), CAST_ROW(I32), CAST_ROW(I16), CAST_ROW(I8),
        CAST_ROW(U8), CAST_ROW(F16), CAST_ROW(BF16), CAST_ROW(C64), CAST_ROW(C128),
        [TP_BOOL] = {[TP_F32] = cast_BOOL_F32, [TP_F64] = cast_BOOL_F64, [TP_I64] = cast_BOOL_I64,
                     [TP_I32] = cast_BOOL_I32, [TP_BF16] = cast_U8_BF16, [TP_C64] = cast_BOOL_C64,
                     [TP_C128] = cast_BOOL_C128},
    },
};

const tp_links LEVEL(tp_pointwise_links) = {{
    LINKED_BOTH_WAYS(add) LINKED_BOTH_WAYS(sub) LINKED_BOTH_WAYS(mul) LINKED_BOTH_WAYS(true_divide)
    LINKED_BOTH_WAYS(maximum) LINKED_BOTH_WAYS(minimum)
    LINKED(neg) LINKED(square) LINKED(relu) LINKED(abs) LINKED(sqrt) LINKED(rsqrt) LINKED(exp)
    LINKED(exp2) LINKED(expm1) LINKED(log) LINKED(log1p) LINKED(tanh) LINKED(sigmoid) LINKED(floor)
    LINKED(ceil) LINKED(trunc) LINKED(rint) LINKED(sign) LINKED(erf) LINKED(leaky_relu) LINKED(elu)
    LINKED(gelu) LINKED(gelu_tanh) LINKED(silu) LINKED(softplus) LINKED(log_sigmoid) LINKED(mish)
    LINKED(hardtanh) LINKED(hardsigmoid) LINKED(hardswish) LINKED(threshold) LINKED(relu_gradient)
    LINKED(sigmoid_backward) LINKED(tanh_backward) LINKED(leaky_relu_gradient) LINKED(elu_gradient)
    LINKED(gelu_gradient) LINKED(softplus_gradient) LINKED(log_sigmoid_gradient)
    LINKED(hardtanh_gradient) LINKED(hardsigmoid_gradient) LINKED(hardswish_gradient)
    LINKED(threshold_backward)
}};
