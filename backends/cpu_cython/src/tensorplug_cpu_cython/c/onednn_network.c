#include "onednn_network_parts.h"

#include <stdlib.h>
#include <string.h>

#include "parallel.h"

tp_net *tp_net_new(int level, int threads) {
    tp_net *net = calloc(1, sizeof *net);
    if (!net) return NULL;
    net->level = level;
    net->threads = threads;
    if (dnnl_engine_create(&net->engine, dnnl_cpu, 0) ||
        dnnl_stream_create(&net->stream, net->engine, dnnl_stream_default_flags)) {
        tp_net_free(net);
        return NULL;
    }
    return net;
}

void tp_net_free(tp_net *net) {
    if (!net) return;
    for (int i = 0; i < net->value_count; i++) {
        tp_net_value *v = &net->values[i];
        if (v->memory) dnnl_memory_destroy(v->memory);
        if (v->layout) dnnl_memory_desc_destroy(v->layout);
        free(v->constant);
    }
    for (int i = 0; i < net->step_count; i++) {
        tp_net_step *s = &net->steps[i];
        if (s->primitive) dnnl_primitive_destroy(s->primitive);
        if (s->winograd) tp_net_winograd_free(s->winograd);
        if (s->scratch) dnnl_memory_destroy(s->scratch);
        if (s->scratch_layout) dnnl_memory_desc_destroy(s->scratch_layout);
    }
    if (net->stream) dnnl_stream_destroy(net->stream);
    if (net->engine) dnnl_engine_destroy(net->engine);
    free(net->values);
    free(net->steps);
    free(net);
}

/* --- values and steps -------------------------------------------------------------------------------------- */

int tp_net_add_value(tp_net *net, const_dnnl_memory_desc_t layout) {
    tp_net_value *values = realloc(net->values, (size_t)(net->value_count + 1) * sizeof *values);
    if (!values) return -1;
    net->values = values;
    tp_net_value *v = &values[net->value_count];
    memset(v, 0, sizeof *v);
    if (dnnl_memory_desc_clone(&v->layout, layout)) return -1;
    v->input = v->output = -1;
    v->owner = net->value_count;
    v->first = v->last = net->step_count;
    v->bytes = dnnl_memory_desc_get_size(v->layout);
    return net->value_count++;
}

tp_net_step *tp_net_add_step(tp_net *net, dnnl_primitive_desc_t description) {
    tp_net_step *steps = realloc(net->steps, (size_t)(net->step_count + 1) * sizeof *steps);
    if (!steps) return NULL;
    net->steps = steps;
    tp_net_step *s = &steps[net->step_count];
    memset(s, 0, sizeof *s);
    net->step_count++;
    if (!description) return s;
    dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&s->implementation);
    if (dnnl_primitive_create(&s->primitive, description)) return NULL;
    if (dnnl_memory_desc_clone(&s->scratch_layout,
                               dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0)))
        return NULL;
    const size_t bytes = ALIGNED(dnnl_memory_desc_get_size(s->scratch_layout));
    if (bytes > net->scratch) net->scratch = bytes;
    return s;
}

int tp_net_use(tp_net *net, tp_net_step *s, int argument, int value) {
    if (s->arguments >= TP_NET_ARGUMENTS) return -1;
    s->argument[s->arguments] = argument;
    s->value[s->arguments++] = value;
    tp_net_value *owner = &net->values[net->values[value].owner];
    owner->last = net->step_count - 1;
    return value;
}

dnnl_primitive_attr_t tp_net_attributes(dnnl_post_ops_t posts) {
    dnnl_primitive_attr_t made;
    if (dnnl_primitive_attr_create(&made)) return NULL;
    if (dnnl_primitive_attr_set_scratchpad_mode(made, dnnl_scratchpad_mode_user) ||
        (posts && dnnl_primitive_attr_set_post_ops(made, posts))) {
        dnnl_primitive_attr_destroy(made);
        return NULL;
    }
    return made;
}

const_dnnl_memory_desc_t tp_net_asked(dnnl_primitive_desc_t description, int argument) {
    return dnnl_primitive_desc_query_md(description, dnnl_query_exec_arg_md, argument);
}

int tp_net_laid_out(tp_net *net, int source, const_dnnl_memory_desc_t layout) {
    if (dnnl_memory_desc_equal(net->values[source].layout, layout)) return source;
    dnnl_primitive_desc_t description;
    dnnl_primitive_attr_t attributes = tp_net_attributes(NULL);
    if (!attributes) return -1;
    const dnnl_status_t status = dnnl_reorder_primitive_desc_create(
        &description, net->values[source].layout, net->engine, layout, net->engine, attributes);
    dnnl_primitive_attr_destroy(attributes);
    if (status) return -1;
    const int made = tp_net_add_value(net, layout);
    tp_net_step *s = made < 0 ? NULL : tp_net_add_step(net, description);
    dnnl_primitive_desc_destroy(description);
    if (!s) return -1;
    tp_net_use(net, s, DNNL_ARG_FROM, source);
    return tp_net_use(net, s, DNNL_ARG_TO, made);
}

dnnl_status_t tp_net_describe(dnnl_memory_desc_t *made, const tp_dnn_array *a, int free_layout) {
    dnnl_dims_t shape = {0}, strides = {0};
    memcpy(shape, a->shape, sizeof a->shape);
    memcpy(strides, a->strides, sizeof a->strides);
    if (free_layout)
        return dnnl_memory_desc_create_with_tag(made, (int)a->dims, shape, dnnl_f32, dnnl_format_tag_any);
    return dnnl_memory_desc_create_with_strides(made, (int)a->dims, shape, dnnl_f32, strides);
}

int tp_net_input(tp_net *net, const tp_dnn_array *array) {
    dnnl_memory_desc_t layout;
    if (tp_net_describe(&layout, array, 0)) return -1;
    const int made = tp_net_add_value(net, layout);
    dnnl_memory_desc_destroy(layout);
    if (made >= 0) net->values[made].input = net->inputs++;
    return made;
}

int tp_net_constant(tp_net *net, const tp_dnn_array *array, const void *data, const_dnnl_memory_desc_t wanted) {
    dnnl_memory_desc_t given;
    if (tp_net_describe(&given, array, 0)) return -1;
    const int made = tp_net_add_value(net, wanted);
    int failed = made < 0;
    if (!failed) {
        tp_net_value *v = &net->values[made];
        v->constant = aligned_alloc(64, ALIGNED(v->bytes ? v->bytes : 1));
        dnnl_memory_t from = NULL, to = NULL;
        dnnl_primitive_desc_t description = NULL;
        dnnl_primitive_t reorder = NULL;
        failed = !v->constant || dnnl_memory_create(&from, given, net->engine, (void *)data) ||
                 dnnl_memory_create(&to, wanted, net->engine, v->constant) ||
                 dnnl_reorder_primitive_desc_create(&description, given, net->engine, wanted, net->engine, NULL) ||
                 dnnl_primitive_create(&reorder, description);
        if (!failed) {
            const dnnl_exec_arg_t arguments[2] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
            failed = dnnl_primitive_execute(reorder, net->stream, 2, arguments) || dnnl_stream_wait(net->stream);
        }
        if (reorder) dnnl_primitive_destroy(reorder);
        if (description) dnnl_primitive_desc_destroy(description);
        if (from) dnnl_memory_destroy(from);
        if (to) dnnl_memory_destroy(to);
    }
    dnnl_memory_desc_destroy(given);
    return failed ? -1 : made;
}

/* --- primitives -------------------------------------------------------------------------------------------- */

dnnl_alg_kind_t tp_net_function_of(int kind) {
    static const dnnl_alg_kind_t known[] = {
        dnnl_eltwise_relu, dnnl_eltwise_clip, dnnl_eltwise_hardswish, dnnl_eltwise_swish,
        dnnl_eltwise_hardsigmoid, dnnl_eltwise_tanh, dnnl_eltwise_logistic};
    return known[kind];
}

/* Add a step with one or two sources, which lie as they do, and a target as it likes. */
static int finished(tp_net *net, dnnl_status_t status, dnnl_primitive_desc_t description, int source, int other) {
    if (status) return -1;
    const int made = tp_net_add_value(net, tp_net_asked(description, DNNL_ARG_DST));
    tp_net_step *s = made < 0 ? NULL : tp_net_add_step(net, description);
    dnnl_primitive_desc_destroy(description);
    if (!s) return -1;
    tp_net_use(net, s, other < 0 ? DNNL_ARG_SRC : DNNL_ARG_SRC_0, source);
    if (other >= 0) tp_net_use(net, s, DNNL_ARG_SRC_1, other);
    return tp_net_use(net, s, DNNL_ARG_DST, made);
}

int tp_net_pool(tp_net *net, const tp_dnn_problem *p, int source, int kind, const int64_t *window) {
    static const dnnl_alg_kind_t known[] = {dnnl_pooling_max, dnnl_pooling_avg_include_padding,
                                            dnnl_pooling_avg_exclude_padding};
    dnnl_dims_t stride = {0}, dilation = {0}, before = {0}, after = {0}, size = {0};
    dnnl_memory_desc_t target;
    dnnl_primitive_desc_t description = NULL;
    for (int i = 0; i < p->spatial; i++) {
        stride[i] = p->stride[i];
        dilation[i] = p->dilation[i] - 1;
        before[i] = p->before[i];
        after[i] = p->after[i];
        size[i] = window[i];
    }
    net->guarded = 1;
    if (tp_net_describe(&target, &p->arrays[2], 1)) return -1;
    dnnl_primitive_attr_t attributes = tp_net_attributes(NULL);
    const dnnl_status_t status = dnnl_pooling_forward_primitive_desc_create(
        &description, net->engine, dnnl_forward_inference, known[kind], net->values[source].layout, target, stride,
        size, dilation, before, after, attributes);
    dnnl_primitive_attr_destroy(attributes);
    dnnl_memory_desc_destroy(target);
    return finished(net, status, description, source, -1);
}

int tp_net_linear(tp_net *net, const tp_dnn_problem *p, int source, const void *weight, const void *bias) {
    dnnl_memory_desc_t filter = NULL, target = NULL, row = NULL;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;
    const char *name = "";
    int result = -1;
    if (tp_net_describe(&filter, &p->arrays[1], 1) || tp_net_describe(&target, &p->arrays[2], 0) ||
        (bias && tp_net_describe(&row, &p->arrays[3], 0)) || !(attributes = tp_net_attributes(NULL)) ||
        dnnl_inner_product_forward_primitive_desc_create(&description, net->engine, dnnl_forward_inference,
                                                         net->values[source].layout, filter, row, target, attributes))
        goto done;
    dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&name);
    if (!strncmp(name, "ref", 3) || !strncmp(name, "gemm", 4)) goto done;
    const int w = tp_net_constant(net, &p->arrays[1], weight, tp_net_asked(description, DNNL_ARG_WEIGHTS));
    const int b = bias ? tp_net_constant(net, &p->arrays[3], bias, tp_net_asked(description, DNNL_ARG_BIAS)) : 0;
    if (w < 0 || b < 0) goto done;
    const int made = tp_net_add_value(net, tp_net_asked(description, DNNL_ARG_DST));
    tp_net_step *s = made < 0 ? NULL : tp_net_add_step(net, description);
    if (!s) goto done;
    tp_net_use(net, s, DNNL_ARG_SRC, source);
    tp_net_use(net, s, DNNL_ARG_WEIGHTS, w);
    if (bias) tp_net_use(net, s, DNNL_ARG_BIAS, b);
    result = tp_net_use(net, s, DNNL_ARG_DST, made);
done:
    if (description) dnnl_primitive_desc_destroy(description);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    if (filter) dnnl_memory_desc_destroy(filter);
    if (target) dnnl_memory_desc_destroy(target);
    if (row) dnnl_memory_desc_destroy(row);
    return result;
}

int tp_net_function(tp_net *net, int source, const tp_net_post *post) {
    net->guarded = 1;
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_attr_t attributes = tp_net_attributes(NULL);
    const dnnl_memory_desc_t layout = net->values[source].layout;
    const dnnl_status_t status =
        dnnl_eltwise_forward_primitive_desc_create(&description, net->engine, dnnl_forward_inference,
                                                   tp_net_function_of(post->kind), layout, layout, post->alpha, post->beta,
                                                   attributes);
    dnnl_primitive_attr_destroy(attributes);
    return finished(net, status, description, source, -1);
}

int tp_net_sum(tp_net *net, int source, int other) {
    dnnl_primitive_desc_t description = NULL;
    other = tp_net_laid_out(net, other, net->values[source].layout);
    if (other < 0) return -1;
    dnnl_primitive_attr_t attributes = tp_net_attributes(NULL);
    const dnnl_memory_desc_t layout = net->values[source].layout;
    const dnnl_status_t status = dnnl_binary_primitive_desc_create(&description, net->engine, dnnl_binary_add, layout,
                                                                   layout, layout, attributes);
    dnnl_primitive_attr_destroy(attributes);
    return finished(net, status, description, source, other);
}

int tp_net_output(tp_net *net, int source, const tp_dnn_array *array) {
    dnnl_memory_desc_t layout;
    dnnl_primitive_desc_t description = NULL;
    if (tp_net_describe(&layout, array, 0)) return -1;
    tp_net_value *v = &net->values[source];
    if (v->owner == source && v->input < 0 && v->output < 0 && !v->constant && dnnl_memory_desc_equal(v->layout, layout)) {
        v->output = net->outputs++; /* it is made there */
        dnnl_memory_desc_destroy(layout);
        return source;
    }
    dnnl_primitive_attr_t attributes = tp_net_attributes(NULL);
    const int made = tp_net_add_value(net, layout);
    const dnnl_status_t status = dnnl_reorder_primitive_desc_create(
        &description, net->values[source].layout, net->engine, layout, net->engine, attributes);
    dnnl_primitive_attr_destroy(attributes);
    dnnl_memory_desc_destroy(layout);
    if (status || made < 0) return -1;
    tp_net_step *s = tp_net_add_step(net, description);
    dnnl_primitive_desc_destroy(description);
    if (!s) return -1;
    net->values[made].output = net->outputs++;
    tp_net_use(net, s, DNNL_ARG_FROM, source);
    return tp_net_use(net, s, DNNL_ARG_TO, made);
}

/* --- memory and runs --------------------------------------------------------------------------------------- */

static int in_arena(const tp_net_value *v, int number) {
    return v->owner == number && v->input < 0 && v->output < 0 && !v->constant;
}

/* Give each value the lowest place that no other one has at the same time, the largest first. */
size_t tp_net_finish(tp_net *net) {
    int *order = malloc((size_t)(net->value_count + 1) * sizeof *order);
    int count = 0;
    if (!order) return 0;
    for (int i = 0; i < net->value_count; i++) {
        if (!in_arena(&net->values[i], i)) continue;
        int at = count++;
        for (; at > 0 && net->values[order[at - 1]].bytes < net->values[i].bytes; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    for (int k = 0; k < count; k++) {
        tp_net_value *v = &net->values[order[k]];
        size_t place = 0;
        for (int again = 1; again;) {
            again = 0;
            for (int j = 0; j < k; j++) {
                const tp_net_value *o = &net->values[order[j]];
                const int together = o->first <= v->last && v->first <= o->last;
                if (together && place < o->place + ALIGNED(o->bytes) && o->place < place + ALIGNED(v->bytes)) {
                    place = o->place + ALIGNED(o->bytes);
                    again = 1;
                }
            }
        }
        v->place = place;
        if (place + ALIGNED(v->bytes) > net->arena) net->arena = place + ALIGNED(v->bytes);
    }
    free(order);
    for (int i = 0; i < net->value_count; i++)
        if (dnnl_memory_create(&net->values[i].memory, net->values[i].layout, net->engine, DNNL_MEMORY_NONE))
            return 0;
    for (int i = 0; i < net->step_count; i++)
        if (net->steps[i].primitive &&
            dnnl_memory_create(&net->steps[i].scratch, net->steps[i].scratch_layout, net->engine, DNNL_MEMORY_NONE))
            return 0;
    return net->arena + net->scratch + 64;
}

static int all_finite(const float *x, size_t n) {
    enum { LANES = 16 };
    float sums[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) sums[k] += x[i + k] * 0.0f;
    for (; i < n; i++) sum += x[i] * 0.0f;
    for (int k = 0; k < LANES; k++) sum += sums[k];
    return sum == 0;
}

static int run(tp_net *net, void *const *inputs, void *const *outputs, char *arena) {
    dnnl_status_t status;
    for (int i = 0; i < net->value_count; i++) {
        const tp_net_value *v = &net->values[i];
        const tp_net_value *owner = &net->values[v->owner];
        void *data = arena + owner->place;
        if (v->constant) data = v->constant;
        if (v->input >= 0) data = inputs[v->input];
        if (owner->output >= 0) data = outputs[owner->output];
        if ((status = dnnl_memory_set_data_handle(v->memory, data))) return status;
    }
    for (int i = 0; i < net->step_count; i++) {
        const tp_net_step *s = &net->steps[i];
        if (s->winograd) {
            if ((status = dnnl_stream_wait(net->stream))) return status;
            if ((status = tp_net_winograd_run(net, s, (float *)(arena + net->arena)))) return status;
            continue;
        }
        dnnl_exec_arg_t arguments[TP_NET_ARGUMENTS + 1];
        for (int k = 0; k < s->arguments; k++) {
            arguments[k].arg = s->argument[k];
            arguments[k].memory = net->values[s->value[k]].memory;
        }
        if ((status = dnnl_memory_set_data_handle(s->scratch, arena + net->arena))) return status;
        arguments[s->arguments].arg = DNNL_ARG_SCRATCHPAD;
        arguments[s->arguments].memory = s->scratch;
        if ((status = dnnl_primitive_execute(s->primitive, net->stream, s->arguments + 1, arguments))) return status;
    }
    return dnnl_stream_wait(net->stream);
}

int tp_net_run(tp_net *net, void *const *inputs, void *const *outputs, void *workspace) {
    char *arena = (char *)ALIGNED((size_t)workspace);
    for (int i = 0; net->guarded && i < net->value_count; i++) {
        const tp_net_value *v = &net->values[i];
        if (v->input >= 0 && !all_finite(inputs[v->input], v->bytes / sizeof(float))) return TP_NET_NOT_FINITE;
    }
#ifdef _OPENMP
    const int before = omp_get_max_threads();
    if (before != net->threads) omp_set_num_threads(net->threads);
    const int failed = run(net, inputs, outputs, arena);
    if (before != net->threads) omp_set_num_threads(before);
    return failed;
#else
    return run(net, inputs, outputs, arena);
#endif
}

const char *tp_net_implementation(const tp_net *net, int step) {
    return step < net->step_count ? net->steps[step].implementation : NULL;
}
