/* Several loops of pointwise ops over one iteration, tile by tile: what lies between them stays in the cache. */
#ifndef TENSORPLUG_POINTWISE_TILES_H
#define TENSORPLUG_POINTWISE_TILES_H

#include "pointwise.h"

enum { TP_TILE_ARRAYS = 24, TP_TILE_REGISTERS = 96, TP_TILE_CALLS = 64, TP_TILE_DIMS = 32 };
enum { TP_TILE_BYTES = 32768 }; /* for all that lies between the loops, in each thread */

/* A loop, and the registers of its inputs and then its output. */
typedef struct {
    tp_loop loop;
    int operands;
    int registers[4];
    double parameters[4];
} tp_tile_call;

/* The registers are first the arrays, then what lies between. */
typedef struct {
    int calls, arrays;
    tp_tile_call call[TP_TILE_CALLS];
    int itemsize[TP_TILE_REGISTERS];
    int slot[TP_TILE_REGISTERS]; /* of those between: which part of the buffer */
    int slots, widest;           /* how many parts there are, and the bytes of the widest element */
} tp_tiles;

/* The slowest dimension first; in bytes. */
typedef struct {
    int dims;
    ptrdiff_t shape[TP_TILE_DIMS];
    ptrdiff_t strides[TP_TILE_ARRAYS][TP_TILE_DIMS];
} tp_tile_iteration;

void tp_tiles_run(const tp_tiles *tiles, const tp_tile_iteration *iteration, char *const *data, int threads);

#endif
