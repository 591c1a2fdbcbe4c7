#include "strided_iteration.h"

#include <stdint.h>
#include <stdlib.h>

#include "parallel.h"

void tp_iteration_sort(tp_iteration *w) {
    int order[TP_DIMS];
    for (int i = 0; i < w->dims; i++) order[i] = w->dims - 1 - i;
    /* An insertion sort, for the comparison is no strict order; where operands disagree, C order wins. */
    for (int i = 1; i < w->dims; i++) {
        const int moved = order[i];
        int place = i;
        for (int j = i - 1; j >= 0; j--) {
            int known = 0, swap = 0;
            for (int k = 0; k < w->operands; k++) {
                const ptrdiff_t mine = llabs(w->strides[k][moved]), other = llabs(w->strides[k][order[j]]);
                if (!mine || !other) continue;
                if (other <= mine) swap = 0;
                else if (!known) swap = 1;
                known = 1;
            }
            if (!known) continue;
            if (!swap) break;
            place = j;
        }
        for (int j = i; j > place; j--) order[j] = order[j - 1];
        order[place] = moved;
    }
    tp_iteration sorted;
    for (int i = 0; i < w->dims; i++) {
        sorted.shape[i] = w->shape[order[i]];
        for (int k = 0; k < w->operands; k++) sorted.strides[k][i] = w->strides[k][order[i]];
    }
    for (int i = 0; i < w->dims; i++) {
        w->shape[i] = sorted.shape[i];
        w->axis[i] = order[i];
        for (int k = 0; k < w->operands; k++) w->strides[k][i] = sorted.strides[k][i];
    }
}

void tp_iteration_lay_out(tp_iteration *w, int k, ptrdiff_t itemsize) {
    ptrdiff_t stride = w->itemsize[k] = itemsize;
    for (int i = 0; i < w->dims; i++) {
        w->strides[k][i] = stride;
        stride *= w->shape[i];
    }
}

void tp_iteration_merge(tp_iteration *w) {
    int last = 0;
    for (int i = 0; i < w->dims; i++) {
        if (w->shape[i] == 1) continue;
        int joins = last > 0;
        for (int k = 0; joins && k < w->operands; k++)
            joins = w->strides[k][i] == w->strides[k][last - 1] * w->shape[last - 1];
        if (joins) {
            w->shape[last - 1] *= w->shape[i];
            continue;
        }
        w->shape[last] = w->shape[i];
        for (int k = 0; k < w->operands; k++) w->strides[k][last] = w->strides[k][i];
        last++;
    }
    w->dims = last;
}

/* --- the iteration -------------------------------------------------------------------------------------------- */

/* Call the loop for the elements from `begin` to `end`, counted in the iteration's order. */
static void range(const tp_iteration *w, char *const *data, tp_loop loop, const double *p, ptrdiff_t begin,
                  ptrdiff_t end) {
    ptrdiff_t at[TP_DIMS], strides[TP_OPERANDS];
    char *now[TP_OPERANDS];
    ptrdiff_t rest = begin;
    for (int k = 0; k < w->operands; k++) now[k] = data[k];
    for (int i = 0; i < w->dims; i++) {
        at[i] = rest % w->shape[i];
        rest /= w->shape[i];
        for (int k = 0; k < w->operands; k++) now[k] += at[i] * w->strides[k][i];
    }
    for (int k = 0; k < w->operands; k++) strides[k] = w->strides[k][0];
    while (begin < end) {
        ptrdiff_t count = w->shape[0] - at[0];
        if (count > end - begin) count = end - begin;
        loop(now, strides, count, p);
        begin += count;
        /* A row is over, or the range is. */
        for (int k = 0; k < w->operands; k++) now[k] -= at[0] * strides[k];
        at[0] = 0;
        for (int i = 1; i < w->dims; i++) {
            for (int k = 0; k < w->operands; k++) now[k] += w->strides[k][i];
            if (++at[i] < w->shape[i]) break;
            for (int k = 0; k < w->operands; k++) now[k] -= w->shape[i] * w->strides[k][i];
            at[i] = 0;
        }
    }
}

/* Transposed operands: go through the two fastest dimensions in tiles, so that what a cache line holds is
   used while the line is there. */
enum { TILE = 64, TILE_ROWS = 32 };

static int is_transposed(const tp_iteration *w) {
    if (w->dims < 2 || w->shape[0] < TILE_ROWS || w->shape[1] < 8) return 0;
    for (int k = 0; k < w->operands; k++) {
        const ptrdiff_t fast = llabs(w->strides[k][0]), slow = llabs(w->strides[k][1]);
        if (slow && slow < fast && fast > 64) return 1;
    }
    return 0;
}

static void tiles(const tp_iteration *w, char *const *data, tp_loop loop, const double *p, ptrdiff_t begin,
                  ptrdiff_t end) {
    const ptrdiff_t down = (w->shape[1] + TILE_ROWS - 1) / TILE_ROWS;
    ptrdiff_t strides[TP_OPERANDS];
    for (int k = 0; k < w->operands; k++) strides[k] = w->strides[k][0];
    for (ptrdiff_t tile = begin; tile < end; tile++) {
        ptrdiff_t rest = tile / down;
        const ptrdiff_t first = tile % down * TILE_ROWS;
        const ptrdiff_t rows = w->shape[1] - first < TILE_ROWS ? w->shape[1] - first : TILE_ROWS;
        char *plane[TP_OPERANDS], *row[TP_OPERANDS];
        for (int k = 0; k < w->operands; k++) plane[k] = data[k] + first * w->strides[k][1];
        for (int i = 2; i < w->dims; i++) {
            const ptrdiff_t at = rest % w->shape[i];
            rest /= w->shape[i];
            for (int k = 0; k < w->operands; k++) plane[k] += at * w->strides[k][i];
        }
        for (ptrdiff_t start = 0; start < w->shape[0]; start += TILE) {
            const ptrdiff_t count = w->shape[0] - start < TILE ? w->shape[0] - start : TILE;
            for (ptrdiff_t r = 0; r < rows; r++) {
                for (int k = 0; k < w->operands; k++)
                    row[k] = plane[k] + start * strides[k] + r * w->strides[k][1];
                loop(row, strides, count, p);
            }
        }
    }
}

/* Rows of few elements: go along the columns, for a short row costs its call, and through some rows at a time, so that
   the caches hold what is next to what was used. */
enum { SOME_ROWS = 256 };

static void short_rows(const tp_iteration *w, char *const *data, tp_loop loop, const double *p, ptrdiff_t begin,
                       ptrdiff_t end) {
    char *column[TP_OPERANDS];
    ptrdiff_t strides[TP_OPERANDS];
    for (int k = 0; k < w->operands; k++) strides[k] = w->strides[k][1];
    for (ptrdiff_t start = begin; start < end; start += SOME_ROWS) {
        const ptrdiff_t count = end - start < SOME_ROWS ? end - start : SOME_ROWS;
        for (ptrdiff_t i = 0; i < w->shape[0]; i++) {
            for (int k = 0; k < w->operands; k++) column[k] = data[k] + start * strides[k] + i * w->strides[k][0];
            loop(column, strides, count, p);
        }
    }
}

enum { WEAVE_LEAST = 16 };

/* Copies of three or four long rows whose elements, of four bytes, come to lie beside each other, as the channels of
   images do, or of such elements into rows. */
#define WEAVE(N, ROWS, ONE)                                                                            \
    static void weave_##N(uint32_t *restrict one, uint32_t *restrict a, uint32_t *restrict b,          \
                          uint32_t *restrict c, uint32_t *restrict d, ptrdiff_t n, int apart) {        \
        (void)d;                                                                                       \
        if (apart) {                                                                                   \
            for (ptrdiff_t i = 0; i < n; i++) { ROWS }                                                 \
        } else {                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++) { ONE }                                                  \
        }                                                                                              \
    }
WEAVE(3, a[i] = one[3 * i]; b[i] = one[3 * i + 1]; c[i] = one[3 * i + 2];
      , one[3 * i] = a[i]; one[3 * i + 1] = b[i]; one[3 * i + 2] = c[i];)
WEAVE(4, a[i] = one[4 * i]; b[i] = one[4 * i + 1]; c[i] = one[4 * i + 2]; d[i] = one[4 * i + 3];
      , one[4 * i] = a[i]; one[4 * i + 1] = b[i]; one[4 * i + 2] = c[i]; one[4 * i + 3] = d[i];)

/* Return which operand of a copy has elements beside each other whose rows are apart in the other; -1 if none has. */
static int woven(const tp_iteration *w) {
    const ptrdiff_t n = w->dims > 1 ? w->shape[1] : 0;
    if (!w->copies || w->operands != 2 || w->itemsize[0] != 4 || w->shape[0] < WEAVE_LEAST || (n != 3 && n != 4)) return -1;
    for (int k = 0; k < 2; k++) {
        const ptrdiff_t *one = w->strides[k], *rows = w->strides[1 - k];
        if (one[0] == 4 * n && one[1] == 4 && rows[0] == 4 && rows[1] >= 4 * w->shape[0]) return k;
    }
    return -1;
}

static void weave(const tp_iteration *w, char *const *data, int one, ptrdiff_t begin, ptrdiff_t end) {
    for (ptrdiff_t image = begin; image < end; image++) {
        char *now[2] = {data[0], data[1]};
        ptrdiff_t rest = image;
        for (int i = 2; i < w->dims; i++) {
            for (int k = 0; k < 2; k++) now[k] += rest % w->shape[i] * w->strides[k][i];
            rest /= w->shape[i];
        }
        uint32_t *row[4];
        for (int i = 0; i < 4; i++) row[i] = (uint32_t *)(now[1 - one] + (i < w->shape[1] ? i * w->strides[1 - one][1] : 0));
        (w->shape[1] == 3 ? weave_3 : weave_4)((uint32_t *)now[one], row[0], row[1], row[2], row[3], w->shape[0], !one);
    }
}

void tp_iteration_run(const tp_iteration *iteration, char *const *data, tp_loop loop, const double *p, int threads) {
    ptrdiff_t total = 1;
    for (int i = 0; i < iteration->dims; i++) total *= iteration->shape[i];
    if (!total) return;
    if (!iteration->dims) {
        const ptrdiff_t none[TP_OPERANDS] = {0};
        loop(data, none, 1, p);
        return;
    }
    const int one = woven(iteration);
    if (one >= 0) {
        const ptrdiff_t images = total / iteration->shape[0] / iteration->shape[1];
        TP_PARALLEL(images, threads, begin, end, { weave(iteration, data, one, begin, end); });
        return;
    }
    if (tp_iteration_run_blocks(iteration, data, loop, p, threads)) return;
    if (is_transposed(iteration)) {
        const ptrdiff_t down = (iteration->shape[1] + TILE_ROWS - 1) / TILE_ROWS;
        const ptrdiff_t count = total / iteration->shape[0] / iteration->shape[1] * down;
        TP_PARALLEL(count, threads, begin, end, { tiles(iteration, data, loop, p, begin, end); });
        return;
    }
    if (iteration->dims == 2 && iteration->shape[0] < 8 && iteration->shape[1] >= 32) {
        TP_PARALLEL(iteration->shape[1], threads, begin, end, { short_rows(iteration, data, loop, p, begin, end); });
        return;
    }
    tp_iteration turned;
    const tp_iteration *w = iteration;
    if (iteration->dims > 2 && iteration->shape[0] < 8 && iteration->shape[1] >= 32) {
        turned = *iteration;
        turned.shape[0] = iteration->shape[1];
        turned.shape[1] = iteration->shape[0];
        for (int k = 0; k < iteration->operands; k++) {
            turned.strides[k][0] = iteration->strides[k][1];
            turned.strides[k][1] = iteration->strides[k][0];
        }
        w = &turned;
    }
    TP_PARALLEL(total, threads, begin, end, { range(w, data, loop, p, begin, end); });
}
