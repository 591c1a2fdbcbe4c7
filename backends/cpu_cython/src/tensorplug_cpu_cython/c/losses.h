/* Cross-entropy between scores or log probabilities and classes, forward and backward, of contiguous arrays (before, n, after)
   whose classes lie along n. */
#ifndef TENSORPLUG_LOSSES_H
#define TENSORPLUG_LOSSES_H

#include "level.h"

typedef struct {
    const void *x;         /* scores */
    const int64_t *target; /* (before, after) */
    const void *weight;    /* (n), or NULL */
    int64_t ignored;
    ptrdiff_t before, n, after;
} tp_classes;

typedef struct {
    /* Sums of losses and of weights, for every `tp_loss_block` samples; `losses` are written unless NULL.
       Returns whether all classes exist. */
    int (*forward[2])(const tp_classes *c, void *losses, double *sums, int threads);
    /* The gradient of x: sample i has the gradient g[i * step] * scale. */
    void (*backward[2])(const tp_classes *c, const void *g, ptrdiff_t step, double scale, void *out, int threads);
    /* The weights of all samples, added up. */
    double (*total[2])(const tp_classes *c);
    /* As `forward`, of log probabilities. */
    int (*likelihood[2])(const tp_classes *c, void *losses, double *sums, int threads);
    void (*likelihood_backward[2])(const tp_classes *c, const void *g, ptrdiff_t step, double scale, void *out,
                                   int threads);
} tp_losses;

TP_DECLARE(const tp_losses, tp_loss_table);

/* Samples of one block: rows of one length, or neighbouring columns. */
enum { TP_LOSS_BLOCK = 64 };

static inline ptrdiff_t tp_loss_blocks(const tp_classes *c) {
    return c->after == 1 ? (c->before + TP_LOSS_BLOCK - 1) / TP_LOSS_BLOCK
                         : c->before * ((c->after + TP_LOSS_BLOCK - 1) / TP_LOSS_BLOCK);
}

#endif
