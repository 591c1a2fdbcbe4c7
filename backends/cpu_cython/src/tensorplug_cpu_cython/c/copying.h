/* Copies of rows of bytes: joined arrays, triangles of matrices, and sequences of numbers. */
#ifndef TENSORPLUG_COPIES_H
#define TENSORPLUG_COPIES_H

#include <stddef.h>
#include <stdint.h>

#include "types.h"

/* Rows of `bytes` bytes, `step` bytes apart. */
typedef struct {
    const char *from;
    ptrdiff_t step, bytes;
} tp_piece;

/* Put rows of several pieces side by side into rows of `step` bytes. */
void tp_join(char *to, ptrdiff_t step, ptrdiff_t rows, const tp_piece *pieces, int count, int threads);

/* Copy a piece's rows to `left` bytes after the start of each, of `step` bytes; zeros elsewhere. */
void tp_block_rows(char *to, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t left, const tp_piece *piece, int threads);

/* Copy the lower or upper triangles of matrices in which all lies row by row; zeros elsewhere. */
void tp_triangle(char *to, const char *from, ptrdiff_t matrices, ptrdiff_t rows, ptrdiff_t columns,
                 ptrdiff_t itemsize, ptrdiff_t diagonal, int upper, int threads);

/* start + i * step, computed in double or int64. Return 0 for a type that there is no loop for. */
int tp_range(char *to, int type, ptrdiff_t count, double start, double step, int threads);
int tp_whole_range(char *to, int type, ptrdiff_t count, int64_t start, int64_t step, int threads);

#endif
