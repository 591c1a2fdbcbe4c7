#include "onednn.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

#include "parallel.h"

#define ALIGNED(bytes) (((bytes) + 63) & ~(size_t)63)

struct tp_dnn_operation {
    dnnl_primitive_t primitive;
    const char *implementation;
    int arrays, result;
    int argument[TP_DNN_ARRAYS];
    dnnl_memory_desc_t given[TP_DNN_ARRAYS];    /* as the caller has it */
    dnnl_memory_desc_t wanted[TP_DNN_ARRAYS];   /* as the primitive wants it; NULL if that is the same */
    dnnl_primitive_t reorder[TP_DNN_ARRAYS];
    size_t place[TP_DNN_ARRAYS];                /* of the wanted ones in the workspace */
    dnnl_memory_desc_t scratch;
    size_t scratch_index, workspace;
};

struct tp_dnn_call {
    dnnl_stream_t stream;
    dnnl_memory_t given[TP_DNN_ARRAYS], wanted[TP_DNN_ARRAYS], scratch;
};

static dnnl_engine_t engine;

static dnnl_engine_t the_engine(void) {
    if (!engine && dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
    return engine;
}

int tp_dnn_has_bf16(void) {
    const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    return (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
}

/* oneDNN asks OpenMP how many threads there are: tell it for the time of a call. Returns what it was. */
static int set_threads(int threads) {
#ifdef _OPENMP
    const int before = omp_get_max_threads();
    if (before != threads) omp_set_num_threads(threads);
    return before;
#else
    return threads;
#endif
}

/* --- descriptions ---------------------------------------------------------------------------------------- */

static dnnl_data_type_t type_of(const tp_dnn_problem *p) { return p->type == TP_DNN_BF16 ? dnnl_bf16 : dnnl_f32; }

static dnnl_status_t describe(dnnl_memory_desc_t *made, const tp_dnn_problem *p, int i, int free_layout) {
    const tp_dnn_array *a = &p->arrays[i];
    dnnl_dims_t shape = {0}, strides = {0};
    memcpy(shape, a->shape, sizeof a->shape);
    memcpy(strides, a->strides, sizeof a->strides);
    if (free_layout && !a->kept)
        return dnnl_memory_desc_create_with_tag(made, (int)a->dims, shape, type_of(p), dnnl_format_tag_any);
    return dnnl_memory_desc_create_with_strides(made, (int)a->dims, shape, type_of(p), strides);
}

/* Make the primitive's description; the arrays come as (first operand, second, result, bias). */
static dnnl_status_t describe_primitive(dnnl_primitive_desc_t *made, const tp_dnn_problem *p,
                                        dnnl_memory_desc_t *d, const dnnl_primitive_attr_t attributes) {
    dnnl_dims_t stride = {0}, dilation = {0}, before = {0}, after = {0};
    for (int i = 0; i < p->spatial; i++) {
        stride[i] = p->stride[i];
        dilation[i] = p->dilation[i] - 1;
        before[i] = p->before[i];
        after[i] = p->after[i];
    }
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    if (p->sort == TP_CONVOLUTION)
        return dnnl_convolution_forward_primitive_desc_create(
            made, the_engine(), dnnl_forward_training, direct, d[0], d[1], p->has_bias ? d[3] : NULL, d[2],
            stride, dilation, before, after, attributes);
    if (p->sort == TP_MATMUL)
        return dnnl_matmul_primitive_desc_create(made, the_engine(), d[0], d[1], p->has_bias ? d[3] : NULL,
                                                 d[2], attributes);
    /* The backward ones ask for the forward one as a hint. */
    const int input = p->sort == TP_CONVOLUTION_INPUT;
    dnnl_memory_desc_t source = input ? d[2] : d[0], weight = input ? d[1] : d[2];
    dnnl_memory_desc_t target = input ? d[0] : d[1];
    dnnl_primitive_desc_t hint;
    dnnl_status_t status = dnnl_convolution_forward_primitive_desc_create(
        &hint, the_engine(), dnnl_forward_training, direct, source, weight, NULL, target, stride, dilation,
        before, after, attributes);
    if (status != dnnl_success) return status;
    if (input)
        status = dnnl_convolution_backward_data_primitive_desc_create(
            made, the_engine(), direct, source, weight, target, stride, dilation, before, after, hint,
            attributes);
    else
        status = dnnl_convolution_backward_weights_primitive_desc_create(
            made, the_engine(), direct, source, weight, NULL, target, stride, dilation, before, after,
            hint, attributes);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

static const int ARGUMENTS[4][TP_DNN_ARRAYS] = {
    {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS},
    {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC, 0},
    {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, 0},
    {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS},
};

/* --- operations ------------------------------------------------------------------------------------------ */

static int make_reorder(tp_dnn_operation *o, int i) {
    const int out = i == o->result;
    dnnl_primitive_desc_t description;
    if (dnnl_reorder_primitive_desc_create(&description, out ? o->wanted[i] : o->given[i], the_engine(),
                                           out ? o->given[i] : o->wanted[i], the_engine(), NULL))
        return 1;
    const int failed = dnnl_primitive_create(&o->reorder[i], description) != dnnl_success;
    dnnl_primitive_desc_destroy(description);
    return failed;
}

static int fill(tp_dnn_operation *o, const tp_dnn_problem *p, dnnl_primitive_desc_t description) {
    o->arrays = 3 + (p->has_bias != 0);
    o->result = 2;
    if (dnnl_primitive_create(&o->primitive, description)) return 2;
    if (dnnl_memory_desc_clone(&o->scratch, dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0)))
        return 2;
    for (int i = 0; i < o->arrays; i++) {
        o->argument[i] = ARGUMENTS[p->sort][i];
        if (describe(&o->given[i], p, i, 0)) return 2;
        const_dnnl_memory_desc_t wanted =
            dnnl_primitive_desc_query_md(description, dnnl_query_exec_arg_md, o->argument[i]);
        if (dnnl_memory_desc_equal(wanted, o->given[i])) continue;
        if (dnnl_memory_desc_clone(&o->wanted[i], wanted)) return 2;
        if (make_reorder(o, i)) return 1;
        o->place[i] = o->workspace;
        o->workspace += ALIGNED(dnnl_memory_desc_get_size(wanted));
    }
    o->scratch_index = o->workspace;
    o->workspace += ALIGNED(dnnl_memory_desc_get_size(o->scratch));
    return 0;
}

static int make(tp_dnn_operation *o, const tp_dnn_problem *p) {
    dnnl_memory_desc_t d[TP_DNN_ARRAYS] = {NULL};
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;
    int result = 2;
    if (!the_engine() || dnnl_primitive_attr_create(&attributes)) return 2;
    dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    int described = 1;
    for (int i = 0; i < 3 + (p->has_bias != 0); i++) described = described && !describe(&d[i], p, i, 1);
    if (described) {
        result = describe_primitive(&description, p, d, attributes) ? 1 : 0;
        if (!result) {
            dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&o->implementation);
            /* Reference code is there for completeness: anybody's loops are faster. */
            result = strncmp(o->implementation, "ref", 3) ? fill(o, p, description) : 1;
        }
    }
    if (description) dnnl_primitive_desc_destroy(description);
    for (int i = 0; i < TP_DNN_ARRAYS; i++)
        if (d[i]) dnnl_memory_desc_destroy(d[i]);
    dnnl_primitive_attr_destroy(attributes);
    return result;
}

int tp_dnn_make(tp_dnn_operation **operation, const tp_dnn_problem *p) {
    tp_dnn_operation *o = calloc(1, sizeof *o);
    int result = 2;
    if (!o) return 2;
    const int before = set_threads((int)p->threads);
    result = make(o, p);
    set_threads(before);
    if (result) {
        tp_dnn_free(o);
        o = NULL;
    }
    *operation = o;
    return result;
}

void tp_dnn_free(tp_dnn_operation *o) {
    if (!o) return;
    if (o->primitive) dnnl_primitive_destroy(o->primitive);
    if (o->scratch) dnnl_memory_desc_destroy(o->scratch);
    for (int i = 0; i < TP_DNN_ARRAYS; i++) {
        if (o->given[i]) dnnl_memory_desc_destroy(o->given[i]);
        if (o->wanted[i]) dnnl_memory_desc_destroy(o->wanted[i]);
        if (o->reorder[i]) dnnl_primitive_destroy(o->reorder[i]);
    }
    free(o);
}

size_t tp_dnn_workspace(const tp_dnn_operation *o) { return o->workspace; }

const char *tp_dnn_implementation(const tp_dnn_operation *o) { return o->implementation; }

/* --- calls ----------------------------------------------------------------------------------------------- */

tp_dnn_call *tp_dnn_call_new(const tp_dnn_operation *o) {
    tp_dnn_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    int failed = dnnl_stream_create(&c->stream, the_engine(), dnnl_stream_default_flags);
    for (int i = 0; i < o->arrays && !failed; i++) {
        failed = dnnl_memory_create(&c->given[i], o->given[i], the_engine(), DNNL_MEMORY_NONE);
        if (!failed && o->wanted[i])
            failed = dnnl_memory_create(&c->wanted[i], o->wanted[i], the_engine(), DNNL_MEMORY_NONE);
    }
    if (!failed) failed = dnnl_memory_create(&c->scratch, o->scratch, the_engine(), DNNL_MEMORY_NONE);
    if (!failed) return c;
    tp_dnn_call_free(c);
    return NULL;
}

void tp_dnn_call_free(tp_dnn_call *c) {
    if (!c) return;
    for (int i = 0; i < TP_DNN_ARRAYS; i++) {
        if (c->given[i]) dnnl_memory_destroy(c->given[i]);
        if (c->wanted[i]) dnnl_memory_destroy(c->wanted[i]);
    }
    if (c->scratch) dnnl_memory_destroy(c->scratch);
    if (c->stream) dnnl_stream_destroy(c->stream);
    free(c);
}

static dnnl_status_t reorder(const tp_dnn_operation *o, tp_dnn_call *c, int i) {
    const int out = i == o->result;
    const dnnl_exec_arg_t arguments[2] = {{DNNL_ARG_FROM, out ? c->wanted[i] : c->given[i]},
                                          {DNNL_ARG_TO, out ? c->given[i] : c->wanted[i]}};
    return dnnl_primitive_execute(o->reorder[i], c->stream, 2, arguments);
}

static int run(const tp_dnn_operation *o, tp_dnn_call *c, void *const *data, char *workspace) {
    dnnl_exec_arg_t arguments[TP_DNN_ARRAYS + 1];
    dnnl_status_t status;
    for (int i = 0; i < o->arrays; i++) {
        if ((status = dnnl_memory_set_data_handle(c->given[i], data[i]))) return status;
        if (o->wanted[i] && (status = dnnl_memory_set_data_handle(c->wanted[i], workspace + o->place[i])))
            return status;
        if (o->wanted[i] && i != o->result && (status = reorder(o, c, i))) return status;
        arguments[i].arg = o->argument[i];
        arguments[i].memory = o->wanted[i] ? c->wanted[i] : c->given[i];
    }
    if ((status = dnnl_memory_set_data_handle(c->scratch, workspace + o->scratch_index))) return status;
    arguments[o->arrays].arg = DNNL_ARG_SCRATCHPAD;
    arguments[o->arrays].memory = c->scratch;
    if ((status = dnnl_primitive_execute(o->primitive, c->stream, o->arrays + 1, arguments))) return status;
    if (o->wanted[o->result] && (status = reorder(o, c, o->result))) return status;
    return dnnl_stream_wait(c->stream);
}

int tp_dnn_run(const tp_dnn_operation *o, tp_dnn_call *c, void *const *data, void *workspace, int threads) {
    const int before = set_threads(threads);
    const int failed = run(o, c, data, workspace);
    set_threads(before);
    return failed;
}

/* --- matrix products ------------------------------------------------------------------------------------- */

static int multiply(const tp_sgemm *g, const float *a, const float *b, float *c) {
    return dnnl_sgemm(g->transposed_a ? 'T' : 'N', g->transposed_b ? 'T' : 'N', g->m, g->n, g->k, 1.0f, a, g->lda,
                      b, g->ldb, g->bias ? 1.0f : 0.0f, c, g->n);
}

/* Begin with the bias in each row, so that the product is added to it. */
static void spread(const tp_sgemm *g, float *c, int threads) {
    TP_PARALLEL(g->m, threads, begin, end, {
        for (ptrdiff_t row = begin; row < end; row++) memcpy(c + row * g->n, g->bias, sizeof(float) * g->n);
    });
}

int tp_dnn_sgemm(const tp_sgemm *g, const float *a, const float *b, float *c, int threads) {
    if (g->bias) spread(g, c, g->m * g->n < 65536 ? 1 : threads);
    const int before = set_threads(threads);
    const int failed = multiply(g, a, b, c);
    set_threads(before);
    return failed;
}

enum { LITTLE = 256, NARROW = 16 }; /* multiplications, columns */

/* A product for which a call of the library would take longer than the work. */
static void little(const tp_sgemm *g, const float *a, const float *b, float *restrict c) {
    const ptrdiff_t m = g->m, n = g->n, k = g->k;
    const ptrdiff_t row = g->transposed_a ? 1 : g->lda, along = g->transposed_a ? g->lda : 1;
    const ptrdiff_t down = g->transposed_b ? 1 : g->ldb, across = g->transposed_b ? g->ldb : 1;
    for (ptrdiff_t i = 0; i < m; i++) {
        float total[NARROW] = {0};
        for (ptrdiff_t p = 0; p < k; p++) {
            const float x = a[i * row + p * along];
            const float *y = b + p * down;
            if (across == 1) {
                for (ptrdiff_t j = 0; j < n; j++) total[j] += x * y[j];
            } else {
                for (ptrdiff_t j = 0; j < n; j++) total[j] += x * y[j * across];
            }
        }
        memcpy(c + i * n, total, (size_t)n * sizeof(float));
    }
}

/* Run the products from `begin` to `end` of a batch, whose operands may be broadcast. */
static int some(const tp_sgemm *g, const tp_sgemm_batch *s, const float *a, const float *b, float *c,
                ptrdiff_t begin, ptrdiff_t end) {
    const int is_little = g->n <= NARROW && g->m * g->n * g->k <= LITTLE && !g->bias;
    for (ptrdiff_t i = begin; i < end; i++) {
        const float *from_a = a, *from_b = b;
        ptrdiff_t rest = i;
        for (int d = s->dims - 1; d >= 0; d--) {
            const ptrdiff_t at = rest % s->shape[d];
            rest /= s->shape[d];
            from_a += at * s->strides_a[d];
            from_b += at * s->strides_b[d];
        }
        if (is_little) {
            little(g, from_a, from_b, c + i * g->m * g->n);
        } else {
            const int failed = multiply(g, from_a, from_b, c + i * g->m * g->n);
            if (failed) return failed;
        }
    }
    return 0;
}

int tp_dnn_sgemm_batch(const tp_sgemm *g, const tp_sgemm_batch *s, const float *a, const float *b, float *c,
                       int threads) {
    ptrdiff_t count = 1;
    for (int d = 0; d < s->dims; d++) count *= s->shape[d];
    int failed = 0;
    /* Few large ones are shared among threads each; of many, each thread gets some. */
    const int within = count < 2 * threads && count % threads;
    const int before = set_threads(within ? threads : 1);
    if (within) {
        failed = some(g, s, a, b, c, 0, count);
    } else {
        TP_PARALLEL(count, threads, begin, end, {
            const int of_these = some(g, s, a, b, c, begin, end);
            if (of_these) failed = of_these;
        });
    }
    set_threads(before);
    return failed;
}

int tp_dnn_gemm(int transposed_a, int transposed_b, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha,
                const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float beta, float *c,
                ptrdiff_t ldc) {
    const int before = set_threads(1);
    const int failed = dnnl_sgemm(transposed_a ? 'T' : 'N', transposed_b ? 'T' : 'N', m, n, k, alpha, a, lda, b,
                                  ldb, beta, c, ldc);
    set_threads(before);
    return failed;
}
