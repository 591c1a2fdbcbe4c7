#include "pooling_max.h"

#include <math.h>
#include <string.h>

#include "parallel.h"

/* How many results are worked on at a time: of a row, or channels of one place. */
enum { WIDTH = 256 };

/* How long vectors are in which values are worked on. */
enum { BYTES = 32 };

/* Rows of results shorter than NARROW, of planes of at most SMALL elements: so many planes at a time. */
enum { NARROW = 8, SMALL = 256, BESIDE = 64 };

/* Of the results that one element of the window has a part in: [*from, *to) among `where`. */
static void reach(ptrdiff_t offset, ptrdiff_t stride, ptrdiff_t size, ptrdiff_t where, ptrdiff_t *from, ptrdiff_t *to) {
    ptrdiff_t first = offset < 0 ? (-offset + stride - 1) / stride : 0;
    ptrdiff_t behind = offset < size ? (size - 1 - offset) / stride + 1 : 0;
    *from = first;
    *to = behind < where ? behind : where;
}

#define T float
#define INDEX int32_t
#define LEAST (-INFINITY)
#define OF(name) name##_F32
#include "pooling_max_body.h"
#include "pooling_max_gradient.h"
#undef T
#undef INDEX
#undef OF
#define T double
#define INDEX int64_t
#define OF(name) name##_F64
#include "pooling_max_body.h"
#include "pooling_max_gradient.h"
#undef T
#undef LEAST
#undef OF
#define T int64_t
#define LEAST INT64_MIN
#define OF(name) name##_I64
#include "pooling_max_body.h"

const tp_pool_kernels LEVEL(tp_pool_table) = {
    .maximum = {maximum_F32, maximum_F64, maximum_I64},
    .gradient = {gradient_F32, gradient_F64},
};
