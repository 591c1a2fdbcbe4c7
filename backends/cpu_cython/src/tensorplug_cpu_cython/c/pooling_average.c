#include "pooling_average.h"

#include <string.h>

#include "parallel.h"
#include "vectors.h"

/* How many places of a row, or channels of a place, are worked on at a time. */
enum { WIDTH = 512 };

/* So many numbers are added up in the element type before they go into sums in double: behind each other, and of a row. */
enum { DEEP = 32, RUN = 4096 };

/* Rows of results shorter than NARROW, of at least SEVERAL planes of at most SMALL elements: so many planes at a time;
   or channels. */
enum { NARROW = 8, SMALL = 256, BESIDE = 64, SEVERAL = 4 };

#define LEAST(a, b) ((a) < (b) ? (a) : (b))

/* How many results from column `c` on, at least one, lie in `WIDTH` places. */
static ptrdiff_t fitting(const tp_boxes *p, ptrdiff_t c) {
    ptrdiff_t n = 1;
    while (c + n < p->where[2] && p->behind[2][c + n] - p->first[2][c] <= WIDTH) n++;
    return n;
}

/* Whether these results lie a fixed step apart, and are equally wide. */
static int regular(const tp_boxes *p, ptrdiff_t c, ptrdiff_t n, ptrdiff_t *step, ptrdiff_t *width) {
    const int64_t *first = p->first[2] + c, *behind = p->behind[2] + c;
    *step = n > 1 ? first[1] - first[0] : 1;
    *width = behind[0] - first[0];
    for (ptrdiff_t j = 1; j < n; j++)
        if (first[j] != first[0] + j * *step || behind[j] - first[j] != *width) return 0;
    return 1;
}

/* Whether there is one result, of the whole plane. */
static int whole(const tp_boxes *p) {
    for (int d = 0; d < 3; d++)
        if (p->where[d] != 1 || p->first[d][0] || p->behind[d][0] != p->size[d]) return 0;
    return 1;
}

/* Whether all results are the only element of their plane. */
static int single(const tp_boxes *p) {
    for (int d = 0; d < 3; d++) {
        if (p->size[d] != 1) return 0;
        for (ptrdiff_t i = 0; i < p->where[d]; i++)
            if (p->first[d][i] || p->behind[d][i] != 1 || p->divisor[d][i] != 1) return 0;
    }
    return 1;
}

#define QUOTIENT(sum, by) ((sum) / (by))
#define T float
#define SUM double
#define SUMMED(total, row, n, expression) SUM_VECTORS(float, total, row, n, expression)
#define OF(name) name##_F32
#include "pooling_average_body.h"
#undef T
#undef SUMMED
#undef OF
#define T double
#define SUMMED(total, row, n, expression) SUM_VECTORS(double, total, row, n, expression)
#define OF(name) name##_F64
#include "pooling_average_body.h"
#undef T
#undef SUM
#undef SUMMED
#undef OF
#undef QUOTIENT
/* Of integers two quotients are none, and end the process. */
static int64_t quotient(int64_t sum, int64_t by) { return by == 0 ? 0 : by == -1 ? (int64_t)-(uint64_t)sum : sum / by; }
#define QUOTIENT(sum, by) quotient(sum, by)
#define T int64_t
#define SUM int64_t
#define SUMMED(total, row, n, expression) SUM_VECTORS(int64_t, total, row, n, expression)
#define OF(name) name##_I64
#include "pooling_average_body.h"

const tp_average_kernels LEVEL(tp_average_table) = {
    .mean = {mean_F32, mean_F64, mean_I64},
    .gradient = {gradient_F32, gradient_F64, gradient_I64},
};
