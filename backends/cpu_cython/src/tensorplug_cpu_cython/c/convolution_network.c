#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "convolution_winograd.h"
#include "onednn_network_parts.h"

/* --- by Winograd's way ------------------------------------------------------------------------------------- */

struct tp_net_winograd {
    tp_wino problem;
    float *weight, *bias;
    int others[TP_WINO_POSTS]; /* by post, the value that is added, or -1 */
};

void tp_net_winograd_free(struct tp_net_winograd *made) {
    free(made->weight);
    free(made->bias);
    free(made);
}

static tp_wino problem_of(const tp_net *net, const tp_dnn_problem *p) {
    const int64_t *source = p->arrays[0].shape, *target = p->arrays[2].shape;
    return (tp_wino){
        .images = source[0], .channels = source[1], .height = source[2], .width = source[3], .filters = target[1],
        .out_height = target[2], .out_width = target[3], .top = p->before[0], .left = p->before[1],
        .image_step = source[1] * source[2] * source[3], .kernel = (int)p->arrays[1].shape[2],
        .threads = net->threads};
}

static int suits(const tp_net *net, const tp_dnn_problem *p, const tp_net_post *posts, int count) {
    const int64_t *weight = p->arrays[1].shape;
    if (p->spatial != 2 || p->groups != 1 || count > TP_WINO_POSTS || weight[2] != weight[3]) return 0;
    if (weight[2] != 3 && weight[2] != 5) return 0;
    for (int i = 0; i < 2; i++)
        if (p->stride[i] != 1 || p->dilation[i] != 1 || weight[i] % TP_WINO_BLOCK) return 0;
    for (int i = 0; i < count; i++)
        if (posts[i].kind != TP_NET_ADD && posts[i].kind != TP_NET_RELU && posts[i].kind != TP_NET_CLIP) return 0;
    const tp_wino problem = problem_of(net, p);
    return TP_CHOOSE(tp_wino_table, net->level)->pays(&problem, 0);
}

static dnnl_status_t tagged(dnnl_memory_desc_t *made, const tp_dnn_array *array, dnnl_format_tag_t tag) {
    dnnl_dims_t shape = {0};
    memcpy(shape, array->shape, sizeof array->shape);
    return dnnl_memory_desc_create_with_tag(made, (int)array->dims, shape, dnnl_f32, tag);
}

static float *copied(const void *data, size_t count) {
    float *made = malloc((count ? count : 1) * sizeof *made);
    return made ? memcpy(made, data, count * sizeof *made) : NULL;
}

static struct tp_net_winograd *new_winograd(const tp_net *net, const tp_dnn_problem *p, const void *weight,
                                            const void *bias, const tp_net_post *posts, int count) {
    const tp_wino_kernels *kernels = TP_CHOOSE(tp_wino_table, net->level);
    struct tp_net_winograd *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    made->problem = problem_of(net, p);
    made->problem.posts = count;
    for (int i = 0; i < count; i++) {
        const int clips = posts[i].kind == TP_NET_CLIP;
        made->problem.post[i] = (tp_wino_post){
            posts[i].kind == TP_NET_ADD, clips ? posts[i].alpha : 0, clips ? posts[i].beta : INFINITY};
    }
    made->weight = aligned_alloc(64, ALIGNED((size_t)kernels->weights(&made->problem) * sizeof(float)));
    made->bias = bias ? copied(bias, (size_t)made->problem.filters) : NULL;
    if (!made->weight || (bias && !made->bias)) {
        tp_net_winograd_free(made);
        return NULL;
    }
    kernels->pack(&made->problem, weight, 0, made->weight);
    return made;
}

static int add_winograd(tp_net *net, const tp_dnn_problem *p, int source, const void *weight, const void *bias,
                        const tp_net_post *posts, int count) {
    dnnl_memory_desc_t image = NULL, blocked = NULL, target = NULL;
    struct tp_net_winograd *made = NULL;
    int result = -1, over = -1;
    if (tagged(&image, &p->arrays[0], dnnl_acdb) || tagged(&blocked, &p->arrays[0], dnnl_aBcd16b) ||
        tagged(&target, &p->arrays[2], dnnl_acdb) || !(made = new_winograd(net, p, weight, bias, posts, count)))
        goto done;
    const int blocks = dnnl_memory_desc_equal(net->values[source].layout, blocked);
    if (!blocks) source = tp_net_laid_out(net, source, image);
    if (source < 0) goto done;
    made->problem.pixel_step = blocks ? TP_WINO_BLOCK : made->problem.channels;
    made->problem.block_step = TP_WINO_BLOCK * (blocks ? made->problem.height * made->problem.width : 1);
    for (int i = 0; i < count; i++) {
        made->others[i] = posts[i].kind == TP_NET_ADD ? tp_net_laid_out(net, posts[i].value, target) : -1;
        if (posts[i].kind == TP_NET_ADD && made->others[i] < 0) goto done;
        if (posts[i].kind == TP_NET_ADD && posts[i].over) over = made->others[i];
    }
    const int value = tp_net_add_value(net, target);
    tp_net_step *s = value < 0 ? NULL : tp_net_add_step(net, NULL);
    if (!s) goto done;
    s->winograd = made;
    net->guarded = 1; /* a tile mixes its numbers, so that NaN and infinity would spread */
    s->implementation = "winograd";
    tp_net_use(net, s, DNNL_ARG_SRC, source);
    for (int i = 0; i < count; i++)
        if (made->others[i] >= 0) tp_net_use(net, s, DNNL_ARG_SRC_1, made->others[i]);
    const size_t each = (size_t)TP_CHOOSE(tp_wino_table, net->level)->workspace(&made->problem);
    const size_t bytes = ALIGNED(each * sizeof(float) * (size_t)net->threads);
    if (bytes > net->scratch) net->scratch = bytes;
    if (over >= 0) net->values[value].owner = net->values[over].owner;
    made = NULL;
    result = tp_net_use(net, s, DNNL_ARG_DST, value);
done:
    if (made) tp_net_winograd_free(made);
    if (image) dnnl_memory_desc_destroy(image);
    if (blocked) dnnl_memory_desc_destroy(blocked);
    if (target) dnnl_memory_desc_destroy(target);
    return result;
}

int tp_net_winograd_run(const tp_net *net, const tp_net_step *s, float *scratch) {
    const struct tp_net_winograd *w = s->winograd;
    void *source, *target, *other[TP_WINO_POSTS] = {NULL};
    dnnl_status_t status = dnnl_memory_get_data_handle(net->values[s->value[0]].memory, &source);
    if (!status) status = dnnl_memory_get_data_handle(net->values[s->value[s->arguments - 1]].memory, &target);
    for (int i = 0; i < w->problem.posts && !status; i++)
        if (w->others[i] >= 0) status = dnnl_memory_get_data_handle(net->values[w->others[i]].memory, &other[i]);
    if (status) return status;
    TP_CHOOSE(tp_wino_table, net->level)
        ->run(&w->problem, source, w->weight, w->bias, (const float *const *)other, target, scratch);
    return 0;
}

/* --- by oneDNN --------------------------------------------------------------------------------------------- */

static dnnl_status_t make_posts(const tp_net *net, dnnl_post_ops_t *made, const tp_net_post *posts, int count) {
    dnnl_status_t status = dnnl_post_ops_create(made);
    for (int i = 0; i < count && !status; i++) {
        const tp_net_post *p = &posts[i];
        if (p->kind == TP_NET_DEPTHWISE)
            status = dnnl_post_ops_append_dw(*made, dnnl_f32, p->bias ? dnnl_f32 : dnnl_data_type_undef, dnnl_f32, 3,
                                             p->stride, 1);
        else if (p->kind != TP_NET_ADD)
            status = dnnl_post_ops_append_eltwise(*made, tp_net_function_of(p->kind), p->alpha, p->beta);
        else if (p->over)
            status = dnnl_post_ops_append_sum(*made, 1.0f, 0, dnnl_data_type_undef);
        else
            status = dnnl_post_ops_append_binary(*made, dnnl_binary_add, net->values[p->value].layout);
    }
    return status;
}

static const tp_net_post *depthwise_of(const tp_net_post *posts, int count) {
    for (int i = 0; i < count; i++)
        if (posts[i].kind == TP_NET_DEPTHWISE) return &posts[i];
    return NULL;
}

/* Make the constants of a convolution of each channel: weight and bias. */
static int depthwise_constants(tp_net *net, const tp_net_post *post, int64_t channels,
                               dnnl_primitive_desc_t description, int made[2]) {
    const tp_dnn_array weight = {.dims = 5, .shape = {channels, 1, 1, 3, 3}, .strides = {9, 9, 9, 3, 1}};
    const tp_dnn_array bias = {.dims = 1, .shape = {channels}, .strides = {1}};
    const int wide = DNNL_ARG_ATTR_POST_OP_DW | DNNL_ARG_WEIGHTS, row = DNNL_ARG_ATTR_POST_OP_DW | DNNL_ARG_BIAS;
    made[0] = tp_net_constant(net, &weight, post->weight, tp_net_asked(description, wide));
    made[1] = post->bias ? tp_net_constant(net, &bias, post->bias, tp_net_asked(description, row)) : 0;
    return made[0] < 0 || made[1] < 0;
}

static int add_direct(tp_net *net, const tp_dnn_problem *p, int source, const void *weight, const void *bias,
                      const tp_net_post *posts, int count) {
    dnnl_memory_desc_t image = NULL, filter = NULL, target = NULL, row = NULL;
    dnnl_post_ops_t post_ops = NULL;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;
    dnnl_dims_t stride = {0}, dilation = {0}, before = {0}, after = {0};
    const tp_net_post *depthwise = depthwise_of(posts, count);
    int result = -1, extra[2] = {-1, -1}, over = -1, other[TP_NET_POSTS], number[TP_NET_POSTS], others = 0;
    for (int i = 0; i < p->spatial; i++) {
        stride[i] = p->stride[i];
        dilation[i] = p->dilation[i] - 1;
        before[i] = p->before[i];
        after[i] = p->after[i];
    }
    /* With one of each channel the kernel is faster on channels last than on the blocks that it would choose. */
    const dnnl_format_tag_t tag = depthwise ? dnnl_acdb : dnnl_format_tag_any;
    if (tagged(&image, &p->arrays[0], tag) || tp_net_describe(&filter, &p->arrays[1], 1) ||
        tagged(&target, &p->arrays[2], tag) || (bias && tp_net_describe(&row, &p->arrays[3], 0)) ||
        make_posts(net, &post_ops, posts, count) || !(attributes = tp_net_attributes(post_ops)) ||
        dnnl_convolution_forward_primitive_desc_create(&description, net->engine, dnnl_forward_inference,
                                                       dnnl_convolution_direct, image, filter, row, target, stride,
                                                       dilation, before, after, attributes))
        goto done;
    const char *name = "";
    dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&name);
    if (!strncmp(name, "ref", 3)) goto done;
    const int from = tp_net_laid_out(net, source, tp_net_asked(description, DNNL_ARG_SRC));
    const int w = tp_net_constant(net, &p->arrays[1], weight, tp_net_asked(description, DNNL_ARG_WEIGHTS));
    const int b = bias ? tp_net_constant(net, &p->arrays[3], bias, tp_net_asked(description, DNNL_ARG_BIAS)) : 0;
    if (from < 0 || w < 0 || b < 0) goto done;
    if (depthwise && depthwise_constants(net, depthwise, p->arrays[2].shape[1], description, extra)) goto done;
    const_dnnl_memory_desc_t layout = tp_net_asked(description, DNNL_ARG_DST);
    for (int i = 0; i < count; i++) {
        if (posts[i].kind != TP_NET_ADD) continue;
        if (posts[i].over) {
            if ((over = tp_net_laid_out(net, posts[i].value, layout)) < 0) goto done;
        } else {
            number[others] = i;
            other[others++] = posts[i].value;
        }
    }
    const int made = tp_net_add_value(net, layout);
    tp_net_step *s = made < 0 ? NULL : tp_net_add_step(net, description);
    if (!s) goto done;
    tp_net_use(net, s, DNNL_ARG_SRC, from);
    tp_net_use(net, s, DNNL_ARG_WEIGHTS, w);
    if (bias) tp_net_use(net, s, DNNL_ARG_BIAS, b);
    if (depthwise) tp_net_use(net, s, DNNL_ARG_ATTR_POST_OP_DW | DNNL_ARG_WEIGHTS, extra[0]);
    if (depthwise && depthwise->bias) tp_net_use(net, s, DNNL_ARG_ATTR_POST_OP_DW | DNNL_ARG_BIAS, extra[1]);
    for (int i = 0; i < others; i++)
        tp_net_use(net, s, DNNL_ARG_ATTR_MULTIPLE_POST_OP(number[i]) | DNNL_ARG_SRC_1, other[i]);
    net->guarded = net->guarded || count;
    if (over >= 0) net->values[made].owner = net->values[over].owner;
    result = tp_net_use(net, s, DNNL_ARG_DST, made);
done:
    if (description) dnnl_primitive_desc_destroy(description);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    if (post_ops) dnnl_post_ops_destroy(post_ops);
    if (image) dnnl_memory_desc_destroy(image);
    if (filter) dnnl_memory_desc_destroy(filter);
    if (target) dnnl_memory_desc_destroy(target);
    if (row) dnnl_memory_desc_destroy(row);
    return result;
}

int tp_net_convolution(tp_net *net, const tp_dnn_problem *p, int source, const void *weight, const void *bias,
                       const tp_net_post *posts, int count) {
    if (count > TP_NET_POSTS) return -1;
    if (suits(net, p, posts, count)) return add_winograd(net, p, source, weight, bias, posts, count);
    const int made = add_direct(net, p, source, weight, bias, posts, count);
    if (made >= 0 || p->spatial != 2) return made;
    /* What is added may lie otherwise than the kernel can read it, such as what the caller gave. */
    tp_net_post turned[TP_NET_POSTS];
    dnnl_memory_desc_t layout;
    int differ = 0;
    if (tagged(&layout, &p->arrays[2], dnnl_acdb)) return -1;
    for (int i = 0; i < count; i++) {
        turned[i] = posts[i];
        if (posts[i].kind != TP_NET_ADD || posts[i].over) continue;
        turned[i].value = tp_net_laid_out(net, posts[i].value, layout);
        differ = differ || turned[i].value != posts[i].value;
    }
    dnnl_memory_desc_destroy(layout);
    return differ ? add_direct(net, p, source, weight, bias, turned, count) : -1;
}
