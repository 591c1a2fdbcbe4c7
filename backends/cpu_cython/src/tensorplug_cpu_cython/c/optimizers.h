/* One step of an optimizer over one contiguous parameter. What is NULL takes no part. */
#ifndef TENSORPLUG_OPTIMIZERS_H
#define TENSORPLUG_OPTIMIZERS_H

#include "level.h"

typedef struct {
    double lr, decay, momentum, dampening; /* SGD; decay enters the gradient */
    double beta1, beta2, eps;              /* Adam; RMSprop's alpha is beta2 */
    double shrink;                         /* what the parameter is multiplied by first */
    double step_size, root;                /* Adam: lr and sqrt, both corrected for the bias */
    int nesterov, maximize, first;
} tp_options;

/* `state`: SGD's momentum; Adam's averages, squares and largest; Adagrad's sum; RMSprop's squares, averages
   and momentum. */
typedef void (*tp_step)(void *parameter, const void *gradient, void *const *state, ptrdiff_t n,
                        const tp_options *options, int threads);

typedef struct {
    tp_step sgd[2], adam[2], adagrad[2], rmsprop[2]; /* float, double */
} tp_optimizers;

TP_DECLARE(const tp_optimizers, tp_optimizer_table);

#endif
