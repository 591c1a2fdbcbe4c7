#include "matmul_few_rows.h"

#include "parallel.h"
#include "vectors.h"

/* Sums of DOWN rows by ACROSS columns stay in registers, a vector each. The rows stay in the first cache, which holds NEAR
   floats beside the columns that stream by. */
enum { LANES = VECTOR / sizeof(float), DOWN = 4, ACROSS = VECTOR == 64 ? 6 : 3, NEAR = 6144, LINE = 64 / sizeof(float) };

#define INLINE static inline __attribute__((always_inline))

static ptrdiff_t least(ptrdiff_t x, ptrdiff_t y) { return x < y ? x : y; }

/* Call a function with the number of rows as a constant. */
#define FOR_ROWS(count, call)                                                                          \
    switch (count) {                                                                                   \
    case 1: call(1); break;                                                                            \
    case 2: call(2); break;                                                                            \
    case 3: call(3); break;                                                                            \
    default: call(4);                                                                                  \
    }

/* `count` floats, and zeros behind them. */
static __attribute__((noinline)) float_vector first_of(const float *x, ptrdiff_t count) {
    float lanes[LANES] = {0};
    for (ptrdiff_t i = 0; i < count; i++) lanes[i] = x[i];
    return *(const float_vector *)lanes;
}

INLINE float total_of(float_vector v) {
    float lanes[LANES];
    memcpy(lanes, &v, sizeof lanes);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
    return lanes[0];
}

/* Lay vectors of some rows beside each other: rows whose distance is a power of two would share few places of the cache. */
static void pack(const float *a, ptrdiff_t lda, ptrdiff_t rows, ptrdiff_t inner, float *to) {
    for (ptrdiff_t i = 0; i < inner; i += LANES)
        for (ptrdiff_t r = 0; r < rows; r++, to += LANES)
            *(float_vector *)to = first_of(a + r * lda + i, least(LANES, inner - i));
}

/* Add sums over `inner` elements to some rows and columns of the result; fetch the columns that come next. */
INLINE void dots(const float *a, const float *b, ptrdiff_t ldb, ptrdiff_t inner, float *to, ptrdiff_t ldc, int rows, int columns,
                 int fetches) {
    float_vector sums[DOWN][ACROSS] = {{{0}}};
    ptrdiff_t i = 0;
    for (; i + LANES <= inner; i += LANES, a += rows * LANES) {
        float_vector right[ACROSS];
#pragma GCC unroll 6
        for (int c = 0; c < columns; c++) {
            right[c] = *(const float_vector *)(b + c * ldb + i);
            if (fetches) __builtin_prefetch(b + (columns + c) * ldb + i);
        }
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 6
            for (int c = 0; c < columns; c++) sums[r][c] += *(const float_vector *)(a + r * LANES) * right[c];
    }
    if (i < inner)
#pragma GCC unroll 6
        for (int c = 0; c < columns; c++) {
            const float_vector right = first_of(b + c * ldb + i, inner - i);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) sums[r][c] += *(const float_vector *)(a + r * LANES) * right;
        }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 6
        for (int c = 0; c < columns; c++) to[r * ldc + c] += total_of(sums[r][c]);
}

static void set_to_bias(const tp_few_rows *o, ptrdiff_t begin, ptrdiff_t end) {
    for (ptrdiff_t row = 0; row < o->rows; row++)
        for (ptrdiff_t c = begin; c < end; c++) o->result[row * o->columns + c] = o->bias ? o->bias[c] : 0;
}

/* The rows of the next group: as many in each as can be. */
static ptrdiff_t group(ptrdiff_t left) {
    const ptrdiff_t groups = (left + DOWN - 1) / DOWN;
    return (left + groups - 1) / groups;
}

INLINE void dots_of_all(const tp_few_rows *o, const float *packed, ptrdiff_t column, ptrdiff_t k, ptrdiff_t inner, int columns,
                        int fetches) {
    const float *b = o->b + column * o->ldb + k;
    const ptrdiff_t length = (inner + LANES - 1) / LANES * LANES;
    for (ptrdiff_t row = 0, rows; row < o->rows; row += rows, fetches = 0) {
        rows = group(o->rows - row);
        const float *a = packed + row * length;
        float *to = o->result + row * o->columns + column;
#define DOTS(ROWS)                                                                                     \
    if (fetches) dots(a, b, o->ldb, inner, to, o->columns, ROWS, columns, 1);                          \
    else dots(a, b, o->ldb, inner, to, o->columns, ROWS, columns, 0)
        FOR_ROWS(rows, DOTS)
    }
}

static void few_rows(const tp_few_rows *o, int threads) {
    const ptrdiff_t part = least(NEAR / o->rows, NEAR / 8) / LINE * LINE;
    TP_PARALLEL(o->columns, threads, begin, end, {
        float packed[NEAR + LINE];
        set_to_bias(o, begin, end);
        for (ptrdiff_t k = 0; k < o->inner; k += part) {
            const ptrdiff_t inner = least(part, o->inner - k), length = (inner + LANES - 1) / LANES * LANES;
            for (ptrdiff_t row = 0, rows; row < o->rows; row += rows) {
                rows = group(o->rows - row);
                pack(o->a + row * o->lda + k, o->lda, rows, inner, packed + row * length);
            }
            ptrdiff_t c = begin;
            for (; c + 2 * ACROSS <= end; c += ACROSS) dots_of_all(o, packed, c, k, inner, ACROSS, 1);
            for (; c < end; c++) dots_of_all(o, packed, c, k, inner, 1, 0);
        }
    });
}

const tp_few_rows_function LEVEL(tp_few_rows_table) = few_rows;
