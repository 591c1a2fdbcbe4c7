/* Products of matrices so small that a call of oneDNN would last longer than they do. */
#ifndef TENSORPLUG_ATTENTION_PRODUCTS_H
#define TENSORPLUG_ATTENTION_PRODUCTS_H

#include "vectors.h"

/* The second matrix is packed where its rows are not whole vectors; some rows of some vectors of the result stay in
   registers, as many as hide that each addition waits for the last one. */
enum { SMALL_PACKED = 4096, LANES_F32 = VECTOR / sizeof(float), SMALL_VECTORS = 4 };
/* Multiplications that oneDNN, which may have wider vectors than the level, is not faster for. */
enum { SMALL_WORK = VECTOR == 64 ? 1 << 17 : VECTOR == 32 ? 1 << 15 : 1 << 13 };

/* An element (i, l) of the first matrix is at i down and l along; rows of the others are `ldb` and `ldc` apart. */
typedef struct {
    const float *a, *b;
    float *c;
    ptrdiff_t down, along, ldb, ldc, inner;
    float alpha, beta;
} tp_small_product;

/* Compute `rows` rows of `vectors` vectors, of which the last one has `last` elements that count. */
static inline __attribute__((always_inline)) void small_tile(const tp_small_product *o, ptrdiff_t row, ptrdiff_t column,
                                                             int rows, int vectors, ptrdiff_t last) {
    const float *a = o->a + row * o->down, *b = o->b + column;
    float_vector sums[8][SMALL_VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) sums[r][v] = (float_vector){0};
    for (ptrdiff_t l = 0; l < o->inner; l++, b += o->ldb)
        for (int v = 0; v < vectors; v++) {
            const float_vector these = *(const float_vector *)(b + v * LANES_F32);
            for (int r = 0; r < rows; r++) sums[r][v] += these * a[r * o->down + l * o->along];
        }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            float *to = o->c + (row + r) * o->ldc + column + v * LANES_F32;
            float_vector sum = sums[r][v] * o->alpha;
            if (v < vectors - 1 || last == LANES_F32) {
                if (o->beta != 0) sum += *(const float_vector *)to;
                *(float_vector *)to = sum;
                continue;
            }
            float some[LANES_F32];
            memcpy(some, &sum, sizeof some);
            if (o->beta != 0)
                for (ptrdiff_t j = 0; j < last; j++) to[j] += some[j];
            else
                for (ptrdiff_t j = 0; j < last; j++) to[j] = some[j];
        }
}

static inline __attribute__((always_inline)) void small_columns(const tp_small_product *o, ptrdiff_t m, ptrdiff_t column,
                                                                int abreast, int vectors, ptrdiff_t last) {
    ptrdiff_t row = 0;
    for (; row + abreast <= m; row += abreast) small_tile(o, row, column, abreast, vectors, last);
    for (; row < m; row++) small_tile(o, row, column, 1, vectors, last);
}

/* Return whether matrices are small enough. */
static int is_small(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k) {
    return m * n * k <= SMALL_WORK && k * (n + LANES_F32) <= SMALL_PACKED;
}

/* Write alpha A B + beta C, of which A and B may be transposed, to C; beta is 0 or 1. */
static void small_product(int turn_a, int turn_b, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha, const float *A,
                          ptrdiff_t row_a, const float *B, ptrdiff_t row_b, float beta, float *C, ptrdiff_t row_c) {
    float packed[SMALL_PACKED];
    tp_small_product o = {A, B, C, turn_a ? 1 : row_a, turn_a ? row_a : 1, row_b, row_c, k, alpha, beta};
    const ptrdiff_t width = (n + LANES_F32 - 1) / LANES_F32 * LANES_F32;
    if (turn_b || n != width) {
        o.b = packed;
        o.ldb = width;
        for (ptrdiff_t l = 0; l < k; l++) {
            float *to = packed + l * width;
            if (turn_b)
                for (ptrdiff_t j = 0; j < n; j++) to[j] = B[j * row_b + l];
            else
                for (ptrdiff_t j = 0; j < n; j++) to[j] = B[l * row_b + j];
            for (ptrdiff_t j = n; j < width; j++) to[j] = 0;
        }
    }
    for (ptrdiff_t column = 0; column < n; column += SMALL_VECTORS * LANES_F32) {
        const ptrdiff_t left = n - column, last = left % LANES_F32 ? left % LANES_F32 : LANES_F32;
        switch (left > 3 * LANES_F32 ? 4 : (left + LANES_F32 - 1) / LANES_F32) {
        case 1: small_columns(&o, m, column, 8, 1, last); break;
        case 2: small_columns(&o, m, column, 4, 2, last); break;
        case 3: small_columns(&o, m, column, VECTOR == 64 ? 4 : 2, 3, last); break;
        default:
            small_columns(&o, m, column, VECTOR == 64 ? 4 : 2, 4, left >= 4 * LANES_F32 ? LANES_F32 : last);
        }
    }
}

#endif
