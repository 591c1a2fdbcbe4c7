#include "copying.h"

#include "copying_bytes.h"
#include "parallel.h"

/* How much of the result is written before the next piece's turn: it stays in the cache. */
enum { NEAR = 1 << 16 };

/* Bytes of a row below which its zeros are not filled in by themselves. */
enum { SHORT = 256 };

#define FIXED(N)                                                                                       \
    case N:                                                                                            \
        for (ptrdiff_t r = 0; r < rows; r++) memcpy(to + r * to_step, from + r * from_step, N);        \
        return;

static void copy_rows(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step, ptrdiff_t bytes,
                      ptrdiff_t rows) {
    if (bytes == to_step && bytes == from_step) {
        memcpy(to, from, (size_t)(bytes * rows));
        return;
    }
    switch (bytes) {
        FIXED(1) FIXED(2) FIXED(4) FIXED(8) FIXED(12) FIXED(16) FIXED(24) FIXED(32)
        default:
            for (ptrdiff_t r = 0; r < rows; r++) copy_bytes(to + r * to_step, from + r * from_step, bytes);
    }
}

void tp_join(char *to, ptrdiff_t step, ptrdiff_t rows, const tp_piece *pieces, int count, int threads) {
    if (rows < 4 * threads) { /* few rows: each thread takes a part of every piece */
        ptrdiff_t at = 0;
        for (int k = 0; k < count; k++) {
            const tp_piece *p = &pieces[k];
            TP_PARALLEL(p->bytes, threads, begin, end, {
                copy_rows(to + at + begin, step, p->from + begin, p->step, end - begin, rows);
            });
            at += p->bytes;
        }
        return;
    }
    TP_PARALLEL(rows, threads, begin, end, {
        const ptrdiff_t block = NEAR / (step + 1) + 1;
        for (ptrdiff_t first = begin; first < end; first += block) {
            const ptrdiff_t some = end - first < block ? end - first : block;
            char *now = to + first * step;
            for (int k = 0; k < count; k++) {
                const tp_piece *p = &pieces[k];
                copy_rows(now, step, p->from + first * p->step, p->step, p->bytes, some);
                now += p->bytes;
            }
        }
    });
}

void tp_block_rows(char *to, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t left, const tp_piece *piece,
                   int threads) {
    const ptrdiff_t right = step - left - piece->bytes;
    if (step <= SHORT) { /* calls for the parts of each row would take longer than the memory */
        const ptrdiff_t block = NEAR / (step + 1) + 1;
        TP_PARALLEL(rows, threads, begin, end, {
            for (ptrdiff_t r = begin; r < end; r += block) {
                const ptrdiff_t some = end - r < block ? end - r : block;
                memset(to + r * step, 0, (size_t)(some * step));
                copy_rows(to + r * step + left, step, piece->from + r * piece->step, piece->step, piece->bytes, some);
            }
        });
        return;
    }
    TP_PARALLEL(rows, threads, begin, end, {
        for (ptrdiff_t r = begin; r < end; r++) {
            char *row = to + r * step;
            memset(row, 0, (size_t)left);
            copy_bytes(row + left, piece->from + r * piece->step, piece->bytes);
            memset(row + left + piece->bytes, 0, (size_t)right);
        }
    });
}

void tp_triangle(char *to, const char *from, ptrdiff_t matrices, ptrdiff_t rows, ptrdiff_t columns,
                 ptrdiff_t itemsize, ptrdiff_t diagonal, int upper, int threads) {
    const ptrdiff_t step = columns * itemsize;
    TP_PARALLEL(matrices * rows, threads, begin, end, {
        for (ptrdiff_t r = begin; r < end; r++) {
            ptrdiff_t border = r % rows + diagonal + !upper;
            border = border < 0 ? 0 : border > columns ? columns : border;
            const size_t left = (size_t)(border * itemsize);
            const size_t right = (size_t)step - left;
            char *row = to + r * step;
            const char *given = from + r * step;
            if (upper) {
                memset(row, 0, left);
                memcpy(row + left, given + left, right);
            } else {
                memcpy(row, given, left);
                memset(row + left, 0, right);
            }
        }
    });
}

/* Products and sums in loops of their own, so that no compiler makes one rounding of the two. */
enum { BLOCK = 512 };

static void scaled(double *numbers, ptrdiff_t first, ptrdiff_t count, double step) {
    for (ptrdiff_t i = 0; i < count; i++) numbers[i] = (double)(first + i) * step;
}

#define SEQUENCE(S, T)                                                                                 \
    case TP_##S:                                                                                       \
        TP_PARALLEL(count, threads, begin, end, {                                                      \
            double numbers[BLOCK];                                                                     \
            for (ptrdiff_t first = begin; first < end; first += BLOCK) {                               \
                const ptrdiff_t some = end - first < BLOCK ? end - first : BLOCK;                      \
                T *out = (T *)to + first;                                                              \
                scaled(numbers, first, some, step);                                                    \
                for (ptrdiff_t i = 0; i < some; i++) out[i] = (T)(numbers[i] + start);                 \
            }                                                                                          \
        });                                                                                            \
        return 1;

int tp_range(char *to, int type, ptrdiff_t count, double start, double step, int threads) {
    switch (type) {
        TP_FLOATS(SEQUENCE)
        default: return 0;
    }
}

#define WHOLE_SEQUENCE(S, T)                                                                           \
    case TP_##S:                                                                                       \
        TP_PARALLEL(count, threads, begin, end, {                                                      \
            T *out = (T *)to;                                                                          \
            uint64_t now = (uint64_t)start + (uint64_t)begin * (uint64_t)step;                         \
            for (ptrdiff_t i = begin; i < end; i++, now += (uint64_t)step) out[i] = (T)(int64_t)now;   \
        });                                                                                            \
        return 1;

int tp_whole_range(char *to, int type, ptrdiff_t count, int64_t start, int64_t step, int threads) {
    switch (type) {
        TP_INTEGERS(WHOLE_SEQUENCE)
        TP_FLOATS(WHOLE_SEQUENCE)
        default: return 0;
    }
}
