/* Sampling for one type T, with places of type INDEX; included by vision.c for float and double. */

/* What a block of positions is made of along one dimension: places, -1 for none, weights, and the weights' slopes. */
typedef struct {
    INDEX at[ALONG][WIDTH];
    T weight[ALONG][WIDTH], slope[ALONG][WIDTH];
    int count;
} OF(axis);

/* The same of all dimensions together; slopes by dimension. Where nothing is, `at` is 0 and `inside` as well, which has
   all its bits set elsewhere. */
typedef struct {
    INDEX at[TAPS][WIDTH], inside[TAPS][WIDTH];
    T weight[TAPS][WIDTH], slope[3][TAPS][WIDTH];
    int whole[TAPS]; /* whether all are inside */
    int count;
    ptrdiff_t positions, width; /* the latter in whole vectors */
    ptrdiff_t sample, begin; /* the sample and the position in it of the first one */
} OF(taps);

/* So many positions in whole vectors. */
static inline ptrdiff_t OF(rounded)(ptrdiff_t n) {
    enum { PER = VECTOR / sizeof(T) };
    return (n + PER - 1) & -(ptrdiff_t)PER;
}

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

/* `grid` is that of the first of n positions and this dimension; they are `step` apart. What a block has beyond them is
   nowhere. */
static void OF(along)(const tp_sampling *s, const T *grid, ptrdiff_t step, ptrdiff_t n, ptrdiff_t size, OF(axis) *o) {
    const T factor = (s->align ? (T)(size - 1) : (T)size) / 2;
    const ptrdiff_t width = OF(rounded)(n);
    T x[WIDTH], scale[WIDTH];
    if (step == 2)
        for (ptrdiff_t j = 0; j < n; j++) x[j] = grid[j * 2];
    else
        for (ptrdiff_t j = 0; j < n; j++) x[j] = grid[j * step];
    for (ptrdiff_t j = 0; j < n; j++) {
        const T given = x[j];
        x[j] = s->align ? (given + 1) / 2 * (T)(size - 1) : ((given + 1) * (T)size - 1) / 2;
        scale[j] = factor;
    }
    for (ptrdiff_t j = n; j < width; j++) {
        x[j] = NAN;
        scale[j] = 0;
    }
    if (s->padding != TP_ZEROS && s->mode != TP_CUBIC)
        for (ptrdiff_t j = 0; j < width; j++) x[j] = OF(within)(x[j], size, s->padding, s->align, &scale[j]);
    if (s->mode == TP_NEAREST) {
        o->count = 1;
        for (ptrdiff_t j = 0; j < width; j++) {
            o->at[0][j] = OF(place)(RINT(x[j]), size);
            o->weight[0][j] = 1;
            o->slope[0][j] = 0;
        }
    } else if (s->mode == TP_LINEAR) {
        o->count = 2;
        for (ptrdiff_t j = 0; j < width; j++) {
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
        for (ptrdiff_t j = 0; j < width; j++) {
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

/* What positions are made of, of what they are along each dimension; `deep` where there are three. The images that
   they are in begin at `from`. */
static inline __attribute__((always_inline)) void OF(combine)(const tp_sampling *s, const OF(axis) *axes, int deep,
                                                              int slopes, const INDEX *from, OF(taps) *o) {
    const ptrdiff_t width = OF(rounded)(o->width);
    const INDEX rows = (INDEX)s->sizes[1], columns = (INDEX)s->sizes[2];
    o->count = 0;
    for (int a = 0; a < (deep ? axes[0].count : 1); a++)
        for (int b = 0; b < axes[1].count; b++)
            for (int c = 0; c < axes[2].count; c++, o->count++) {
                const int k = o->count;
                const INDEX *z = axes[0].at[a], *y = axes[1].at[b], *x = axes[2].at[c];
                const T *u = axes[0].weight[a], *v = axes[1].weight[b], *w = axes[2].weight[c];
                INDEX least = 0;
                for (ptrdiff_t j = 0; j < width; j++) {
                    const INDEX any = deep ? z[j] | y[j] | x[j] : y[j] | x[j]; /* negative if one is */
                    const INDEX flat = ((deep ? z[j] * rows : 0) + y[j]) * columns + x[j];
                    o->inside[k][j] = -(any >= 0);
                    o->at[k][j] = any < 0 ? 0 : from[j] + flat;
                    o->weight[k][j] = deep ? u[j] * v[j] * w[j] : v[j] * w[j];
                    least = any < least ? any : least;
                }
                o->whole[k] = least == 0;
                if (!slopes) continue;
                const T *du = axes[0].slope[a], *dv = axes[1].slope[b], *dw = axes[2].slope[c];
                for (ptrdiff_t j = 0; j < width; j++) {
                    if (deep) o->slope[0][k][j] = du[j] * v[j] * w[j];
                    o->slope[1][k][j] = deep ? u[j] * dv[j] * w[j] : dv[j] * w[j];
                    o->slope[2][k][j] = deep ? u[j] * v[j] * dw[j] : v[j] * dw[j];
                }
            }
}

/* What `n` positions from the given one on are made of, be they of one sample or of several. */
static void OF(block)(const tp_sampling *s, const T *grid, ptrdiff_t first, ptrdiff_t n, int slopes, OF(taps) *o) {
    OF(axis) axes[3];
    INDEX from[WIDTH] = {0};
    const ptrdiff_t sample = s->channels * s->sizes[0] * s->sizes[1] * s->sizes[2];
    ptrdiff_t at = 0;
    o->positions = n;
    o->width = OF(rounded)(n);
    o->sample = first / s->positions;
    o->begin = first % s->positions;
    for (ptrdiff_t j = s->positions - o->begin; j < n;) {
        at += sample;
        for (const ptrdiff_t end = j + s->positions < n ? j + s->positions : n; j < end; j++) from[j] = (INDEX)at;
    }
    for (int d = 0; d < s->dims; d++)
        OF(along)(s, grid + first * s->dims + s->dims - 1 - d, s->dims, n, s->sizes[3 - s->dims + d],
                  &axes[3 - s->dims + d]);
    if (s->dims == 3) OF(combine)(s, axes, 1, slopes, from, o);
    else OF(combine)(s, axes, 0, slopes, from, o);
}

/* Copy what a channel has at a block's positions, of one sample or of several; or `back`. */
static inline void OF(move)(const tp_sampling *s, const OF(taps) *taps, ptrdiff_t channel, int back, T *array,
                            T *block) {
    const ptrdiff_t n = taps->positions;
    ptrdiff_t begin = taps->begin;
    array += (taps->sample * s->channels + channel) * s->positions;
    for (ptrdiff_t done = 0, count; done < n; done += count, begin = 0, array += s->channels * s->positions) {
        count = s->positions - begin;
        if (count > n - done || s->channels == 1) count = n - done;
        if (back) memcpy(array + begin, block + done, (size_t)count * sizeof *block);
        else memcpy(block + done, array + begin, (size_t)count * sizeof *block);
    }
}

/* The elements at places. Left to itself the compiler puts vectors together from single elements, which takes twice as
   long as the instruction does. */
static inline void OF(gather)(const T *restrict image, const INDEX *restrict at, ptrdiff_t n, T *restrict value) {
#ifdef GATHER
    enum { PER = VECTOR / sizeof(T) };
    for (ptrdiff_t j = 0; j < n; j += PER) GATHER(value + j, image, at + j);
#else
    for (ptrdiff_t j = 0; j < n; j++) value[j] = image[at[j]];
#endif
}

/* Set what the positions of a block get of their elements, so many of each, a vector of positions after the other. Of
   what is nowhere nothing counts, be it NaN. */
static inline __attribute__((always_inline)) void OF(sum_taps)(const T *restrict image, const OF(taps) *taps, int count,
                                                               int whole, T *restrict result) {
    enum { PER = VECTOR / sizeof(T) };
    for (ptrdiff_t j = 0; j < taps->width; j += PER) {
        VECTOR_OF(T) total = {0};
        for (int k = 0; k < count; k++) {
            T value[PER];
            OF(gather)(image, taps->at[k] + j, PER, value);
            VECTOR_OF(T) product = *(const VECTOR_OF(T) *)value * *(const VECTOR_OF(T) *)(taps->weight[k] + j);
            if (!whole)
                product = (VECTOR_OF(T))((VECTOR_OF(INDEX))product & *(const VECTOR_OF(INDEX) *)(taps->inside[k] + j));
            total += product;
        }
        memcpy(result + j, &total, sizeof total);
    }
}

static void OF(sample_block)(const T *restrict image, const OF(taps) *taps, int whole, T *restrict result) {
    switch (taps->count) {
    case 1: whole ? OF(sum_taps)(image, taps, 1, 1, result) : OF(sum_taps)(image, taps, 1, 0, result); break;
    case 4: whole ? OF(sum_taps)(image, taps, 4, 1, result) : OF(sum_taps)(image, taps, 4, 0, result); break;
    default: OF(sum_taps)(image, taps, taps->count, whole, result);
    }
}

/* List which of a block's positions have an element inside the image, and return how many: a branch for each of them in
   each channel would be guessed wrong too often. */
static inline int OF(list_inside)(const OF(taps) *taps, int k, int *list) {
    int count = 0;
    for (int j = 0; j < (int)taps->positions; j++) {
        list[count] = j;
        count -= (int)taps->inside[k][j];
    }
    return count;
}

/* Add to one of their elements what it gets of their gradients, of the listed ones; and their products, of which slopes
   are made, if there is room for them. */
static inline void OF(add_gradients)(const T *restrict image, const T *restrict g, const OF(taps) *taps, int k,
                                     const int *list, int count, T *restrict to, T *restrict products) {
    T share[WIDTH];
    const INDEX *at = taps->at[k];
    const ptrdiff_t width = OF(rounded)(taps->width);
    for (ptrdiff_t j = 0; j < width; j++) share[j] = g[j] * taps->weight[k][j];
    for (int i = 0; i < count; i++) to[at[list[i]]] += share[list[i]];
    if (!products) return;
    T value[WIDTH];
    OF(gather)(image, at, width, value);
    for (ptrdiff_t j = 0; j < width; j++) products[j] += taps->inside[k][j] ? value[j] * g[j] : 0;
}

static void OF(sample)(const tp_sampling *s, const void *image_, const void *grid_, void *result_) {
    const ptrdiff_t plane = s->sizes[0] * s->sizes[1] * s->sizes[2];
    /* All samples are one line of positions, or each is one. */
    const int joined = together(s, sizeof(INDEX));
    const ptrdiff_t lines = joined ? 1 : s->batch, line = joined ? s->batch * s->positions : s->positions;
    const ptrdiff_t blocks = (line + WIDTH - 1) / WIDTH;
    TP_PARALLEL(lines * blocks, s->threads, begin, end, {
        OF(taps) taps;
        T values[WIDTH];
        for (ptrdiff_t unit = begin; unit < end; unit++) {
            const ptrdiff_t first = unit / blocks * line + unit % blocks * WIDTH;
            const ptrdiff_t rest = line - unit % blocks * WIDTH, n = rest < WIDTH ? rest : WIDTH;
            OF(block)(s, grid_, first, n, 0, &taps);
            int whole = n == taps.width;
            for (int k = 0; k < taps.count; k++) whole &= taps.whole[k];
            for (ptrdiff_t c = 0; c < s->channels; c++) {
                const ptrdiff_t channel = taps.sample * s->channels + c;
                OF(sample_block)((const T *)image_ + channel * plane, &taps, whole, values);
                OF(move)(s, &taps, c, 1, result_, values);
            }
        }
    });
}

static void OF(gradient)(const tp_sampling *s, const void *g_, const void *image_, const void *grid_, void *g_image_,
                         void *g_grid_) {
    const ptrdiff_t plane = s->sizes[0] * s->sizes[1] * s->sizes[2];
    const int slopes = s->mode != TP_NEAREST, joined = together(s, sizeof(INDEX));
    /* A sample is one thread's alone, so that no two write to the same place. */
    TP_PARALLEL(s->batch, s->threads, begin, end, {
        OF(taps) taps;
        T products[TAPS][WIDTH], g[WIDTH];
        int list[TAPS][WIDTH], counts[TAPS];
        for (ptrdiff_t sample = begin, next; sample < end; sample = next) {
            next = joined ? end : sample + 1;
            for (ptrdiff_t first = sample * s->positions; first < next * s->positions; first += WIDTH) {
                const ptrdiff_t rest = next * s->positions - first, n = rest < WIDTH ? rest : WIDTH;
                OF(block)(s, grid_, first, n, slopes, &taps);
                memset(products, 0, (size_t)taps.count * sizeof *products);
                memset(g, 0, sizeof g);
                for (int k = 0; k < taps.count; k++) counts[k] = OF(list_inside)(&taps, k, list[k]);
                for (ptrdiff_t c = 0; c < s->channels; c++) {
                    const ptrdiff_t channel = taps.sample * s->channels + c;
                    OF(move)(s, &taps, c, 0, (T *)g_, g);
                    for (int k = 0; k < taps.count; k++)
                        OF(add_gradients)((const T *)image_ + channel * plane, g, &taps, k, list[k], counts[k],
                                          (T *)g_image_ + channel * plane, slopes ? products[k] : NULL);
                }
                for (int d = 3 - s->dims; d < 3; d++) {
                    T total[WIDTH] = {0};
                    const ptrdiff_t width = OF(rounded)(n);
                    for (int k = 0; slopes && k < taps.count; k++)
                        for (ptrdiff_t j = 0; j < width; j++)
                            total[j] += taps.inside[k][j] ? products[k][j] * taps.slope[d][k][j] : 0;
                    for (ptrdiff_t j = 0; j < n; j++) ((T *)g_grid_)[(first + j) * s->dims + 2 - d] = total[j];
                }
            }
        }
    });
}
