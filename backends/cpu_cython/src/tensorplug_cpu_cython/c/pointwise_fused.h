/* Pointwise ops that take several steps elsewhere, each in one pass over memory. */
#ifndef TENSORPLUG_FUSED_H
#define TENSORPLUG_FUSED_H

#include "pointwise.h"

/* name, number of arrays, how many thousands of elements are worth a thread, whether the result is of bool */
#define TP_FUSED(X)                                                                                    \
    X(frac, 1, 32, 0) X(nan_to_num, 1, 32, 0) X(clamp_numbers, 1, 32, 0) X(logit, 1, 16, 0)             \
    X(softshrink, 1, 32, 0) X(hardshrink, 1, 32, 0) X(sinc, 1, 16, 0) X(entr, 1, 16, 0) X(ndtr, 1, 16, 0)  \
    X(i0, 1, 8, 0) X(i0e, 1, 8, 0) X(i1, 1, 8, 0) X(i1e, 1, 8, 0) X(digamma, 1, 8, 0) X(trigamma, 1, 8, 0) \
    X(erfcx, 1, 8, 0) X(log_ndtr, 1, 8, 0) X(ndtri, 1, 8, 0) X(round, 1, 32, 0)                        \
    X(prelu, 2, 32, 0) X(smooth_l1, 2, 32, 0) X(huber, 2, 32, 0) X(square_error, 2, 32, 0) \
    X(huber_gradient, 3, 32, 0)                                                                        \
    X(isinf, 1, 32, 1) X(isfinite, 1, 32, 1)                                                           \
    X(add_scaled, 2, 32, 0) X(lerp, 2, 32, 0) X(hypot, 2, 32, 0) X(logaddexp, 2, 16, 0) X(trunc_divide, 2, 32, 0) \
    X(logaddexp2, 2, 16, 0) X(xlogy, 2, 16, 0) X(xlog1py, 2, 16, 0)                                       \
    X(shrink_gradient, 2, 32, 0) X(gated, 2, 16, 0) X(clamp_gradient, 2, 32, 0) X(logit_gradient, 2, 32, 0)                  \
    X(lerp_tensor, 3, 32, 0) X(addcmul, 3, 32, 0) X(addcdiv, 3, 32, 0) X(clamp_tensors, 3, 32, 0)       \
    X(gated_backward, 3, 16, 0)

#define TP_NUMBER(name, arrays, grain, truth) TP_FUSED_##name,
enum { TP_FUSED(TP_NUMBER) TP_FUSED_OPS };
#undef TP_NUMBER

typedef struct { tp_loop loops[TP_FUSED_OPS][TP_ELEMENTS]; } tp_fused;

TP_DECLARE(const tp_fused, tp_fused_table);

typedef struct { const char *name; int arrays, grain, truth; } tp_fused_facts;
extern const tp_fused_facts tp_fused_ops[TP_FUSED_OPS];

#endif
