#include "convolution_few_channels.h"

#include <string.h>

#include "parallel.h"
#include "vectors.h"

/* The sums of COLUMNS vectors of filters at PIXELS places stay in registers while the window is gone through. */
enum {
    LANES = VECTOR / sizeof(float), COLUMNS = 2, BLOCK = COLUMNS * LANES, PIXELS = 6,
    PLACES = 96, /* of a row, at once */
    LINE = 64 / sizeof(float)
};

#define INLINE static inline __attribute__((always_inline))

static ptrdiff_t blocks(const tp_few *p) { return (p->filters + BLOCK - 1) / BLOCK; }

static ptrdiff_t window(const tp_few *p) { return p->channels * p->kernel[0] * p->kernel[1]; }

/* What the windows see of the image and of the padding around it, in one dimension. */
static ptrdiff_t seen(const tp_few *p, int d) {
    return (p->where[d] - 1) * p->stride[d] + (p->kernel[d] - 1) * p->dilation[d] + 1;
}

static ptrdiff_t packed(const tp_few *p) { return blocks(p) * window(p) * BLOCK; }

static ptrdiff_t planes(const tp_few *p) { return p->channels * seen(p, 0) * seen(p, 1); }

static ptrdiff_t space(const tp_few *p) { return packed(p) + p->samples * planes(p) + LINE; }

/* Lay the weights of a block of filters beside each other; behind the last filter lie zeros. */
static void pack(const tp_few *p, const float *weight, float *to) {
    const ptrdiff_t size = window(p);
    for (ptrdiff_t first = 0; first < p->filters; first += BLOCK)
        for (ptrdiff_t i = 0; i < size; i++)
            for (ptrdiff_t k = first; k < first + BLOCK; k++) *to++ = k < p->filters ? weight[k * size + i] : 0;
}

/* Copy a sample's channels with the padding that the windows see. */
static void pad(const tp_few *p, const float *image, float *to) {
    const ptrdiff_t high = seen(p, 0), wide = seen(p, 1), step = p->image_place;
    const ptrdiff_t left = p->before[1] < wide ? p->before[1] : wide;
    const ptrdiff_t right = p->size[1] + left < wide ? p->size[1] + left : wide;
    for (ptrdiff_t c = 0; c < p->channels; c++)
        for (ptrdiff_t i = 0; i < high; i++, to += wide) {
            const ptrdiff_t y = i - p->before[0];
            if (y < 0 || y >= p->size[0]) {
                memset(to, 0, (size_t)wide * sizeof *to);
                continue;
            }
            const float *from = image + c * p->image_channel + y * p->size[1] * step;
            for (ptrdiff_t j = 0; j < left; j++) to[j] = 0;
            if (step == 1) memcpy(to + left, from, (size_t)(right - left) * sizeof *to);
            else for (ptrdiff_t j = left; j < right; j++) to[j] = from[(j - left) * step];
            for (ptrdiff_t j = right; j < wide; j++) to[j] = 0;
        }
}

/* Add the sums over a channel, at some places beside each other and of a block of filters, to those of the channels
   before: a longer chain rounds more. */
INLINE void add_up(const tp_few *p, ptrdiff_t c, const float *image, const float *weight, float_vector *to, int pixels) {
    const ptrdiff_t wide = seen(p, 1), step = p->stride[1], apart = p->dilation[1];
    float_vector sums[PIXELS][COLUMNS] = {{{0}}};
    for (ptrdiff_t y = 0; y < p->kernel[0]; y++) {
        const float *at = image + y * p->dilation[0] * wide;
        for (ptrdiff_t x = 0; x < p->kernel[1]; x++, at += apart, weight += BLOCK) {
            float_vector right[COLUMNS];
#pragma GCC unroll 2
            for (int j = 0; j < COLUMNS; j++) right[j] = *(const float_vector *)(weight + j * LANES);
#pragma GCC unroll 6
            for (int i = 0; i < pixels; i++)
#pragma GCC unroll 2
                for (int j = 0; j < COLUMNS; j++) sums[i][j] += at[i * step] * right[j];
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < pixels; i++)
#pragma GCC unroll 2
        for (int j = 0; j < COLUMNS; j++) {
            if (c) sums[i][j] += to[i * COLUMNS + j];
            to[i * COLUMNS + j] = sums[i][j];
        }
}

static void give(const tp_few *p, const float *sums, const float *bias, float *to, ptrdiff_t filters, ptrdiff_t count) {
    if (p->result_filter == 1)
        for (ptrdiff_t i = 0; i < count; i++)
            for (ptrdiff_t k = 0; k < filters; k++)
                to[i * p->result_place + k] = bias ? sums[i * BLOCK + k] + bias[k] : sums[i * BLOCK + k];
    else
        for (ptrdiff_t k = 0; k < filters; k++)
            for (ptrdiff_t i = 0; i < count; i++)
                to[k * p->result_filter + i] = bias ? sums[i * BLOCK + k] + bias[k] : sums[i * BLOCK + k];
}

/* Results of a block of filters beside each other: channel by channel, so that a channel's part of the image and of the
   weights stays in the first cache. */
static void some_places(const tp_few *p, const float *image, const float *weight, const float *bias, float *to,
                        ptrdiff_t filters, ptrdiff_t count) {
    const ptrdiff_t groups = (count + PIXELS - 1) / PIXELS, plane = seen(p, 0) * seen(p, 1);
    float_vector sums[PLACES * COLUMNS];
    for (ptrdiff_t c = 0; c < p->channels; c++) {
        const float *of = weight + c * p->kernel[0] * p->kernel[1] * BLOCK;
        for (ptrdiff_t g = 0; g < groups; g++) { /* of 55 places five times five and five times six */
            const ptrdiff_t begin = count * g / groups, end = count * (g + 1) / groups;
            const float *from = image + c * plane + begin * p->stride[1];
            float_vector *at = sums + begin * COLUMNS;
            switch (end - begin) {
            case 1: add_up(p, c, from, of, at, 1); break;
            case 2: add_up(p, c, from, of, at, 2); break;
            case 3: add_up(p, c, from, of, at, 3); break;
            case 4: add_up(p, c, from, of, at, 4); break;
            case 5: add_up(p, c, from, of, at, 5); break;
            default: add_up(p, c, from, of, at, PIXELS);
            }
        }
    }
    give(p, (const float *)sums, bias, to, filters, count);
}

static void one_row(const tp_few *p, const float *image, const float *weight, const float *bias, float *to,
                    ptrdiff_t filters) {
    for (ptrdiff_t x = 0; x < p->where[1]; x += PLACES) {
        const ptrdiff_t count = p->where[1] - x < PLACES ? p->where[1] - x : PLACES;
        some_places(p, image + x * p->stride[1], weight, bias, to + x * p->result_place, filters, count);
    }
}

static void run(const tp_few *p, const float *x, const float *w, const float *bias, float *y, float *work) {
    float *weight = (float *)(((uintptr_t)work + 63) & ~(uintptr_t)63), *images = weight + packed(p);
    const ptrdiff_t sample = p->channels * p->size[0] * p->size[1], rows = p->where[0];
    pack(p, w, weight);
    TP_PARALLEL(p->samples, p->threads, begin, end, {
        for (ptrdiff_t n = begin; n < end; n++) pad(p, x + n * sample, images + n * planes(p));
    });
    TP_PARALLEL(p->samples * blocks(p) * rows, p->threads, begin, end, {
        for (ptrdiff_t at = begin; at < end; at++) { /* all rows of a block of filters after each other */
            const ptrdiff_t row = at % rows, n = at / rows / blocks(p), first = at / rows % blocks(p) * BLOCK;
            const ptrdiff_t filters = p->filters - first < BLOCK ? p->filters - first : BLOCK;
            one_row(p, images + n * planes(p) + row * p->stride[0] * seen(p, 1), weight + first * window(p),
                    bias ? bias + first : NULL,
                    y + (n * p->filters * rows + row * (p->result_place == 1 ? 1 : p->filters)) * p->where[1]
                        + first * p->result_filter,
                    filters);
        }
    });
}

const tp_few_kernels LEVEL(tp_few_table) = {space, run};
