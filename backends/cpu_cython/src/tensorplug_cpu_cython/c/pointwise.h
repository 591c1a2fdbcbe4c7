/* Loops of pointwise ops: `args` are the inputs and then the output, with their strides in bytes. */
#ifndef TENSORPLUG_POINTWISE_H
#define TENSORPLUG_POINTWISE_H

#include "level.h"
#include "types.h"

typedef void (*tp_loop)(char *const *args, const ptrdiff_t *strides, ptrdiff_t n, const double *parameters);

/* name, and how many elements are worth a thread (in thousands): what is bound by memory takes more. */
#define TP_BINARY(X)                                                                                   \
    X(add, 16) X(sub, 16) X(mul, 16) X(true_divide, 16) X(maximum, 16) X(minimum, 16)                  \
    X(clamp_min, 16) X(clamp_max, 16) X(eq, 16) X(ne, 16) X(lt, 16) X(le, 16) X(gt, 16) X(ge, 16)      \
    X(copysign, 16) X(power, 2) X(atan2, 1) X(fmod, 2) X(remainder, 4) X(floor_divide, 4)              \
    X(bitwise_and, 16) X(bitwise_or, 16) X(bitwise_xor, 16)                                            \
    X(relu_gradient, 16) X(sigmoid_gradient, 16) X(tanh_gradient, 16) X(silu_gradient, 4)              \
    X(gelu_gradient, 4) X(gelu_tanh_gradient, 4) X(leaky_relu_gradient, 16) X(elu_gradient, 4)         \
    X(softplus_gradient, 4) X(log_sigmoid_gradient, 4) X(hardtanh_gradient, 16)                        \
    X(hardsigmoid_gradient, 16) X(hardswish_gradient, 16) X(threshold_gradient, 16)                    \
    X(mish_gradient, 4)

#define TP_UNARY(X)                                                                                    \
    X(neg, 16) X(abs, 16) X(square, 16) X(sqrt, 16) X(rsqrt, 16) X(exp, 4) X(exp2, 4) X(expm1, 4)      \
    X(log, 4) X(log2, 4) X(log10, 4) X(log1p, 4) X(sin, 4) X(cos, 4) X(tan, 2) X(tanh, 4)              \
    X(sigmoid, 4) X(relu, 16) X(floor, 16) X(ceil, 16) X(trunc, 16) X(rint, 16) X(sign, 16)            \
    X(erf, 4) X(erfc, 1) X(asin, 1) X(acos, 1) X(atan, 1) X(sinh, 1) X(cosh, 1) X(asinh, 1)            \
    X(acosh, 1) X(atanh, 1) X(bitwise_not, 16) X(clone, 16)                                            \
    X(leaky_relu, 16) X(elu, 4) X(gelu, 4) X(gelu_tanh, 4) X(silu, 4) X(softplus, 4)                   \
    X(log_sigmoid, 4) X(mish, 4) X(hardtanh, 16) X(hardsigmoid, 16) X(hardswish, 16) X(threshold, 16)

#define TP_NUMBER(name, grain) TP_OP_##name,
enum { TP_BINARY(TP_NUMBER) TP_BINARY_OPS };
enum { TP_UNARY(TP_NUMBER) TP_UNARY_OPS };
#undef TP_NUMBER

typedef struct {
    tp_loop binary[TP_BINARY_OPS][TP_TYPES];
    tp_loop unary[TP_UNARY_OPS][TP_TYPES];
    tp_loop choose[TP_TYPES];              /* condition, input, other */
    tp_loop cast[TP_TYPES][TP_TYPES];      /* from, to */
} tp_pointwise;

TP_DECLARE(const tp_pointwise, tp_pointwise_table);

typedef struct { const char *name; int grain; } tp_op_facts;
extern const tp_op_facts tp_binary_ops[TP_BINARY_OPS], tp_unary_ops[TP_UNARY_OPS];

#endif
