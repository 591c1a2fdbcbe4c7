/* A rank is found by bisection between the least and the greatest key: how many are up to the middle is counted by
   vectors, without a branch on any element. When few are left between the bounds, only they are looked at. */
#include "sorting_select.h"

#include <math.h>
#include <stdlib.h>

#include "sorting_keys.h"
#include "parallel.h"
#include "vectors.h"

/* Rows of keys are filled up with the largest one to whole blocks. Keys are kept as signed numbers, which there are
   vector comparisons of at every level. */
enum { MANY = 4, BLOCK = MANY * VECTOR / 4, FEW = 4 * BLOCK };
static inline ptrdiff_t padded(ptrdiff_t n) { return (n + BLOCK - 1) / BLOCK * BLOCK; }

/* Rows of at most so many elements are gone through several at a time. */
enum { SHORT = 24, BESIDE = 64 };

/* Room for the keys of a row, and for those between the bounds; in keys. */
static inline ptrdiff_t room(ptrdiff_t n) { return padded(n) + padded(n / 2 + 1); }

/* K is a key, U the same without a sign. */
#define SELECT(K, U, MOST)                                                                             \
    typedef K K##_keys __attribute__((vector_size(VECTOR), aligned(sizeof(K)), may_alias));            \
    static inline void fill_up_##K(K *keys, ptrdiff_t n) {                                             \
        for (ptrdiff_t i = n; i < padded(n); i++) keys[i] = MOST;                                      \
    }                                                                                                  \
    /* How many keys are at most `bound`, which is less than MOST. */                                  \
    static ptrdiff_t up_to_##K(const K *keys, ptrdiff_t n, K bound) {                                  \
        enum { PER = VECTOR / sizeof(K) };                                                             \
        const K##_keys bounds = (K##_keys){0} + bound;                                                 \
        K##_keys counts[MANY] = {{0}};                                                                 \
        for (ptrdiff_t i = 0; i < n; i += MANY * PER)                                                  \
            for (int k = 0; k < MANY; k++)                                                             \
                counts[k] -= *(const K##_keys *)(keys + i + k * PER) <= bounds;                        \
        counts[0] = (counts[0] + counts[1]) + (counts[2] + counts[3]);                                 \
        ptrdiff_t total = 0;                                                                           \
        for (int l = 0; l < PER; l++) total += counts[0][l];                                           \
        return total;                                                                                  \
    }                                                                                                  \
    /* The key of a rank from 0, and which of its equals it is. The keys stay as they are. */          \
    static K select_##K(const K *keys, K *few, ptrdiff_t n, ptrdiff_t rank, ptrdiff_t *of_equals) {    \
        K low = keys[0];                                                                               \
        K high = keys[0];                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                            \
            low = keys[i] < low ? keys[i] : low;                                                       \
            high = keys[i] > high ? keys[i] : high;                                                    \
        }                                                                                              \
        ptrdiff_t below = 0; /* keys less than low */                                                  \
        ptrdiff_t upto = n;  /* keys up to high */                                                     \
        while (low < high) {                                                                           \
            const K middle = (K)((low & high) + ((low ^ high) >> 1));                                  \
            const ptrdiff_t count = up_to_##K(keys, n, middle);                                        \
            if (count > rank) {                                                                        \
                high = middle;                                                                         \
                upto = count;                                                                          \
            } else {                                                                                   \
                low = middle + 1;                                                                      \
                below = count;                                                                         \
            }                                                                                          \
            if (upto - below == 1 || (n > FEW && upto - below <= n / 4)) {                             \
                const U span = (U)high - (U)low;                                                       \
                ptrdiff_t held = 0;                                                                    \
                for (ptrdiff_t i = 0; i < n; i++) {                                                    \
                    few[held] = keys[i];                                                               \
                    held += (U)keys[i] - (U)low <= span;                                               \
                }                                                                                      \
                fill_up_##K(few, held);                                                                \
                keys = few;                                                                            \
                n = upto = held;                                                                       \
                rank -= below;                                                                         \
                below = 0;                                                                             \
                if (n == 1) low = high = few[0];                                                       \
            }                                                                                          \
        }                                                                                              \
        *of_equals = rank - below;                                                                     \
        return low;                                                                                    \
    }                                                                                                  \
    /* Where the given one of the keys that equal `key` stands. */                                     \
    static ptrdiff_t index_##K(const K *keys, ptrdiff_t n, K key, ptrdiff_t of_equals) {               \
        enum { AHEAD = 64 };                                                                           \
        ptrdiff_t i = 0;                                                                               \
        for (; i + AHEAD <= n; i += AHEAD) {                                                           \
            K count = 0;                                                                               \
            for (int j = 0; j < AHEAD; j++) count += keys[i + j] == key;                               \
            if (count > of_equals) break;                                                              \
            of_equals -= count;                                                                        \
        }                                                                                              \
        while (keys[i] != key || of_equals--) i++;                                                     \
        return i;                                                                                      \
    }                                                                                                  \
    /* The key that follows `key`, the given one of its equals among the keys, in their order. */      \
    static K next_##K(const K *keys, ptrdiff_t n, K key, ptrdiff_t of_equals) {                        \
        ptrdiff_t equals = 0;                                                                          \
        K next = MOST;                                                                                 \
        for (ptrdiff_t i = 0; i < n; i++) {                                                            \
            equals += keys[i] == key;                                                                  \
            next = keys[i] > key && keys[i] < next ? keys[i] : next;                                   \
        }                                                                                              \
        return equals > of_equals + 1 ? key : next;                                                    \
    }
SELECT(int32_t, uint32_t, INT32_MAX)
SELECT(int64_t, uint64_t, INT64_MAX)

#define SIGN_int32_t 0x80000000u
#define SIGN_int64_t 0x8000000000000000u
#define NAN_int32_t INT32_MAX
#define NAN_int64_t INT64_MAX

#define ROWS(S, T, K, is_float)                                                                        \
    /* Fill a row of keys; return how many are numbers. */                                             \
    static ptrdiff_t fill_##S(K *keys, const T *x, ptrdiff_t n, ptrdiff_t step) {                      \
        if (step == 1) {                                                                               \
            for (ptrdiff_t i = 0; i < n; i++) keys[i] = (K)(key_##S(x[i]) ^ SIGN_##K);                 \
        } else {                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++) keys[i] = (K)(key_##S(x[i * step]) ^ SIGN_##K);          \
        }                                                                                              \
        fill_up_##K(keys, n);                                                                          \
        return is_float ? up_to_##K(keys, n, NAN_##K - 1) : n;                                         \
    }                                                                                                  \
    /* `width` short rows from `first` on, beside each other: for each element of them it is counted how many come     \
       before it, by vectors of rows. */                                                               \
    static void short_##S(const tp_selection *o, ptrdiff_t first, ptrdiff_t width) {                   \
        const ptrdiff_t n = o->n;                                                                      \
        const ptrdiff_t after = o->after;                                                              \
        const T *starts[BESIDE];                                                                       \
        K keys[SHORT][BESIDE], ranks[BESIDE], places[BESIDE] = {0};                                    \
        if (width < BESIDE) memset(keys, 0, sizeof(keys));                                             \
        ptrdiff_t column = first % after;                                                              \
        const T *from = (const T *)o->x + first / after * n * after;                                   \
        for (ptrdiff_t j = 0; j < width; j++) {                                                        \
            starts[j] = from + column;                                                                 \
            if (++column == after) {                                                                   \
                column = 0;                                                                            \
                from += n * after;                                                                     \
            }                                                                                          \
            for (ptrdiff_t i = 0; i < n; i++) keys[i][j] = (K)(key_##S(starts[j][i * after]) ^ SIGN_##K); \
        }                                                                                              \
        for (ptrdiff_t j = 0; j < BESIDE; j++) ranks[j] = (K)o->rank;                                  \
        if (o->which != TP_RANKED) {                                                                   \
            K numbers[BESIDE] = {0};                                                                   \
            for (ptrdiff_t i = 0; i < n; i++)                                                          \
                for (ptrdiff_t j = 0; j < BESIDE; j++) numbers[j] += !is_float || keys[i][j] != NAN_##K; \
            for (ptrdiff_t j = 0; j < BESIDE; j++)                                                     \
                ranks[j] = o->which == TP_NANMEDIAN ? (numbers[j] - (numbers[j] > 0)) / 2              \
                                                    : numbers[j] < (K)n ? numbers[j] : (K)(n - 1) / 2; \
        }                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                            \
            K before[BESIDE] = {0};                                                                    \
            for (ptrdiff_t m = 0; m < i; m++)                                                          \
                for (ptrdiff_t j = 0; j < BESIDE; j++) before[j] += keys[m][j] <= keys[i][j];          \
            for (ptrdiff_t m = i + 1; m < n; m++)                                                      \
                for (ptrdiff_t j = 0; j < BESIDE; j++) before[j] += keys[m][j] < keys[i][j];           \
            for (ptrdiff_t j = 0; j < BESIDE; j++) places[j] = before[j] == ranks[j] ? (K)i : places[j]; \
        }                                                                                              \
        for (ptrdiff_t j = 0; j < width; j++) ((T *)o->values)[first + j] = starts[j][places[j] * after]; \
        if (o->places) for (ptrdiff_t j = 0; j < width; j++) o->places[first + j] = places[j];         \
    }                                                                                                  \
    static int select_##S(const tp_selection *o, int threads) {                                        \
        if (o->n <= SHORT && o->before * o->after >= BESIDE / 2) {                                     \
            TP_PARALLEL(o->before * o->after, threads, begin, end, {                                   \
                for (ptrdiff_t row = begin; row < end; row += BESIDE)                                  \
                    short_##S(o, row, end - row < BESIDE ? end - row : BESIDE);                        \
            });                                                                                        \
            return 1;                                                                                  \
        }                                                                                              \
        const T *x = o->x;                                                                             \
        const ptrdiff_t n = o->n;                                                                      \
        const ptrdiff_t after = o->after;                                                              \
        int failed = 0;                                                                                \
        TP_PARALLEL(o->before * after, threads, begin, end, {                                          \
            K *keys = malloc((size_t)room(n) * sizeof *keys);                                          \
            if (!keys && begin < end) {                                                                \
                _Pragma("omp atomic write") failed = 1;                                                \
            }                                                                                          \
            for (ptrdiff_t row = begin; keys && row < end; row++) {                                    \
                const T *from = x + row / after * n * after + row % after;                             \
                const ptrdiff_t numbers = fill_##S(keys, from, n, after);                              \
                ptrdiff_t rank = o->rank;                                                              \
                if (o->which == TP_MEDIAN) rank = numbers < n ? numbers : (n - 1) / 2;                 \
                else if (o->which == TP_NANMEDIAN) rank = numbers ? (numbers - 1) / 2 : 0;             \
                ptrdiff_t of_equals;                                                                   \
                const K key = select_##K(keys, keys + padded(n), n, rank, &of_equals);                 \
                const ptrdiff_t place = index_##K(keys, n, key, of_equals);                            \
                ((T *)o->values)[row] = from[place * after];                                           \
                if (o->places) o->places[row] = place;                                                 \
            }                                                                                          \
            free(keys);                                                                                \
        });                                                                                            \
        return !failed;                                                                                \
    }
ROWS(F32, float, int32_t, 1)
ROWS(F64, double, int64_t, 1)
ROWS(I64, int64_t, int64_t, 0)
ROWS(I32, int32_t, int32_t, 0)
ROWS(I16, int16_t, int32_t, 0)
ROWS(I8, int8_t, int32_t, 0)
ROWS(U8, uint8_t, int32_t, 0)
ROWS(BOOL, uint8_t, int32_t, 0)
ROWS(F16, uint16_t, int32_t, 1)
ROWS(BF16, uint16_t, int32_t, 1)

/* `number_of` is the number of a key: positive ones are their own keys, of negative ones all bits but the sign turn. */
#define QUANTILES(S, T, K, rounded, floored, raised)                                                   \
    static inline T number_of_##S(K key) {                                                             \
        const K bits = key < 0 ? key ^ (K)~SIGN_##K : key;                                             \
        T number;                                                                                      \
        memcpy(&number, &bits, sizeof number);                                                         \
        return number;                                                                                 \
    }                                                                                                  \
    /* Where a quantile stands among the ordered elements of a row: between a rank and the next one, or at it. */\
    typedef struct { ptrdiff_t rank; int between; T weight; } place_##S;                               \
    static inline place_##S place_of_##S(const tp_quantiles *o, T level, ptrdiff_t numbers) {          \
        const int way = o->interpolation;                                                              \
        const ptrdiff_t last = o->ignore_nan ? (numbers ? numbers - 1 : 0) : o->n - 1;                 \
        /* A NaN stands last: the place of a row that has one is there. */                             \
        const T at = !o->ignore_nan && numbers < o->n ? (T)last : level * (T)last;                     \
        const T down = way == TP_NEAREST ? rounded(at) : way == TP_HIGHER ? raised(at) : floored(at);  \
        const ptrdiff_t rank = down < (T)last ? (ptrdiff_t)down : last;                                \
        return (place_##S){rank, way != TP_NEAREST && down < at && rank < last,                        \
                           way == TP_LINEAR ? at - down : way == TP_MIDPOINT && down != at ? (T)0.5 : 0};\
    }                                                                                                  \
    static inline T interpolated_##S(const tp_quantiles *o, T weight, K low, K high) {                 \
        const T a = number_of_##S(low);                                                                \
        if (o->interpolation != TP_LINEAR && o->interpolation != TP_MIDPOINT) return a;                \
        const T b = number_of_##S(high);                                                               \
        return weight < (T)0.5 ? a + weight * (b - a) : b + (weight - 1) * (b - a);                    \
    }                                                                                                  \
    /* `width` short rows from `first` on, sorted beside each other by vectors of rows. */             \
    static void short_quantiles_##S(const tp_quantiles *o, ptrdiff_t first, ptrdiff_t width) {         \
        const ptrdiff_t n = o->n;                                                                      \
        const T *x = (const T *)o->x + first * n;                                                      \
        K keys[SHORT][BESIDE], numbers[BESIDE] = {0};                                                  \
        if (width < BESIDE) memset(keys, 0, sizeof(keys));                                             \
        for (ptrdiff_t j = 0; j < width; j++)                                                          \
            for (ptrdiff_t i = 0; i < n; i++) keys[i][j] = (K)(key_##S(x[j * n + i]) ^ SIGN_##K);      \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            for (ptrdiff_t j = 0; j < BESIDE; j++) numbers[j] += keys[i][j] != NAN_##K;                \
        for (ptrdiff_t done = 0; done < n; done++)                                                     \
            for (ptrdiff_t i = n - 1; i > done; i--)                                                   \
                for (ptrdiff_t j = 0; j < BESIDE; j++) {                                               \
                    const K a = keys[i - 1][j], b = keys[i][j];                                        \
                    keys[i - 1][j] = b < a ? b : a;                                                    \
                    keys[i][j] = b < a ? a : b;                                                        \
                }                                                                                      \
        for (ptrdiff_t j = 0; j < width; j++)                                                          \
            for (ptrdiff_t q = 0; q < o->count; q++) {                                                 \
                const place_##S place = place_of_##S(o, ((const T *)o->levels)[q], (ptrdiff_t)numbers[j]);\
                ((T *)o->out)[(first + j) * o->count + q] =                                            \
                    interpolated_##S(o, place.weight, keys[place.rank][j], keys[place.rank + place.between][j]);\
            }                                                                                          \
    }                                                                                                  \
    static int quantiles_##S(const tp_quantiles *o, int threads) {                                     \
        const T *levels = o->levels;                                                                   \
        const ptrdiff_t n = o->n;                                                                      \
        if (n <= SHORT && o->rows >= BESIDE / 2) {                                                     \
            TP_PARALLEL(o->rows, threads, begin, end, {                                                \
                for (ptrdiff_t row = begin; row < end; row += BESIDE)                                  \
                    short_quantiles_##S(o, row, end - row < BESIDE ? end - row : BESIDE);              \
            });                                                                                        \
            return 1;                                                                                  \
        }                                                                                              \
        int failed = 0;                                                                                \
        TP_PARALLEL(o->rows, threads, begin, end, {                                                    \
            K *keys = malloc((size_t)room(n) * sizeof *keys);                                          \
            if (!keys && begin < end) {                                                                \
                _Pragma("omp atomic write") failed = 1;                                                \
            }                                                                                          \
            for (ptrdiff_t row = begin; keys && row < end; row++) {                                    \
                const ptrdiff_t numbers = fill_##S(keys, (const T *)o->x + row * n, n, 1);             \
                for (ptrdiff_t q = 0; q < o->count; q++) {                                             \
                    const place_##S place = place_of_##S(o, levels[q], numbers);                       \
                    K low, high;                                                                       \
                    if (o->ordered) {                                                                  \
                        low = keys[place.rank];                                                        \
                        high = keys[place.rank + place.between];                                       \
                    } else {                                                                           \
                        ptrdiff_t of_equals;                                                           \
                        low = select_##K(keys, keys + padded(n), n, place.rank, &of_equals);           \
                        high = place.between ? next_##K(keys, n, low, of_equals) : low;                \
                    }                                                                                  \
                    ((T *)o->out)[row * o->count + q] = interpolated_##S(o, place.weight, low, high);  \
                }                                                                                      \
            }                                                                                          \
            free(keys);                                                                                \
        });                                                                                            \
        return !failed;                                                                                \
    }
QUANTILES(F32, float, int32_t, rintf, floorf, ceilf)
QUANTILES(F64, double, int64_t, rint, floor, ceil)

const tp_selections LEVEL(tp_selection_table) = {
    .select = {[TP_F32] = select_F32, [TP_F64] = select_F64, [TP_I64] = select_I64, [TP_I32] = select_I32,
               [TP_I16] = select_I16, [TP_I8] = select_I8, [TP_U8] = select_U8, [TP_BOOL] = select_BOOL,
               [TP_F16] = select_F16, [TP_BF16] = select_BF16},
    .quantiles = {quantiles_F32, quantiles_F64},
};
