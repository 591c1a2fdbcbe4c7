/* Products of few rows of float32 by a matrix that lies transposed, as the weights of a layer do: each weight is used for a
   few products only, so that laying weights out anew, as a general product does, would take longer than these. */
#ifndef TENSORPLUG_MATMUL_FEW_ROWS_H
#define TENSORPLUG_MATMUL_FEW_ROWS_H

#include "level.h"

/* `a` is (rows, inner), `b` (columns, inner), with `lda` and `ldb` elements from row to row; the result is contiguous. */
typedef struct {
    const float *a, *b, *bias; /* NULL, or one for each column */
    float *result;
    ptrdiff_t rows, columns, inner, lda, ldb;
} tp_few_rows;

typedef void (*tp_few_rows_function)(const tp_few_rows *o, int threads);

TP_DECLARE(const tp_few_rows_function, tp_few_rows_table);

#endif
