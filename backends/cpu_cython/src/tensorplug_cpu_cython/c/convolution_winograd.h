/* Convolutions of 3×3 and 5×5 by Winograd's way, in a quarter of the products: 4×4 (3×3) or 2×2 (5×5) results of tiles
   of 6×6 at a time. */
#ifndef TENSORPLUG_CONVOLUTION_WINOGRAD_H
#define TENSORPLUG_CONVOLUTION_WINOGRAD_H

#include "level.h"

enum { TP_WINO_BLOCK = 16, TP_WINO_POSTS = 6 };

/* What is done with a result: bounds, or the sum with an array that lies as the result does. */
typedef struct {
    int adds;
    float low, high;
} tp_wino_post;

/* Channels and filters are whole blocks of 16. The source lies in blocks of 16 channels, with the steps (in elements)
   from image to image, pixel to pixel and block to block; the result lies channels last. */
typedef struct {
    ptrdiff_t images, height, width, channels, filters, out_height, out_width, top, left;
    ptrdiff_t image_step, pixel_step, block_step;
    int kernel, posts, threads;
    tp_wino_post post[TP_WINO_POSTS];
} tp_wino;

/* pays: whether it takes clearly less than sums of products as they stand, with weights that are packed once, or in each
   call. weights, workspace: how many floats the packed weights take, and a run by each thread. pack: from (filters,
   channels, kernel, kernel), or, for the adjoint, from (channels, filters, kernel, kernel) turned by 180 degrees.
   others: by post, the arrays to add. run returns whether all sums are finite. */
typedef struct {
    int (*pays)(const tp_wino *, int each_call);
    ptrdiff_t (*weights)(const tp_wino *);
    ptrdiff_t (*workspace)(const tp_wino *);
    void (*pack)(const tp_wino *, const float *weight, int adjoint, float *packed);
    int (*run)(const tp_wino *, const float *source, const float *packed, const float *bias,
               const float *const *others, float *target, float *workspace);
} tp_wino_kernels;

TP_DECLARE(const tp_wino_kernels, tp_wino_table);

/* The gradient of the weight, (filters, channels, kernel, kernel), from that of the result, which lies channels last. The
   workspace is all threads'. */
typedef struct {
    int (*pays)(const tp_wino *);
    ptrdiff_t (*workspace)(const tp_wino *);
    int (*run)(const tp_wino *, const float *source, const float *gradient, float *weight, float *workspace);
} tp_wino_weight_kernels;

TP_DECLARE(const tp_wino_weight_kernels, tp_wino_weight_table);

#endif
