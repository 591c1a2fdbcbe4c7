#include "pointwise_tiles.h"

#include <stdint.h>
#include <string.h>

#include "parallel.h"

/* Merge dimensions that lie behind each other in all arrays, and leave at least two. */
static void merge(tp_tile_iteration *it, int arrays) {
    int last = 0;
    for (int d = 1; d < it->dims; d++) {
        int behind = 1;
        for (int k = 0; k < arrays && behind; k++)
            behind = it->strides[k][last] == it->strides[k][d] * it->shape[d];
        if (behind || it->shape[last] == 1) {
            it->shape[last] *= it->shape[d];
        } else if (it->shape[d] == 1) {
            continue;
        } else {
            it->shape[++last] = it->shape[d];
        }
        for (int k = 0; k < arrays; k++) it->strides[k][last] = it->strides[k][d];
    }
    it->dims = it->dims ? last + 1 : 0;
    while (it->dims < 2) {
        for (int d = it->dims; d > 0; d--) {
            it->shape[d] = it->shape[d - 1];
            for (int k = 0; k < arrays; k++) it->strides[k][d] = it->strides[k][d - 1];
        }
        it->shape[0] = 1;
        for (int k = 0; k < arrays; k++) it->strides[k][0] = 0;
        it->dims++;
    }
}

/* A tile: where the arrays lie at its first element, their steps from row to row and in a row, and what is in between. */
typedef struct {
    const tp_tiles *tiles;
    char *data[TP_TILE_ARRAYS];
    ptrdiff_t strides[TP_TILE_ARRAYS][2];
    const char *repeated[TP_TILE_ARRAYS]; /* blocks of numbers; NULL for other arrays */
    char *buffer;
    ptrdiff_t part, rows, n;
} tp_tile;

/* Return where a register lies, from some element of some row on, and its steps. */
static inline char *locate(const tp_tile *tile, int r, ptrdiff_t row, ptrdiff_t skipped, ptrdiff_t *outer,
                           ptrdiff_t *inner) {
    const tp_tiles *t = tile->tiles;
    char *start;
    if (r < t->arrays) {
        start = tile->data[r];
        *outer = tile->strides[r][0];
        *inner = tile->strides[r][1];
    } else {
        start = tile->buffer + t->slot[r] * tile->part;
        *inner = t->itemsize[r];
        *outer = *inner * tile->n;
    }
    return start + row * *outer + skipped * *inner;
}

/* Run one loop over some rows, from some element of each on. */
static void run_loop(const tp_tile *tile, const tp_tile_call *call, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t skipped) {
    const ptrdiff_t n = tile->n - skipped;
    char *at[4];
    ptrdiff_t inner[4], outer[4];
    int whole = !skipped;
    for (int k = 0; k < call->operands; k++) {
        at[k] = locate(tile, call->registers[k], row, skipped, &outer[k], &inner[k]);
        whole = whole && outer[k] == inner[k] * n;
    }
    if (rows == 1 || whole) {
        call->loop(at, inner, rows * n, call->parameters);
        return;
    }
    for (ptrdiff_t i = 0; i < rows; i++) {
        call->loop(at, inner, n, call->parameters);
        for (int k = 0; k < call->operands; k++) at[k] += outer[k];
    }
}

static void repeat(char *block, const char *number, int itemsize) {
    if (itemsize == 8) {
        uint64_t value, to[TP_LARGEST_BLOCK / 8];
        memcpy(&value, number, 8);
        for (int i = 0; i < TP_LARGEST_BLOCK / 8; i++) to[i] = value;
        memcpy(block, to, TP_LARGEST_BLOCK);
    } else {
        uint32_t value, to[TP_LARGEST_BLOCK / 4];
        memcpy(&value, number, 4);
        for (int i = 0; i < TP_LARGEST_BLOCK / 4; i++) to[i] = value;
        memcpy(block, to, TP_LARGEST_BLOCK);
    }
}

/* Return whether the elements that a link takes lie behind each other, or are one, in each of its arrays. */
static int fits(const tp_tile *tile, const tp_tile_link *link) {
    for (int k = 0; k < 2; k++) {
        const int r = link->registers[k];
        if (r < 0 || r >= tile->tiles->arrays) continue;
        if (tile->strides[r][1] && tile->strides[r][1] != tile->tiles->itemsize[r]) return 0;
    }
    return 1;
}

/* What a link reads or writes: where that lies in the first row, and the step to the next. */
typedef struct { char **data, *start; ptrdiff_t outer; int repeated; } tp_operand;

/* Run the links of a chain over whole blocks of each row; return how many elements of a row these have.

   A number that differs from row to row is repeated for several rows at once: what was just written in parts cannot be
   read as one vector before it has reached the cache. */
static ptrdiff_t run_links(const tp_tile *tile, const tp_tile_chain *chain) {
    const tp_tiles *t = tile->tiles;
    const int itemsize = t->itemsize[t->link[chain->link].registers[0]];
    const ptrdiff_t bytes = tile->n * itemsize / t->ways->block * t->ways->block;
    tp_link links[TP_TILE_LINKS + 1];
    tp_operand operands[2 * TP_TILE_LINKS], numbers[TP_TILE_ARRAYS];
    char blocks[TP_TILE_AHEAD][TP_TILE_ARRAYS][TP_LARGEST_BLOCK] __attribute__((aligned(64)));
    int count = 0, repeated = 0, number_of[TP_TILE_ARRAYS];
    for (int r = 0; r < t->arrays; r++) number_of[r] = -1;
    for (int i = 0; i < chain->links; i++) {
        const tp_tile_link *from = &t->link[chain->link + i];
        links[i].code = from->code;
        memcpy(links[i].p, from->parameters, sizeof(links[i].p));
        for (int k = 0; k < 2; k++) {
            const int r = from->registers[k];
            ptrdiff_t outer, inner;
            if (r < 0) continue;
            char *const start = locate(tile, r, 0, 0, &outer, &inner);
            links[i].moves[k] = inner ? -1 : 0;
            if (inner) {
                operands[count++] = (tp_operand){&links[i].data[k], start, outer, 0};
            } else if (tile->repeated[r]) {
                links[i].data[k] = (char *)tile->repeated[r];
            } else {
                if (number_of[r] < 0) {
                    number_of[r] = repeated;
                    numbers[repeated++] = (tp_operand){NULL, start, outer, 1};
                }
                operands[count++] = (tp_operand){&links[i].data[k], blocks[0][number_of[r]], sizeof(blocks[0]), 1};
            }
        }
    }
    links[chain->links].code = t->ways->end;
    for (ptrdiff_t row = 0; row < tile->rows; row++) {
        const ptrdiff_t next = row % TP_TILE_AHEAD;
        for (ptrdiff_t h = row; !next && h < row + TP_TILE_AHEAD && h < tile->rows; h++)
            for (int j = 0; j < repeated; j++)
                repeat(blocks[h - row][j], numbers[j].start + h * numbers[j].outer, itemsize);
        for (int j = 0; j < count; j++)
            *operands[j].data = operands[j].start + (operands[j].repeated ? next : row) * operands[j].outer;
        t->ways->run(links, bytes);
    }
    return bytes / itemsize;
}

/* Run the calls of a chain: by its links, and what is left of each row by its loops. */
static void run_chain(const tp_tile *given, const tp_tile_chain *chain) {
    const tp_tiles *t = given->tiles;
    tp_tile tile = *given;
    int whole = 1, linked = 1;
    for (int i = chain->link; i < chain->link + chain->links; i++) {
        linked = linked && fits(&tile, &t->link[i]);
        for (int k = 0; k < 2; k++) {
            const int r = t->link[i].registers[k];
            if (r >= 0 && r < t->arrays) whole = whole && tile.strides[r][0] == tile.strides[r][1] * tile.n;
        }
    }
    if (whole) {
        tile.n *= tile.rows;
        tile.rows = 1;
    }
    linked = linked && tile.n * t->itemsize[t->link[chain->link].registers[0]] >= 2 * t->ways->block;
    const ptrdiff_t done = linked ? run_links(&tile, chain) : 0;
    if (done == tile.n) return;
    for (ptrdiff_t row = 0; row < (linked ? tile.rows : 1); row++)
        for (int c = chain->first; c < chain->last; c++)
            run_loop(&tile, &t->call[c], row, linked ? 1 : tile.rows, done);
}

/* Run all calls over the rows of a tile. */
static void run_tile(const tp_tile *tile) {
    const tp_tiles *t = tile->tiles;
    const tp_tile_chain *chain = t->chain, *const behind = t->chain + t->chains;
    for (int c = 0; c < t->calls;) {
        if (chain < behind && chain->first == c) {
            run_chain(tile, chain);
            c = chain++->last;
        } else {
            run_loop(tile, &t->call[c++], 0, tile->rows, 0);
        }
    }
}

void tp_tiles_run(const tp_tiles *t, const tp_tile_iteration *given, char *const *data, int threads) {
    tp_tile_iteration it = *given;
    for (int d = 0; d < it.dims; d++)
        if (!it.shape[d]) return;
    merge(&it, t->arrays);
    const int inner = it.dims - 1, outer = it.dims - 2;
    /* Of an element, in all arrays and in between. */
    ptrdiff_t bytes = t->slots * t->widest;
    for (int k = 0; k < t->arrays; k++)
        if (it.strides[k][inner]) bytes += t->itemsize[k];
    /* A whole number of the widest vectors. */
    ptrdiff_t most = TP_TILE_BYTES / (bytes ? bytes : 1) / TP_TILE_LEAST * TP_TILE_LEAST;
    most = most < TP_TILE_LEAST ? TP_TILE_LEAST : most > TP_TILE_MOST ? TP_TILE_MOST : most;
    const ptrdiff_t n = it.shape[inner], wide = n < most ? n : most;
    const ptrdiff_t high = n < most ? (most / n < it.shape[outer] ? most / n : it.shape[outer]) : 1;
    const ptrdiff_t across = (n + wide - 1) / wide, down = (it.shape[outer] + high - 1) / high;
    ptrdiff_t tiles = across * down;
    for (int d = 0; d < outer; d++) tiles *= it.shape[d];
    TP_PARALLEL(tiles, threads, begin, end, {
        char buffer[TP_TILE_BUFFER] __attribute__((aligned(64)));
        char blocks[TP_TILE_ARRAYS][TP_LARGEST_BLOCK] __attribute__((aligned(64)));
        tp_tile tile = {.tiles = t, .buffer = buffer, .part = most * t->widest};
        for (int k = 0; k < t->arrays; k++) {
            int number = t->chains && t->itemsize[k] >= 4;
            for (int d = 0; d < it.dims; d++) number = number && !it.strides[k][d];
            if (number) {
                repeat(blocks[k], data[k], t->itemsize[k]);
                tile.repeated[k] = blocks[k];
            }
            tile.strides[k][0] = it.strides[k][outer];
            tile.strides[k][1] = it.strides[k][inner];
        }
        for (ptrdiff_t number = begin; number < end; number++) {
            ptrdiff_t rest = number / across;
            const ptrdiff_t column = number % across * wide;
            const ptrdiff_t row = rest % down * high;
            rest /= down;
            for (int k = 0; k < t->arrays; k++)
                tile.data[k] = data[k] + row * tile.strides[k][0] + column * tile.strides[k][1];
            for (int d = outer - 1; d >= 0; d--) {
                const ptrdiff_t where = rest % it.shape[d];
                rest /= it.shape[d];
                for (int k = 0; k < t->arrays; k++) tile.data[k] += where * it.strides[k][d];
            }
            tile.rows = it.shape[outer] - row < high ? it.shape[outer] - row : high;
            tile.n = n - column < wide ? n - column : wide;
            run_tile(&tile);
        }
    });
}
