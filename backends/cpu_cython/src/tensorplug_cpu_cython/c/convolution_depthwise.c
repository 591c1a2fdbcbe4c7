/* As many channels as a vector has lanes are turned, a band of rows at a time, so that those of a position lie
   beside each other; sums over windows are then sums of whole vectors, and the result is turned back. All
   this happens in the nearer caches: memory is read once and written once. */
#include "convolution_depthwise.h"

#include <string.h>

#include "parallel.h"

#if defined(__AVX512F__)
#define WIDTH 16
#define LOW {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}
#define HIGH {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31}
#elif defined(__AVX__)
#define WIDTH 8
#define LOW {0, 8, 1, 9, 2, 10, 3, 11}
#define HIGH {4, 12, 5, 13, 6, 14, 7, 15}
#else
#define WIDTH 4
#define LOW {0, 4, 1, 5}
#define HIGH {2, 6, 3, 7}
#endif
enum { BAND = 24576 /* floats at a time */, PARTS = 8 /* of the samples, in sums over them */ };

#define INLINE static inline __attribute__((always_inline))
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))

typedef float lanes __attribute__((vector_size(4 * WIDTH)));
typedef float loose __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef int32_t places __attribute__((vector_size(4 * WIDTH)));
#define LOAD(p) (*(const loose *)(p))
#define STORE(p, v) (*(loose *)(p) = (v))

/* Which elements of the window take part in a result, and the row or column of the source that each one sees. */
typedef struct {
    int32_t count;
    int32_t tap[TP_DEPTHWISE_SIDE], at[TP_DEPTHWISE_SIDE];
} windowed;

/* From `source` to `result` positions: from the image to the results, or back. */
typedef struct {
    ptrdiff_t source[2], result[2], taps;
    ptrdiff_t rows, source_rows;  /* of a band */
    ptrdiff_t every, step;        /* a column and the one `every` farther on see places `step` apart */
    ptrdiff_t lists, each;        /* floats for the lists of windows, and for each thread */
} plan;

static windowed window_of(const tp_depthwise *p, int dim, int back, ptrdiff_t at) {
    windowed w = {0};
    for (ptrdiff_t k = 0; k < p->kernel[dim]; k++) {
        ptrdiff_t place = at * p->stride[dim] - p->before[dim] + k * p->dilation[dim];
        ptrdiff_t behind = p->size[dim];
        if (back) {
            place = at + p->before[dim] - k * p->dilation[dim];
            if (place % p->stride[dim]) continue;
            place /= p->stride[dim];
            behind = p->where[dim];
        }
        if (place < 0 || place >= behind) continue;
        w.tap[w.count] = (int32_t)k;
        w.at[w.count++] = (int32_t)place;
    }
    return w;
}

/* The rows of the source that the rows [begin, end) of the result see: [*from, *to). */
static void seen(const windowed *rows, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t *from, ptrdiff_t *to) {
    *from = INT32_MAX;
    *to = 0;
    for (ptrdiff_t r = begin; r < end; r++) {
        for (int32_t i = 0; i < rows[r].count; i++) {
            *from = LEAST(*from, rows[r].at[i]);
            *to = MOST(*to, rows[r].at[i] + 1);
        }
    }
    *from = LEAST(*from, *to);
}

static plan planned(const tp_depthwise *p, int back) {
    plan q = {.taps = p->kernel[0] * p->kernel[1], .every = back ? p->stride[1] : 1, .step = back ? 1 : p->stride[1]};
    for (int d = 0; d < 2; d++) {
        q.source[d] = back ? p->where[d] : p->size[d];
        q.result[d] = back ? p->size[d] : p->where[d];
    }
    const ptrdiff_t per_row = WIDTH * (q.result[1] + (back ? 1 : p->stride[0]) * q.source[1]);
    q.rows = LEAST(q.result[0], MOST(4, BAND / per_row));
    const ptrdiff_t reach = (p->kernel[0] - 1) * p->dilation[0] + 1;
    q.source_rows = LEAST(q.source[0], back ? (q.rows + reach) / p->stride[0] + 2 : q.rows * p->stride[0] + reach);
    q.lists = (ptrdiff_t)(sizeof(windowed) / sizeof(float)) * (q.result[0] + q.result[1]) + q.result[1];
    q.lists = (q.lists + 15) / 16 * 16; /* what follows begins with a line of the cache */
    q.each = WIDTH * (q.source_rows * q.source[1] + q.rows * q.result[1] + q.taps + 1);
    return q;
}

static ptrdiff_t space(const tp_depthwise *p) {
    const plan there = planned(p, 0), back = planned(p, 1);
    const ptrdiff_t sums = 2 * WIDTH * PARTS * ((p->channels + WIDTH - 1) / WIDTH) * there.taps; /* of double */
    return sums + MOST(there.lists, back.lists) + p->threads * MOST(there.each, back.each);
}

#ifdef _OPENMP
#define ME omp_get_thread_num()
#else
#define ME 0
#endif

/* --- turning --------------------------------------------------------------------------------------------- */

INLINE void turn(const float *const *from, float *const *to) {
    const places low = LOW, high = HIGH;
    lanes a[WIDTH], b[WIDTH];
    _Pragma("GCC unroll 16") for (int i = 0; i < WIDTH; i++) a[i] = LOAD(from[i]);
    _Pragma("GCC unroll 4") for (int stage = 1; stage < WIDTH; stage *= 2) {
        _Pragma("GCC unroll 16") for (int i = 0; i < WIDTH / 2; i++) {
            b[2 * i] = __builtin_shuffle(a[i], a[i + WIDTH / 2], low);
            b[2 * i + 1] = __builtin_shuffle(a[i], a[i + WIDTH / 2], high);
        }
        _Pragma("GCC unroll 16") for (int i = 0; i < WIDTH; i++) a[i] = b[i];
    }
    _Pragma("GCC unroll 16") for (int i = 0; i < WIDTH; i++) STORE(to[i], a[i]);
}

/* Of `channels` planes, which lie `plane` apart: `count` places beside each other to vectors of channels. */
static void take(const float *x, ptrdiff_t plane, ptrdiff_t channels, ptrdiff_t count, float *to) {
    const float *from[WIDTH];
    float *into[WIDTH];
    for (int c = 0; c < WIDTH; c++) from[c] = x + LEAST(c, channels - 1) * plane;
    if (count < WIDTH) {
        for (ptrdiff_t i = 0; i < count; i++)
            for (int c = 0; c < WIDTH; c++) to[i * WIDTH + c] = from[c][i];
        return;
    }
    for (ptrdiff_t i = 0; i < count; i += WIDTH) {
        const ptrdiff_t at = LEAST(i, count - WIDTH); /* the last ones may be turned twice */
        const float *here[WIDTH];
        for (int c = 0; c < WIDTH; c++) {
            here[c] = from[c] + at;
            into[c] = to + (at + c) * WIDTH;
        }
        turn(here, into);
    }
}

static void give(const float *from, ptrdiff_t plane, ptrdiff_t channels, ptrdiff_t count, float *y) {
    if (count < WIDTH || channels < WIDTH) {
        for (ptrdiff_t c = 0; c < channels; c++)
            for (ptrdiff_t i = 0; i < count; i++) y[c * plane + i] = from[i * WIDTH + c];
        return;
    }
    for (ptrdiff_t i = 0; i < count; i += WIDTH) {
        const ptrdiff_t at = LEAST(i, count - WIDTH);
        const float *here[WIDTH];
        float *into[WIDTH];
        for (int c = 0; c < WIDTH; c++) {
            here[c] = from + (at + c) * WIDTH;
            into[c] = y + c * plane + at;
        }
        turn(here, into);
    }
}

/* --- results --------------------------------------------------------------------------------------------- */

/* `count` results, `every` columns apart, whose windows see places `step` apart. */
INLINE void add_up(const plan *q, const windowed *row, const windowed *column, const float *source,
                   ptrdiff_t kernel, const float *w, const float *start, int count, float *to) {
    lanes sums[8];
    _Pragma("GCC unroll 8") for (int u = 0; u < count; u++) sums[u] = LOAD(start);
    for (int32_t i = 0; i < row->count; i++) {
        const float *line = source + row->at[i] * q->source[1] * WIDTH;
        const float *weights = w + row->tap[i] * kernel * WIDTH;
        for (int32_t j = 0; j < column->count; j++) {
            const float *from = line + column->at[j] * WIDTH;
            const lanes k = LOAD(weights + column->tap[j] * WIDTH);
            _Pragma("GCC unroll 8") for (int u = 0; u < count; u++) sums[u] += k * LOAD(from + u * q->step * WIDTH);
        }
    }
    _Pragma("GCC unroll 8") for (int u = 0; u < count; u++) STORE(to + u * q->every * WIDTH, sums[u]);
}

/* How many columns from `at` on, `every` apart, have windows of the same form. */
static int32_t alike(const plan *q, const windowed *columns, ptrdiff_t at) {
    int32_t count = 1;
    for (ptrdiff_t next = at + q->every; next < q->result[1]; next += q->every, count++) {
        const windowed *a = &columns[at], *b = &columns[next];
        if (a->count != b->count) break;
        int differs = 0;
        for (int32_t i = 0; i < a->count; i++)
            differs |= a->tap[i] != b->tap[i] || a->at[i] + count * q->step != b->at[i];
        if (differs) break;
    }
    return count;
}

static void row_of(const plan *q, const windowed *row, const windowed *columns, const int32_t *runs,
                   const float *source, ptrdiff_t kernel, const float *w, const float *start, float *to) {
    for (ptrdiff_t first = 0; first < q->every; first++) {
        for (ptrdiff_t c = first; c < q->result[1];) {
            const int count = runs[c] >= 8 ? 8 : runs[c] >= 4 ? 4 : 1;
            float *at = to + c * WIDTH;
            if (count == 8) add_up(q, row, columns + c, source, kernel, w, start, 8, at);
            else if (count == 4) add_up(q, row, columns + c, source, kernel, w, start, 4, at);
            else add_up(q, row, columns + c, source, kernel, w, start, 1, at);
            c += count * q->every;
        }
    }
}

static float *listed(const tp_depthwise *p, const plan *q, int back, float *space, windowed **rows,
                     windowed **columns, int32_t **runs) {
    *rows = (windowed *)space;
    *columns = *rows + q->result[0];
    *runs = (int32_t *)(*columns + q->result[1]);
    for (ptrdiff_t r = 0; r < q->result[0]; r++) (*rows)[r] = window_of(p, 0, back, r);
    for (ptrdiff_t c = 0; c < q->result[1]; c++) (*columns)[c] = window_of(p, 1, back, c);
    for (ptrdiff_t c = q->result[1] - 1; c >= 0; c--) (*runs)[c] = alike(q, *columns, c);
    return space + q->lists;
}

/* The windows of a block of channels, and what is added to each sum, as vectors. */
static void take_windows(const plan *q, const float *w, const float *bias, ptrdiff_t channel, ptrdiff_t channels,
                         float *to, float *start) {
    for (int c = 0; c < WIDTH; c++) {
        const ptrdiff_t at = channel + LEAST(c, channels - 1);
        for (ptrdiff_t t = 0; t < q->taps; t++) to[t * WIDTH + c] = w[at * q->taps + t];
        start[c] = bias ? bias[at] : 0;
    }
}

static void convolve(const tp_depthwise *p, int back, const float *x, const float *w, const float *bias, float *y,
                     float *workspace) {
    const plan q = planned(p, back);
    const ptrdiff_t source = q.source[0] * q.source[1], result = q.result[0] * q.result[1];
    const ptrdiff_t blocks = (p->channels + WIDTH - 1) / WIDTH;
    windowed *rows, *columns;
    int32_t *runs;
    float *const own = listed(p, &q, back, workspace, &rows, &columns, &runs);
    TP_PARALLEL(p->samples * blocks, p->threads, begin, end, {
        float *weights = own + ME * q.each;
        float *start = weights + q.taps * WIDTH;
        float *image = start + WIDTH;
        float *found = image + q.source_rows * q.source[1] * WIDTH;
        for (ptrdiff_t k = begin; k < end; k++) {
            const ptrdiff_t channel = k % blocks * WIDTH, channels = LEAST(WIDTH, p->channels - channel);
            const ptrdiff_t plane = k / blocks * p->channels + channel;
            take_windows(&q, w, bias, channel, channels, weights, start);
            for (ptrdiff_t row = 0; row < q.result[0]; row += q.rows) {
                const ptrdiff_t behind = LEAST(row + q.rows, q.result[0]);
                ptrdiff_t from, to;
                seen(rows, row, behind, &from, &to);
                take(x + plane * source + from * q.source[1], source, channels, (to - from) * q.source[1], image);
                for (ptrdiff_t r = row; r < behind; r++)
                    row_of(&q, rows + r, columns, runs, image - from * q.source[1] * WIDTH, p->kernel[1], weights,
                           start, found + (r - row) * q.result[1] * WIDTH);
                give(found, result, channels, (behind - row) * q.result[1], y + plane * result + row * q.result[1]);
            }
        }
    });
}

static void forward(const tp_depthwise *p, const float *x, const float *w, const float *bias, float *y,
                    float *workspace) {
    convolve(p, 0, x, w, bias, y, workspace);
}

static void input(const tp_depthwise *p, const float *g, const float *w, float *x, float *workspace) {
    convolve(p, 1, g, w, NULL, x, workspace);
}

/* --- windows --------------------------------------------------------------------------------------------- */

/* Add to the sums of a row of the window what one row of gradients says. */
INLINE void add_row(const tp_depthwise *p, const plan *q, const float *line, const float *g, ptrdiff_t kernel,
                    float *sums) {
    const ptrdiff_t stride = p->stride[1];
    for (ptrdiff_t k = 0; k < kernel; k++) {
        const ptrdiff_t offset = k * p->dilation[1] - p->before[1];
        const ptrdiff_t first = offset < 0 ? (-offset + stride - 1) / stride : 0;
        const ptrdiff_t there = offset < q->source[1] ? (q->source[1] - 1 - offset) / stride + 1 : 0;
        const ptrdiff_t behind = LEAST(there, q->result[1]);
        const float *from = line + offset * WIDTH;
        lanes a = LOAD(sums + k * WIDTH), b = {0}, c = {0}, d = {0};
        ptrdiff_t i = first;
        for (; i + 4 <= behind; i += 4) {
            a += LOAD(g + i * WIDTH) * LOAD(from + i * stride * WIDTH);
            b += LOAD(g + (i + 1) * WIDTH) * LOAD(from + (i + 1) * stride * WIDTH);
            c += LOAD(g + (i + 2) * WIDTH) * LOAD(from + (i + 2) * stride * WIDTH);
            d += LOAD(g + (i + 3) * WIDTH) * LOAD(from + (i + 3) * stride * WIDTH);
        }
        for (; i < behind; i++) a += LOAD(g + i * WIDTH) * LOAD(from + i * stride * WIDTH);
        STORE(sums + k * WIDTH, (a + b) + (c + d));
    }
}

static void weight(const tp_depthwise *p, const float *x, const float *g, float *w, float *workspace) {
    const plan q = planned(p, 0);
    const ptrdiff_t source = q.source[0] * q.source[1], result = q.result[0] * q.result[1];
    const ptrdiff_t blocks = (p->channels + WIDTH - 1) / WIDTH, parts = LEAST(PARTS, p->samples);
    windowed *rows, *columns;
    int32_t *runs;
    double *const all = (double *)workspace; /* of each part and block, by tap and channel */
    float *const own = listed(p, &q, 0, workspace + 2 * WIDTH * parts * blocks * q.taps, &rows, &columns, &runs);
    TP_PARALLEL(parts * blocks, p->threads, begin, end, {
        float *sums = own + ME * q.each;
        float *image = sums + (q.taps + 1) * WIDTH;
        float *gradient = image + q.source_rows * q.source[1] * WIDTH;
        for (ptrdiff_t k = begin; k < end; k++) {
            const ptrdiff_t channel = k % blocks * WIDTH, channels = LEAST(WIDTH, p->channels - channel);
            const ptrdiff_t part = k / blocks, behind_sample = p->samples * (part + 1) / parts;
            double *total = all + k * q.taps * WIDTH;
            for (ptrdiff_t t = 0; t < q.taps * WIDTH; t++) total[t] = 0;
            for (ptrdiff_t sample = p->samples * part / parts; sample < behind_sample; sample++) {
                const ptrdiff_t plane = sample * p->channels + channel;
                for (ptrdiff_t row = 0; row < q.result[0]; row += q.rows) {
                    const ptrdiff_t behind = LEAST(row + q.rows, q.result[0]);
                    ptrdiff_t from, to;
                    seen(rows, row, behind, &from, &to);
                    take(x + plane * source + from * q.source[1], source, channels, (to - from) * q.source[1], image);
                    take(g + plane * result + row * q.result[1], result, channels, (behind - row) * q.result[1],
                         gradient);
                    memset(sums, 0, sizeof(float) * (size_t)(q.taps * WIDTH));
                    for (ptrdiff_t r = row; r < behind; r++) {
                        for (int32_t i = 0; i < rows[r].count; i++)
                            add_row(p, &q, image + (rows[r].at[i] - from) * q.source[1] * WIDTH,
                                    gradient + (r - row) * q.result[1] * WIDTH, p->kernel[1],
                                    sums + rows[r].tap[i] * p->kernel[1] * WIDTH);
                    }
                    for (ptrdiff_t t = 0; t < q.taps * WIDTH; t++) total[t] += sums[t];
                }
            }
        }
    });
    for (ptrdiff_t c = 0; c < p->channels; c++) {
        for (ptrdiff_t t = 0; t < q.taps; t++) {
            double total = 0;
            for (ptrdiff_t part = 0; part < parts; part++)
                total += all[((part * blocks + c / WIDTH) * q.taps + t) * WIDTH + c % WIDTH];
            w[c * q.taps + t] = (float)total;
        }
    }
}

const tp_depthwise_kernels LEVEL(tp_depthwise_table) = {space, forward, input, weight};
