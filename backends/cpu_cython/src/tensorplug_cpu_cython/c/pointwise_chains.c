/* The ends of chains, and what runs them. */
#include "pointwise_links.h"

#define LINK_LOAD(value, k, T, expression) value = *(const float_vector *)LINK_OPERAND(k, 0);
#define LINK_STORE(value, k, T, expression) *(float_vector *)LINK_OPERAND(k, 0) = value;
LINK(load_link, LINK_LOAD, float, )
LINK(store_link, LINK_STORE, float, )

static void end_link(LINK_ARGUMENTS) { (void)a_, (void)b_, (void)c_, (void)d_, (void)link, (void)at; }

enum { BLOCK = 4 * VECTOR };
_Static_assert((int)BLOCK <= (int)TP_LARGEST_BLOCK, "a repeated number has a block");

static void run(const tp_link *links, ptrdiff_t bytes) {
    const tp_lanes none = {0};
    for (ptrdiff_t at = 0; at < bytes; at += BLOCK)
        ((tp_link_function)links->code)(none, none, none, none, links, at);
}

const tp_chains LEVEL(tp_chains_of) = {
    (tp_link_code)load_link, (tp_link_code)store_link, (tp_link_code)end_link, run, BLOCK};
