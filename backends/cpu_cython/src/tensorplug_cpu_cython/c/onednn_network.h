/* Several of oneDNN's primitives as one call: between them arrays lie as the primitives want them, in one arena;
   weights are turned around once. */
#ifndef TENSORPLUG_ONEDNN_NETWORK_H
#define TENSORPLUG_ONEDNN_NETWORK_H

#include "onednn.h"

typedef struct tp_net tp_net;

enum {
    TP_NET_RELU, TP_NET_CLIP, TP_NET_HARDSWISH, TP_NET_SWISH, TP_NET_HARDSIGMOID, TP_NET_TANH, TP_NET_LOGISTIC,
    TP_NET_ADD,      /* another value */
    TP_NET_DEPTHWISE /* a 3×3 convolution of each channel, padded by one */
};
enum { TP_NET_MAX, TP_NET_MEAN, TP_NET_MEAN_WITHOUT_PADDING };

/* What a convolution does with its result: a function of elements, the sum with a value, which is written over where
   nobody needs it afterwards, or, of a 1×1 one, a convolution of each channel with `stride`; its bias may be NULL. */
typedef struct {
    int kind, value, over, stride;
    float alpha, beta;
    const void *weight, *bias;
} tp_net_post;

/* With kernels of a SIMD level, for so many threads. */
tp_net *tp_net_new(int level, int threads);
void tp_net_free(tp_net *net);

/* Each returns the number of the value that it makes, or -1. Arrays are described as in a problem. */
int tp_net_input(tp_net *net, const tp_dnn_array *array);
int tp_net_convolution(tp_net *net, const tp_dnn_problem *problem, int source, const void *weight, const void *bias,
                       const tp_net_post *posts, int count);
/* input (m, k) times the transposed weight (n, k); the problem's arrays are the input, the weight, the result and the
   bias. */
int tp_net_linear(tp_net *net, const tp_dnn_problem *problem, int source, const void *weight, const void *bias);
int tp_net_pool(tp_net *net, const tp_dnn_problem *problem, int source, int kind, const int64_t *window);
int tp_net_function(tp_net *net, int source, const tp_net_post *post);
int tp_net_sum(tp_net *net, int source, int other);
/* A value as an array of the caller's; outputs are numbered in the order of these calls. */
int tp_net_output(tp_net *net, int source, const tp_dnn_array *array);

/* Plan the memory; return how many bytes a run needs. */
size_t tp_net_finish(tp_net *net);

/* Return oneDNN's status, 0 if all went well; or that there are functions or pooling, the inputs are not all finite,
   and nothing was done. */
enum { TP_NET_NOT_FINITE = -1 };
int tp_net_run(tp_net *net, void *const *inputs, void *const *outputs, void *workspace);

/* The name of the kernel of a step, NULL behind the last. */
const char *tp_net_implementation(const tp_net *net, int step);

#endif
