/* The gradient of the weight by Winograd's way: Gt [(Bt d B) * (A e At)] G, summed over tiles, of images d and of the
   gradient of the result e. The sums over tiles are 36 products of matrices, too. */
#include "convolution_winograd_tiles.h"

/* --- shapes ------------------------------------------------------------------------------------------------ */

static ptrdiff_t all_tiles(const tp_wino *w) { return w->images * tiles_down(w) * tiles_across(w); }

/* So many that the sums, which are read and written for each turn of tiles, are no larger than those. */
static ptrdiff_t tiles_at_once(const tp_wino *w) {
    const ptrdiff_t all = all_tiles(w), even = w->channels * w->filters / (w->channels + w->filters);
    const ptrdiff_t turn = even > TILES ? even : TILES, turns = (all + turn - 1) / turn;
    return (all + turns - 1) / turns;
}

static ptrdiff_t sums_size(const tp_wino *w) { return w->channels * w->filters + GAP; }

static ptrdiff_t workspace(const tp_wino *w) {
    const ptrdiff_t tiles = tiles_at_once(w);
    return PLACES * (matrix(tiles, w->channels) + matrix(tiles, w->filters) + sums_size(w));
}

/* As in convolution_winograd.c: the sums are read and written for each turn. */
static int pays(const tp_wino *w) {
    const double channels = (double)w->channels, filters = (double)w->filters, window = w->kernel * w->kernel;
    const double tiles = (double)all_tiles(w), turns = tiles / (double)tiles_at_once(w);
    const double direct = (double)(w->images * w->out_height * w->out_width) * window * channels * filters;
    const double sums = (12 + 8 * turns) * channels * filters;
    return PLACES * (tiles * (1.15 * channels * filters + 16 * channels + 12 * filters) + sums) < 0.8 * direct;
}

/* --- transforms -------------------------------------------------------------------------------------------- */

INLINE void gradient_towards_products(const float_vector y[4], float_vector e[SIDE], int made) {
    float_vector even_a = y[0], even_b = y[0], odd_a = y[1], odd_b = y[1];
    if (made == 4) {
        even_a += A2 * y[2];
        even_b += B2 * y[2];
        odd_a += A2 * y[3];
        odd_b += B2 * y[3];
    }
    e[0] = y[0];
    e[1] = even_a + A * odd_a;
    e[2] = even_a - A * odd_a;
    e[3] = even_b + B * odd_b;
    e[4] = even_b - B * odd_b;
    e[5] = y[made - 1];
}

/* Take filters of a tile of the gradient, of which `high` by `wide` places are there, to 36 matrices. */
INLINE void take_gradient(const tp_wino *w, const float *tile, ptrdiff_t high, ptrdiff_t wide, float *to, ptrdiff_t size,
                          int made) {
    const ptrdiff_t across = w->filters, down = w->out_width * across;
    const float_vector none = {0};
    for (ptrdiff_t k = 0; k < w->filters; k += LANES) {
        float_vector half[SIDE][4];
        for (int x = 0; x < made; x++) {
            float_vector y[4], e[SIDE];
            for (int i = 0; i < made; i++) {
                y[i] = none;
                if (i < high && x < wide) y[i] = load(tile + i * down + x * across + k);
            }
            gradient_towards_products(y, e, made);
            for (int i = 0; i < SIDE; i++) half[i][x] = e[i];
        }
        for (int i = 0; i < SIDE; i++) {
            float_vector e[SIDE];
            gradient_towards_products(half[i], e, made);
            for (int x = 0; x < SIDE; x++) store(to + (i * SIDE + x) * size + k, e[x]);
        }
    }
}

INLINE void weights_from_products(const float_vector m[SIDE], float_vector g[5], int kernel) {
    const float_vector even_a = SCALE_A * (m[1] + m[2]), odd_a = A * SCALE_A * (m[1] - m[2]);
    const float_vector even_b = SCALE_B * (m[3] + m[4]), odd_b = B * SCALE_B * (m[3] - m[4]);
    g[0] = m[0] * (1 / (A2 * B2)) + (even_a + even_b);
    g[1] = odd_a + odd_b;
    g[2] = A2 * even_a + B2 * even_b;
    if (kernel == 5) {
        g[3] = A2 * odd_a + B2 * odd_b;
        g[4] = A2 * A2 * even_a + B2 * B2 * even_b;
    }
    g[kernel - 1] += m[5];
}

/* Give the weights of a channel, for as many filters as a vector has lanes; add up nothing but zeros, or NaN. */
INLINE void give_weights(const float *from, ptrdiff_t size, float *weight, ptrdiff_t filter_step, int kernel,
                         float_vector *zeros) {
    float lanes[25 * LANES];
    float_vector half[5][SIDE];
    for (int x = 0; x < SIDE; x++) {
        float_vector m[SIDE], g[5];
        for (int i = 0; i < SIDE; i++) m[i] = load(from + (i * SIDE + x) * size);
        weights_from_products(m, g, kernel);
        for (int i = 0; i < kernel; i++) half[i][x] = g[i];
    }
    for (int i = 0; i < kernel; i++) {
        float_vector g[5];
        weights_from_products(half[i], g, kernel);
        for (int x = 0; x < kernel; x++) {
            store(lanes + (i * kernel + x) * LANES, g[x]);
            *zeros += g[x] * 0;
        }
    }
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < kernel * kernel; i++) weight[lane * filter_step + i] = lanes[i * LANES + lane];
}

/* --- all --------------------------------------------------------------------------------------------------- */

static void take_tiles(const tp_wino *w, const float *source, const float *gradient, float *v, float *e,
                       ptrdiff_t first, ptrdiff_t tiles, ptrdiff_t begin, ptrdiff_t end) {
    const ptrdiff_t down = tiles_down(w), across = tiles_across(w);
    const ptrdiff_t size_v = matrix(tiles, w->channels), size_e = matrix(tiles, w->filters);
    const int side = made(w);
    for (ptrdiff_t i = begin; i < end; i++) {
        const ptrdiff_t t = first + i, n = t / across / down, y = t / across % down * side, x = t % across * side;
        const ptrdiff_t high = w->out_height - y < side ? w->out_height - y : side;
        const ptrdiff_t wide = w->out_width - x < side ? w->out_width - x : side;
        const float *tile = gradient + ((n * w->out_height + y) * w->out_width + x) * w->filters;
        float *to = e + i * (w->filters + GAP);
        take_tile(w, source + n * w->image_step, y - w->top, x - w->left, v + i * (w->channels + GAP), size_v);
        if (side == 4) take_gradient(w, tile, high, wide, to, size_e, 4);
        else take_gradient(w, tile, high, wide, to, size_e, 2);
    }
}

static void add_products(const tp_wino *w, const float *v, const float *e, float *sums, ptrdiff_t tiles, int adds) {
    const ptrdiff_t groups = (w->channels + ROWS - 1) / ROWS, row_v = w->channels + GAP, row_e = w->filters + GAP;
    for (ptrdiff_t k = 0; k < w->filters; k += COLUMNS * LANES) {
        const ptrdiff_t left = (w->filters - k) / LANES, columns = left < COLUMNS ? left : COLUMNS;
        for (ptrdiff_t g = 0; g < groups; g++) {
            const ptrdiff_t begin = w->channels * g / groups, end = w->channels * (g + 1) / groups;
            float *to = sums + begin * w->filters + k;
            switch ((end - begin) * 8 + columns) {
                PRODUCTS(tiles, v + begin, 1, row_v, e + k, row_e, to, w->filters, adds)
            }
        }
    }
}

static int run(const tp_wino *w, const float *source, const float *gradient, float *weight, float *space) {
    const ptrdiff_t all = all_tiles(w), at_once = tiles_at_once(w), window = w->kernel * w->kernel;
    const ptrdiff_t size_v = matrix(at_once, w->channels), size_e = matrix(at_once, w->filters), size = sums_size(w);
    float *v = space, *e = v + PLACES * size_v, *sums = e + PLACES * size_e;
    int finite = 1;
    for (ptrdiff_t first = 0; first < all; first += at_once) {
        const ptrdiff_t tiles = all - first < at_once ? all - first : at_once;
        TP_PARALLEL(tiles, w->threads, begin, end, {
            take_tiles(w, source, gradient, v, e, first, at_once, begin, end);
        });
        TP_PARALLEL(PLACES, w->threads, begin, end, {
            for (ptrdiff_t i = begin; i < end; i++)
                add_products(w, v + i * size_v, e + i * size_e, sums + i * size, tiles, first > 0);
        });
    }
    TP_PARALLEL(w->channels, w->threads, begin, end, {
        float_vector zeros = {0};
        for (ptrdiff_t c = begin; c < end; c++)
            for (ptrdiff_t k = 0; k < w->filters; k += LANES) {
                const float *from = sums + c * w->filters + k;
                float *to = weight + (k * w->channels + c) * window;
                if (w->kernel == 3) give_weights(from, size, to, w->channels * window, 3, &zeros);
                else give_weights(from, size, to, w->channels * window, 5, &zeros);
            }
        for (int i = 0; i < LANES; i++)
            if (zeros[i] != 0) __atomic_store_n(&finite, 0, __ATOMIC_RELAXED);
    });
    return finite;
}

const tp_wino_weight_kernels LEVEL(tp_wino_weight_table) = {pays, workspace, run};
