/* Tiles of 6×6 of images for Winograd's way, and the products of matrices between its transforms.

   A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015: results of a tile are
   At [(G g Gt) * (Bt d B)] A, for all channels at once 36 products of matrices. The points are 0, ±3/4, ±3/2 and
   infinity: their powers are exact in float32, and they lose about a fifth of what 0, ±1, ±2 lose (B. Barabasz and
   others, "Error Analysis and Improving the Accuracy of Winograd Convolution for DNNs", 2018). */
#ifndef TENSORPLUG_CONVOLUTION_WINOGRAD_TILES_H
#define TENSORPLUG_CONVOLUTION_WINOGRAD_TILES_H

#include "convolution_winograd.h"

#include <string.h>

#include "parallel.h"
#include "vectors.h"

enum {
    SIDE = 6, PLACES = SIDE * SIDE, LANES = VECTOR / sizeof(float), BLOCK = TP_WINO_BLOCK,
    ROWS = 6, COLUMNS = VECTOR == 64 ? 4 : 2, /* of the product that is in registers, columns in vectors */
    DEPTH = 128,                              /* products that are added up in one go: a longer chain rounds more */
    TILES = 48,                               /* at once: what they take stays in the second cache */
    MORE_TILES = 64, LARGE = 1 << 16,         /* at once with weights from how many on */
    GAP = 16                                  /* between rows, lest they fall on the same lines of the cache */
};

#define A 0.75f
#define B 1.5f
#define A2 (A * A)
#define B2 (B * B)
#define SCALE_A (1 / (2 * A2 * (A2 - B2)))
#define SCALE_B (1 / (2 * B2 * (B2 - A2)))

#define INLINE static inline __attribute__((always_inline))

INLINE float_vector load(const float *x) { return *(const float_vector *)x; }

INLINE void store(float *x, float_vector v) { *(float_vector *)x = v; }

/* --- shapes ------------------------------------------------------------------------------------------------ */

INLINE int made(const tp_wino *w) { return SIDE + 1 - w->kernel; }

INLINE ptrdiff_t tiles_down(const tp_wino *w) { return (w->out_height + made(w) - 1) / made(w); }

INLINE ptrdiff_t tiles_across(const tp_wino *w) { return (w->out_width + made(w) - 1) / made(w); }

/* The floats that one of the 36 matrices takes. */
INLINE ptrdiff_t matrix(ptrdiff_t tiles, ptrdiff_t channels) { return tiles * (channels + GAP) + GAP; }

/* --- tiles ------------------------------------------------------------------------------------------------- */

INLINE void towards_products(const float_vector d[SIDE], float_vector v[SIDE]) {
    const float_vector even_a = d[4] - B2 * d[2], odd_a = d[3] - B2 * d[1];
    const float_vector even_b = d[4] - A2 * d[2], odd_b = d[3] - A2 * d[1];
    v[0] = d[4] - (A2 + B2) * d[2] + A2 * B2 * d[0];
    v[1] = even_a + A * odd_a;
    v[2] = even_a - A * odd_a;
    v[3] = even_b + B * odd_b;
    v[4] = even_b - B * odd_b;
    v[5] = d[5] - (A2 + B2) * d[3] + A2 * B2 * d[1];
}

/* Take one block of channels of a tile to its places in 36 matrices. */
INLINE void take(const float *tile, ptrdiff_t down, ptrdiff_t across, float *to, ptrdiff_t size) {
    for (int lane = 0; lane < BLOCK; lane += LANES) {
        float_vector half[SIDE][SIDE];
        for (int x = 0; x < SIDE; x++) {
            float_vector d[SIDE], v[SIDE];
            for (int y = 0; y < SIDE; y++) d[y] = load(tile + y * down + x * across + lane);
            towards_products(d, v);
            for (int y = 0; y < SIDE; y++) half[y][x] = v[y];
        }
        for (int y = 0; y < SIDE; y++) {
            float_vector v[SIDE];
            towards_products(half[y], v);
            for (int x = 0; x < SIDE; x++) store(to + (y * SIDE + x) * size + lane, v[x]);
        }
    }
}

static void take_tile(const tp_wino *w, const float *image, ptrdiff_t y, ptrdiff_t x, float *to, ptrdiff_t size) {
    const ptrdiff_t across = w->pixel_step, down = w->width * across;
    const ptrdiff_t top = y < 0 ? -y : 0, bottom = w->height - y < SIDE ? w->height - y : SIDE;
    const ptrdiff_t left = x < 0 ? -x : 0, right = w->width - x < SIDE ? w->width - x : SIDE;
    const int inside = top == 0 && left == 0 && bottom == SIDE && right == SIDE;
    for (ptrdiff_t c = 0; c < w->channels; c += BLOCK) {
        const float *block = image + c / BLOCK * w->block_step;
        if (inside) {
            take(block + y * down + x * across, down, across, to + c, size);
            continue;
        }
        float padded[PLACES * BLOCK] = {0};
        for (ptrdiff_t i = top; i < bottom; i++)
            for (ptrdiff_t j = left; j < right; j++)
                memcpy(padded + (i * SIDE + j) * BLOCK, block + (y + i) * down + (x + j) * across,
                       BLOCK * sizeof(float));
        take(padded, SIDE * BLOCK, BLOCK, to + c, size);
    }
}

/* --- products ---------------------------------------------------------------------------------------------- */

/* Add up products of `rows` rows of v, whose elements lie v_step apart, with `columns` vectors of the rows of u, which
   lie u_step apart: into m, or to what is there. */
INLINE void multiply(int rows, int columns, ptrdiff_t depth, const float *v, ptrdiff_t v_row, ptrdiff_t v_step,
                     const float *u, ptrdiff_t u_step, float *m, ptrdiff_t m_row, int adds) {
    for (ptrdiff_t begin = 0; begin < depth; begin += DEPTH) {
        const ptrdiff_t end = begin + DEPTH < depth ? begin + DEPTH : depth;
        float_vector sums[ROWS][COLUMNS] = {{{0}}};
        for (ptrdiff_t c = begin; c < end; c++) {
            float_vector right[COLUMNS];
#pragma GCC unroll 4
            for (int j = 0; j < columns; j++) right[j] = load(u + c * u_step + j * LANES);
#pragma GCC unroll 6
            for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
                for (int j = 0; j < columns; j++) sums[i][j] += v[i * v_row + c * v_step] * right[j];
        }
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < columns; j++) {
                float *to = m + i * m_row + j * LANES;
                if (adds || begin) sums[i][j] += load(to);
                store(to, sums[i][j]);
            }
    }
}

#define PRODUCT(rows, columns, ...) \
    case (rows) * 8 + (columns): multiply(rows, columns, __VA_ARGS__); break;
#define PRODUCTS_OF(columns, ...)                                                                                \
    PRODUCT(1, columns, __VA_ARGS__) PRODUCT(2, columns, __VA_ARGS__) PRODUCT(3, columns, __VA_ARGS__)           \
    PRODUCT(4, columns, __VA_ARGS__) PRODUCT(5, columns, __VA_ARGS__) PRODUCT(6, columns, __VA_ARGS__)
/* For a switch over rows * 8 + columns. */
#ifdef __AVX512F__
#define PRODUCTS(...)                                                                                            \
    PRODUCTS_OF(1, __VA_ARGS__) PRODUCTS_OF(2, __VA_ARGS__) PRODUCTS_OF(3, __VA_ARGS__) PRODUCTS_OF(4, __VA_ARGS__)
#else
#define PRODUCTS(...) PRODUCTS_OF(1, __VA_ARGS__) PRODUCTS_OF(2, __VA_ARGS__)
#endif

#endif
