/* Convolutions of float images of few channels by wide windows, such as the first ones of networks. */
#ifndef TENSORPLUG_CONVOLUTION_FEW_CHANNELS_H
#define TENSORPLUG_CONVOLUTION_FEW_CHANNELS_H

#include "level.h"

/* Two spatial dimensions; of a single one the first has size and window 1. Steps are in elements: from one sample,
   channel and place to the next, of the image and of the result, whose rows follow each other. */
typedef struct {
    ptrdiff_t samples, channels, filters;
    ptrdiff_t size[2], where[2], kernel[2], stride[2], before[2], dilation[2];
    ptrdiff_t image_channel, image_place, result_filter, result_place;
    int threads;
} tp_few;

typedef struct {
    /* How many floats all threads need to work with. */
    ptrdiff_t (*space)(const tp_few *);
    void (*run)(const tp_few *, const float *x, const float *w, const float *bias, float *y, float *space);
} tp_few_kernels;

TP_DECLARE(const tp_few_kernels, tp_few_table);

#endif
