#include "convolution_winograd_tiles.h"

typedef int32_t mask __attribute__((vector_size(VECTOR)));

/* --- shapes ------------------------------------------------------------------------------------------------ */

/* Large weights come from memory in each turn, which costs more than tiles that leave the second cache. */
static ptrdiff_t tiles_at_once(const tp_wino *w) {
    const ptrdiff_t most = w->channels * w->filters >= LARGE ? MORE_TILES : TILES;
    const ptrdiff_t all = w->images * tiles_down(w) * tiles_across(w), turn = most * w->threads;
    const ptrdiff_t runs = (all + turn - 1) / turn * w->threads; /* as many for each thread */
    return (all + runs - 1) / runs;
}

static ptrdiff_t workspace(const tp_wino *w) {
    const ptrdiff_t tiles = tiles_at_once(w);
    return PLACES * (matrix(tiles, w->channels) + matrix(tiles, w->filters));
}

/* The floats that one of the 36 matrices of weights takes. */
static ptrdiff_t weight_matrix(const tp_wino *w) { return w->channels * w->filters + GAP; }

static ptrdiff_t weights(const tp_wino *w) { return PLACES * weight_matrix(w); }

/* Besides products, the transforms of tiles count, and weights four times as large, which come from memory, and go there
   if they are packed in each call. In products, as measured. */
static int pays(const tp_wino *w, int each_call) {
    const double channels = (double)w->channels, filters = (double)w->filters, window = w->kernel * w->kernel;
    const double tiles = (double)(w->images * tiles_down(w) * tiles_across(w));
    const double direct = (double)(w->images * w->out_height * w->out_width) * window * channels * filters;
    const double packed = (12 + (each_call ? 1.4 * window : 0)) * channels * filters;
    return PLACES * (tiles * (1.15 * channels * filters + 20 * channels + 8 * filters) + packed) < 0.8 * direct;
}

/* How many vectors wide a panel of weights is. */
static int panel(const tp_wino *w) {
    int vectors = COLUMNS;
    while (w->filters % (vectors * LANES)) vectors--;
    return vectors;
}

/* --- weights ----------------------------------------------------------------------------------------------- */

INLINE void weights_towards_products(const float_vector g[5], float_vector u[SIDE], int kernel) {
    float_vector one_a = g[1], one_b = g[1], two_a = g[2], two_b = g[2];
    if (kernel == 5) {
        one_a += A2 * g[3];
        one_b += B2 * g[3];
        two_a += A2 * g[4];
        two_b += B2 * g[4];
    }
    const float_vector even_a = (g[0] + A2 * two_a) * SCALE_A, odd_a = A * SCALE_A * one_a;
    const float_vector even_b = (g[0] + B2 * two_b) * SCALE_B, odd_b = B * SCALE_B * one_b;
    u[0] = g[0] * (1 / (A2 * B2));
    u[1] = even_a + odd_a;
    u[2] = even_a - odd_a;
    u[3] = even_b + odd_b;
    u[4] = even_b - odd_b;
    u[5] = g[kernel - 1];
}

/* Take a channel's weights of as many filters as a vector has lanes to their places in 36 matrices. */
INLINE void take_weights(const float *weight, ptrdiff_t filter_step, int flipped, float *to, ptrdiff_t size,
                         int kernel) {
    const int last = kernel * kernel - 1;
    float lanes[25 * LANES];
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i <= last; i++) lanes[i * LANES + lane] = weight[lane * filter_step + (flipped ? last - i : i)];
    float_vector half[SIDE][5];
    for (int x = 0; x < kernel; x++) {
        float_vector g[5], u[SIDE];
        for (int y = 0; y < kernel; y++) g[y] = load(lanes + (y * kernel + x) * LANES);
        weights_towards_products(g, u, kernel);
        for (int y = 0; y < SIDE; y++) half[y][x] = u[y];
    }
    for (int y = 0; y < SIDE; y++) {
        float_vector u[SIDE];
        weights_towards_products(half[y], u, kernel);
        for (int x = 0; x < SIDE; x++) store(to + (y * SIDE + x) * size, u[x]);
    }
}

static void pack(const tp_wino *w, const float *weight, int adjoint, float *packed) {
    const ptrdiff_t wide = panel(w) * LANES, size = weight_matrix(w), window = w->kernel * w->kernel;
    const ptrdiff_t filter_step = adjoint ? window : w->channels * window;
    const ptrdiff_t channel_step = adjoint ? w->filters * window : window;
    TP_PARALLEL(w->filters / wide * w->channels, w->threads, begin, end, {
        for (ptrdiff_t at = begin; at < end; at++) { /* in the order in which they are written */
            const float *first = weight + at / w->channels * wide * filter_step + at % w->channels * channel_step;
            for (ptrdiff_t k = 0; k < wide; k += LANES) {
                float *to = packed + at * wide + k;
                if (w->kernel == 3) take_weights(first + k * filter_step, filter_step, adjoint, to, size, 3);
                else take_weights(first + k * filter_step, filter_step, adjoint, to, size, 5);
            }
        }
    });
}

/* --- results ----------------------------------------------------------------------------------------------- */

INLINE float_vector chosen(mask which, float_vector one, float_vector other) {
    return (float_vector)((which & (mask)one) | (~which & (mask)other));
}

INLINE void from_products(const float_vector m[SIDE], float_vector y[4], int made) {
    const float_vector sum_a = m[1] + m[2], sum_b = m[3] + m[4], less_a = m[1] - m[2], less_b = m[3] - m[4];
    y[0] = m[0] + sum_a + sum_b;
    y[1] = A * less_a + B * less_b;
    if (made == 2) {
        y[1] += m[5];
    } else {
        y[2] = A2 * sum_a + B2 * sum_b;
        y[3] = A2 * A * less_a + B2 * B * less_b + m[5];
    }
}

INLINE void give(const tp_wino *w, const float *from, ptrdiff_t size, ptrdiff_t filter, const float *bias,
                 const float *const *others, float *target, ptrdiff_t place, ptrdiff_t high, ptrdiff_t wide,
                 int made, float_vector *zeros) {
    float_vector half[4][SIDE];
    for (int x = 0; x < SIDE; x++) {
        float_vector m[SIDE], y[4];
        for (int i = 0; i < SIDE; i++) m[i] = load(from + (i * SIDE + x) * size + filter);
        from_products(m, y, made);
        for (int i = 0; i < made; i++) half[i][x] = y[i];
    }
    const float_vector none = {0}, start = bias ? load(bias + filter) : none;
    for (ptrdiff_t i = 0; i < high; i++) {
        float_vector y[4];
        from_products(half[i], y, made);
        for (ptrdiff_t j = 0; j < wide; j++) {
            const ptrdiff_t at = place + (i * w->out_width + j) * w->filters + filter;
            float_vector v = y[j] + start;
            *zeros += v * 0; /* what is no number, or infinite, makes it NaN */
            for (int k = 0; k < w->posts; k++) {
                const tp_wino_post *p = &w->post[k];
                if (p->adds) {
                    v += load(others[k] + at);
                } else {
                    v = chosen(v > p->low, v, none + p->low);
                    v = chosen(v < p->high, v, none + p->high);
                }
            }
            store(target + at, v);
        }
    }
}

/* --- products ---------------------------------------------------------------------------------------------- */

/* Fetch the part of the next panel of weights, of as many as there are groups of tiles, that is this group's. Behind the
   last panel of a matrix lies the first one of the next: it comes from memory while this one is multiplied. */
INLINE void fetch_ahead(const tp_wino *w, const float *next, ptrdiff_t wide, ptrdiff_t group, ptrdiff_t groups) {
    enum { LINE = 64 / sizeof(float) };
    const ptrdiff_t end = w->channels * wide * (group + 1) / groups;
    for (ptrdiff_t i = w->channels * wide * group / groups; i < end; i += LINE) __builtin_prefetch(next + i, 0, 2);
}

/* Tiles are shared out evenly: of 49 four times six and five times five are multiplied at once. */
static void multiply_all(const tp_wino *w, const float *v, const float *u, float *m, ptrdiff_t tiles) {
    const int columns = panel(w);
    const ptrdiff_t wide = columns * LANES, groups = (tiles + ROWS - 1) / ROWS;
    for (ptrdiff_t k = 0; k < w->filters; k += wide) {
        for (ptrdiff_t g = 0; g < groups; g++) {
            const ptrdiff_t begin = tiles * g / groups, end = tiles * (g + 1) / groups;
            const float *left = v + begin * (w->channels + GAP), *right = u + k * w->channels;
            float *to = m + begin * (w->filters + GAP) + k;
            fetch_ahead(w, right + wide * w->channels, wide, g, groups);
            switch ((end - begin) * 8 + columns) {
                PRODUCTS(w->channels, left, w->channels + GAP, 1, right, wide, to, w->filters + GAP, 0)
            }
        }
    }
}

/* --- all --------------------------------------------------------------------------------------------------- */

static int some_tiles(const tp_wino *w, const float *source, const float *packed, const float *bias,
                       const float *const *others, float *target, float *space, ptrdiff_t first, ptrdiff_t last) {
    const ptrdiff_t down = tiles_down(w), across = tiles_across(w), tiles = last - first;
    const ptrdiff_t size_v = matrix(tiles, w->channels), size_m = matrix(tiles, w->filters);
    const int side = made(w);
    float *v = space, *m = space + PLACES * size_v;
    float_vector zeros = {0};
    for (ptrdiff_t t = first; t < last; t++) {
        const ptrdiff_t y = t / across % down * side, x = t % across * side;
        take_tile(w, source + t / across / down * w->image_step, y - w->top, x - w->left,
                  v + (t - first) * (w->channels + GAP), size_v);
    }
    for (int place = 0; place < PLACES; place++)
        multiply_all(w, v + place * size_v, packed + place * weight_matrix(w), m + place * size_m, tiles);
    for (ptrdiff_t t = first; t < last; t++) {
        const ptrdiff_t n = t / across / down, y = t / across % down * side, x = t % across * side;
        const ptrdiff_t high = w->out_height - y < side ? w->out_height - y : side;
        const ptrdiff_t wide = w->out_width - x < side ? w->out_width - x : side;
        const ptrdiff_t place = ((n * w->out_height + y) * w->out_width + x) * w->filters;
        const float *from = m + (t - first) * (w->filters + GAP);
        for (ptrdiff_t k = 0; k < w->filters; k += LANES) {
            if (side == 4) give(w, from, size_m, k, bias, others, target, place, high, wide, 4, &zeros);
            else give(w, from, size_m, k, bias, others, target, place, high, wide, 2, &zeros);
        }
    }
    int finite = 1;
    for (int i = 0; i < LANES; i++) finite &= zeros[i] == 0;
    return finite;
}

static int run(const tp_wino *w, const float *source, const float *packed, const float *bias,
               const float *const *others, float *target, float *space) {
    const ptrdiff_t all = w->images * tiles_down(w) * tiles_across(w), at_once = tiles_at_once(w);
    const ptrdiff_t each = workspace(w);
    int finite = 1;
    TP_PARALLEL((all + at_once - 1) / at_once, w->threads, begin, end, {
#ifdef _OPENMP
        float *mine = space + each * (w->threads > 1 ? omp_get_thread_num() : 0);
#else
        float *mine = space;
        (void)each;
#endif
        for (ptrdiff_t i = begin; i < end; i++) {
            const ptrdiff_t last = (i + 1) * at_once < all ? (i + 1) * at_once : all;
            if (!some_tiles(w, source, packed, bias, others, target, mine, i * at_once, last))
                __atomic_store_n(&finite, 0, __ATOMIC_RELAXED);
        }
    });
    return finite;
}

const tp_wino_kernels LEVEL(tp_wino_table) = {pays, weights, workspace, pack, run};
