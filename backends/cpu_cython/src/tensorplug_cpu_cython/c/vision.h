/* Samples of images at positions of a grid, and their gradients. */
#ifndef TENSORPLUG_VISION_H
#define TENSORPLUG_VISION_H

#include "level.h"

enum { TP_NEAREST, TP_LINEAR, TP_CUBIC };
enum { TP_ZEROS, TP_BORDER, TP_REFLECTION };

/* Of contiguous images (batch, channels, *sizes), positions (batch, positions, dims) in the order x, y, z. */
typedef struct {
    ptrdiff_t batch, channels, positions;
    ptrdiff_t sizes[3]; /* of fewer dimensions the first ones are 1 */
    int dims, mode, padding, align, threads;
} tp_sampling;

typedef struct { /* each of float and double; places in the plane of the former are 32 bits wide */
    void (*sample[2])(const tp_sampling *, const void *image, const void *grid, void *result);
    /* `g_image` holds zeros, and gets sums; `g_grid` is written. */
    void (*gradient[2])(const tp_sampling *, const void *g, const void *image, const void *grid, void *g_image,
                        void *g_grid);
} tp_vision;

TP_DECLARE(const tp_vision, tp_vision_table);

#endif
