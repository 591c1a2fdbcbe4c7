/* Products that BLAS has no fast form of: of integers, modulo what their type holds, and of matrices of few columns with
   a vector. */
#ifndef TENSORPLUG_PRODUCTS_H
#define TENSORPLUG_PRODUCTS_H

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

typedef struct {
    /* With a contiguous vector `b`; of floating-point numbers `inner` is small. */
    tp_product_function vector[TP_TYPES];
    tp_product_function matrix[TP_TYPES]; /* of integers */
} tp_products;

TP_DECLARE(const tp_products, tp_product_table);

#endif
