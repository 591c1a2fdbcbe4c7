/* Short rows cost the calls of their loop. So the loop is given many of them at once, a block, where the result goes on
   from row to row at equal steps: a row that is broadcast, such as a bias, is written out many times behind each other,
   and what lies elsewhere, such as a transpose of small matrices, is gathered. */
#include <string.h>

#include "parallel.h"
#include "strided_iteration.h"

enum {
    WORTH = 256,    /* elements, from which blocks are worth their making */
    SHORT = 16,     /* elements of the longest row that is gathered */
    PERIOD = 2048,  /* bytes of what is written out again and again */
    LARGEST = 8192, /* bytes of a block, which the caches hold with all operands */
    TABLE = 512     /* pieces whose places are known, at least those of a row */
};

typedef enum { IN_PLACE, REPEATED, GATHERED } way;

typedef struct {
    const tp_iteration *whole;
    int rows_dim;                   /* a row of a block is all below this dimension */
    ptrdiff_t elements, rows;       /* of a row; of a block */
    way ways[TP_OPERANDS];
    ptrdiff_t strides[TP_OPERANDS]; /* within a block */
} blocks;

/* Return how an operand comes into a block whose rows are all below dimension `d`. */
static way way_of(const tp_iteration *w, int k, int d) {
    int goes_on = 1, repeats = 1;
    for (int i = 0; i < w->dims; i++) {
        if (i >= d) repeats &= !w->strides[k][i];
        if (i && i <= d) goes_on &= w->strides[k][i] == w->strides[k][i - 1] * w->shape[i - 1];
    }
    return goes_on ? IN_PLACE : repeats ? REPEATED : GATHERED;
}

/* Find the longest rows that serve; return whether there are any. */
static int find(blocks *b, const tp_iteration *w) {
    const int last = w->operands - 1;
    ptrdiff_t elements = 1, widest = 1;
    b->whole = w;
    b->rows_dim = 0;
    for (int k = 0; k < w->operands; k++)
        if (widest < w->itemsize[k]) widest = w->itemsize[k];
    for (int d = 1; d < w->dims; d++) {
        way ways[TP_OPERANDS] = {IN_PLACE};
        int serves = 1;
        elements *= w->shape[d - 1];
        if (elements > TABLE || elements * widest > PERIOD) break;
        for (int k = 0; k < w->operands; k++) {
            ways[k] = way_of(w, k, d);
            serves &= ways[k] != GATHERED || w->shape[0] <= SHORT;
        }
        if (ways[last] != IN_PLACE || !w->strides[last][0]) break;
        if (!serves) continue;
        b->rows_dim = d;
        b->elements = elements;
        memcpy(b->ways, ways, sizeof ways);
    }
    if (!b->rows_dim) return 0;
    b->rows = LARGEST / (b->elements * widest);
    if (b->rows > w->shape[b->rows_dim]) b->rows = w->shape[b->rows_dim];
    for (int k = 0; k < w->operands; k++) b->strides[k] = b->ways[k] == IN_PLACE ? w->strides[k][0] : w->itemsize[k];
    return b->rows > 1;
}

/* Where the pieces of some rows lie, counted from the first. */
typedef struct {
    ptrdiff_t bytes, pieces, rows; /* of a piece; in a row; in the table */
    ptrdiff_t places[TABLE];
} table;

static void fill_table(table *t, const blocks *b, int k) {
    const tp_iteration *w = b->whole;
    const ptrdiff_t size = w->itemsize[k];
    ptrdiff_t width = 1, filled = 0; /* elements of a piece, which lie behind each other */
    if (w->strides[k][0] == size)
        while (width * 2 * size <= 16 && w->shape[0] % (width * 2) == 0) width *= 2;
    t->bytes = width * size;
    t->pieces = b->elements / width;
    t->rows = TABLE / t->pieces < b->rows ? TABLE / t->pieces : b->rows;
    ptrdiff_t at[TP_DIMS] = {0}, place = 0;
    for (ptrdiff_t piece = 0; piece < t->pieces; piece++) {
        t->places[filled++] = place;
        at[0] += width;
        place += width * w->strides[k][0];
        for (int i = 0; i + 1 < b->rows_dim && at[i] == w->shape[i]; i++) {
            place += w->strides[k][i + 1] - w->shape[i] * w->strides[k][i];
            at[i] = 0;
            at[i + 1]++;
        }
    }
    const ptrdiff_t step = w->strides[k][b->rows_dim], all = t->rows * t->pieces;
    for (; filled < all; filled++) t->places[filled] = t->places[filled - t->pieces] + step;
}

#define PIECES(N)                                                                                      \
    case N:                                                                                            \
        for (ptrdiff_t i = 0; i < count; i++) memcpy(to + i * N, from + t->places[i], N);              \
        break;

static void gather(char *to, const char *from, const table *t, ptrdiff_t rows, ptrdiff_t step) {
    for (ptrdiff_t r = 0; r < rows; r += t->rows) {
        const ptrdiff_t count = (rows - r < t->rows ? rows - r : t->rows) * t->pieces;
        switch (t->bytes) { PIECES(1) PIECES(2) PIECES(4) PIECES(8) PIECES(16) }
        to += t->rows * t->pieces * t->bytes;
        from += t->rows * step;
    }
}

/* Write a row many times behind each other. */
static void repeat(char *to, const char *from, const table *t, ptrdiff_t rows) {
    const ptrdiff_t row = t->pieces * t->bytes, all = rows * row;
    gather(to, from, t, 1, 0);
    for (ptrdiff_t done = row; done < all; done *= 2) memcpy(to + done, to, done < all - done ? done : all - done);
}

/* Run over the blocks from `begin` to `end`. */
static void range(const blocks *b, char *const *data, tp_loop loop, const double *p, ptrdiff_t begin, ptrdiff_t end) {
    const tp_iteration *w = b->whole;
    const int inputs = w->operands - 1, d = b->rows_dim;
    const ptrdiff_t per_dim = (w->shape[d] + b->rows - 1) / b->rows;
    char written[TP_OPERANDS - 1][LARGEST];
    table tables[TP_OPERANDS - 1];
    for (int k = 0; k < inputs; k++)
        if (b->ways[k] != IN_PLACE) {
            fill_table(&tables[k], b, k);
            if (b->ways[k] == REPEATED) repeat(written[k], data[k], &tables[k], b->rows);
        }
    const int straight = w->copies && b->ways[0] == GATHERED && b->strides[1] == w->itemsize[1];
    for (ptrdiff_t block = begin; block < end; block++) {
        const ptrdiff_t first = block % per_dim * b->rows;
        const ptrdiff_t rows = w->shape[d] - first < b->rows ? w->shape[d] - first : b->rows;
        char *now[TP_OPERANDS];
        for (int k = 0; k < w->operands; k++) {
            ptrdiff_t rest = block / per_dim;
            now[k] = data[k] + first * w->strides[k][d];
            for (int i = d + 1; i < w->dims; i++) {
                now[k] += rest % w->shape[i] * w->strides[k][i];
                rest /= w->shape[i];
            }
        }
        for (int k = 0; k < inputs; k++) {
            if (b->ways[k] == IN_PLACE) continue;
            if (b->ways[k] == GATHERED)
                gather(straight ? now[inputs] : written[k], now[k], &tables[k], rows, w->strides[k][d]);
            now[k] = written[k];
        }
        if (!straight) loop(now, b->strides, rows * b->elements, p);
    }
}

int tp_iteration_run_blocks(const tp_iteration *w, char *const *data, tp_loop loop, const double *p, int threads) {
    blocks found;
    ptrdiff_t total = 1, count;
    for (int i = 0; i < w->dims; i++) total *= w->shape[i];
    if (w->dims < 2 || total < WORTH || !find(&found, w)) return 0;
    const ptrdiff_t rows = w->shape[found.rows_dim];
    count = total / found.elements / rows * ((rows + found.rows - 1) / found.rows);
    TP_PARALLEL(count, threads, begin, end, { range(&found, data, loop, p, begin, end); });
    return 1;
}
