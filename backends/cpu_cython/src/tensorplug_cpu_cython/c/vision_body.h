/* Sampling for one type T, with places of type INDEX; included by vision.c for float and double. */

/* What a block of positions is made of along one dimension: places, -1 for none, weights, and the weights' slopes. */
typedef struct {
    INDEX at[ALONG][WIDTH];
    T weight[ALONG][WIDTH], slope[ALONG][WIDTH];
    int count;
} OF(axis);

/* The same of all dimensions together; slopes by dimension. */
typedef struct {
    INDEX at[TAPS][WIDTH];
    T weight[TAPS][WIDTH], slope[3][TAPS][WIDTH];
    int count;
} OF(taps);

/* Return a coordinate brought back into the image, and multiply its slope by what that does to it. */
static inline T OF(within)(T x, ptrdiff_t size, int padding, int align, T *slope) {
    const T last = (T)(size - 1);
    if (padding == TP_REFLECTION) {
        const T low = align ? (T)0 : (T)-0.5, span = align ? last : (T)size;
        if (span == 0) {
            x *= 0;
            *slope = 0;
        } else {
            const T distance = ABS(x - low), flips = FLOOR(distance / span), rest = distance - flips * span;
            const T half = flips / 2;
            const int even = half == FLOOR(half);
            *slope *= (x < low) == even ? -1 : 1;
            x = even ? rest + low : span - rest + low;
        }
    }
    *slope = x > 0 && x < last ? *slope : 0;
    x = x < 0 ? 0 : x; /* NaN stays */
    return x > last ? last : x;
}

/* Keys' cubic convolution kernel and its slope at distances up to 1, and from 1 to 2. */
static inline T OF(near)(T x) { return (((T)1.25 * x - (T)2.25) * x) * x + 1; }
static inline T OF(far)(T x) { return (((x - 5) * x + 8) * x - 4) * (T)-0.75; }
static inline T OF(near_slope)(T x) { return ((T)3.75 * x - (T)4.5) * x; }
static inline T OF(far_slope)(T x) { return ((3 * x - 10) * x + 8) * (T)-0.75; }

static inline INDEX OF(place)(T at, ptrdiff_t size) {
    /* Neither what is beyond the image, nor NaN; the comparison comes before the conversion, which has to fit. */
    const int inside = at >= 0 && at <= (T)(size - 1);
    return inside ? (INDEX)(inside ? at : 0) : -1;
}

/* `grid` is that of the first position and this dimension; they are `step` apart. */
static void OF(along)(const tp_sampling *s, const T *grid, ptrdiff_t step, ptrdiff_t n, ptrdiff_t size, OF(axis) *o) {
    const T factor = (s->align ? (T)(size - 1) : (T)size) / 2;
    T x[WIDTH], scale[WIDTH];
    for (ptrdiff_t j = 0; j < n; j++) {
        const T given = grid[j * step];
        x[j] = s->align ? (given + 1) / 2 * (T)(size - 1) : ((given + 1) * (T)size - 1) / 2;
        scale[j] = factor;
    }
    if (s->padding != TP_ZEROS && s->mode != TP_CUBIC)
        for (ptrdiff_t j = 0; j < n; j++) x[j] = OF(within)(x[j], size, s->padding, s->align, &scale[j]);
    if (s->mode == TP_NEAREST) {
        o->count = 1;
        for (ptrdiff_t j = 0; j < n; j++) {
            o->at[0][j] = OF(place)(RINT(x[j]), size);
            o->weight[0][j] = 1;
            o->slope[0][j] = 0;
        }
    } else if (s->mode == TP_LINEAR) {
        o->count = 2;
        for (ptrdiff_t j = 0; j < n; j++) {
            const T low = FLOOR(x[j]), rest = x[j] - low;
            o->at[0][j] = OF(place)(low, size);
            o->at[1][j] = OF(place)(low + 1, size);
            o->weight[0][j] = 1 - rest;
            o->weight[1][j] = rest;
            o->slope[0][j] = -scale[j];
            o->slope[1][j] = scale[j];
        }
    } else {
        o->count = 4;
        for (ptrdiff_t j = 0; j < n; j++) {
            const T low = FLOOR(x[j]), rest = x[j] - low;
            for (int k = 0; k < 4; k++) {
                T unused = 0, at = low + (T)(k - 1);
                if (s->padding != TP_ZEROS) at = RINT(OF(within)(at, size, s->padding, s->align, &unused));
                o->at[k][j] = OF(place)(at, size);
            }
            o->weight[0][j] = OF(far)(rest + 1);
            o->weight[1][j] = OF(near)(rest);
            o->weight[2][j] = OF(near)(1 - rest);
            o->weight[3][j] = OF(far)(2 - rest);
            o->slope[0][j] = OF(far_slope)(rest + 1) * scale[j];
            o->slope[1][j] = OF(near_slope)(rest) * scale[j];
            o->slope[2][j] = -OF(near_slope)(1 - rest) * scale[j];
            o->slope[3][j] = -OF(far_slope)(2 - rest) * scale[j];
        }
    }
}

/* What `n` positions from `grid` on are made of. */
static void OF(block)(const tp_sampling *s, const T *grid, ptrdiff_t n, int slopes, OF(taps) *o) {
    OF(axis) axes[3];
    for (int d = 0; d < s->dims; d++)
        OF(along)(s, grid + s->dims - 1 - d, s->dims, n, s->sizes[3 - s->dims + d], &axes[3 - s->dims + d]);
    if (s->dims == 2) {
        axes[0].count = 1;
        for (ptrdiff_t j = 0; j < n; j++) {
            axes[0].at[0][j] = 0;
            axes[0].weight[0][j] = 1;
            axes[0].slope[0][j] = 0;
        }
    }
    o->count = 0;
    for (int a = 0; a < axes[0].count; a++)
        for (int b = 0; b < axes[1].count; b++)
            for (int c = 0; c < axes[2].count; c++, o->count++) {
                INDEX *at = o->at[o->count];
                T *weight = o->weight[o->count];
                const INDEX *z = axes[0].at[a], *y = axes[1].at[b], *x = axes[2].at[c];
                const T *u = axes[0].weight[a], *v = axes[1].weight[b], *w = axes[2].weight[c];
                for (ptrdiff_t j = 0; j < n; j++) {
                    const INDEX flat = (INDEX)((z[j] * s->sizes[1] + y[j]) * s->sizes[2] + x[j]);
                    at[j] = (z[j] | y[j] | x[j]) < 0 ? -1 : flat;
                    weight[j] = u[j] * v[j] * w[j];
                }
                for (ptrdiff_t j = n; j < WIDTH; j++) { /* whole vectors are computed */
                    at[j] = -1;
                    weight[j] = 0;
                }
                if (!slopes) continue;
                const T *du = axes[0].slope[a], *dv = axes[1].slope[b], *dw = axes[2].slope[c];
                for (ptrdiff_t j = 0; j < n; j++) {
                    o->slope[0][o->count][j] = du[j] * v[j] * w[j];
                    o->slope[1][o->count][j] = u[j] * dv[j] * w[j];
                    o->slope[2][o->count][j] = u[j] * v[j] * dw[j];
                }
                for (int d = 0; d < 3; d++)
                    for (ptrdiff_t j = n; j < WIDTH; j++) o->slope[d][o->count][j] = 0;
            }
}

static void OF(sample)(const tp_sampling *s, const void *image_, const void *grid_, void *result_) {
    const ptrdiff_t plane = s->sizes[0] * s->sizes[1] * s->sizes[2], blocks = (s->positions + WIDTH - 1) / WIDTH;
    TP_PARALLEL(s->batch * blocks, s->threads, begin, end, {
        OF(taps) taps;
        for (ptrdiff_t unit = begin; unit < end; unit++) {
            const ptrdiff_t sample = unit / blocks, first = unit % blocks * WIDTH;
            const ptrdiff_t n = s->positions - first < WIDTH ? s->positions - first : WIDTH;
            OF(block)(s, (const T *)grid_ + (sample * s->positions + first) * s->dims, n, 0, &taps);
            for (ptrdiff_t c = 0; c < s->channels; c++) {
                const T *image = (const T *)image_ + (sample * s->channels + c) * plane;
                T *o = (T *)result_ + (sample * s->channels + c) * s->positions + first;
                T total[WIDTH] = {0};
                for (int k = 0; k < taps.count; k++) {
                    const INDEX *at = taps.at[k];
                    const T *weight = taps.weight[k];
                    for (int j = 0; j < WIDTH; j++) {
                        const T value = image[at[j] < 0 ? 0 : at[j]];
                        total[j] += at[j] < 0 ? 0 : value * weight[j];
                    }
                }
                for (ptrdiff_t j = 0; j < n; j++) o[j] = total[j];
            }
        }
    });
}

static void OF(gradient)(const tp_sampling *s, const void *g_, const void *image_, const void *grid_, void *g_image_,
                         void *g_grid_) {
    const ptrdiff_t plane = s->sizes[0] * s->sizes[1] * s->sizes[2];
    /* A sample is one thread's alone, so that no two write to the same place. */
    TP_PARALLEL(s->batch, s->threads, begin, end, {
        OF(taps) taps;
        for (ptrdiff_t sample = begin; sample < end; sample++)
            for (ptrdiff_t first = 0; first < s->positions; first += WIDTH) {
                const ptrdiff_t n = s->positions - first < WIDTH ? s->positions - first : WIDTH;
                const ptrdiff_t from = (sample * s->positions + first) * s->dims;
                T total[3][WIDTH] = {{0}};
                OF(block)(s, (const T *)grid_ + from, n, 1, &taps);
                for (ptrdiff_t c = 0; c < s->channels; c++) {
                    const ptrdiff_t channel = sample * s->channels + c;
                    const T *image = (const T *)image_ + channel * plane;
                    const T *g = (const T *)g_ + channel * s->positions + first;
                    T *to = (T *)g_image_ + channel * plane;
                    T row[WIDTH] = {0};
                    for (ptrdiff_t j = 0; j < n; j++) row[j] = g[j];
                    for (int k = 0; k < taps.count; k++) {
                        const INDEX *at = taps.at[k];
                        const T *weight = taps.weight[k];
                        for (ptrdiff_t j = 0; j < n; j++)
                            if (at[j] >= 0) to[at[j]] += g[j] * weight[j];
                        if (s->mode == TP_NEAREST) continue;
                        for (int j = 0; j < WIDTH; j++) {
                            const T value = image[at[j] < 0 ? 0 : at[j]];
                            const T product = at[j] < 0 ? 0 : value * row[j];
                            total[0][j] += product * taps.slope[0][k][j];
                            total[1][j] += product * taps.slope[1][k][j];
                            total[2][j] += product * taps.slope[2][k][j];
                        }
                    }
                }
                for (int d = 0; d < s->dims; d++)
                    for (ptrdiff_t j = 0; j < n; j++)
                        ((T *)g_grid_)[from + j * s->dims + s->dims - 1 - d] = total[3 - s->dims + d][j];
            }
    });
}
