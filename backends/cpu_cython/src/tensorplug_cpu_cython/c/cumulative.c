#include "cumulative.h"

#include <math.h>
#include <string.h>

#include "elementary64.h"
#include "parallel.h"
#include "vectors.h"

/* Columns are gone through in blocks, and rows of logarithms in runs, that stay in the cache; short rows are summed
   beside each other. */
enum { WIDTH = 64, RUN = 256, SHORT = 16 };

/* Of which rows a unit of work is, and of which block of their columns; of short rows a division would take as long
   as all the rest. */
#define ROWS_OF(unit, blocks) ((blocks) == 1 ? (unit) : (unit) / (blocks))
#define BLOCK_OF(unit, blocks) ((blocks) == 1 ? 0 : (unit) % (blocks))

/* Share rows, or blocks of columns, among threads: `row` and `columns` see x, o and places of their part. */
#define SCAN(name, S, T, row, columns)                                                                 \
    static void name##_##S(const void *x_, void *o_, int64_t *indices_, ptrdiff_t before, ptrdiff_t n,  \
                           ptrdiff_t after, int threads) {                                             \
        const ptrdiff_t blocks = after == 1 ? 1 : (after + WIDTH - 1) / WIDTH;                         \
        TP_PARALLEL(before * blocks, threads, begin, end, {                                            \
            for (ptrdiff_t unit = begin; unit < end; unit++) {                                         \
                const ptrdiff_t first = BLOCK_OF(unit, blocks) * WIDTH;                                \
                const ptrdiff_t at = ROWS_OF(unit, blocks) * n * after + first;                        \
                const ptrdiff_t width = after - first < WIDTH ? after - first : WIDTH;                 \
                const T *x = (const T *)x_ + at;                                                       \
                T *o = (T *)o_ + at;                                                                   \
                int64_t *places = indices_ ? indices_ + at : NULL;                                       \
                (void)places;                                                                          \
                (void)width;                                                                           \
                if (after == 1) { row } else { columns }                                               \
            }                                                                                          \
        });                                                                                            \
    }

#define SUM_OF(a, b) ((a) + (b))
#define PRODUCT_OF(a, b) ((a) * (b))

/* Running sums and products, in LONG. What `ahead` elements come to among themselves waits for nothing, so that
   only one step for all of them depends on those before; of floats that is exact enough in double, and cannot
   overflow there. */
#define RUNNING(name, S, T, LONG, neutral, of, ahead)                                                  \
    SCAN(long_##name, S, T,                                                                            \
        LONG total = neutral;                                                                          \
        ptrdiff_t i = 0;                                                                               \
        for (; ahead > 1 && i + ahead <= n; i += ahead) {                                              \
            LONG some[ahead];                                                                          \
            some[0] = (LONG)x[i];                                                                      \
            for (int k = 1; k < ahead; k++) some[k] = of(some[k - 1], (LONG)x[i + k]);                 \
            for (int k = 0; k < ahead; k++) o[i + k] = (T)of(total, some[k]);                          \
            total = of(total, some[ahead - 1]);                                                        \
        }                                                                                              \
        for (; i < n; i++) { total = of(total, (LONG)x[i]); o[i] = (T)total; },                        \
        LONG total[WIDTH];                                                                             \
        for (ptrdiff_t j = 0; j < width; j++) total[j] = neutral;                                      \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                        \
                total[j] = of(total[j], (LONG)x[i * after + j]);                                       \
                o[i * after + j] = (T)total[j];                                                        \
            })                                                                                         \
    static void name##_##S(const void *x_, void *o_, int64_t *indices, ptrdiff_t before, ptrdiff_t n,  \
                           ptrdiff_t after, int threads) {                                             \
        if (after > 1 || n > SHORT) {                                                                  \
            long_##name##_##S(x_, o_, indices, before, n, after, threads);                             \
            return;                                                                                    \
        }                                                                                              \
        TP_PARALLEL(before, threads, begin, end, {                                                     \
            for (ptrdiff_t from = begin; from < end; from += WIDTH) {                                  \
                const ptrdiff_t rows = end - from < WIDTH ? end - from : WIDTH;                        \
                const T *x = (const T *)x_ + from * n;                                                 \
                T *o = (T *)o_ + from * n;                                                             \
                LONG total[WIDTH];                                                                     \
                for (ptrdiff_t r = 0; r < rows; r++) total[r] = neutral;                               \
                for (ptrdiff_t i = 0; i < n; i++)                                                      \
                    INDEPENDENT for (ptrdiff_t r = 0; r < rows; r++) {                                 \
                        total[r] = of(total[r], (LONG)x[r * n + i]);                                   \
                        o[r * n + i] = (T)total[r];                                                    \
                    }                                                                                  \
            }                                                                                          \
        });                                                                                            \
    }
RUNNING(sum, F32, float, double, 0, SUM_OF, 8)
RUNNING(sum, F64, double, double, 0, SUM_OF, 1)
RUNNING(sum, I64, int64_t, uint64_t, 0, SUM_OF, 1)
RUNNING(product, F32, float, double, 1, PRODUCT_OF, 4)
RUNNING(product, F64, double, double, 1, PRODUCT_OF, 1)
RUNNING(product, I64, int64_t, uint64_t, 1, PRODUCT_OF, 1)

#define PRODUCT_GRADIENT(S, T)                                                                         \
    static void product_gradient_##S(const void *g_, const void *x_, const void *p_, void *o_, ptrdiff_t before, \
                                     ptrdiff_t n, ptrdiff_t after, int threads) {                      \
        const ptrdiff_t blocks = (after + WIDTH - 1) / WIDTH;                                          \
        TP_PARALLEL(before * blocks, threads, begin, end, {                                            \
            for (ptrdiff_t unit = begin; unit < end; unit++) {                                         \
                const ptrdiff_t first = BLOCK_OF(unit, blocks) * WIDTH;                                \
                const ptrdiff_t at = ROWS_OF(unit, blocks) * n * after + first;                        \
                const ptrdiff_t width = after - first < WIDTH ? after - first : WIDTH;                 \
                const T *g = (const T *)g_ + at;                                                       \
                const T *x = (const T *)x_ + at;                                                       \
                const T *p = (const T *)p_ + at;                                                       \
                T *o = (T *)o_ + at;                                                                   \
                if (after == 1) {                                                                      \
                    double sum = 0;                                                                    \
                    for (ptrdiff_t i = n - 1; i >= 0; i--) {                                           \
                        sum += g[i];                                                                   \
                        o[i] = (T)(i ? sum * p[i - 1] : sum);                                          \
                        sum *= x[i];                                                                   \
                    }                                                                                  \
                    continue;                                                                          \
                }                                                                                      \
                double total[WIDTH];                                                                   \
                for (ptrdiff_t j = 0; j < width; j++) total[j] = 0;                                    \
                for (ptrdiff_t i = n - 1; i >= 0; i--) {                                               \
                    const ptrdiff_t here = i * after;                                                  \
                    INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                \
                        total[j] += g[here + j];                                                       \
                        o[here + j] = (T)(i ? total[j] * p[here - after + j] : total[j]);              \
                        total[j] *= x[here + j];                                                       \
                    }                                                                                  \
                }                                                                                      \
            }                                                                                          \
        });                                                                                            \
    }
PRODUCT_GRADIENT(F32, float)
PRODUCT_GRADIENT(F64, double)

/* Of equal elements the last counts; once there is a NaN, each further one is the last. */
#define EXTREME(name, S, T, better)                                                                    \
    SCAN(name, S, T,                                                                                   \
        T best = x[0];                                                                                 \
        if (places) {                                                                                  \
            int64_t place = 0;                                                                         \
            for (ptrdiff_t i = 0; i < n; i++) {                                                        \
                const T v = x[i];                                                                      \
                const int takes = better || v != v;                                                    \
                best = takes ? v : best;                                                               \
                place = takes ? i : place;                                                             \
                o[i] = best;                                                                           \
                places[i] = place;                                                                     \
            }                                                                                          \
        } else {                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++) {                                                        \
                const T v = x[i];                                                                      \
                best = better || v != v ? v : best;                                                    \
                o[i] = best;                                                                           \
            }                                                                                          \
        },                                                                                             \
        T bests[WIDTH];                                                                                \
        int64_t met[WIDTH];                                                                            \
        for (ptrdiff_t j = 0; j < width; j++) { bests[j] = x[j]; met[j] = 0; }                         \
        for (ptrdiff_t i = 0; i < n; i++) {                                                            \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                        \
                const T v = x[i * after + j];                                                          \
                const T best = bests[j];                                                               \
                const int takes = better || v != v;                                                    \
                bests[j] = takes ? v : best;                                                           \
                met[j] = takes ? (int64_t)i : met[j];                                                  \
                o[i * after + j] = bests[j];                                                           \
            }                                                                                          \
            if (places) for (ptrdiff_t j = 0; j < width; j++) places[i * after + j] = met[j];          \
        })
#define EXTREMES(S, T) EXTREME(maximum, S, T, v >= best) EXTREME(minimum, S, T, v <= best)
TP_INTEGERS(EXTREMES)
TP_FLOATS(EXTREMES)
EXTREMES(BOOL, uint8_t)

/* With the largest element so far, m, the result is m + log(s), where s = sum of exp(x - m) goes on as
   s exp(m_before - m) + exp(x - m). Infinite m are left out: m may be any number then. */
#define LOGARITHM(S, T)                                                                                \
    SCAN(logarithm, S, T,                                                                              \
        T peaks[RUN];                                                                                  \
        T factors[RUN];                                                                                \
        T terms[RUN];                                                                                  \
        T peak = -(T)INFINITY;                                                                         \
        T before_it = 0;                                                                               \
        double sum = 0;                                                                                \
        for (ptrdiff_t from = 0; from < n; from += RUN) {                                              \
            const ptrdiff_t count = n - from < RUN ? n - from : RUN;                                   \
            const T start = peak;                                                                      \
            for (ptrdiff_t i = 0; i < count; i++) {                                                    \
                peak = x[from + i] > peak ? x[from + i] : peak;                                        \
                peaks[i] = fabs(peak) == (T)INFINITY ? (T)0 : peak;                                    \
            }                                                                                          \
            INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) terms[i] = m_exp_##S(x[from + i] - peaks[i]); \
            if (peak == start && from) {                                                               \
                for (ptrdiff_t i = 0; i < count; i++) { sum += terms[i]; terms[i] = (T)sum; }          \
            } else {                                                                                   \
                factors[0] = m_exp_##S(before_it - peaks[0]);                                          \
                INDEPENDENT for (ptrdiff_t i = 1; i < count; i++) factors[i] = m_exp_##S(peaks[i - 1] - peaks[i]); \
                for (ptrdiff_t i = 0; i < count; i++) {                                                \
                    sum = (sum == 0 ? 0 : sum * factors[i]) + terms[i];                                \
                    terms[i] = (T)sum;                                                                 \
                }                                                                                      \
            }                                                                                          \
            before_it = peaks[count - 1];                                                              \
            INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) o[from + i] = peaks[i] + m_log_##S(terms[i]); \
        },                                                                                             \
        T peaks[WIDTH];                                                                                \
        T sums[WIDTH];                                                                                 \
        for (ptrdiff_t j = 0; j < width; j++) { peaks[j] = -(T)INFINITY; sums[j] = 0; }                \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                        \
                const T v = x[i * after + j];                                                          \
                const T old = peaks[j];                                                                \
                const T peak = v > old ? v : old;                                                      \
                const T a = fabs(old) == (T)INFINITY ? (T)0 : old;                                     \
                const T b = fabs(peak) == (T)INFINITY ? (T)0 : peak;                                   \
                const T factor = m_exp_##S(a - b);                                                     \
                sums[j] = (sums[j] == 0 ? 0 : sums[j] * factor) + m_exp_##S(v - b);                    \
                peaks[j] = peak;                                                                       \
                o[i * after + j] = b + m_log_##S(sums[j]);                                             \
            })
LOGARITHM(F32, float)
LOGARITHM(F64, double)

/* --- complex numbers, in double ---------------------------------------------------------------------------- */

typedef struct { float re, im; } pair_F32;
typedef struct { double re, im; } pair_F64;
typedef double pair __attribute__((vector_size(16)));
#define PAIRS(S, T)                                                                                    \
    static inline pair wide_##S(pair_##S x) { return (pair){x.re, x.im}; }                             \
    static inline pair_##S narrow_##S(pair x) { return (pair_##S){(T)x[0], (T)x[1]}; }
PAIRS(F32, float)
PAIRS(F64, double)

static inline pair pair_sum(pair a, pair b) { return a + b; }
static inline pair pair_product(pair a, pair b) {
    return (pair){a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]};
}

/* Running sums and products, as above; the first is the element itself, whatever it is. */
#define PAIR_RUNNING(name, S, of, ahead)                                                               \
    SCAN(name, S, pair_##S,                                                                            \
        pair total = wide_##S(x[0]);                                                                   \
        o[0] = x[0];                                                                                   \
        ptrdiff_t i = 1;                                                                               \
        for (; ahead > 1 && i + ahead <= n; i += ahead) {                                              \
            pair some[ahead];                                                                          \
            some[0] = wide_##S(x[i]);                                                                  \
            for (int k = 1; k < ahead; k++) some[k] = of(some[k - 1], wide_##S(x[i + k]));             \
            for (int k = 0; k < ahead; k++) o[i + k] = narrow_##S(of(total, some[k]));                 \
            total = of(total, some[ahead - 1]);                                                        \
        }                                                                                              \
        for (; i < n; i++) { total = of(total, wide_##S(x[i])); o[i] = narrow_##S(total); },           \
        pair total[WIDTH];                                                                             \
        for (ptrdiff_t j = 0; j < width; j++) { total[j] = wide_##S(x[j]); o[j] = x[j]; }              \
        for (ptrdiff_t i = 1; i < n; i++)                                                              \
            INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) {                                        \
                total[j] = of(total[j], wide_##S(x[i * after + j]));                                   \
                o[i * after + j] = narrow_##S(total[j]);                                               \
            })
PAIR_RUNNING(pair_sum, F32, pair_sum, 4)
PAIR_RUNNING(pair_sum, F64, pair_sum, 1)
PAIR_RUNNING(pair_product, F32, pair_product, 4)
PAIR_RUNNING(pair_product, F64, pair_product, 1)

/* The product of all of each row, or column, of which there are before * after. Real and imaginary parts stay side by side
   in a vector. */
typedef int64_t places __attribute__((vector_size(VECTOR)));
static const int64_t REAL_PLACES[8] = {0, 0, 2, 2, 4, 4, 6, 6}, IMAGINARY_PLACES[8] = {1, 1, 3, 3, 5, 5, 7, 7};
static const int64_t TURNED_PLACES[8] = {1, 0, 3, 2, 5, 4, 7, 6};
static const double SIGNS[8] = {-1, 1, -1, 1, -1, 1, -1, 1};
static inline double_vector vector_product(double_vector a, double_vector b) {
    places real, imaginary, turned;
    double_vector signs;
    memcpy(&real, REAL_PLACES, VECTOR);
    memcpy(&imaginary, IMAGINARY_PLACES, VECTOR);
    memcpy(&turned, TURNED_PLACES, VECTOR);
    memcpy(&signs, SIGNS, VECTOR);
    return a * __builtin_shuffle(b, real) + __builtin_shuffle(a, turned) * (__builtin_shuffle(b, imaginary) * signs);
}

#define PAIR_TOTAL(S, T)                                                                               \
    static pair pair_total_row_##S(const pair_##S *x, ptrdiff_t n) {                                   \
        enum { PER = VECTOR / 16, MANY = 4 };                                                          \
        pair total = {1, 0};                                                                           \
        ptrdiff_t i = 0;                                                                               \
        if (n >= 2 * MANY * PER) {                                                                     \
            double_vector p[MANY];                                                                     \
            double lanes[2 * PER];                                                                     \
            for (int k = 0; k < MANY; k++)                                                             \
                p[k] = widened_##T((const T *)(x + k * PER));                                          \
            for (i = MANY * PER; i + MANY * PER <= n; i += MANY * PER)                                 \
                for (int k = 0; k < MANY; k++)                                                         \
                    p[k] = vector_product(p[k], widened_##T((const T *)(x + i + k * PER)));            \
            p[0] = vector_product(vector_product(p[0], p[1]), vector_product(p[2], p[3]));             \
            memcpy(lanes, &p[0], sizeof lanes);                                                        \
            for (int l = 0; l < PER; l++) total = pair_product(total, (pair){lanes[2 * l], lanes[2 * l + 1]}); \
        }                                                                                              \
        for (; i < n; i++) total = pair_product(total, wide_##S(x[i]));                                \
        return total;                                                                                  \
    }                                                                                                  \
    static void pair_total_##S(const void *x_, void *o_, int64_t *unused, ptrdiff_t before, ptrdiff_t n, \
                               ptrdiff_t after, int threads) {                                         \
        (void)unused;                                                                                  \
        const ptrdiff_t blocks = (after + WIDTH - 1) / WIDTH;                                          \
        TP_PARALLEL(before * blocks, threads, begin, end, {                                            \
            for (ptrdiff_t unit = begin; unit < end; unit++) {                                         \
                const ptrdiff_t first = BLOCK_OF(unit, blocks) * WIDTH;                                \
                const ptrdiff_t width = after - first < WIDTH ? after - first : WIDTH;                 \
                const pair_##S *x = (const pair_##S *)x_ + ROWS_OF(unit, blocks) * n * after + first;  \
                pair_##S *o = (pair_##S *)o_ + ROWS_OF(unit, blocks) * after + first;                  \
                if (after == 1) {                                                                      \
                    *o = narrow_##S(pair_total_row_##S(x, n));                                         \
                    continue;                                                                          \
                }                                                                                      \
                const pair one = {1, 0};                                                               \
                pair total[WIDTH];                                                                     \
                for (ptrdiff_t j = 0; j < width; j++) total[j] = one;            \
                for (ptrdiff_t i = 0; i < n; i++)                                                      \
                    INDEPENDENT for (ptrdiff_t j = 0; j < width; j++)                                  \
                        total[j] = pair_product(total[j], wide_##S(x[i * after + j]));                 \
                for (ptrdiff_t j = 0; j < width; j++) o[j] = narrow_##S(total[j]);                     \
            }                                                                                          \
        });                                                                                            \
    }
PAIR_TOTAL(F32, float)
PAIR_TOTAL(F64, double)

/* As the logarithm of real numbers. Its imaginary part is any of many; as by log(exp(a) + exp(b)) one after the other it
   is the one next to that of the term of the larger real part. */
static void log_of_pairs(double *re, double *im, ptrdiff_t count, pair *last, double *peak, pair *sum) {
    double peaks[RUN], x[RUN], y[RUN];
    double top = *peak;
    for (ptrdiff_t i = 0; i < count; i++) peaks[i] = top = re[i] > top ? re[i] : top;
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        double sine, cosine;
        const uint64_t quarters = sin_and_cos_F64(im[i], &sine, &cosine);
        const double size = m_exp_F64(re[i] - peaks[i]);
        x[i] = size * quadrant_F64(quarters + 1, sine, cosine);
        y[i] = size * quadrant_F64(quarters, sine, cosine);
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        if (peaks[i] != *peak) {
            const double factor = exp(*peak - peaks[i]);
            *sum *= factor;
            *peak = peaks[i];
        }
        *sum += (pair){x[i], y[i]};
        x[i] = (*sum)[0];
        y[i] = (*sum)[1];
    }
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        const double squares = x[i] * x[i] + y[i] * y[i];
        y[i] = m_atan2_F64(y[i], x[i]);
        x[i] = peaks[i] + 0.5 * m_log_F64(squares);
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        const double near = (*last)[0] > re[i] ? (*last)[1] : im[i], turn = 6.283185307179586;
        re[i] = x[i];
        im[i] = y[i] + turn * rint((near - y[i]) * (1 / turn));
        *last = (pair){re[i], im[i]};
    }
}

#define PAIR_LOGARITHM(S, T)                                                                           \
    SCAN(pair_logarithm, S, pair_##S,                                                                  \
        double re[RUN];                                                                                \
        double im[RUN];                                                                                \
        pair last = wide_##S(x[0]);                                                                    \
        pair sum = last - last; /* zero, of finite numbers */                                          \
        double peak = last[0];                                                                         \
        for (ptrdiff_t from = 0; from < n; from += RUN) {                                              \
            const ptrdiff_t count = n - from < RUN ? n - from : RUN;                                   \
            for (ptrdiff_t i = 0; i < count; i++) { re[i] = x[from + i].re; im[i] = x[from + i].im; }  \
            log_of_pairs(re, im, count, &last, &peak, &sum);                                           \
            for (ptrdiff_t i = 0; i < count; i++) { o[from + i].re = (T)re[i]; o[from + i].im = (T)im[i]; } \
        }                                                                                              \
        o[0] = x[0];, )
PAIR_LOGARITHM(F32, float)
PAIR_LOGARITHM(F64, double)

#define EACH(name)                                                                                     \
    {[TP_F32] = name##_F32, [TP_F64] = name##_F64, [TP_I64] = name##_I64, [TP_I32] = name##_I32,       \
     [TP_I16] = name##_I16, [TP_I8] = name##_I8, [TP_U8] = name##_U8, [TP_BOOL] = name##_BOOL}
const tp_cumulatives LEVEL(tp_cumulative_table) = {
    .sum = {[TP_F32] = sum_F32, [TP_F64] = sum_F64, [TP_I64] = sum_I64},
    .product = {[TP_F32] = product_F32, [TP_F64] = product_F64, [TP_I64] = product_I64},
    .maximum = EACH(maximum),
    .minimum = EACH(minimum),
    .logarithm = {[TP_F32] = logarithm_F32, [TP_F64] = logarithm_F64},
    .pair_sum = {pair_sum_F32, pair_sum_F64},
    .pair_product = {pair_product_F32, pair_product_F64},
    .pair_total = {pair_total_F32, pair_total_F64},
    .pair_logarithm = {pair_logarithm_F32, pair_logarithm_F64},
    .product_gradient = {product_gradient_F32, product_gradient_F64},
};
