/* Maxima of one type T, with places of type INDEX on the way; included by pooling_max.c for each. `marked` is known
   when this is compiled: whether places are wanted, which take most of the time. */

/* A NaN is the largest; of equal elements the first counts, of several NaNs the last. */
#define TAKE(j, value, place)                                                                          \
    do {                                                                                               \
        const T v = (value);                                                                           \
        const int better = (v > best[j]) | (v != v) | (marked && at[j] < 0);                           \
        best[j] = better ? v : best[j];                                                                \
        if (marked) at[j] = better ? (INDEX)(place) : at[j];                                           \
    } while (0)

static inline __attribute__((always_inline)) void OF(take_row)(int marked, const T *x, INDEX place, ptrdiff_t stride,
                                                               ptrdiff_t from, ptrdiff_t to, T *best, INDEX *at) {
    INDEPENDENT for (ptrdiff_t j = from; j < to; j++) TAKE(j, x[j * stride], place + j * stride);
}

#define IS_NAN(v) ((v) != (v))
typedef T OF(lanes) __attribute__((vector_size(BYTES)));
typedef INDEX OF(marks) __attribute__((vector_size(BYTES)));
enum { OF(LANES) = BYTES / sizeof(T) };

/* Every `stride`-th element, of which the last one is the last that is read. */
static inline __attribute__((always_inline)) void OF(load)(const T *from, ptrdiff_t stride, OF(lanes) *to) {
    OF(lanes) high;
    OF(marks) order;
    memcpy(to, from, BYTES);
    if (stride == 1) return;
    memcpy(&high, from + OF(LANES) - 1, BYTES);
    for (int l = 0; l < OF(LANES); l++) order[l] = 2 * l < OF(LANES) ? 2 * l : 2 * l + 1;
    *to = __builtin_shuffle(*to, high, order);
}

/* The values alone of windows that lie inside of the image, LANES of them at a time, which stay in registers. */
static inline __attribute__((always_inline)) void OF(row_values)(const tp_pool *p, const T *x, ptrdiff_t stride,
                                                                 ptrdiff_t z, ptrdiff_t y, ptrdiff_t width, T *values) {
    for (ptrdiff_t k = 0; k < width; k += OF(LANES)) {
        const ptrdiff_t j = k + OF(LANES) <= width ? k : width - OF(LANES); /* the last ones once more */
        OF(lanes) best = (OF(lanes)){0} + LEAST;
        for (ptrdiff_t a = 0; a < p->kernel[0]; a++) {
            const ptrdiff_t depth = z + a * p->dilation[0];
            if (depth < 0 || depth >= p->size[0]) continue;
            for (ptrdiff_t b = 0; b < p->kernel[1]; b++) {
                const ptrdiff_t row = y + b * p->dilation[1];
                if (row < 0 || row >= p->size[1]) continue;
                const T *from = x + (depth * p->size[1] + row) * p->size[2] + j * stride;
                for (ptrdiff_t c = 0; c < p->kernel[2]; c++, from += p->dilation[2]) {
                    OF(lanes) v;
                    OF(load)(from, stride, &v);
                    const OF(marks) better = (OF(marks))(v > best) | (OF(marks))IS_NAN(v);
                    best = (OF(lanes))(((OF(marks))v & better) | ((OF(marks))best & ~better));
                }
            }
        }
        memcpy(values + j, &best, BYTES);
    }
}

/* `width` results of a row, from column `column` on, of one plane. */
static inline __attribute__((always_inline)) void OF(row_part)(int marked, const tp_pool *p, const T *x, ptrdiff_t depth,
                                                               ptrdiff_t row, ptrdiff_t column, ptrdiff_t width,
                                                               T *values, int64_t *places) {
    const ptrdiff_t first = column * p->stride[2] - p->padding[2];
    const int inside = first >= 0 && first + (width - 1) * p->stride[2] + (p->kernel[2] - 1) * p->dilation[2] < p->size[2];
    if (!marked && inside && width >= OF(LANES) && p->stride[2] <= 2) {
        const ptrdiff_t z = depth * p->stride[0] - p->padding[0], y = row * p->stride[1] - p->padding[1];
        if (p->stride[2] == 1) OF(row_values)(p, x + first, 1, z, y, width, values);
        else OF(row_values)(p, x + first, 2, z, y, width, values);
        return;
    }
    T best[WIDTH];
    INDEX at[WIDTH];
    for (ptrdiff_t j = 0; j < width; j++) {
        best[j] = LEAST;
        at[j] = -1;
    }
    for (ptrdiff_t a = 0; a < p->kernel[0]; a++) {
        const ptrdiff_t z = depth * p->stride[0] - p->padding[0] + a * p->dilation[0];
        if (z < 0 || z >= p->size[0]) continue;
        for (ptrdiff_t b = 0; b < p->kernel[1]; b++) {
            const ptrdiff_t y = row * p->stride[1] - p->padding[1] + b * p->dilation[1];
            if (y < 0 || y >= p->size[1]) continue;
            for (ptrdiff_t c = 0; c < p->kernel[2]; c++) {
                const ptrdiff_t offset = first + c * p->dilation[2];
                const ptrdiff_t place = (z * p->size[1] + y) * p->size[2] + offset;
                ptrdiff_t from = 0, to = width;
                if (!inside) reach(offset, p->stride[2], p->size[2], width, &from, &to);
                if (p->stride[2] == 1) OF(take_row)(marked, x + place, (INDEX)place, 1, from, to, best, at);
                else if (p->stride[2] == 2) OF(take_row)(marked, x + place, (INDEX)place, 2, from, to, best, at);
                else OF(take_row)(marked, x + place, (INDEX)place, p->stride[2], from, to, best, at);
            }
        }
    }
    for (ptrdiff_t j = 0; j < width; j++) {
        values[j] = best[j];
        if (marked) places[j] = at[j] < 0 ? 0 : at[j];
    }
}

/* One place of `width` channels, or small planes: `apart` is from place to place, `step` from one to the next, and
   `to_step` that of their results. */
static inline __attribute__((always_inline)) void OF(places_part)(int marked, const tp_pool *p, const T *x,
                                                                  const ptrdiff_t *where, ptrdiff_t width, ptrdiff_t apart,
                                                                  ptrdiff_t step, ptrdiff_t to_step, T *values,
                                                                  int64_t *places) {
    T best[WIDTH];
    INDEX at[WIDTH];
    for (ptrdiff_t j = 0; j < width; j++) {
        best[j] = LEAST;
        at[j] = -1;
    }
    for (ptrdiff_t a = 0; a < p->kernel[0]; a++) {
        const ptrdiff_t z = where[0] * p->stride[0] - p->padding[0] + a * p->dilation[0];
        if (z < 0 || z >= p->size[0]) continue;
        for (ptrdiff_t b = 0; b < p->kernel[1]; b++) {
            const ptrdiff_t y = where[1] * p->stride[1] - p->padding[1] + b * p->dilation[1];
            if (y < 0 || y >= p->size[1]) continue;
            for (ptrdiff_t c = 0; c < p->kernel[2]; c++) {
                const ptrdiff_t w = where[2] * p->stride[2] - p->padding[2] + c * p->dilation[2];
                if (w < 0 || w >= p->size[2]) continue;
                const ptrdiff_t place = (z * p->size[1] + y) * p->size[2] + w;
                const T *from = x + place * apart;
                INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) TAKE(j, from[j * step], place);
            }
        }
    }
    for (ptrdiff_t j = 0; j < width; j++) {
        values[j * to_step] = best[j];
        if (marked) places[j * to_step] = at[j] < 0 ? 0 : at[j];
    }
}

static inline __attribute__((always_inline)) void OF(channels_part)(int marked, const tp_pool *p, const T *x,
                                                                    const ptrdiff_t *where, ptrdiff_t width, T *values,
                                                                    int64_t *places) {
    OF(places_part)(marked, p, x, where, width, p->channels, 1, 1, values, places);
}

/* Of what lies `n` results behind the first one: where no places are wanted there is no such memory. */
static inline int64_t *OF(behind)(int64_t *places, ptrdiff_t n) { return places == NULL ? NULL : places + n; }

/* All results of `width` small planes, each place of all planes at a time: rows would be too short for vectors. */
static inline __attribute__((always_inline)) void OF(planes_part)(int marked, const tp_pool *p, const T *x,
                                                                  ptrdiff_t width, T *values, int64_t *places) {
    const ptrdiff_t plane = p->size[0] * p->size[1] * p->size[2], results = p->where[0] * p->where[1] * p->where[2];
    ptrdiff_t r = 0;
    for (ptrdiff_t z = 0; z < p->where[0]; z++)
        for (ptrdiff_t y = 0; y < p->where[1]; y++)
            for (ptrdiff_t w = 0; w < p->where[2]; w++, r++) {
                const ptrdiff_t where[3] = {z, y, w};
                OF(places_part)(marked, p, x, where, width, 1, plane, results, values + r,
                                OF(behind)(places, r));
            }
}

static inline __attribute__((always_inline)) void OF(maximum_of)(int marked, const tp_pool *p, const T *x, T *values,
                                                                 int64_t *places) {
    const ptrdiff_t plane = p->size[0] * p->size[1] * p->size[2], results = p->where[0] * p->where[1] * p->where[2];
    const ptrdiff_t columns = p->where[2], channels = p->channels;
    if (!p->channels_last && columns < NARROW && plane <= SMALL) {
        TP_PARALLEL(p->samples * channels, p->threads, begin, end, {
            for (ptrdiff_t k = begin; k < end; k += BESIDE)
                OF(planes_part)(marked, p, x + k * plane, end - k < BESIDE ? end - k : BESIDE, values + k * results,
                                OF(behind)(places, k * results));
        });
        return;
    }
    if (!p->channels_last) {
        const ptrdiff_t rows = results / columns;
        TP_PARALLEL(p->samples * channels * rows, p->threads, begin, end, {
            for (ptrdiff_t r = begin; r < end; r++) {
                const ptrdiff_t row = r % p->where[1];
                const ptrdiff_t depth = r % rows / p->where[1];
                for (ptrdiff_t column = 0; column < columns; column += WIDTH) {
                    const ptrdiff_t width = columns - column < WIDTH ? columns - column : WIDTH;
                    const ptrdiff_t to = r * columns + column;
                    OF(row_part)(marked, p, x + r / rows * plane, depth, row, column, width, values + to,
                                 OF(behind)(places, to));
                }
            }
        });
        return;
    }
    TP_PARALLEL(p->samples * results, p->threads, begin, end, {
        for (ptrdiff_t r = begin; r < end; r++) {
            const ptrdiff_t at = r % results;
            const ptrdiff_t where[3] = {at / (columns * p->where[1]), at / columns % p->where[1], at % columns};
            for (ptrdiff_t c = 0; c < channels; c += WIDTH) {
                const ptrdiff_t width = channels - c < WIDTH ? channels - c : WIDTH;
                const ptrdiff_t to = r * channels + c;
                OF(channels_part)(marked, p, x + r / results * plane * channels + c, where, width, values + to,
                                  OF(behind)(places, to));
            }
        }
    });
}

static void OF(maximum)(const tp_pool *p, const void *x, void *values, int64_t *places) {
    if (places == NULL) OF(maximum_of)(0, p, x, values, NULL);
    else OF(maximum_of)(1, p, x, values, places);
}
#undef TAKE
#undef IS_NAN
