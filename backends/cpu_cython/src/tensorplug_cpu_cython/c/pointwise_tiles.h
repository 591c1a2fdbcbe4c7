/* Several loops of pointwise ops over one iteration, tile by tile: what lies between them stays in the cache. */
#ifndef TENSORPLUG_POINTWISE_TILES_H
#define TENSORPLUG_POINTWISE_TILES_H

#include "pointwise_chains.h"

enum { TP_TILE_ARRAYS = 24, TP_TILE_REGISTERS = 96, TP_TILE_CALLS = 64, TP_TILE_DIMS = 32 };
enum { TP_TILE_BYTES = 24576 }; /* for a tile of all arrays and what lies between, in each thread's first cache */
enum { TP_TILE_AHEAD = 8 }; /* for how many rows numbers are repeated at once */
enum { TP_TILE_LEAST = 64, TP_TILE_MOST = 4096 }; /* elements of a tile */
enum { TP_TILE_BUFFER = TP_TILE_CALLS * TP_TILE_LEAST * 8 }; /* more than TP_TILE_BYTES, for very many registers */
enum { TP_TILE_LINKS = 3 * TP_TILE_CALLS }; /* a call has at most a load, a link and a store */

/* A loop, and the registers of its inputs and then its output. */
typedef struct {
    tp_loop loop;
    int operands;
    int registers[4];
    double parameters[4];
} tp_tile_call;

/* A link, and the registers that it reads or writes: -1 for none. */
typedef struct {
    tp_link_code code;
    int registers[2];
    double parameters[4];
} tp_tile_link;

/* Calls from `first` up to `last`, and the links that do the same. */
typedef struct { int first, last, link, links; } tp_tile_chain;

/* The registers are first the arrays, then what lies between. */
typedef struct {
    int calls, arrays;
    tp_tile_call call[TP_TILE_CALLS];
    int itemsize[TP_TILE_REGISTERS];
    int slot[TP_TILE_REGISTERS]; /* of those between: which part of the buffer */
    int slots, widest;           /* how many parts there are, and the bytes of the widest element */
    int chains;
    tp_tile_chain chain[TP_TILE_CALLS];
    tp_tile_link link[TP_TILE_LINKS];
    const tp_chains *ways;
} tp_tiles;

/* The slowest dimension first; in bytes. */
typedef struct {
    int dims;
    ptrdiff_t shape[TP_TILE_DIMS];
    ptrdiff_t strides[TP_TILE_ARRAYS][TP_TILE_DIMS];
} tp_tile_iteration;

void tp_tiles_run(const tp_tiles *tiles, const tp_tile_iteration *iteration, char *const *data, int threads);

#endif
