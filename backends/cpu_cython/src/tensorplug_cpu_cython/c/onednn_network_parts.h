/* What the files of a network share. */
#ifndef TENSORPLUG_ONEDNN_NETWORK_PARTS_H
#define TENSORPLUG_ONEDNN_NETWORK_PARTS_H

#include <oneapi/dnnl/dnnl.h>

#include "onednn_network.h"

enum { TP_NET_ARGUMENTS = 8, TP_NET_POSTS = 6 };

typedef struct {
    dnnl_memory_desc_t layout;
    dnnl_memory_t memory;
    int input, output;   /* which array of the caller's, or -1 */
    int owner;           /* the value whose memory it has */
    int first, last;     /* the steps between which the memory is needed */
    size_t bytes, place;
    void *constant;
} tp_net_value;

/* A primitive, or a convolution of ours. */
typedef struct {
    dnnl_primitive_t primitive;
    struct tp_net_winograd *winograd;
    dnnl_memory_desc_t scratch_layout;
    dnnl_memory_t scratch;
    const char *implementation;
    int arguments, argument[TP_NET_ARGUMENTS], value[TP_NET_ARGUMENTS];
} tp_net_step;

struct tp_net {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    tp_net_value *values;
    tp_net_step *steps;
    int value_count, step_count, inputs, outputs;
    int level, threads; /* of SIMD, and that run */
    int guarded; /* whether there is what takes NaN for a number */
    size_t arena, scratch;
};

#define ALIGNED(bytes) (((bytes) + 63) & ~(size_t)63)

/* Functions that return a number return -1, those that return a pointer NULL, if it cannot be done. */
int tp_net_add_value(tp_net *net, const_dnnl_memory_desc_t layout);
/* A step of a primitive, if there is one; its description stays the caller's. */
tp_net_step *tp_net_add_step(tp_net *net, dnnl_primitive_desc_t description);
/* Note that the last step takes or makes a value; return that. */
int tp_net_use(tp_net *net, tp_net_step *s, int argument, int value);
/* A value laid out as wanted: the same one, or a new one that a reorder makes. */
int tp_net_laid_out(tp_net *net, int source, const_dnnl_memory_desc_t layout);
/* A constant, turned around now. */
int tp_net_constant(tp_net *net, const tp_dnn_array *array, const void *data, const_dnnl_memory_desc_t wanted);
dnnl_status_t tp_net_describe(dnnl_memory_desc_t *made, const tp_dnn_array *a, int free_layout);
/* How a primitive wants an argument to lie. */
const_dnnl_memory_desc_t tp_net_asked(dnnl_primitive_desc_t description, int argument);
dnnl_primitive_attr_t tp_net_attributes(dnnl_post_ops_t posts);
dnnl_alg_kind_t tp_net_function_of(int kind);

int tp_net_winograd_run(const tp_net *net, const tp_net_step *s, float *scratch);
void tp_net_winograd_free(struct tp_net_winograd *made);

#endif
