/* What the windows of an image see, as the columns of a matrix, and back; for products by BLAS. */
#ifndef TENSORPLUG_CONVOLUTION_COLUMNS_H
#define TENSORPLUG_CONVOLUTION_COLUMNS_H

#include "level.h"

/* Of images of three dimensions, the first of which may be 1, the windows at the places from `begins` to `ends`. The places of
   one sample lie beside those of the one before. */
typedef struct {
    ptrdiff_t samples, channels;
    ptrdiff_t size[3], kernel[3], stride[3], before[3], dilation[3], begins[3], ends[3];
    ptrdiff_t row; /* elements from a row of the matrix to the next; a row is (channel, *kernel) */
    int threads;
} tp_windows;

/* Copy `rows` of `length` elements of each of `samples`: elements from one to the next, there and here. */
typedef struct {
    ptrdiff_t samples, rows, length, from_sample, from_row, to_sample, to_row;
    int threads;
} tp_rows;

typedef struct { /* each of float and double */
    void (*spread[2])(const tp_windows *, const void *image, void *columns);
    /* Add columns to the elements that they were of. */
    void (*collect[2])(const tp_windows *, const void *columns, void *image);
    /* With a number that is added to each row, or NULL. */
    void (*place[2])(const tp_rows *, const void *from, const void *bias, void *to);
} tp_column_kernels;

TP_DECLARE(const tp_column_kernels, tp_column_table);

#endif
