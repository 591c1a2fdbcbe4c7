/* Of a run of numbers, or of rows of them column by column, the mean and the sum of the squares around it, in double. */
#ifndef TENSORPLUG_MOMENTS_H
#define TENSORPLUG_MOMENTS_H

#include "vectors.h"

typedef struct { double count, mean, squares; } moments;

/* Chan, Golub and LeVeque, "Algorithms for computing the sample variance" (1983). */
static inline moments joined(moments a, moments b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const double count = a.count + b.count, share = b.count / count, distance = b.mean - a.mean;
    return (moments){count, a.mean + distance * share, a.squares + b.squares + distance * distance * (a.count * share)};
}

/* Of n distances from a number, their sum and that of their squares. */
static inline moments around(double number, double n, double sum, double squares) {
    const double off = sum / n;
    return (moments){n, number + off, squares - off * sum};
}

/* --- floats: one pass in double, for of heavy tails a few squares are all that counts ---------------------- */

/* Of distances from `number`. */
static inline void sums_around_F32(const float *x, ptrdiff_t n, double number, double *sum, double *squares) {
    enum { PER = VECTOR / sizeof(double), MANY = 4 };
    double_vector first[MANY] = {{0}};
    double_vector second[MANY] = {{0}};
    double total[2] = {0, 0};
    ptrdiff_t i = 0;
    for (; i + MANY * PER <= n; i += MANY * PER)
        for (int k = 0; k < MANY; k++) {
            const double_vector d = widened_float(x + i + k * PER) - number;
            first[k] += d;
            second[k] += d * d;
        }
    for (; i + PER <= n; i += PER) {
        const double_vector d = widened_float(x + i) - number;
        first[0] += d;
        second[0] += d * d;
    }
    for (; i < n; i++) {
        const double d = (double)x[i] - number;
        total[0] += d;
        total[1] += d * d;
    }
    first[0] = (first[0] + first[1]) + (first[2] + first[3]);
    second[0] = (second[0] + second[1]) + (second[2] + second[3]);
    for (int l = 0; l < PER; l++) {
        total[0] += first[0][l];
        total[1] += second[0][l];
    }
    *sum = total[0];
    *squares = total[1];
}

/* The first number is one of the n: the squares around it are at most n + 1 times those around the mean, so that the
   difference keeps what a float has, up to 2^28 of them; and it is exact of equal ones. */
static inline moments moments_F32(const float *x, ptrdiff_t n) {
    double sum, squares;
    sums_around_F32(x, n, x[0], &sum, &squares);
    return around(x[0], (double)n, sum, squares);
}

static inline double squares_F32(const float *x, ptrdiff_t n) {
    double sum, squares;
    sums_around_F32(x, n, 0, &sum, &squares);
    return squares;
}

/* Join the moments of each of `width` columns, at most 64, to what is there. Of some rows at a time the sums are in
   registers, which hold few columns; of all of them in memory. */
static inline void column_moments_F32(const float *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, moments *m) {
    enum { PER = VECTOR / sizeof(double), BESIDE = 2 * PER, SOME_ROWS = 8 };
    double first[64], sums[64] = {0}, squares[64] = {0};
    const ptrdiff_t whole = width / BESIDE * BESIDE;
    for (ptrdiff_t j = 0; j < width; j++) first[j] = x[j];
    for (ptrdiff_t r = 1; r < rows; r += SOME_ROWS) {
        const ptrdiff_t behind = rows - r < SOME_ROWS ? rows : r + SOME_ROWS;
        for (ptrdiff_t j = 0; j < whole; j += BESIDE) {
            double_vector *const sum = (double_vector *)(sums + j);
            double_vector *const square = (double_vector *)(squares + j);
            const double_vector *const number = (const double_vector *)(first + j);
            double_vector a = sum[0], b = sum[1], aa = square[0], bb = square[1];
            for (ptrdiff_t i = r; i < behind; i++) {
                const float *p = x + i * step + j;
                const double_vector d = widened_float(p) - number[0];
                const double_vector e = widened_float(p + PER) - number[1];
                a += d;
                b += e;
                aa += d * d;
                bb += e * e;
            }
            sum[0] = a;
            sum[1] = b;
            square[0] = aa;
            square[1] = bb;
        }
        for (ptrdiff_t i = r; i < behind; i++)
            for (ptrdiff_t j = whole; j < width; j++) {
                const double d = (double)x[i * step + j] - first[j];
                sums[j] += d;
                squares[j] += d * d;
            }
    }
    for (ptrdiff_t j = 0; j < width; j++) m[j] = joined(m[j], around(first[j], (double)rows, sums[j], squares[j]));
}

/* --- doubles: the mean first; it is rounded, and what is left of it counts for all ------------------------- */

static inline moments moments_F64(const double *x, ptrdiff_t n) {
    enum { RUN_OF_DOUBLES = 4096 }; /* that stay in the cache */
    moments all = {0, 0, 0};
    for (ptrdiff_t from = 0; from < n; from += RUN_OF_DOUBLES) {
        const double *p = x + from;
        const ptrdiff_t count = n - from < RUN_OF_DOUBLES ? n - from : RUN_OF_DOUBLES;
        const double number = p[0];
        SUM_VECTORS(double, total, p, count, v - number)
        const double mean = number + total / (double)count;
        SUM_VECTORS(double, rest, p, count, v - mean)
        SUM_VECTORS(double, squares, p, count, (v - mean) * (v - mean))
        all = joined(all, around(mean, (double)count, rest, squares));
    }
    return all;
}

static inline double squares_F64(const double *x, ptrdiff_t n) {
    SUM_VECTORS(double, total, x, n, v * v)
    return total;
}

static inline void column_moments_F64(const double *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width, moments *m) {
    double mean[64], sums[64] = {0}, squares[64] = {0};
    for (ptrdiff_t j = 0; j < width; j++) mean[j] = x[j];
    for (ptrdiff_t r = 1; r < rows; r++)
        for (ptrdiff_t j = 0; j < width; j++) sums[j] += x[r * step + j] - x[j];
    for (ptrdiff_t j = 0; j < width; j++) {
        mean[j] += sums[j] / (double)rows;
        sums[j] = 0;
    }
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t j = 0; j < width; j++) {
            const double d = x[r * step + j] - mean[j];
            sums[j] += d;
            squares[j] += d * d;
        }
    for (ptrdiff_t j = 0; j < width; j++) m[j] = joined(m[j], around(mean[j], (double)rows, sums[j], squares[j]));
}

#endif
