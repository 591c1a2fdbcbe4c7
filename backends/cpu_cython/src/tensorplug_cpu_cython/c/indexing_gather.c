#include "indexing_gather.h"

#include "complex_product.h"
#include "copying_bytes.h"
#include "parallel.h"

typedef struct { uint64_t low, high; } uint128;

/* What one part of the indexed array may take of the cache. */
enum { CACHE = 1 << 18, LINE = 64 };
/* Rows of so few places are gone through place by place, many rows at once: each would cost the start of its loop. */
enum { FEW_PLACES = 16, MANY_ROWS = 32, ROWS_AT_ONCE = 256 };
enum { PLACES_AT_ONCE = 2048 };

#define AT(base, type, offset) (*(type *)((base) + (offset)))

static ptrdiff_t pieces_of(const tp_indices *p, ptrdiff_t bytes, int threads) {
    const ptrdiff_t after = p->count[2], lines = (after * bytes + LINE - 1) / LINE;
    ptrdiff_t pieces = 1;
    if (p->index_strides[2]) { /* each element has a row of its own: let the rows' parts stay in the cache */
        const double all = (double)p->size * (double)after * (double)bytes;
        pieces = (ptrdiff_t)(all / CACHE) + 1;
    }
    if (p->count[0] * pieces < threads) pieces = threads;
    return pieces < lines ? pieces : lines;
}

/* A row of places, or several rows that lie behind each other. */
typedef struct { ptrdiff_t rows, length, row_step, step; } tp_lines;

static tp_lines lines_of(const tp_indices *p, ptrdiff_t *repeats) {
    ptrdiff_t count[3], step[3];
    int left = 0;
    *repeats = 1;
    for (int d = 0; d < 3; d++) {
        if (p->count[d] == 1 || !p->index_strides[d]) continue;
        if (left && step[left - 1] == p->count[d] * p->index_strides[d]) {
            count[left - 1] *= p->count[d];
            step[left - 1] = p->index_strides[d];
            continue;
        }
        count[left] = p->count[d];
        step[left++] = p->index_strides[d];
    }
    if (left == 3) { *repeats = count[0]; return (tp_lines){count[1], count[2], step[1], step[2]}; }
    if (left == 2) return (tp_lines){count[0], count[1], step[0], step[1]};
    return (tp_lines){1, left ? count[0] : 1, 0, left ? step[0] : 0};
}

static int fits(const tp_indices *p, int threads) {
    ptrdiff_t repeats;
    const tp_lines lines = lines_of(p, &repeats);
    const uint64_t size = (uint64_t)p->size, wrap = (uint64_t)p->wrap;
    int wrong = 0;
    for (ptrdiff_t repeat = 0; repeat < repeats; repeat++) {
        const char *first = p->index + repeat * p->index_strides[0];
        TP_PARALLEL(lines.rows * lines.length, threads, begin, end, {
            uint64_t bad = 0;
            ptrdiff_t now = begin;
            while (now < end) {
                const ptrdiff_t row = now / lines.length;
                const ptrdiff_t j = now - row * lines.length;
                const ptrdiff_t count = lines.length - j < end - now ? lines.length - j : end - now;
                const char *at = first + row * lines.row_step + j * lines.step;
                now += count;
                if (lines.step == sizeof(int64_t)) {
                    const uint64_t *t = (const uint64_t *)at;
                    for (ptrdiff_t i = 0; i < count; i++) bad |= t[i] + (t[i] >> 63 ? wrap : 0) >= size;
                } else {
                    for (ptrdiff_t i = 0; i < count; i++) {
                        const uint64_t t = AT(at, const uint64_t, i * lines.step);
                        bad |= t + (t >> 63 ? wrap : 0) >= size;
                    }
                }
            }
            if (bad) {
                _Pragma("omp atomic write") wrong = 1;
            }
        });
    }
    return !wrong;
}

/* Some neighbouring places: whether some of them count from the end, and whether they are one and the same. */
typedef struct { int from_end, same; } tp_places;

/* Whether all of some neighbouring places exist. */
static int all_within(const int64_t *places, ptrdiff_t count, int64_t size, int64_t wrap, tp_places *found) {
    uint64_t bad = 0, signs = 0, differ = 0;
    const uint64_t first = count ? (uint64_t)places[0] : 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        const uint64_t t = (uint64_t)places[i];
        signs |= t;
        differ |= t ^ first;
        bad |= t + (t >> 63 ? (uint64_t)wrap : 0) >= (uint64_t)size;
    }
    *found = (tp_places){(int)(signs >> 63), !differ};
    return !bad;
}

/* Whether there are many rows of few places. */
static int has_short_rows(const tp_indices *p) {
    return p->count[2] == 1 && p->count[1] <= FEW_PLACES && p->count[0] >= MANY_ROWS && p->size > 0;
}

/* Plain loads: the processor's gather instructions are slower. */
#if defined(__GNUC__) && !defined(__clang__)
#define SCALAR __attribute__((noinline, optimize("no-tree-vectorize")))
#else
#define SCALAR __attribute__((noinline))
#endif

#define TAKE(W, T)                                                                                     \
    SCALAR static void take_##W(T *to, const T *from, const int64_t *places, ptrdiff_t count, int64_t wrap) { \
        if (!wrap) {                                                                                   \
            _Pragma("GCC unroll 8")                                                                    \
            for (ptrdiff_t i = 0; i < count; i++) to[i] = from[places[i]];                             \
            return;                                                                                    \
        }                                                                                              \
        for (ptrdiff_t i = 0; i < count; i++) to[i] = from[places[i] + (wrap & (places[i] >> 63))];    \
    }
TAKE(1, uint8_t)
TAKE(2, uint16_t)
TAKE(4, uint32_t)
TAKE(8, uint64_t)
TAKE(16, uint128)

#define GATHER(W, T)                                                                                   \
    /* Each element of a row has a place of its own: part by part, so that what is read stays near. */ \
    static int gather_parts_##W(const tp_indices *p, int threads) {                                     \
        const ptrdiff_t pieces = pieces_of(p, sizeof(T), threads), after = p->count[2];                \
        int wrong = 0;                                                                                 \
        TP_PARALLEL(p->count[0] * pieces, threads, begin, end, {                                       \
            uint64_t bad = 0;                                                                          \
            for (ptrdiff_t unit = begin; unit < end; unit++) {                                         \
                const ptrdiff_t b = unit / pieces;                                                     \
                const ptrdiff_t first = after * (unit % pieces) / pieces;                              \
                const ptrdiff_t last = after * (unit % pieces + 1) / pieces;                           \
                const char *data = p->data + b * p->data_strides[0];                                   \
                for (ptrdiff_t k = 0; k < p->count[1]; k++) {                                          \
                    const char *at = p->index + b * p->index_strides[0] + k * p->index_strides[1];     \
                    char *to = p->other + b * p->other_strides[0] + k * p->other_strides[1];           \
                    for (ptrdiff_t j = first; j < last; j++) {                                         \
                        int64_t t = AT(at, const int64_t, j * p->index_strides[2]);                    \
                        t += p->wrap & (t >> 63);                                                      \
                        const int out = (uint64_t)t >= (uint64_t)p->size;                              \
                        bad |= out;                                                                    \
                        t = out ? 0 : t;                                                               \
                        AT(to, T, j * p->other_strides[2]) =                                           \
                            AT(data, const T, t * p->data_strides[1] + j * p->data_strides[2]);        \
                    }                                                                                  \
                }                                                                                      \
            }                                                                                          \
            if (bad) {                                                                                 \
                _Pragma("omp atomic write") wrong = 1;                                                 \
            }                                                                                          \
        });                                                                                            \
        return !wrong;                                                                                 \
    }                                                                                                  \
    static int gather_few_##W(const tp_indices *p, int threads) {                                      \
        int wrong = 0;                                                                                 \
        TP_PARALLEL(p->count[0], threads, begin, end, {                                                \
            uint64_t bad = 0;                                                                          \
            const ptrdiff_t in = p->data_strides[0];                                                   \
            const ptrdiff_t out = p->other_strides[0];                                                 \
            const ptrdiff_t apart = p->index_strides[0];                                               \
            for (ptrdiff_t start = begin; start < end; start += ROWS_AT_ONCE) {                        \
                const ptrdiff_t rows = end - start < ROWS_AT_ONCE ? end - start : ROWS_AT_ONCE;        \
                for (ptrdiff_t k = 0; k < p->count[1]; k++) {                                          \
                    const char *from = p->data + start * in;                                           \
                    const char *at = p->index + start * apart + k * p->index_strides[1];               \
                    char *to = p->other + start * out + k * p->other_strides[1];                       \
                    if (!apart) {                                                                      \
                        int64_t t = AT(at, const int64_t, 0);                                          \
                        t += p->wrap & (t >> 63);                                                      \
                        if ((uint64_t)t >= (uint64_t)p->size) { bad = 1; continue; }                   \
                        from += t * p->data_strides[1];                                                \
                        for (ptrdiff_t r = 0; r < rows; r++) AT(to, T, r * out) = AT(from, const T, r * in); \
                        continue;                                                                      \
                    }                                                                                  \
                    for (ptrdiff_t r = 0; r < rows; r++) {                                             \
                        int64_t t = AT(at, const int64_t, r * apart);                                  \
                        t += p->wrap & (t >> 63);                                                      \
                        const int none = (uint64_t)t >= (uint64_t)p->size;                             \
                        bad |= none;                                                                   \
                        t = none ? 0 : t;                                                              \
                        AT(to, T, r * out) = AT(from, const T, r * in + t * p->data_strides[1]);       \
                    }                                                                                  \
                }                                                                                      \
            }                                                                                          \
            if (bad) {                                                                                 \
                _Pragma("omp atomic write") wrong = 1;                                                 \
            }                                                                                          \
        });                                                                                            \
        return !wrong;                                                                                 \
    }                                                                                                  \
    static int gather_##W(const tp_indices *p, int threads) {                                           \
        const int in_rows = p->count[2] > 1;                                                           \
        if (has_short_rows(p)) return gather_few_##W(p, threads);                                      \
        if (in_rows && p->index_strides[2]) return gather_parts_##W(p, threads);                       \
        const ptrdiff_t n = p->count[1], width = in_rows ? p->count[2] : n;                            \
        const ptrdiff_t from_step = in_rows ? p->data_strides[2] : 0;                                  \
        const ptrdiff_t to_step = in_rows ? p->other_strides[2] : p->other_strides[1];                 \
        const ptrdiff_t outer = in_rows ? p->count[0] * n : p->count[0];                               \
        int wrong = 0;                                                                                 \
        TP_PARALLEL(outer * width, threads, begin, end, {                                              \
            uint64_t bad = 0;                                                                          \
            ptrdiff_t now = begin;                                                                     \
            while (now < end) {                                                                        \
                const ptrdiff_t row = now / width;                                                     \
                const ptrdiff_t j = now - row * width;                                                 \
                const ptrdiff_t rest = width - j;                                                      \
                const ptrdiff_t left = in_rows || rest < PLACES_AT_ONCE ? rest : PLACES_AT_ONCE;       \
                const ptrdiff_t count = left < end - now ? left : end - now;                           \
                const ptrdiff_t b = in_rows ? row / n : row;                                           \
                const ptrdiff_t k = in_rows ? row - b * n : j;                                         \
                const char *from = p->data + b * p->data_strides[0];                                   \
                const char *at = p->index + b * p->index_strides[0] + k * p->index_strides[1];         \
                char *to = p->other + b * p->other_strides[0] + k * p->other_strides[1];               \
                now += count;                                                                          \
                if (!in_rows) {                                                                        \
                    const ptrdiff_t step = p->index_strides[1];                                        \
                    if (step == sizeof(int64_t) && to_step == sizeof(T) && p->data_strides[1] == sizeof(T)) { \
                        const int64_t *places = (const int64_t *)at;                                   \
                        const T *source = (const T *)from;                                             \
                        T *target = (T *)to;                                                           \
                        const int64_t size = p->size;                                                  \
                        const int64_t wrap = p->wrap;                                                  \
                        tp_places found;                                                               \
                        if (!all_within(places, count, size, wrap, &found)) bad = 1;                   \
                        else take_##W(target, source, places, count, found.from_end ? wrap : 0);       \
                        continue;                                                                      \
                    }                                                                                  \
                    for (ptrdiff_t i = 0; i < count; i++) {                                            \
                        int64_t t = AT(at, const int64_t, i * step);                                   \
                        t += p->wrap & (t >> 63);                                                      \
                        const int out = (uint64_t)t >= (uint64_t)p->size;                              \
                        bad |= out;                                                                    \
                        t = out ? 0 : t;                                                               \
                        AT(to, T, i * to_step) = AT(from, const T, t * p->data_strides[1]);            \
                    }                                                                                  \
                    continue;                                                                          \
                }                                                                                      \
                int64_t t = AT(at, const int64_t, 0);                                                  \
                t += p->wrap & (t >> 63);                                                              \
                if ((uint64_t)t >= (uint64_t)p->size) { bad = 1; continue; }                           \
                from += t * p->data_strides[1] + j * from_step;                                        \
                to += j * to_step;                                                                     \
                if (from_step == sizeof(T) && to_step == sizeof(T)) {                                  \
                    copy_bytes(to, from, count * (ptrdiff_t)sizeof(T));                                \
                    continue;                                                                          \
                }                                                                                      \
                for (ptrdiff_t i = 0; i < count; i++) AT(to, T, i * to_step) = AT(from, const T, i * from_step); \
            }                                                                                          \
            if (bad) {                                                                                 \
                _Pragma("omp atomic write") wrong = 1;                                                 \
            }                                                                                          \
        });                                                                                            \
        return !wrong;                                                                                 \
    }

/* Units of work never share a place: they differ in `before`, or in their part of `after`. */
#define SCATTER(name, T, old, given, combined)                                                         \
    static int name##_few(const tp_indices *p, int threads) {                                          \
        int wrong = 0;                                                                                 \
        TP_PARALLEL(p->count[0], threads, begin, end, {                                                \
            uint64_t bad = 0;                                                                          \
            const ptrdiff_t out = p->data_strides[0];                                                  \
            const ptrdiff_t in = p->other_strides[0];                                                  \
            const ptrdiff_t apart = p->index_strides[0];                                               \
            for (ptrdiff_t start = begin; start < end; start += ROWS_AT_ONCE) {                        \
                const ptrdiff_t rows = end - start < ROWS_AT_ONCE ? end - start : ROWS_AT_ONCE;        \
                for (ptrdiff_t k = 0; k < p->count[1]; k++) {                                          \
                    char *to = p->data + start * out;                                                  \
                    const char *at = p->index + start * apart + k * p->index_strides[1];               \
                    const char *from = p->other + start * in + k * p->other_strides[1];                \
                    for (ptrdiff_t r = 0; r < rows; r++) {                                             \
                        int64_t t = AT(at, const int64_t, r * apart);                                  \
                        t += p->wrap & (t >> 63);                                                      \
                        if (t == p->skip) continue;                                                    \
                        if ((uint64_t)t >= (uint64_t)p->size) { bad = 1; continue; }                   \
                        T *place = &AT(to, T, r * out + t * p->data_strides[1]);                       \
                        const T old = *place;                                                          \
                        const T given = AT(from, const T, r * in);                                     \
                        (void)old;                                                                     \
                        *place = combined;                                                             \
                    }                                                                                  \
                }                                                                                      \
            }                                                                                          \
            if (bad) {                                                                                 \
                _Pragma("omp atomic write") wrong = 1;                                                 \
            }                                                                                          \
        });                                                                                            \
        return !wrong;                                                                                 \
    }                                                                                                  \
    static int name(const tp_indices *p, int threads) {                                                 \
        if (has_short_rows(p)) return name##_few(p, threads);                                          \
        int wrong = 0;                                                                                 \
        const ptrdiff_t pieces = pieces_of(p, sizeof(T), threads), after = p->count[2], n = p->count[1]; \
        TP_PARALLEL(p->count[0] * pieces, threads, begin, end, {                                       \
            for (ptrdiff_t unit = begin; unit < end; unit++) {                                         \
                const ptrdiff_t b = unit / pieces;                                                     \
                const ptrdiff_t first = after * (unit % pieces) / pieces;                              \
                const ptrdiff_t last = after * (unit % pieces + 1) / pieces;                           \
                char *data = p->data + b * p->data_strides[0];                                         \
                const char *from = p->other + b * p->other_strides[0];                                 \
                const char *at = p->index + b * p->index_strides[0];                                   \
                if (tp_checks(p)) { \
                    const int64_t *where = (const int64_t *)at;                                        \
                    const int64_t wrap = p->wrap;                                                      \
                    const int64_t skip = p->skip;                                                      \
                    const ptrdiff_t step = p->other_strides[1];                                        \
                    const ptrdiff_t apart = p->data_strides[1];                                        \
                    tp_places found;                                                                   \
                    if (skip < 0 && apart == sizeof(T)) {                                              \
                        T *to = (T *)data;                                                             \
                        for (ptrdiff_t begin_k = 0; begin_k < n; begin_k += PLACES_AT_ONCE) {          \
                            const int64_t *here = where + begin_k;                                     \
                            const char *source = from + begin_k * step;                                \
                            const ptrdiff_t m = n - begin_k < PLACES_AT_ONCE ? n - begin_k : PLACES_AT_ONCE; \
                            if (!all_within(here, m, p->size, wrap, &found)) {                         \
                                _Pragma("omp atomic write") wrong = 1;                                 \
                                break;                                                                 \
                            }                                                                          \
                            if (found.same) { /* no need to wait for what was written there */         \
                                T *place = to + here[0] + (wrap & (here[0] >> 63));                    \
                                T old = *place;                                                        \
                                for (ptrdiff_t k = 0; k < m; k++) {                                    \
                                    const T given = AT(source, const T, k * step);                     \
                                    old = combined;                                                    \
                                }                                                                      \
                                *place = old;                                                          \
                                continue;                                                              \
                            }                                                                          \
                            for (ptrdiff_t k = 0; k < m; k++) {                                        \
                                T *place = to + here[k] + (found.from_end ? wrap & (here[k] >> 63) : 0); \
                                const T old = *place;                                                  \
                                const T given = AT(source, const T, k * step);                         \
                                (void)old;                                                             \
                                *place = combined;                                                     \
                            }                                                                          \
                        }                                                                              \
                        continue;                                                                      \
                    }                                                                                  \
                    if (!all_within(where, n, p->size, wrap, &found)) {                                \
                        _Pragma("omp atomic write") wrong = 1;                                         \
                        continue;                                                                      \
                    }                                                                                  \
                    for (ptrdiff_t k = 0; k < n; k++) {                                                \
                        int64_t t = where[k];                                                          \
                        t = t < 0 ? t + wrap : t;                                                      \
                        if (t == skip) continue;                                                       \
                        T *place = &AT(data, T, t * apart);                                            \
                        const T old = *place;                                                          \
                        const T given = AT(from, const T, k * step);                                   \
                        (void)old;                                                                     \
                        *place = combined;                                                             \
                    }                                                                                  \
                    continue;                                                                          \
                }                                                                                      \
                if (after == 1) {                                                                      \
                    for (ptrdiff_t k = 0; k < n; k++) {                                                \
                        int64_t t = AT(at, const int64_t, k * p->index_strides[1]);                    \
                        t += p->wrap & (t >> 63);                                                      \
                        if (t == p->skip) continue;                                                    \
                        T *place = &AT(data, T, t * p->data_strides[1]);                               \
                        const T old = *place;                                                          \
                        const T given = AT(from, const T, k * p->other_strides[1]);                    \
                        (void)old;                                                                     \
                        *place = combined;                                                             \
                    }                                                                                  \
                    continue;                                                                          \
                }                                                                                      \
                const int dense = p->data_strides[2] == sizeof(T) && p->other_strides[2] == sizeof(T); \
                for (ptrdiff_t k = 0; k < n; k++) {                                                    \
                    const char *in = from + k * p->other_strides[1];                                   \
                    const char *where = at + k * p->index_strides[1];                                  \
                    if (!p->index_strides[2]) {                                                        \
                        int64_t t = AT(where, const int64_t, 0);                                       \
                        t += p->wrap & (t >> 63);                                                      \
                        if (t == p->skip) continue;                                                    \
                        char *row = data + t * p->data_strides[1];                                     \
                        if (dense) {                                                                   \
                            T *place = (T *)row;                                                       \
                            const T *source = (const T *)in;                                           \
                            INDEPENDENT for (ptrdiff_t j = first; j < last; j++) {                     \
                                const T old = place[j];                                                \
                                const T given = source[j];                                             \
                                (void)old;                                                             \
                                place[j] = combined;                                                   \
                            }                                                                          \
                            continue;                                                                  \
                        }                                                                              \
                        if (p->data_strides[2] == sizeof(T) && !p->other_strides[2]) {                 \
                            T *place = (T *)row;                                                       \
                            const T given = AT(in, const T, 0);                                        \
                            INDEPENDENT for (ptrdiff_t j = first; j < last; j++) {                     \
                                const T old = place[j];                                                \
                                (void)old;                                                             \
                                place[j] = combined;                                                   \
                            }                                                                          \
                            continue;                                                                  \
                        }                                                                              \
                        for (ptrdiff_t j = first; j < last; j++) {                                     \
                            T *place = &AT(row, T, j * p->data_strides[2]);                            \
                            const T old = *place;                                                      \
                            const T given = AT(in, const T, j * p->other_strides[2]);                  \
                            (void)old;                                                                 \
                            *place = combined;                                                         \
                        }                                                                              \
                        continue;                                                                      \
                    }                                                                                  \
                    for (ptrdiff_t j = first; j < last; j++) {                                         \
                        int64_t t = AT(where, const int64_t, j * p->index_strides[2]);                 \
                        t += p->wrap & (t >> 63);                                                      \
                        if (t == p->skip) continue;                                                    \
                        T *place = &AT(data, T, t * p->data_strides[1] + j * p->data_strides[2]);      \
                        const T old = *place;                                                          \
                        const T given = AT(in, const T, j * p->other_strides[2]);                      \
                        (void)old;                                                                     \
                        *place = combined;                                                             \
                    }                                                                                  \
                }                                                                                      \
            }                                                                                          \
        });                                                                                            \
        return !wrong;                                                                                 \
    }

#define MOVES(W, T) GATHER(W, T) SCATTER(scatter_##W, T, old, given, given)
MOVES(1, uint8_t)
MOVES(2, uint16_t)
MOVES(4, uint32_t)
MOVES(8, uint64_t)
MOVES(16, uint128)

/* Integers wrap around; NaN wins over every number. */
#define INTEGER_COMBINES(S, T)                                                                         \
    SCATTER(add_##S, T, old, given, (T)((uint64_t)old + (uint64_t)given))                              \
    SCATTER(multiply_##S, T, old, given, (T)((uint64_t)old * (uint64_t)given))                         \
    SCATTER(maximum_##S, T, old, given, given > old ? given : old)                                     \
    SCATTER(minimum_##S, T, old, given, given < old ? given : old)
#define FLOAT_COMBINES(S, T)                                                                           \
    SCATTER(add_##S, T, old, given, old + given)                                                       \
    SCATTER(multiply_##S, T, old, given, old * given)                                                  \
    SCATTER(maximum_##S, T, old, given, given > old || given != given ? given : old)                   \
    SCATTER(minimum_##S, T, old, given, given < old || given != given ? given : old)
#define COMPLEX_COMBINES(S, T)                                                                         \
    SCATTER(add_##S, T, old, given, old + given)                                                       \
    SCATTER(multiply_##S, T, old, given, COMPLEX_PRODUCT(old, given))
TP_INTEGERS(INTEGER_COMBINES)
TP_FLOATS(FLOAT_COMBINES)
COMPLEX_COMBINES(C64, float _Complex)
COMPLEX_COMBINES(C128, double _Complex)
/* Truth values are bytes of 0 and 1: a sum is true where either is, a product where both are. */
SCATTER(either_BOOL, uint8_t, old, given, old | given)
SCATTER(both_BOOL, uint8_t, old, given, old & given)

static int offsets(int64_t *to, const int64_t *index, ptrdiff_t count, int64_t size, ptrdiff_t step, int threads) {
    int wrong = 0;
    TP_PARALLEL(count, threads, begin, end, {
        uint64_t bad = 0;
        for (ptrdiff_t i = begin; i < end; i++) {
            int64_t t = index[i];
            t += size & (t >> 63);
            bad |= (uint64_t)t >= (uint64_t)size;
            to[i] += (int64_t)((uint64_t)t * (uint64_t)step);
        }
        if (bad) {
            _Pragma("omp atomic write") wrong = 1;
        }
    });
    return !wrong;
}

static void clear(char *data, ptrdiff_t bytes, int threads) {
    TP_PARALLEL(bytes, threads, begin, end, { memset(data + begin, 0, (size_t)(end - begin)); });
}

/* --- at a mask --------------------------------------------------------------------------------------------- */

static void count_true(const char *mask, ptrdiff_t count, ptrdiff_t *starts, int threads) {
    if (threads == 1) { /* the first part is all of it */
        ptrdiff_t found = 0;
        for (ptrdiff_t i = 0; i < count; i++) found += mask[i] != 0;
        starts[0] = 0;
        for (int part = 0; part < TP_PARTS; part++) starts[part + 1] = found;
        return;
    }
    TP_PARALLEL(TP_PARTS, threads, begin, end, {
        for (ptrdiff_t part = begin; part < end; part++) {
            const ptrdiff_t last = count * (part + 1) / TP_PARTS;
            ptrdiff_t found = 0;
            for (ptrdiff_t i = count * part / TP_PARTS; i < last; i++) found += mask[i] != 0;
            starts[part + 1] = found;
        }
    });
    starts[0] = 0;
    for (int part = 0; part < TP_PARTS; part++) starts[part + 1] += starts[part];
}

/* Written whether chosen or not, so that nothing has to be foretold; the next element takes the place. */
#define CHOOSE(W, T)                                                                                   \
    static void choose_##W(char *to, const char *from, const char *mask, ptrdiff_t count,             \
                           const ptrdiff_t *starts, int threads) {                                     \
        TP_PARALLEL(TP_PARTS, threads, begin, end, {                                                   \
            for (ptrdiff_t part = begin; part < end; part++) {                                         \
                const T *x = (const T *)from;                                                          \
                T *out = (T *)to;                                                                      \
                ptrdiff_t at = starts[part];                                                           \
                for (ptrdiff_t i = count * part / TP_PARTS; at < starts[part + 1]; i++) {              \
                    out[at] = x[i];                                                                    \
                    at += mask[i] != 0;                                                                \
                }                                                                                      \
            }                                                                                          \
        });                                                                                            \
    }
CHOOSE(1, uint8_t)
CHOOSE(2, uint16_t)
CHOOSE(4, uint32_t)
CHOOSE(8, uint64_t)
CHOOSE(16, uint128)

#define COMBINE(name, of_truth, ...)                                                                   \
    {[TP_F32] = name##_F32, [TP_F64] = name##_F64, [TP_I64] = name##_I64, [TP_I32] = name##_I32,       \
     [TP_I16] = name##_I16, [TP_I8] = name##_I8, [TP_U8] = name##_U8,                            \
     [TP_BOOL] = of_truth##_BOOL, __VA_ARGS__}
#define OF_COMPLEX(name) [TP_C64] = name##_C64, [TP_C128] = name##_C128
const tp_index_kernels LEVEL(tp_index_table) = {
    .fits = fits,
    .gather = {gather_1, gather_2, gather_4, gather_8, gather_16},
    .scatter = {scatter_1, scatter_2, scatter_4, scatter_8, scatter_16},
    .combine = {[TP_ADD] = COMBINE(add, either, OF_COMPLEX(add)),
                [TP_MULTIPLY] = COMBINE(multiply, both, OF_COMPLEX(multiply)),
                [TP_MAXIMUM] = COMBINE(maximum, either),
                [TP_MINIMUM] = COMBINE(minimum, both)},
    .offsets = offsets,
    .clear = clear,
    .count_true = count_true,
    .choose = {choose_1, choose_2, choose_4, choose_8, choose_16},
};
