#include "sorting.h"

#include <stdlib.h>

#include "sorting_keys.h"
#include "parallel.h"
#include "vectors.h"

/* Keys of at most 32 bits are packed with their places into one word. What is sorted is then different from all
   others, so any algorithm keeps the order of equal elements. Descending inverts the keys. */

enum { SMALL = 12, RADIX_FROM = 96 };

/* --- words that carry key and place ---------------------------------------------------------------------- */

#define WORDS(W)                                                                                       \
    static void insertion_##W(W *w, ptrdiff_t n) {                                                     \
        for (ptrdiff_t i = 1; i < n; i++) {                                                            \
            const W moved = w[i];                                                                      \
            ptrdiff_t j = i;                                                                           \
            for (; j && w[j - 1] > moved; j--) w[j] = w[j - 1];                                        \
            w[j] = moved;                                                                              \
        }                                                                                              \
    }                                                                                                  \
    /* Merge sort over runs of insertion sort; what is sorted lies in `w` at the end. */               \
    static void merge_sort_##W(W *w, W *other, ptrdiff_t n) {                                          \
        for (ptrdiff_t i = 0; i < n; i += SMALL) insertion_##W(w + i, n - i < SMALL ? n - i : SMALL);  \
        W *from = w, *to = other;                                                                      \
        for (ptrdiff_t run = SMALL; run < n; run *= 2) {                                               \
            for (ptrdiff_t start = 0; start < n; start += 2 * run) {                                   \
                const ptrdiff_t middle = start + run < n ? start + run : n, end = middle + run < n ? middle + run : n;\
                ptrdiff_t a = start, b = middle, at = start;                                           \
                while (a < middle && b < end) {                                                        \
                    const W x = from[a], y = from[b];                                                  \
                    const int second = y < x;                                                          \
                    to[at++] = second ? y : x;                                                         \
                    a += !second;                                                                      \
                    b += second;                                                                       \
                }                                                                                      \
                if (a < middle) memcpy(to + at, from + a, (size_t)(middle - a) * sizeof *to);          \
                if (b < end) memcpy(to + at, from + b, (size_t)(end - b) * sizeof *to);                \
            }                                                                                          \
            W *swapped = from;                                                                         \
            from = to;                                                                                 \
            to = swapped;                                                                              \
        }                                                                                              \
        if (from != w) memcpy(w, from, (size_t)n * sizeof *w);                                         \
    }                                                                                                  \
    /* Bring the k least words to the front, in no order (Hoare's quickselect, with the middle of three). */\
    static void select_##W(W *w, ptrdiff_t n, ptrdiff_t k) {                                           \
        ptrdiff_t low = 0, high = n - 1;                                                               \
        while (high - low > 16) {                                                                      \
            const W a = w[low], b = w[low + (high - low) / 2], c = w[high];                            \
            const W pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);         \
            ptrdiff_t i = low, j = high;                                                               \
            while (i <= j) {                                                                           \
                while (w[i] < pivot) i++;                                                              \
                while (w[j] > pivot) j--;                                                              \
                if (i <= j) {                                                                          \
                    const W swapped = w[i];                                                            \
                    w[i++] = w[j];                                                                     \
                    w[j--] = swapped;                                                                  \
                }                                                                                      \
            }                                                                                          \
            if (k - 1 <= j) high = j;                                                                  \
            else if (k - 1 >= i) low = i;                                                              \
            else return;                                                                               \
        }                                                                                              \
        insertion_##W(w + low, high - low + 1);                                                        \
    }
/* Keys of at most 32 bits and their places share a word of 64; longer ones take one of 128. */
typedef unsigned __int128 uint128_t;
WORDS(uint64_t)
WORDS(uint128_t)

/* Sort by the bytes from bit `low` to 63, least significant first. `carried` (if not NULL) follows `w`.
   Returns whether the result lies in the other arrays. */
static int radix_sort(uint64_t *w, uint64_t *other, uint32_t *carried, uint32_t *other_carried, ptrdiff_t n,
                      int low, ptrdiff_t (*counts)[256]) {
    int turned = 0;
    memset(counts, 0, 8 * sizeof *counts);
    for (ptrdiff_t i = 0; i < n; i++)
        for (int b = low / 8; b < 8; b++) counts[b][w[i] >> 8 * b & 255]++;
    for (int b = low / 8; b < 8; b++) {
        ptrdiff_t *count = counts[b], total = 0;
        if (count[w[0] >> 8 * b & 255] == n) continue; /* all have the same byte */
        for (int i = 0; i < 256; i++) {
            const ptrdiff_t some = count[i];
            count[i] = total;
            total += some;
        }
        if (carried) {
            for (ptrdiff_t i = 0; i < n; i++) {
                const ptrdiff_t at = count[w[i] >> 8 * b & 255]++;
                other[at] = w[i];
                other_carried[at] = carried[i];
            }
            uint32_t *swapped = carried;
            carried = other_carried;
            other_carried = swapped;
        } else {
            for (ptrdiff_t i = 0; i < n; i++) other[count[w[i] >> 8 * b & 255]++] = w[i];
        }
        uint64_t *swapped = w;
        w = other;
        other = swapped;
        turned = !turned;
    }
    return turned;
}

/* `low` is 32 where the places are in order already, else 0. */
static void sort_words(uint64_t *w, uint64_t *other, ptrdiff_t n, int low, ptrdiff_t (*counts)[256]) {
    if (n < RADIX_FROM) merge_sort_uint64_t(w, other, n);
    else if (radix_sort(w, other, NULL, NULL, n, low, counts)) memcpy(w, other, (size_t)n * sizeof *w);
}

/* --- short rows ------------------------------------------------------------------------------------------ */

/* Of few elements it is counted for each how many come before it: by vectors, and without a branch on any. */
enum { RANKED = VECTOR > 16 ? 128 : 64, MANY = 4 };

/* Rows of still fewer are gone through several at a time. */
enum { FEW = 16, BESIDE = 64 };

#define RANKS(K)                                                                                       \
    typedef K K##_keys __attribute__((vector_size(VECTOR)));                                           \
    static void ranks_##K(const K *keys, K *ranks, ptrdiff_t n) {                                      \
        enum { PER = VECTOR / sizeof(K) };                                                             \
        for (ptrdiff_t i = 0; i < n; i += MANY * PER) {                                                \
            K##_keys these[MANY], less[MANY] = {{0}};                                                  \
            memcpy(these, keys + i, sizeof(these));                                                    \
            for (ptrdiff_t j = 0; j < n; j++) {                                                        \
                const K##_keys other = (K##_keys){0} + keys[j];                                        \
                for (int k = 0; k < MANY; k++) less[k] -= other < these[k];                            \
            }                                                                                          \
            memcpy(ranks + i, less, sizeof(less));                                                     \
        }                                                                                              \
    }
RANKS(int32_t)
RANKS(int64_t)

/* The k best of a row of at most RANKED. There are no unsigned comparisons of vectors at some levels. */
#define SHORT(S, T, K, SIGN)                                                                           \
    static void short_##S(const tp_sort *o, ptrdiff_t row) {                                          \
        const ptrdiff_t n = o->n, k = o->k, after = o->after;                                          \
        const T *from = (const T *)o->x + row / after * n * after + row % after;                       \
        const ptrdiff_t to = row / after * k * after + row % after;                                    \
        K keys[RANKED], ranks[RANKED];                                                                 \
        uint8_t equals[RANKED];                                                                        \
        const K flip = (K)(o->descending ? ~SIGN : SIGN);                                              \
        for (ptrdiff_t i = 0; i < n; i++) keys[i] = (K)key_##S(from[i * after]) ^ flip;                \
        memset(keys + n, 0, (size_t)(RANKED - n) * sizeof *keys);                                      \
        ranks_##K(keys, ranks, n);                                                                     \
        memset(equals, 0, sizeof(equals));                                                             \
        for (ptrdiff_t i = 0; i < n; i++) {                                                            \
            const ptrdiff_t rank = (ptrdiff_t)ranks[i] + equals[ranks[i]]++;                           \
            if (rank >= k) continue;                                                                   \
            o->places[to + rank * after] = i;                                                          \
            if (o->values) ((T *)o->values)[to + rank * after] = from[i * after];                      \
        }                                                                                              \
    }

/* `width` rows of at most FEW from `first` on, beside each other: neighbours change places, one pass for each of the k
   best, by vectors of rows. Equal elements never do. */
#define BESIDE_ROWS(S, T, K, SIGN)                                                                     \
    static void beside_##S(const tp_sort *o, ptrdiff_t first, ptrdiff_t width) {                       \
        const ptrdiff_t n = o->n, k = o->k, after = o->after;                                          \
        const K flip = (K)(o->descending ? ~SIGN : SIGN);                                              \
        const T *starts[BESIDE];                                                                       \
        ptrdiff_t to[BESIDE];                                                                          \
        K keys[FEW][BESIDE], places[FEW][BESIDE];                                                      \
        if (width < BESIDE) memset(keys, 0, sizeof(keys));                                             \
        for (ptrdiff_t j = 0; j < width; j++) {                                                        \
            const ptrdiff_t before = (first + j) / after, column = (first + j) % after;                \
            starts[j] = (const T *)o->x + before * n * after + column;                                 \
            to[j] = before * k * after + column;                                                       \
            for (ptrdiff_t i = 0; i < n; i++) keys[i][j] = (K)key_##S(starts[j][i * after]) ^ flip;    \
        }                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++)                                                              \
            for (ptrdiff_t j = 0; j < BESIDE; j++) places[i][j] = (K)i;                                \
        for (ptrdiff_t done = 0; done < k; done++)                                                     \
            for (ptrdiff_t i = n - 1; i > done; i--)                                                   \
                for (ptrdiff_t j = 0; j < BESIDE; j++) {                                               \
                    const K a = keys[i - 1][j], b = keys[i][j], p = places[i - 1][j], q = places[i][j];\
                    const int turn = b < a;                                                            \
                    keys[i - 1][j] = turn ? b : a;                                                     \
                    keys[i][j] = turn ? a : b;                                                         \
                    places[i - 1][j] = turn ? q : p;                                                   \
                    places[i][j] = turn ? p : q;                                                       \
                }                                                                                      \
        for (ptrdiff_t j = 0; j < width; j++)                                                          \
            for (ptrdiff_t i = 0; i < k; i++) {                                                        \
                const ptrdiff_t place = (ptrdiff_t)places[i][j];                                       \
                o->places[to[j] + i * after] = place;                                                  \
                if (o->values) ((T *)o->values)[to[j] + i * after] = starts[j][place * after];         \
            }                                                                                          \
    }

#define ALL_SHORT(S)                                                                                   \
    if (o->n <= FEW && o->before * o->after >= BESIDE / 2) {                                           \
        TP_PARALLEL(o->before * o->after, threads, begin, end, {                                       \
            for (ptrdiff_t row = begin; row < end; row += BESIDE)                                      \
                beside_##S(o, row, end - row < BESIDE ? end - row : BESIDE);                           \
        });                                                                                            \
        return 1;                                                                                      \
    }                                                                                                  \
    if (o->n <= RANKED) {                                                                              \
        TP_PARALLEL(o->before * o->after, threads, begin, end, {                                       \
            for (ptrdiff_t row = begin; row < end; row++) short_##S(o, row);                           \
        });                                                                                            \
        return 1;                                                                                      \
    }

/* --- rows ------------------------------------------------------------------------------------------------ */

/* The k best of rows: `large` is what to do where these are many, and `sorted` sorts them; U is a key, and W a word
   of a key and a place. */
#define TOP(S, T, U, W, large, sorted)                                                                 \
    static int top_##S(const tp_sort *o, int threads) {                                               \
        if (o->k >= o->n / 4) { large(S) }                                                             \
        enum { BITS = 8 * sizeof(U) };                                                                 \
        const T *x = o->x;                                                                             \
        const ptrdiff_t n = o->n, k = o->k, after = o->after, rows = o->before * after;                \
        const U flip = o->descending ? (U)-1 : 0;                                                      \
        /* Candidates collect behind the best so far, and are looked through when there are many. */   \
        const ptrdiff_t room = k < n / 4 ? 2 * k + 64 : n;                                             \
        int failed = 0;                                                                                \
        TP_PARALLEL(rows, threads, begin, end, {                                                       \
            W *w = malloc((size_t)(room + k) * sizeof *w + 8 * 256 * sizeof(ptrdiff_t));               \
            ptrdiff_t(*counts)[256] = w ? (ptrdiff_t(*)[256])(w + room + k) : NULL;                    \
            if (!w && begin < end) {                                                                   \
                _Pragma("omp atomic write") failed = 1;                                                \
            }                                                                                          \
            for (ptrdiff_t row = begin; w && row < end; row++) {                                       \
                const T *from = x + row / after * n * after + row % after;                             \
                ptrdiff_t held = 0;                                                                    \
                if (room == n) {                                                                       \
                    for (ptrdiff_t i = 0; i < n; i++)                                                  \
                        w[i] = (W)(key_##S(from[i * after]) ^ flip) << BITS | (W)i;                    \
                    held = n;                                                                          \
                } else {                                                                               \
                    U worst = (U)-1; /* the key of the k-th best so far */                             \
                    int full = 0;                                                                      \
                    for (ptrdiff_t first = 0; first < n; first += 64) {                                \
                        const ptrdiff_t count = n - first < 64 ? n - first : 64;                       \
                        U keys[64];                                                                    \
                        U least = (U)-1;                                                               \
                        for (ptrdiff_t i = 0; i < count; i++)                                          \
                            keys[i] = key_##S(from[(first + i) * after]) ^ flip;                       \
                        for (ptrdiff_t i = 0; i < count; i++) least = keys[i] < least ? keys[i] : least;\
                        /* Of equal elements the first counts, so a later one has to be better. */     \
                        if (full && least >= worst) continue;                                          \
                        if (held + count > room) {                                                     \
                            select_##W(w, held, k);                                                    \
                            held = k;                                                                  \
                            worst = 0;                                                                 \
                            for (ptrdiff_t i = 0; i < k; i++)                                          \
                                worst = (U)(w[i] >> BITS) > worst ? (U)(w[i] >> BITS) : worst;         \
                            full = 1;                                                                  \
                        }                                                                              \
                        for (ptrdiff_t i = 0; i < count; i++) {                                        \
                            w[held] = (W)keys[i] << BITS | (W)(first + i);                             \
                            held += !full || keys[i] < worst;                                          \
                        }                                                                              \
                    }                                                                                  \
                }                                                                                      \
                if (held > k) select_##W(w, held, k);                                                  \
                sorted(w, w + room, k, counts);                                                        \
                const ptrdiff_t at = row / after * k * after + row % after;                            \
                for (ptrdiff_t i = 0; i < k; i++) {                                                    \
                    const ptrdiff_t place = (ptrdiff_t)(uint32_t)w[i];                                 \
                    o->places[at + i * after] = place;                                                 \
                    if (o->values) ((T *)o->values)[at + i * after] = from[place * after];             \
                }                                                                                      \
            }                                                                                          \
            free(w);                                                                                   \
        });                                                                                            \
        return !failed;                                                                                \
    }
#define ALL_SORTED(S) return sort_##S(o, threads);
#define SORTED_WORDS(w, other, k, counts) sort_words(w, other, k, 0, counts)
#define MERGED_WORDS(w, other, k, counts) ((void)counts, merge_sort_uint128_t(w, other, k))

#define NARROW(S, T)                                                                                   \
    SHORT(S, T, int32_t, 0x80000000u)                                                                  \
    BESIDE_ROWS(S, T, int32_t, 0x80000000u)                                                            \
    static int sort_##S(const tp_sort *o, int threads) {                                              \
        ALL_SHORT(S)                                                                                   \
        const T *x = o->x;                                                                             \
        const ptrdiff_t n = o->n, after = o->after, rows = o->before * after;                          \
        const uint32_t flip = o->descending ? UINT32_MAX : 0;                                          \
        int failed = 0;                                                                                \
        TP_PARALLEL(rows, threads, begin, end, {                                                       \
            uint64_t *w = malloc((size_t)(2 * n) * sizeof *w + 8 * 256 * sizeof(ptrdiff_t));           \
            ptrdiff_t(*counts)[256] = w ? (ptrdiff_t(*)[256])(w + 2 * n) : NULL;                       \
            if (!w && begin < end) {                                                                   \
                _Pragma("omp atomic write") failed = 1;                                                \
            }                                                                                          \
            for (ptrdiff_t row = begin; w && row < end; row++) {                                       \
                const ptrdiff_t at = row / after * n * after + row % after;                            \
                for (ptrdiff_t i = 0; i < n; i++)                                                      \
                    w[i] = (uint64_t)(key_##S(x[at + i * after]) ^ flip) << 32 | (uint64_t)i;          \
                sort_words(w, w + n, n, 32, counts);                                                   \
                for (ptrdiff_t i = 0; i < n; i++) o->places[at + i * after] = (int64_t)(uint32_t)w[i]; \
                if (o->values) {                                                                       \
                    T *values = o->values;                                                             \
                    for (ptrdiff_t i = 0; i < n; i++)                                                  \
                        values[at + i * after] = x[at + (ptrdiff_t)(uint32_t)w[i] * after];            \
                }                                                                                      \
            }                                                                                          \
            free(w);                                                                                   \
        });                                                                                            \
        return !failed;                                                                                \
    }                                                                                                 \
    TOP(S, T, uint32_t, uint64_t, ALL_SHORT, SORTED_WORDS)
NARROW(F32, float)
NARROW(I32, int32_t)
NARROW(I16, int16_t)
NARROW(F16, uint16_t)
NARROW(BF16, uint16_t)

/* Keys of a byte are counted, and each place is written where its key's begin. */
#define BYTES(S, T)                                                                                    \
    SHORT(S, T, int32_t, 0x80000000u)                                                                  \
    BESIDE_ROWS(S, T, int32_t, 0x80000000u)                                                            \
    static void counted_##S(const tp_sort *o, ptrdiff_t at) {                                          \
        const T *x = (const T *)o->x + at;                                                             \
        int64_t *places = o->places + at;                                                              \
        const ptrdiff_t n = o->n, after = o->after;                                                    \
        const uint32_t flip = o->descending ? 255 : 0;                                                 \
        ptrdiff_t next[256] = {0};                                                                     \
        ptrdiff_t total = 0;                                                                           \
        for (ptrdiff_t i = 0; i < n; i++) next[key_##S(x[i * after]) ^ flip]++;                        \
        for (int key = 0; key < 256; key++) {                                                          \
            const ptrdiff_t some = next[key];                                                          \
            next[key] = total;                                                                         \
            total += some;                                                                             \
        }                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) places[next[key_##S(x[i * after]) ^ flip]++ * after] = i;    \
        if (!o->values) return;                                                                        \
        T *values = (T *)o->values + at;                                                               \
        ptrdiff_t i = 0;                                                                               \
        for (int key = 0; key < 256; key++) { /* which now say where the next key's begin */    \
            if (i == next[key]) continue;                                                              \
            const T value = x[places[i * after] * after];                                              \
            for (; i < next[key]; i++) values[i * after] = value;                                      \
        }                                                                                              \
    }                                                                                                  \
    static int sort_##S(const tp_sort *o, int threads) {                                               \
        ALL_SHORT(S)                                                                                   \
        TP_PARALLEL(o->before * o->after, threads, begin, end, {                                       \
            for (ptrdiff_t row = begin; row < end; row++)                                              \
                counted_##S(o, row / o->after * o->n * o->after + row % o->after);                     \
        });                                                                                            \
        return 1;                                                                                      \
    }                                                                                                  \
    TOP(S, T, uint32_t, uint64_t, ALL_SHORT, SORTED_WORDS)
BYTES(I8, int8_t)
BYTES(U8, uint8_t)
BYTES(BOOL, uint8_t)

/* Keys of 64 bits: the places are carried along. */
#define WIDE(S, T)                                                                                     \
    SHORT(S, T, int64_t, 0x8000000000000000u)                                                          \
    BESIDE_ROWS(S, T, int64_t, 0x8000000000000000u)                                                    \
    static int sort_##S(const tp_sort *o, int threads) {                                              \
        ALL_SHORT(S)                                                                                   \
        const T *x = o->x;                                                                             \
        const ptrdiff_t n = o->n, after = o->after, rows = o->before * after, k = o->k;                \
        const uint64_t flip = o->descending ? UINT64_MAX : 0;                                          \
        int failed = 0;                                                                                \
        TP_PARALLEL(rows, threads, begin, end, {                                                       \
            uint64_t *w = malloc((size_t)n * (2 * sizeof *w + 2 * sizeof(uint32_t)) + 8 * 256 * sizeof(ptrdiff_t)); \
            ptrdiff_t(*counts)[256] = w ? (ptrdiff_t(*)[256])(w + 2 * n) : NULL;                       \
            uint32_t *places = w ? (uint32_t *)(counts + 8) : NULL;                                    \
            if (!w && begin < end) {                                                                   \
                _Pragma("omp atomic write") failed = 1;                                                \
            }                                                                                          \
            for (ptrdiff_t row = begin; w && row < end; row++) {                                       \
                const ptrdiff_t from = row / after * n * after + row % after;                          \
                const ptrdiff_t to = row / after * k * after + row % after;                            \
                const uint32_t *found = places;                                                        \
                for (ptrdiff_t i = 0; i < n; i++) {                                                    \
                    w[i] = key_##S(x[from + i * after]) ^ flip;                                        \
                    places[i] = (uint32_t)i;                                                           \
                }                                                                                      \
                if (radix_sort(w, w + n, places, places + n, n, 0, counts))                            \
                    found = places + n;                                                                \
                for (ptrdiff_t i = 0; i < k; i++) {                                                    \
                    o->places[to + i * after] = found[i];                                              \
                    if (o->values) ((T *)o->values)[to + i * after] = x[from + (ptrdiff_t)found[i] * after]; \
                }                                                                                      \
            }                                                                                          \
            free(w);                                                                                   \
        });                                                                                            \
        return !failed;                                                                                \
    }                                                                                                  \
    TOP(S, T, uint64_t, uint128_t, ALL_SORTED, MERGED_WORDS)
WIDE(F64, double)
WIDE(I64, int64_t)

#define TYPES(name)                                                                                    \
    {[TP_F32] = name##_F32, [TP_F64] = name##_F64, [TP_I64] = name##_I64, [TP_I32] = name##_I32,       \
     [TP_I16] = name##_I16, [TP_I8] = name##_I8, [TP_U8] = name##_U8, [TP_BOOL] = name##_BOOL,         \
     [TP_F16] = name##_F16, [TP_BF16] = name##_BF16}
const tp_sorts LEVEL(tp_sort_table) = {.sort = TYPES(sort), .top = TYPES(top)};
