/* Products that BLAS has no fast form of: of integers, modulo what their type holds, of matrices of few columns with a
   vector, and of many small matrices. */
#ifndef TENSORPLUG_MATMUL_PRODUCTS_H
#define TENSORPLUG_MATMUL_PRODUCTS_H

#include "level.h"
#include "types.h"

/* Of matrices (rows, inner) and (inner, columns), whose rows are contiguous and `lda` and `ldb` elements apart; the
   result is contiguous. */
typedef struct {
    const void *a;
    const void *b;
    void *result;
    ptrdiff_t rows, inner, columns, lda, ldb;
} tp_product;

typedef void (*tp_product_function)(const tp_product *o, int threads);

/* Of matrices in batches, of any strides, in elements; the result is contiguous. */
enum { TP_SMALL = 64, TP_BATCH_DIMS = 64 }; /* rows and inner elements at most */
typedef struct {
    const void *a;
    const void *b;
    void *result;
    ptrdiff_t count, rows, inner, columns, a_down, a_along, b_down, b_along;
    ptrdiff_t b_span; /* elements from the first of `b` to behind the last; 0 if it has negative strides */
    int dims;
    ptrdiff_t shape[TP_BATCH_DIMS], a_strides[TP_BATCH_DIMS], b_strides[TP_BATCH_DIMS];
} tp_batch;

typedef struct {
    ptrdiff_t columns[TP_TYPES]; /* at most, of small matrices */
    void (*small[TP_TYPES])(const tp_batch *o, int threads);
    /* With a contiguous vector `b`; of floating-point numbers `inner` is small. */
    tp_product_function vector[TP_TYPES];
    tp_product_function matrix[TP_TYPES]; /* of integers */
} tp_products;

TP_DECLARE(const tp_products, tp_product_table);

#endif
