#include "padding.h"

#include <stdint.h>

#include "copying_bytes.h"
#include "parallel.h"

void tp_simplify_padding(tp_padding *p) {
    int made = 0;
    for (int d = 1; d < p->dims; d++) {
        const ptrdiff_t kept = p->kept[d];
        if (!p->before[d] && !p->behind[d] && p->step[made] == p->step[d] * kept) {
            p->before[made] *= kept, p->kept[made] *= kept, p->behind[made] *= kept;
            p->step[made] = p->step[d];
            continue;
        }
        made++;
        p->before[made] = p->before[d], p->kept[made] = kept, p->behind[made] = p->behind[d];
        p->step[made] = p->step[d];
    }
    p->dims = made + 1;
    p->below[made] = 1;
    for (int d = made; d > 0; d--) p->below[d - 1] = p->below[d] * (p->before[d] + p->kept[d] + p->behind[d]);
}

typedef struct { uint64_t first, second; } pair;
enum { FEW = 8, NEAR = 4096 };

/* The part of dimension d from `begin` on: its elements, or positions, that hold the number, then the array's. */
#define PADDED(T)                                                                                      \
    static inline void fill_##T(T *to, ptrdiff_t count, T number) {                                    \
        for (ptrdiff_t i = 0; i < count; i++) to[i] = number;                                          \
    }                                                                                                  \
    static inline void row_##T(T *to, const char *from, ptrdiff_t before, ptrdiff_t kept,              \
                               ptrdiff_t behind, T number) {                                           \
        fill_##T(to, before, number);                                                                  \
        copy_bytes((char *)(to + before), from, kept * (ptrdiff_t)sizeof(T));                          \
        fill_##T(to + before + kept, behind, number);                                                  \
    }                                                                                                  \
    /* Rows of few elements of the array: the number goes everywhere first, some rows at a time. */    \
    static void short_rows_##T(T *to, const char *from, ptrdiff_t step, ptrdiff_t rows,                \
                               ptrdiff_t length, ptrdiff_t before, ptrdiff_t kept, T number) {         \
        const ptrdiff_t block = NEAR / (length * (ptrdiff_t)sizeof(T)) + 1;                            \
        for (ptrdiff_t first = 0; first < rows; first += block) {                                      \
            const ptrdiff_t some = rows - first < block ? rows - first : block;                        \
            fill_##T(to + first * length, some * length, number);                                      \
            for (ptrdiff_t r = first; r < first + some; r++) {                                         \
                const T *row = (const T *)(from + r * step);                                           \
                T *inner = to + r * length + before;                                                   \
                switch (kept) {                                                                        \
                    case 1: memcpy(inner, row, sizeof(T)); break;                                      \
                    case 2: memcpy(inner, row, 2 * sizeof(T)); break;                                  \
                    case 3: memcpy(inner, row, 3 * sizeof(T)); break;                                  \
                    case 4: memcpy(inner, row, 4 * sizeof(T)); break;                                  \
                    default: for (ptrdiff_t i = 0; i < kept; i++) inner[i] = row[i];                   \
                }                                                                                      \
            }                                                                                          \
        }                                                                                              \
    }                                                                                                  \
    static void pad_##T(T *to, const char *from, const tp_padding *p, int d, ptrdiff_t begin,          \
                        ptrdiff_t end, T number) {                                                     \
        const ptrdiff_t below = p->below[d], step = p->step[d];                                        \
        const ptrdiff_t first = p->before[d], last = first + p->kept[d];                               \
        const ptrdiff_t start = begin > first ? begin : first, stop = end < last ? end : last;         \
        if (begin < first) fill_##T(to + begin * below, ((end < first ? end : first) - begin) * below, number); \
        if (d == p->dims - 1) {                                                                        \
            if (start < stop) row_##T(to + start, from + (start - first) * step, 0, stop - start, 0, number); \
        } else if (d == p->dims - 2 && p->kept[d + 1] < FEW) {                                         \
            if (start < stop)                                                                          \
                short_rows_##T(to + start * below, from + (start - first) * step, step, stop - start,  \
                               below, p->before[d + 1], p->kept[d + 1], number);                       \
        } else if (d == p->dims - 2) {                                                                 \
            for (ptrdiff_t i = start; i < stop; i++)                                                   \
                row_##T(to + i * below, from + (i - first) * step, p->before[d + 1], p->kept[d + 1],   \
                        p->behind[d + 1], number);                                                     \
        } else {                                                                                       \
            for (ptrdiff_t i = start; i < stop; i++)                                                   \
                pad_##T(to + i * below, from + (i - first) * step, p, d + 1, 0,                        \
                        p->below[d] / p->below[d + 1], number);                                        \
        }                                                                                              \
        if (end > last) {                                                                              \
            const ptrdiff_t behind = begin > last ? begin : last;                                      \
            fill_##T(to + behind * below, (end - behind) * below, number);                             \
        }                                                                                              \
    }
PADDED(uint8_t)
PADDED(uint16_t)
PADDED(uint32_t)
PADDED(uint64_t)
PADDED(pair)

#define OF_SIZE(T)                                                                                     \
    case sizeof(T): {                                                                                  \
        T number;                                                                                      \
        memcpy(&number, p->number, sizeof(T));                                                         \
        TP_PARALLEL(p->before[0] + p->kept[0] + p->behind[0], threads, begin, end,                     \
                    { pad_##T((T *)to, from, p, 0, begin, end, number); });                            \
        return 1;                                                                                      \
    }

int tp_pad(char *to, const char *from, const tp_padding *p, int itemsize, int threads) {
    switch (itemsize) {
        OF_SIZE(uint8_t)
        OF_SIZE(uint16_t)
        OF_SIZE(uint32_t)
        OF_SIZE(uint64_t)
        OF_SIZE(pair)
        default: return 0;
    }
}
