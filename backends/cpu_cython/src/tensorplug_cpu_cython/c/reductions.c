/* A float is added up in lanes of float for some thousand elements, and these sums in double: as exact as
   pairwise summation, and as fast as memory. */
#include "reductions.h"

#include <math.h>
#include <string.h>

#include "extremes.h"
#include "parallel.h"

/* Long parts of rows are read at a time, for the processor to see where the next is, but what is gathered stays near. */
enum { LANES = 32, RUN = 4096, WIDTH = 256, WIDE = 1024, FEW = 16, NARROW = 32, SOME = 16, BESIDE = 16 };

typedef uint8_t byte_vector __attribute__((vector_size(VECTOR), aligned(1), may_alias));

#define SUM_OF(a, b) ((a) + (b))
#define PRODUCT_OF(a, b) ((a) * (b))

#define AS_IT_IS(x) (x)
#define IS_NOT_ZERO(x) ((x) != 0)
#define IS_NUMBER(x) ((x) == (x))
#define OR_ZERO(x) ((x) == (x) ? (x) : 0)

/* name, element type, type of short and of long accumulators, neutral element, combination, and what is seen of an
   element */
#define LOOPS(name, T, SHORT, LONG, neutral, of) LOOPS_OF(name, T, SHORT, LONG, neutral, of, AS_IT_IS)

#define LOOPS_OF(name, T, SHORT, LONG, neutral, of, seen)                                              \
    ROW_OF(name, T, SHORT, LONG, neutral, of, seen)                                                    \
    COLUMNS_OF(name, T, SHORT, LONG, of, seen)

#define ROW_OF(name, T, SHORT, LONG, neutral, of, seen)                                                \
    static LONG name##_row(const T *x, ptrdiff_t n) {                                                  \
        LONG total = neutral;                                                                          \
        while (n >= LANES) {                                                                           \
            const ptrdiff_t run = (n < RUN ? n : RUN) / LANES * LANES;                                 \
            SHORT lanes[LANES];                                                                        \
            for (int l = 0; l < LANES; l++) lanes[l] = neutral;                                        \
            for (ptrdiff_t i = 0; i < run; i += LANES)                                                 \
                for (int l = 0; l < LANES; l++) lanes[l] = of(lanes[l], (SHORT)seen(x[i + l]));              \
            for (int half = LANES / 2; half; half /= 2)                                                \
                for (int l = 0; l < half; l++) lanes[l] = of(lanes[l], lanes[l + half]);               \
            total = of(total, (LONG)lanes[0]);                                                         \
            x += run;                                                                                  \
            n -= run;                                                                                  \
        }                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) total = of(total, (LONG)seen(x[i]));                               \
        return total;                                                                                  \
    }

/* Sums, by vectors. */
#define SUM_ROW_OF(name, T, LONG)                                                                      \
    static LONG name##_row(const T *x, ptrdiff_t n) {                                                  \
        LONG total = 0;                                                                                \
        for (ptrdiff_t from = 0; from < n; from += RUN) {                                              \
            SUM_VECTORS(T, some, x + from, n - from < RUN ? n - from : RUN, v)                         \
            total += (LONG)some;                                                                       \
        }                                                                                              \
        return total;                                                                                  \
    }

/* Products in double, by vectors. */
#define PRODUCT_ROW_OF(name, T)                                                                        \
    static double name##_row(const T *x, ptrdiff_t n) {                                                \
        enum { PER = VECTOR / sizeof(double), MANY = 8 };                                              \
        double total = 1;                                                                              \
        ptrdiff_t i = 0;                                                                               \
        if (n >= PER) {                                                                                \
            const double_vector one = (double_vector){0} + 1;                                          \
            double_vector p[MANY] = {one, one, one, one, one, one, one, one};                          \
            for (; i + MANY * PER <= n; i += MANY * PER)                                               \
                for (int k = 0; k < MANY; k++)                                                         \
                    p[k] *= widened_##T(x + i + k * PER);                                              \
            for (; i + PER <= n; i += PER) p[0] *= widened_##T(x + i);                                 \
            p[0] = ((p[0] * p[1]) * (p[2] * p[3])) * ((p[4] * p[5]) * (p[6] * p[7]));                  \
            double lanes[PER];                                                                         \
            memcpy(lanes, &p[0], sizeof(lanes));                                                       \
            for (int half = PER / 2; half; half /= 2)                                                  \
                for (int l = 0; l < half; l++) lanes[l] *= lanes[l + half];                            \
            total = lanes[0];                                                                          \
        }                                                                                              \
        for (; i < n; i++) total *= (double)x[i];                                                      \
        return total;                                                                                  \
    }

/* How many of truth values hold: counted in bytes, as often as these cannot overflow. */
static int64_t count_BOOL_row(const uint8_t *x, ptrdiff_t n) {
    enum { MANY = 4, STEP = MANY * VECTOR };
    int64_t total = 0;
    while (n >= STEP) {
        const ptrdiff_t run = n < 255 * STEP ? n / STEP * STEP : 255 * STEP;
        byte_vector counts[MANY] = {{0}};
        for (ptrdiff_t i = 0; i < run; i += STEP)
            for (int k = 0; k < MANY; k++) counts[k] += *(const byte_vector *)(x + i + k * VECTOR);
        uint8_t lanes[STEP];
        memcpy(lanes, counts, sizeof(lanes));
        int32_t some = 0;
        for (int l = 0; l < STEP; l++) some += lanes[l];
        total += some;
        x += run;
        n -= run;
    }
    int32_t rest = 0;
    for (int l = 0; l < n; l++) rest += x[l];
    return total + rest;
}

/* Give a block of code the elements j of four rows, from `row` on, as one. */
#define FOUR_ROWS(T, SHORT, of, seen, all, row)                                                        \
    const SHORT all##_a = (SHORT)seen(((const T *)(row))[j]), all##_b = (SHORT)seen(((const T *)((row) + step))[j]); \
    const SHORT all##_c = (SHORT)seen(((const T *)((row) + 2 * step))[j]);                             \
    const SHORT all##_d = (SHORT)seen(((const T *)((row) + 3 * step))[j]);                             \
    const SHORT all##_ab = of(all##_a, all##_b), all##_cd = of(all##_c, all##_d), all = of(all##_ab, all##_cd);

#define COLUMNS_OF(name, T, SHORT, LONG, of, seen)                                                     \
    /* Add `n` rows, `step` bytes apart, to the totals of their columns. */                            \
    static void name##_columns(LONG *total, const char *row, ptrdiff_t step, ptrdiff_t n, ptrdiff_t width) { \
        for (; n >= 8; n -= 8, row += 8 * step)                                                        \
            for (ptrdiff_t j = 0; j < width; j++) {                                                    \
                FOUR_ROWS(T, SHORT, of, seen, first, row)                                              \
                FOUR_ROWS(T, SHORT, of, seen, second, row + 4 * step)                                  \
                const SHORT all = of(first, second);                                                   \
                total[j] = of(total[j], (LONG)all);                                                    \
            }                                                                                          \
        for (; n >= 4; n -= 4, row += 4 * step)                                                        \
            for (ptrdiff_t j = 0; j < width; j++) {                                                    \
                FOUR_ROWS(T, SHORT, of, seen, all, row)                                                \
                total[j] = of(total[j], (LONG)all);                                                    \
            }                                                                                          \
        for (; n > 0; n--, row += step)                                                                \
            for (ptrdiff_t j = 0; j < width; j++) total[j] = of(total[j], (LONG)seen(((const T *)row)[j])); \
    }

/* Sums of the columns of narrow rows, such as the parts of complex numbers: as many vectors are added up beside each
   other as it takes until the columns begin anew. */
enum { NOT_NARROW = 9 };

#define SUM_COLUMNS_OF(name, T, LONG)                                                                  \
    COLUMNS_OF(name##_wide, T, T, LONG, SUM_OF, AS_IT_IS)                                              \
    static inline __attribute__((always_inline)) void name##_narrow(LONG *total, const T *x, ptrdiff_t n, int width) { \
        enum { PER = VECTOR / sizeof(T) };                                                             \
        const int many = width < 4 ? 2 * width : width, size = many * PER;                             \
        for (n *= width; n > 0;) {                                                                     \
            const ptrdiff_t run = (n < RUN ? n : RUN) / size * size;                                   \
            const ptrdiff_t rest = n - run < size ? n - run : 0;                                       \
            T##_vector sums[NOT_NARROW - 1] = {{0}};                                                   \
            for (ptrdiff_t i = 0; i < run; i += size)                                                  \
                for (int k = 0; k < many; k++) sums[k] += *(const T##_vector *)(x + i + k * PER);      \
            T lanes[(NOT_NARROW - 1) * PER];                                                           \
            memcpy(lanes, sums, sizeof(lanes));                                                        \
            for (ptrdiff_t l = 0; l < rest; l++) lanes[l] += x[run + l];                               \
            for (int half = size / 2; half >= width; half /= 2) /* the lanes are a power of two for each column */ \
                for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];                            \
            for (int l = 0; l < width; l++) total[l] += (LONG)lanes[l];                                \
            x += run + rest;                                                                           \
            n -= run + rest;                                                                           \
        }                                                                                              \
    }                                                                                                  \
    static void name##_columns(LONG *total, const char *row, ptrdiff_t step, ptrdiff_t n, ptrdiff_t width) { \
        const int is_narrow = width < NOT_NARROW && step == width * (ptrdiff_t)sizeof(T);               \
        const T *x = (const T *)row;                                                                   \
        switch (is_narrow ? width : 0) { /* known widths, so that the sums stay in registers */        \
        case 2: name##_narrow(total, x, n, 2); return;                                                 \
        case 3: name##_narrow(total, x, n, 3); return;                                                 \
        case 4: name##_narrow(total, x, n, 4); return;                                                 \
        case 5: name##_narrow(total, x, n, 5); return;                                                 \
        case 6: name##_narrow(total, x, n, 6); return;                                                 \
        case 7: name##_narrow(total, x, n, 7); return;                                                 \
        case 8: name##_narrow(total, x, n, 8); return;                                                 \
        default: name##_wide_columns(total, row, step, n, width);                                      \
        }                                                                                              \
    }

/* Whether so little is reduced at a time that a block of it is gathered, for vectors to run over the results. */
static inline int is_short(const tp_reduction *s, ptrdiff_t count, ptrdiff_t size) {
    return count == 1 && s->reduced[1] > 1 && s->reduced[1] <= FEW &&
           (s->kept_strides[1] != size || s->kept[1] < NARROW);
}

#define REDUCTION(name, T, SHORT, LONG, neutral, of)                                                   \
    REDUCTION_TO(name, T, T, SHORT, LONG, neutral, of, AS_IT_IS)

/* R is the type of the result. */
#define REDUCTION_TO(name, T, R, SHORT, LONG, neutral, of, seen)                                                 \
    /* The kept elements from `begin` to `end`, over part of the slower reduced dimension. */          \
    static void name##_part(const char *in, LONG *out, const tp_reduction *s, ptrdiff_t begin,         \
                            ptrdiff_t end, ptrdiff_t low, ptrdiff_t high) {                            \
        const ptrdiff_t r1 = s->reduced[1], step = s->reduced_strides[1], k1 = s->kept[1];             \
        if (is_short(s, high - low, sizeof(T))) {                                                      \
            T block[FEW * WIDTH];                                                                      \
            ptrdiff_t slow = begin / k1, fast = begin % k1;                                            \
            for (ptrdiff_t k = begin; k < end; k += WIDTH) {                                           \
                const ptrdiff_t width = end - k < WIDTH ? end - k : WIDTH;                             \
                for (ptrdiff_t j = 0; j < width; j++) {                                                \
                    const char *from = in + slow * s->kept_strides[0] + fast * s->kept_strides[1] +    \
                                       low * s->reduced_strides[0];                                    \
                    for (ptrdiff_t i = 0; i < r1; i++) block[i * WIDTH + j] = *(const T *)(from + i * step); \
                    if (++fast == k1) { fast = 0; slow++; }                                            \
                }                                                                                      \
                LONG *total = out + (k - begin);                                                       \
                for (ptrdiff_t j = 0; j < width; j++) total[j] = neutral;                              \
                name##_columns(total, (const char *)block, WIDTH * (ptrdiff_t)sizeof(T), r1, width);   \
            }                                                                                          \
            return;                                                                                    \
        }                                                                                              \
        if (step == sizeof(T) || s->kept_strides[1] != sizeof(T) || k1 == 1) {                         \
            for (ptrdiff_t k = begin; k < end; k++) {                                                  \
                const char *from = in + k / k1 * s->kept_strides[0] + k % k1 * s->kept_strides[1];     \
                LONG total = neutral;                                                                  \
                for (ptrdiff_t r = low; r < high; r++) {                                               \
                    const char *row = from + r * s->reduced_strides[0];                                \
                    if (step == sizeof(T)) {                                                           \
                        total = of(total, name##_row((const T *)row, r1));                             \
                    } else {                                                                           \
                        for (ptrdiff_t i = 0; i < r1; i++)                                             \
                            total = of(total, (LONG)seen(*(const T *)(row + i * step)));               \
                    }                                                                                  \
                }                                                                                      \
                out[k - begin] = total;                                                                      \
            }                                                                                          \
            return;                                                                                    \
        }                                                                                              \
        for (ptrdiff_t k = begin; k < end;) { /* columns, a block of them at a time */                 \
            ptrdiff_t width = k1 - k % k1;                                                             \
            if (width > end - k) width = end - k;                                                      \
            if (width > WIDE) width = WIDE;                                                            \
            const char *from = in + k / k1 * s->kept_strides[0] + k % k1 * s->kept_strides[1];         \
            LONG total[WIDE];                                                                          \
            for (ptrdiff_t j = 0; j < width; j++) total[j] = neutral;                                  \
            for (ptrdiff_t r = low; r < high; r++) {                                                   \
                const char *row = from + r * s->reduced_strides[0];                                    \
                name##_columns(total, row, step, r1, width);                                           \
            }                                                                                          \
            for (ptrdiff_t j = 0; j < width; j++) out[k - begin + j] = total[j];                             \
            k += width;                                                                                \
        }                                                                                              \
    }                                                                                                  \
    static void name(const char *in, char *out, const tp_reduction *shape, char *partial, int threads) {\
        tp_reduction s = *shape;                                                                       \
        R *result = (R *)out;                                                                          \
        LONG *totals = (LONG *)partial;                                                                \
        const ptrdiff_t kept = s.kept[0] * s.kept[1];                                                  \
        if (kept >= 4 * threads) {                                                                     \
            TP_PARALLEL(kept, threads, begin, end, {                                                   \
                for (ptrdiff_t k = begin; k < end; k += WIDE) {                                        \
                    const ptrdiff_t stop = end - k < WIDE ? end : k + WIDE;                            \
                    LONG some[WIDE];                                                                   \
                    name##_part(in, some, &s, k, stop, 0, s.reduced[0]);                               \
                    if (s.divisor == 1) { /* to divide whole numbers takes longer than to add some */  \
                        for (ptrdiff_t j = k; j < stop; j++) result[j] = (R)some[j - k];               \
                        continue;                                                                      \
                    }                                                                                  \
                    for (ptrdiff_t j = k; j < stop; j++) result[j] = (R)(some[j - k] / (LONG)s.divisor); \
                }                                                                                      \
            });                                                                                        \
            return;                                                                                    \
        }                                                                                              \
        /* Few results: the threads share what is reduced. */                                          \
        if (s.reduced[0] == 1) {                                                                       \
            const ptrdiff_t pieces = threads < s.reduced[1] ? threads : 1, piece = s.reduced[1] / pieces; \
            const ptrdiff_t rest = s.reduced[1] - piece * pieces;                                      \
            s.reduced[0] = pieces;                                                                     \
            s.reduced[1] = piece;                                                                      \
            s.reduced_strides[0] = piece * s.reduced_strides[1];                                       \
            if (rest) { /* too few to be worth a thread */                                             \
                tp_reduction tail = s;                                                                 \
                tail.reduced[0] = 1;                                                                   \
                tail.reduced[1] = rest;                                                                \
                name##_part(in + pieces * s.reduced_strides[0], totals + kept * threads, &tail, 0, kept, 0, 1); \
            } else {                                                                                   \
                for (ptrdiff_t k = 0; k < kept; k++) totals[kept * threads + k] = neutral;             \
            }                                                                                          \
        } else {                                                                                       \
            for (ptrdiff_t k = 0; k < kept; k++) totals[kept * threads + k] = neutral;                 \
        }                                                                                              \
        const ptrdiff_t all = s.reduced[0];                                                            \
        TP_PARALLEL(threads, threads, begin, end, {                                                    \
            for (ptrdiff_t t = begin; t < end; t++)                                                    \
                name##_part(in, totals + kept * t, &s, 0, kept, all * t / threads, all * (t + 1) / threads); \
        });                                                                                            \
        for (ptrdiff_t k = 0; k < kept; k++) {                                                         \
            LONG total = totals[k];                                                                    \
            for (int t = 1; t <= threads; t++) total = of(total, totals[kept * t + k]);                \
            result[k] = (R)(total / (LONG)s.divisor);                                                  \
        }                                                                                              \
    }

/* Sums of rows that are a few vectors long. To fold a vector's lanes takes as long as to add up such a row, so it is done
   for several rows beside each other, by vectors of half as many lanes each time. Longer vectors have more to fold. */
enum { ROW_VECTOR = VECTOR < 32 ? VECTOR : 32 };

#define FOLD_ROWS(T, bytes)                                                                            \
    if (ROW_VECTOR > (bytes) && (bytes) > (int)sizeof(T)) {                                            \
        typedef T half_ __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));            \
        for (int j = 0; j < BESIDE; j++)                                                               \
            *(half_ *)lanes[j] += *(const half_ *)(lanes[j] + (bytes) / sizeof(T));                    \
    }

#define SUMS_OF_ROWS(name, T, MASK, LONG)                                                              \
    static void name##_of_rows(const char *in, T *out, const tp_reduction *s, ptrdiff_t begin, ptrdiff_t end) { \
        enum { PER = ROW_VECTOR / sizeof(T) };                                                         \
        typedef T part __attribute__((vector_size(ROW_VECTOR), aligned(sizeof(T)), may_alias));        \
        typedef MASK part_mask __attribute__((vector_size(ROW_VECTOR), aligned(sizeof(T)), may_alias)); \
        const ptrdiff_t n = s->reduced[1], k1 = s->kept[1], rest = n % PER;                            \
        ptrdiff_t slow = begin / k1, fast = begin % k1;                                                \
        MASK places[PER];                                                                              \
        for (int l = 0; l < PER; l++) places[l] = l >= PER - rest ? -1 : 0;                            \
        const part_mask last = *(const part_mask *)places; /* those that no other vector has */        \
        T lanes[BESIDE][PER];                                                                          \
        memset(lanes, 0, sizeof lanes);                                                                \
        for (ptrdiff_t k = begin; k < end; k += BESIDE) {                                              \
            const ptrdiff_t width = end - k < BESIDE ? end - k : BESIDE;                               \
            for (ptrdiff_t j = 0; j < width; j++) {                                                    \
                const T *x = (const T *)(in + slow * s->kept_strides[0] + fast * s->kept_strides[1]);  \
                part total = (part)(*(const part_mask *)(x + n - PER) & last);                         \
                for (ptrdiff_t i = 0; i + PER <= n; i += PER) total += *(const part *)(x + i);         \
                *(part *)lanes[j] = total;                                                             \
                if (++fast == k1) { fast = 0; slow++; }                                                \
            }                                                                                          \
            FOLD_ROWS(T, 16)                                                                           \
            FOLD_ROWS(T, 8)                                                                            \
            for (ptrdiff_t j = 0; j < width; j++) {                                                    \
                const LONG total = (LONG)lanes[j][0] + (LONG)lanes[j][1];                              \
                out[k + j] = (T)(s->divisor == 1 ? total : total / (LONG)s->divisor);                  \
            }                                                                                          \
        }                                                                                              \
    }                                                                                                  \
    static void name##_or_rows(const char *in, char *out, const tp_reduction *s, char *partial, int threads) { \
        enum { PER = ROW_VECTOR / sizeof(T) };                                                         \
        const ptrdiff_t kept = s->kept[0] * s->kept[1], n = s->reduced[1];                             \
        const int are_rows = s->reduced[0] == 1 && s->reduced_strides[1] == sizeof(T);                 \
        if (!are_rows || kept < BESIDE * threads || n < PER || n > SOME * PER) {                       \
            name(in, out, s, partial, threads);                                                        \
            return;                                                                                    \
        }                                                                                              \
        TP_PARALLEL(kept, threads, begin, end, { name##_of_rows(in, (T *)out, s, begin, end); });      \
    }

SUM_ROW_OF(sum_F32, float, double)
SUM_COLUMNS_OF(sum_F32, float, double)
REDUCTION(sum_F32, float, float, double, 0, SUM_OF)
SUMS_OF_ROWS(sum_F32, float, int32_t, double)
SUM_ROW_OF(sum_F64, double, double)
SUM_COLUMNS_OF(sum_F64, double, double)
REDUCTION(sum_F64, double, double, double, 0, SUM_OF)
SUMS_OF_ROWS(sum_F64, double, int64_t, double)
SUM_ROW_OF(sum_I64, int64_t, int64_t)
SUM_COLUMNS_OF(sum_I64, int64_t, int64_t)
REDUCTION(sum_I64, int64_t, int64_t, int64_t, 0, SUM_OF)
SUMS_OF_ROWS(sum_I64, int64_t, int64_t, int64_t)
LOOPS_OF(nansum_F32, float, float, double, 0, SUM_OF, OR_ZERO)
REDUCTION_TO(nansum_F32, float, float, float, double, 0, SUM_OF, OR_ZERO)
LOOPS_OF(nansum_F64, double, double, double, 0, SUM_OF, OR_ZERO)
REDUCTION_TO(nansum_F64, double, double, double, double, 0, SUM_OF, OR_ZERO)
COLUMNS_OF(count_BOOL, uint8_t, int32_t, int64_t, SUM_OF, AS_IT_IS)
REDUCTION_TO(count_BOOL, uint8_t, int64_t, int32_t, int64_t, 0, SUM_OF, AS_IT_IS)
LOOPS_OF(filled_F32, float, int32_t, int64_t, 0, SUM_OF, IS_NOT_ZERO)
REDUCTION_TO(filled_F32, float, int64_t, int32_t, int64_t, 0, SUM_OF, IS_NOT_ZERO)
LOOPS_OF(filled_F64, double, int64_t, int64_t, 0, SUM_OF, IS_NOT_ZERO)
REDUCTION_TO(filled_F64, double, int64_t, int64_t, int64_t, 0, SUM_OF, IS_NOT_ZERO)
LOOPS_OF(filled_I64, int64_t, int64_t, int64_t, 0, SUM_OF, IS_NOT_ZERO)
REDUCTION_TO(filled_I64, int64_t, int64_t, int64_t, int64_t, 0, SUM_OF, IS_NOT_ZERO)
LOOPS_OF(numbers_F32, float, int32_t, int64_t, 0, SUM_OF, IS_NUMBER)
REDUCTION_TO(numbers_F32, float, int64_t, int32_t, int64_t, 0, SUM_OF, IS_NUMBER)
LOOPS_OF(numbers_F64, double, int64_t, int64_t, 0, SUM_OF, IS_NUMBER)
REDUCTION_TO(numbers_F64, double, int64_t, int64_t, int64_t, 0, SUM_OF, IS_NUMBER)
PRODUCT_ROW_OF(prod_F32, float)
COLUMNS_OF(prod_F32, float, double, double, PRODUCT_OF, AS_IT_IS)
REDUCTION(prod_F32, float, double, double, 1, PRODUCT_OF)
PRODUCT_ROW_OF(prod_F64, double)
COLUMNS_OF(prod_F64, double, double, double, PRODUCT_OF, AS_IT_IS)
REDUCTION(prod_F64, double, double, double, 1, PRODUCT_OF)
EXTREME_ROW(max_F32, float, int32_t, -INFINITY, LARGER_OF)
EXTREME_COLUMNS(max_F32, float, LARGER_OF)
REDUCTION(max_F32, float, float, float, -INFINITY, LARGER_OF)
EXTREME_ROW(max_F64, double, int64_t, -INFINITY, LARGER_OF)
EXTREME_COLUMNS(max_F64, double, LARGER_OF)
REDUCTION(max_F64, double, double, double, -INFINITY, LARGER_OF)
LOOPS(max_I64, int64_t, int64_t, int64_t, INT64_MIN, LARGER_OF)
REDUCTION(max_I64, int64_t, int64_t, int64_t, INT64_MIN, LARGER_OF)
LOOPS(max_I32, int32_t, int32_t, int32_t, INT32_MIN, LARGER_OF)
REDUCTION(max_I32, int32_t, int32_t, int32_t, INT32_MIN, LARGER_OF)
LOOPS(max_I16, int16_t, int16_t, int16_t, INT16_MIN, LARGER_OF)
REDUCTION(max_I16, int16_t, int16_t, int16_t, INT16_MIN, LARGER_OF)
LOOPS(max_I8, int8_t, int8_t, int8_t, INT8_MIN, LARGER_OF)
REDUCTION(max_I8, int8_t, int8_t, int8_t, INT8_MIN, LARGER_OF)
LOOPS(max_U8, uint8_t, uint8_t, uint8_t, 0, LARGER_OF)
REDUCTION(max_U8, uint8_t, uint8_t, uint8_t, 0, LARGER_OF)
EXTREME_ROW(min_F32, float, int32_t, INFINITY, SMALLER_OF)
EXTREME_COLUMNS(min_F32, float, SMALLER_OF)
REDUCTION(min_F32, float, float, float, INFINITY, SMALLER_OF)
EXTREME_ROW(min_F64, double, int64_t, INFINITY, SMALLER_OF)
EXTREME_COLUMNS(min_F64, double, SMALLER_OF)
REDUCTION(min_F64, double, double, double, INFINITY, SMALLER_OF)
EXTREMES_ROW(F32, float, int32_t)
EXTREMES_ROW(F64, double, int64_t)
LOOPS(min_I64, int64_t, int64_t, int64_t, INT64_MAX, SMALLER_OF)
REDUCTION(min_I64, int64_t, int64_t, int64_t, INT64_MAX, SMALLER_OF)
LOOPS(min_I32, int32_t, int32_t, int32_t, INT32_MAX, SMALLER_OF)
REDUCTION(min_I32, int32_t, int32_t, int32_t, INT32_MAX, SMALLER_OF)
LOOPS(min_I16, int16_t, int16_t, int16_t, INT16_MAX, SMALLER_OF)
REDUCTION(min_I16, int16_t, int16_t, int16_t, INT16_MAX, SMALLER_OF)
LOOPS(min_I8, int8_t, int8_t, int8_t, INT8_MAX, SMALLER_OF)
REDUCTION(min_I8, int8_t, int8_t, int8_t, INT8_MAX, SMALLER_OF)
LOOPS(min_U8, uint8_t, uint8_t, uint8_t, UINT8_MAX, SMALLER_OF)
REDUCTION(min_U8, uint8_t, uint8_t, uint8_t, UINT8_MAX, SMALLER_OF)

/* Half precision is widened block by block, and has results of float. Sums over many rows are taken of what stays in
   registers instead; return how many rows these are. */
#define SUMS_OF_HALVES(H)                                                                              \
    static ptrdiff_t summed_##H(double *total, const char *row, ptrdiff_t step, ptrdiff_t n, ptrdiff_t width) { \
        enum { PER = VECTOR / sizeof(float), DEEP = 16 };                                              \
        ptrdiff_t i = 0;                                                                               \
        if (width < PER) return 0;                                                                     \
        for (; i + DEEP <= n; i += DEEP, row += DEEP * step) {                                         \
            for (ptrdiff_t at = 0; at < width; at += PER) { /* the last vector may begin in the one before */ \
                const ptrdiff_t j = at + PER <= width ? at : width - PER;                              \
                float_vector sums[2] = {{0}};                                                          \
                for (int r = 0; r < DEEP; r++) {                                                       \
                    float held[PER];                                                                   \
                    widen_##H(held, (const uint16_t *)(row + r * step) + j, PER);                      \
                    sums[r % 2] += *(const float_vector *)held;                                        \
                }                                                                                      \
                float found[PER];                                                                      \
                *(float_vector *)found = sums[0] + sums[1];                                            \
                for (ptrdiff_t l = at - j; l < PER; l++) total[j + l] += found[l];                     \
            }                                                                                          \
        }                                                                                              \
        return i;                                                                                      \
    }
SUMS_OF_HALVES(F16)
SUMS_OF_HALVES(BF16)
#define none_F16(...) 0
#define none_BF16(...) 0

enum { AT_ONCE = 8 };
#define HALF_REDUCTION(name, H, LONG, neutral, of, seen, begun)                                        \
    static LONG name##_##H##_row(const uint16_t *x, ptrdiff_t n) {                                     \
        float block[AT_ONCE * WIDTH];                                                                  \
        LONG total = neutral;                                                                          \
        for (ptrdiff_t from = 0; from < n; from += AT_ONCE * WIDTH) {                                  \
            const ptrdiff_t count = n - from < AT_ONCE * WIDTH ? n - from : AT_ONCE * WIDTH;           \
            widen_##H(block, x + from, count);                                                         \
            total = of(total, name##_F32_row(block, count));                                           \
        }                                                                                              \
        return total;                                                                                  \
    }                                                                                                  \
    static void name##_##H##_columns(LONG *total, const char *row, ptrdiff_t step, ptrdiff_t n, ptrdiff_t width) { \
        const ptrdiff_t begin = begun##_##H(total, row, step, n, width);                               \
        row += begin * step;                                                                           \
        n -= begin;                                                                                    \
        if (width > WIDTH) {                                                                           \
            for (ptrdiff_t j = 0; j < width; j += WIDTH)                                               \
                name##_##H##_columns(total + j, row + j * (ptrdiff_t)sizeof(uint16_t), step, n,        \
                                     width - j < WIDTH ? width - j : WIDTH);                           \
            return;                                                                                    \
        }                                                                                              \
        float block[AT_ONCE * WIDTH];                                                                  \
        const int dense = step == width * (ptrdiff_t)sizeof(uint16_t);                                 \
        const ptrdiff_t some = dense ? AT_ONCE * WIDTH / width : AT_ONCE, apart = dense ? width : WIDTH; \
        for (ptrdiff_t i = 0; i < n; i += some) {                                                      \
            const ptrdiff_t rows = n - i < some ? n - i : some;                                        \
            if (dense) widen_##H(block, (const uint16_t *)(row + i * step), rows * width);             \
            else                                                                                       \
                for (ptrdiff_t r = 0; r < rows; r++)                                                   \
                    widen_##H(block + r * WIDTH, (const uint16_t *)(row + (i + r) * step), width);     \
            name##_F32_columns(total, (const char *)block, apart * (ptrdiff_t)sizeof(float), rows, width); \
        }                                                                                              \
    }                                                                                                  \
    REDUCTION_TO(name##_##H, uint16_t, float, float, LONG, neutral, of, seen)
#define HALF_REDUCTIONS(name, LONG, neutral, of, begun)                                                \
    HALF_REDUCTION(name, F16, LONG, neutral, of, wide_F16, begun)                                      \
    HALF_REDUCTION(name, BF16, LONG, neutral, of, wide_BF16, begun)
HALF_REDUCTIONS(sum, double, 0, SUM_OF, summed)
HALF_REDUCTIONS(prod, double, 1, PRODUCT_OF, none)
HALF_REDUCTIONS(max, float, -INFINITY, LARGER_OF, none)
HALF_REDUCTIONS(min, float, INFINITY, SMALLER_OF, none)
#define F16_OR_ZERO(x) OR_ZERO(wide_F16(x))
#define BF16_OR_ZERO(x) OR_ZERO(wide_BF16(x))
HALF_REDUCTION(nansum, F16, double, 0, SUM_OF, F16_OR_ZERO, none)
HALF_REDUCTION(nansum, BF16, double, 0, SUM_OF, BF16_OR_ZERO, none)
#define OF_HALVES(name) [TP_F16] = name##_F16, [TP_BF16] = name##_BF16

/* The smallest and the largest of each row. */
#define BOTH_ROW(S, T)                                                                                 \
    static void both_row_##S(const T *x, ptrdiff_t n, T *low, T *high) {                               \
        T least = x[0];                                                                                \
        T most = x[0];                                                                                 \
        for (ptrdiff_t i = 1; i < n; i++) {                                                            \
            least = x[i] < least ? x[i] : least;                                                       \
            most = x[i] > most ? x[i] : most;                                                          \
        }                                                                                              \
        *low = least;                                                                                  \
        *high = most;                                                                                  \
    }
TP_INTEGERS(BOTH_ROW)
#define BOTH(S, T)                                                                                     \
    static void both_##S(const void *in, void *lows, void *highs, ptrdiff_t rows, ptrdiff_t n, int threads) { \
        TP_PARALLEL(rows, threads, begin, end, {                                                       \
            for (ptrdiff_t row = begin; row < end; row++)                                              \
                both_row_##S((const T *)in + row * n, n, (T *)lows + row, (T *)highs + row);           \
        });                                                                                            \
    }
BOTH(F32, float)
BOTH(F64, double)
TP_INTEGERS(BOTH)

/* Vectors run over the results where a row, or what follows a place, is shorter than a vector; a block of results
   takes elements of the same distances each time. */
enum { SHORT_ROW = 16, NEAR = 4096 };

/* The extreme first, which is vectorised, and then where it is. */
#define ARG(name, T, extreme, neutral, of)                                                             \
    static void name##_of_short(const T *x, int64_t *out, ptrdiff_t n, ptrdiff_t after, ptrdiff_t begin, ptrdiff_t end) { \
        const ptrdiff_t rows = WIDTH / after;                                                          \
        int32_t apart[WIDTH], at[WIDTH];                                                               \
        T best[WIDTH];                                                                                 \
        for (ptrdiff_t j = 0; j < rows * after; j++) apart[j] = (int32_t)(j / after * n * after + j % after); \
        for (ptrdiff_t k = begin; k < end; k += rows) {                                                \
            const ptrdiff_t width = (end - k < rows ? end - k : rows) * after;                         \
            const T *from = x + k * n * after;                                                         \
            for (ptrdiff_t j = 0; j < width; j++) { best[j] = from[apart[j]]; at[j] = 0; }             \
            for (int32_t i = 1; i < n; i++) {                                                          \
                const T *row = from + i * after;                                                       \
                for (ptrdiff_t j = 0; j < width; j++) {                                                \
                    const T y = row[apart[j]];                                                         \
                    const int better = of(best[j], y) & (best[j] == best[j]);                          \
                    best[j] = better ? y : best[j];                                                    \
                    at[j] = better ? i : at[j];                                                        \
                }                                                                                      \
            }                                                                                          \
            for (ptrdiff_t j = 0; j < width; j++) out[k * after + j] = at[j];                          \
        }                                                                                              \
    }                                                                                                  \
    static void name(const char *in, int64_t *out, ptrdiff_t before, ptrdiff_t n, ptrdiff_t after,     \
                     int threads) {                                                                    \
        const T *x = (const T *)in;                                                                    \
        if (before > 1 && after < SHORT_ROW && n < (after == 1 ? SHORT_ROW : NEAR)) {                  \
            TP_PARALLEL(before, threads, begin, end, { name##_of_short(x, out, n, after, begin, end); }); \
            return;                                                                                    \
        }                                                                                              \
        if (after == 1) {                                                                              \
            TP_PARALLEL(before, threads, begin, end, {                                                 \
                for (ptrdiff_t k = begin; k < end; k++) {                                              \
                    const T *row = x + k * n;                                                          \
                    const T best = extreme##_row(row, n);                                              \
                    ptrdiff_t i = 0;                                                                   \
                    if (best == best) {                                                                \
                        enum { AHEAD = 64 };                                                           \
                        for (; i + AHEAD <= n; i += AHEAD) {                                           \
                            int found = 0;                                                             \
                            for (int j = 0; j < AHEAD; j++) found |= row[i + j] == best;               \
                            if (found) break;                                                          \
                        }                                                                              \
                        while (i < n - 1 && row[i] != best) i++;                                       \
                    } else {                                                                           \
                        while (i < n - 1 && row[i] == row[i]) i++;                                     \
                    }                                                                                  \
                    out[k] = i;                                                                        \
                }                                                                                      \
            });                                                                                        \
            return;                                                                                    \
        }                                                                                              \
        TP_PARALLEL(before * after, threads, begin, end, {                                             \
            for (ptrdiff_t k = begin; k < end;) {                                                      \
                ptrdiff_t width = after - k % after;                                                   \
                if (width > end - k) width = end - k;                                                  \
                if (width > WIDTH) width = WIDTH;                                                      \
                const T *from = x + k / after * n * after + k % after;                                 \
                T best[WIDTH];                                                                         \
                int64_t at[WIDTH];                                                                     \
                for (ptrdiff_t j = 0; j < width; j++) { best[j] = from[j]; at[j] = 0; }                \
                for (ptrdiff_t i = 1; i < n; i++) {                                                    \
                    const T *row = from + i * after;                                                   \
                    for (ptrdiff_t j = 0; j < width; j++) {                                            \
                        const T y = row[j];                                                            \
                        const int better = of(best[j], y) && best[j] == best[j];                       \
                        best[j] = better ? y : best[j];                                                \
                        at[j] = better ? i : at[j];                                                    \
                    }                                                                                  \
                }                                                                                      \
                for (ptrdiff_t j = 0; j < width; j++) out[k + j] = at[j];                              \
                k += width;                                                                            \
            }                                                                                          \
        });                                                                                            \
    }
#define LARGER(a, b) (((b) > (a)) | ((b) != (b)))
#define SMALLER(a, b) (((b) < (a)) | ((b) != (b)))
ARG(argmax_F32, float, max_F32, 0, LARGER)
ARG(argmax_F64, double, max_F64, 0, LARGER)
ARG(argmax_I64, int64_t, max_I64, 0, LARGER)
ARG(argmax_I32, int32_t, max_I32, 0, LARGER)
ARG(argmax_I16, int16_t, max_I16, 0, LARGER)
ARG(argmax_I8, int8_t, max_I8, 0, LARGER)
ARG(argmax_U8, uint8_t, max_U8, 0, LARGER)
ARG(argmin_F32, float, min_F32, 0, SMALLER)
ARG(argmin_F64, double, min_F64, 0, SMALLER)
ARG(argmin_I64, int64_t, min_I64, 0, SMALLER)
ARG(argmin_I32, int32_t, min_I32, 0, SMALLER)
ARG(argmin_I16, int16_t, min_I16, 0, SMALLER)
ARG(argmin_I8, int8_t, min_I8, 0, SMALLER)
ARG(argmin_U8, uint8_t, min_U8, 0, SMALLER)

const tp_reductions LEVEL(tp_reductions_table) = {
    .reduce = {
        [TP_SUM] = {[TP_F32] = sum_F32_or_rows, [TP_F64] = sum_F64_or_rows, [TP_I64] = sum_I64_or_rows, OF_HALVES(sum)},
        [TP_NANSUM] = {[TP_F32] = nansum_F32, [TP_F64] = nansum_F64, OF_HALVES(nansum)},
        [TP_FILLED] = {[TP_F32] = filled_F32, [TP_F64] = filled_F64, [TP_I64] = filled_I64, [TP_BOOL] = count_BOOL},
        [TP_NUMBERS] = {[TP_F32] = numbers_F32, [TP_F64] = numbers_F64},
        [TP_PROD] = {[TP_F32] = prod_F32, [TP_F64] = prod_F64, OF_HALVES(prod)},
        [TP_MAX] = {[TP_F32] = max_F32, [TP_F64] = max_F64, [TP_I64] = max_I64, [TP_I32] = max_I32, [TP_I16] = max_I16, [TP_I8] = max_I8, [TP_U8] = max_U8, [TP_BOOL] = max_U8, OF_HALVES(max)},
        [TP_MIN] = {[TP_F32] = min_F32, [TP_F64] = min_F64, [TP_I64] = min_I64, [TP_I32] = min_I32, [TP_I16] = min_I16, [TP_I8] = min_I8, [TP_U8] = min_U8, [TP_BOOL] = min_U8, OF_HALVES(min)},
    },
    .both = {[TP_F32] = both_F32, [TP_F64] = both_F64, [TP_I64] = both_I64, [TP_I32] = both_I32, [TP_I16] = both_I16, [TP_I8] = both_I8, [TP_U8] = both_U8},
    .arg = {
        {[TP_F32] = argmax_F32, [TP_F64] = argmax_F64, [TP_I64] = argmax_I64, [TP_I32] = argmax_I32, [TP_I16] = argmax_I16,
         [TP_I8] = argmax_I8, [TP_U8] = argmax_U8, [TP_BOOL] = argmax_U8},
        {[TP_F32] = argmin_F32, [TP_F64] = argmin_F64, [TP_I64] = argmin_I64, [TP_I32] = argmin_I32, [TP_I16] = argmin_I16,
         [TP_I8] = argmin_I8, [TP_U8] = argmin_U8, [TP_BOOL] = argmin_U8},
    },
};
