/* Loops of pointwise ops: `args` are the inputs and then the output, with their strides in bytes. */
#ifndef TENSORPLUG_POINTWISE_H
#define TENSORPLUG_POINTWISE_H

#include "level.h"
#include "types.h"

typedef void (*tp_loop)(char *const *args, const ptrdiff_t *strides, ptrdiff_t n, const double *parameters);

/* name, and how many elements are worth a thread (in thousands): what is bound by memory takes more. */
#define TP_BINARY(X)                                                                                   \
    X(add, 32) X(sub, 32) X(mul, 32) X(true_divide, 32) X(maximum, 32) X(minimum, 32)                  \
    X(clamp_min, 32) X(clamp_max, 32) X(eq, 32) X(ne, 32) X(lt, 32) X(le, 32) X(gt, 32) X(ge, 32)      \
    X(copysign, 32) X(nextafter, 32) X(pow, 8) X(atan2, 16) X(fmod, 16) X(remainder, 16) X(floor_divide, 16) X(gcd, 4) X(lcm, 4) \
    X(bitwise_and, 32) X(bitwise_or, 32) X(bitwise_xor, 32)                                            \
    X(bitwise_left_shift, 32) X(bitwise_right_shift, 32)                                               \
    X(relu_gradient, 32) X(sigmoid_backward, 32) X(tanh_backward, 32) X(silu_gradient, 16)              \
    X(gelu_gradient, 16) X(gelu_tanh_backward, 16) X(leaky_relu_gradient, 32) X(elu_gradient, 16)         \
    X(softplus_gradient, 16) X(log_sigmoid_gradient, 16) X(hardtanh_gradient, 32)                        \
    X(hardsigmoid_gradient, 32) X(hardswish_gradient, 32) X(threshold_backward, 32)                    \
    X(mish_backward, 16)

#define TP_UNARY(X)                                                                                    \
    X(neg, 32) X(abs, 32) X(square, 32) X(sqrt, 32) X(rsqrt, 32) X(exp, 16) X(exp2, 16) X(expm1, 16)      \
    X(log, 16) X(log2, 16) X(log10, 16) X(log1p, 16) X(sin, 16) X(cos, 16) X(tan, 16) X(tanh, 16)              \
    X(sigmoid, 16) X(relu, 32) X(floor, 32) X(ceil, 32) X(trunc, 32) X(rint, 32) X(sign, 32) X(angle, 32) \
    X(erf, 16) X(erfc, 16) X(erfinv, 8) X(lgamma, 8) X(asin, 16) X(acos, 16) X(atan, 16) X(sinh, 16) X(cosh, 16) X(asinh, 16)            \
    X(acosh, 16) X(atanh, 16) X(bitwise_not, 32) X(clone, 32)                                            \
    X(leaky_relu, 32) X(elu, 16) X(gelu, 16) X(gelu_tanh, 16) X(silu, 16) X(softplus, 16)                   \
    X(log_sigmoid, 16) X(mish, 16) X(hardtanh, 32) X(hardsigmoid, 32) X(hardswish, 32) X(threshold, 32)

#define TP_NUMBER(name, grain) TP_OP_##name,
enum { TP_BINARY(TP_NUMBER) TP_BINARY_OPS };
enum { TP_UNARY(TP_NUMBER) TP_UNARY_OPS };
#undef TP_NUMBER

typedef struct {
    tp_loop binary[TP_BINARY_OPS][TP_ELEMENTS];
    tp_loop unary[TP_UNARY_OPS][TP_ELEMENTS];
    tp_loop choose[TP_ELEMENTS];            /* condition, input, other */
    tp_loop cast[TP_ELEMENTS][TP_ELEMENTS]; /* from, to */
} tp_pointwise;

TP_DECLARE(const tp_pointwise, tp_pointwise_table);

typedef struct { const char *name; int grain; } tp_op_facts;
extern const tp_op_facts tp_binary_ops[TP_BINARY_OPS], tp_unary_ops[TP_UNARY_OPS];

#endif
