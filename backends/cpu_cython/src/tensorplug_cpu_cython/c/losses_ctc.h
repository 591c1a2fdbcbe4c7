/* Connectionist temporal classification (Graves et al. 2006): the negative log likelihood of labels, summed over all
   alignments with the input, and its gradient. */
#ifndef TENSORPLUG_LOSSES_CTC_H
#define TENSORPLUG_LOSSES_CTC_H

#include "level.h"

/* Log probabilities (steps, samples, classes), labels (samples, longest), all of classes that exist; a length of
   each per sample. */
typedef struct {
    ptrdiff_t steps, samples, classes, longest;
    const void *x;
    const int64_t *labels, *inputs, *outputs;
    int64_t blank;
    int threads;
} tp_ctc;

/* Two of each: float and double; they return whether there was memory. The loss of what is impossible is infinite,
   and has no gradient. */
typedef struct {
    int (*losses[2])(const tp_ctc *, void *losses);
    /* `o` holds zeros; `g` has a gradient per sample. */
    int (*gradient[2])(const tp_ctc *, const void *g, void *o);
} tp_ctc_kernels;

TP_DECLARE(const tp_ctc_kernels, tp_ctc_table);

#endif
