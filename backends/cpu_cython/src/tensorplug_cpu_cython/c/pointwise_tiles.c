#include "pointwise_tiles.h"

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

/* Run all calls over `rows` rows of `n` elements; `data` are the arrays at the first of these. */
static void tile(const tp_tiles *t, char *const *data, const ptrdiff_t (*strides)[2], ptrdiff_t rows, ptrdiff_t n,
                 char *buffer, ptrdiff_t part) {
    for (int c = 0; c < t->calls; c++) {
        const tp_tile_call *call = &t->call[c];
        char *at[4];
        ptrdiff_t inner[4], outer[4];
        int whole = 1;
        for (int k = 0; k < call->operands; k++) {
            const int r = call->registers[k];
            if (r < t->arrays) {
                at[k] = data[r];
                outer[k] = strides[r][0];
                inner[k] = strides[r][1];
                whole = whole && outer[k] == inner[k] * n;
            } else {
                at[k] = buffer + t->slot[r] * part;
                inner[k] = t->itemsize[r];
                outer[k] = inner[k] * n;
            }
        }
        if (rows == 1 || whole) {
            call->loop(at, inner, rows * n, call->parameters);
            continue;
        }
        for (ptrdiff_t row = 0; row < rows; row++) {
            call->loop(at, inner, n, call->parameters);
            for (int k = 0; k < call->operands; k++) at[k] += outer[k];
        }
    }
}

void tp_tiles_run(const tp_tiles *t, const tp_tile_iteration *given, char *const *data, int threads) {
    tp_tile_iteration it = *given;
    for (int d = 0; d < it.dims; d++)
        if (!it.shape[d]) return;
    merge(&it, t->arrays);
    const int inner = it.dims - 1, outer = it.dims - 2;
    const ptrdiff_t slots = t->slots ? t->slots : 1;
    /* A whole number of the widest vectors. */
    const ptrdiff_t part = TP_TILE_BYTES / slots / 64 * 64;
    ptrdiff_t most = part / t->widest;
    if (most > 4096) most = 4096;
    const ptrdiff_t n = it.shape[inner], wide = n < most ? n : most;
    const ptrdiff_t high = n < most ? (most / n < it.shape[outer] ? most / n : it.shape[outer]) : 1;
    const ptrdiff_t across = (n + wide - 1) / wide, down = (it.shape[outer] + high - 1) / high;
    ptrdiff_t tiles = across * down;
    for (int d = 0; d < outer; d++) tiles *= it.shape[d];
    TP_PARALLEL(tiles, threads, begin, end, {
        char buffer[TP_TILE_BYTES] __attribute__((aligned(64)));
        ptrdiff_t strides[TP_TILE_ARRAYS][2];
        for (int k = 0; k < t->arrays; k++) {
            strides[k][0] = it.strides[k][outer];
            strides[k][1] = it.strides[k][inner];
        }
        for (ptrdiff_t number = begin; number < end; number++) {
            char *at[TP_TILE_ARRAYS];
            ptrdiff_t rest = number / across;
            const ptrdiff_t column = number % across * wide;
            const ptrdiff_t row = rest % down * high;
            rest /= down;
            for (int k = 0; k < t->arrays; k++)
                at[k] = data[k] + row * strides[k][0] + column * strides[k][1];
            for (int d = outer - 1; d >= 0; d--) {
                const ptrdiff_t where = rest % it.shape[d];
                rest /= it.shape[d];
                for (int k = 0; k < t->arrays; k++) at[k] += where * it.strides[k][d];
            }
            const ptrdiff_t rows = it.shape[outer] - row < high ? it.shape[outer] - row : high;
            tile(t, at, strides, rows, n - column < wide ? n - column : wide, buffer, part);
        }
    });
}
