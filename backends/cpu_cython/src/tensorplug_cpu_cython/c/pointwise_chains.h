/* Chains: several pointwise loops of float or double in one pass, whose values stay in vector registers.

   Each loop that can be part of one has a link, a function that computes the same of four vectors and goes on to the
   next link by a tail call. A chain is an array of links, of which the first loads and the last returns. */
#ifndef TENSORPLUG_POINTWISE_CHAINS_H
#define TENSORPLUG_POINTWISE_CHAINS_H

#include "pointwise.h"

/* Takes vectors, whose width is that of the level: only pointwise_links.h knows the type. */
typedef void (*tp_link_code)(void);

typedef struct {
    tp_link_code code;
    char *data[2];      /* what it reads beside the value at hand, or writes */
    ptrdiff_t moves[2]; /* all ones; zero for a number that is repeated, in a block of its own */
    double p[4];
} tp_link;

/* The links of a loop: with the value at hand as its first argument, and, or NULL, as its second of two. */
typedef struct { tp_loop loop; tp_link_code first, second; int itemsize; } tp_linked;

enum { TP_MOST_LINKED = 160 };
typedef struct { tp_linked of[TP_MOST_LINKED]; } tp_links; /* those behind the last one are zero */

typedef struct {
    tp_link_code load, store, end;
    void (*run)(const tp_link *links, ptrdiff_t bytes); /* of whole blocks */
    ptrdiff_t block;                                    /* bytes that a link takes at a time */
} tp_chains;

enum { TP_LARGEST_BLOCK = 256 };

TP_DECLARE(const tp_links, tp_pointwise_links);
TP_DECLARE(const tp_links, tp_fused_links);
TP_DECLARE(const tp_chains, tp_chains_of);

#endif
