/* Maxima of one type T, with places of type INDEX on the way; included by pooling_max.c for each. */

/* A NaN is the largest; of equal elements the first counts, of several NaNs the last. */
#define TAKE(j, value, place)                                                                          \
    do {                                                                                               \
        const T v = (value);                                                                           \
        const int better = (v > best[j]) | (v != v) | (at[j] < 0);                                     \
        best[j] = better ? v : best[j];                                                                \
        at[j] = better ? (INDEX)(place) : at[j];                                                       \
    } while (0)

static inline __attribute__((always_inline)) void OF(take_row)(const T *x, INDEX place, ptrdiff_t stride, ptrdiff_t from,
                                                               ptrdiff_t to, T *best, INDEX *at) {
    INDEPENDENT for (ptrdiff_t j = from; j < to; j++) TAKE(j, x[j * stride], place + j * stride);
}

/* `width` results of a row, from column `column` on, of one plane. */
static void OF(row_part)(const tp_pool *p, const T *x, ptrdiff_t depth, ptrdiff_t row, ptrdiff_t column,
                         ptrdiff_t width, T *values, int64_t *places) {
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
                const ptrdiff_t offset = column * p->stride[2] - p->padding[2] + c * p->dilation[2];
                const ptrdiff_t place = (z * p->size[1] + y) * p->size[2] + offset;
                ptrdiff_t from, to;
                reach(offset, p->stride[2], p->size[2], width, &from, &to);
                if (p->stride[2] == 1) OF(take_row)(x + place, (INDEX)place, 1, from, to, best, at);
                else if (p->stride[2] == 2) OF(take_row)(x + place, (INDEX)place, 2, from, to, best, at);
                else OF(take_row)(x + place, (INDEX)place, p->stride[2], from, to, best, at);
            }
        }
    }
    for (ptrdiff_t j = 0; j < width; j++) {
        values[j] = best[j];
        places[j] = at[j] < 0 ? 0 : at[j];
    }
}

/* One place of `width` channels, or small planes: `apart` is from place to place, `step` from one to the next, and
   `to_step` that of their results. */
static inline __attribute__((always_inline)) void OF(places_part)(const tp_pool *p, const T *x, const ptrdiff_t *where,
                                                                  ptrdiff_t width, ptrdiff_t apart, ptrdiff_t step,
                                                                  ptrdiff_t to_step, T *values, int64_t *places) {
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
        places[j * to_step] = at[j] < 0 ? 0 : at[j];
    }
}

static void OF(channels_part)(const tp_pool *p, const T *x, const ptrdiff_t *where, ptrdiff_t width, T *values,
                              int64_t *places) {
    OF(places_part)(p, x, where, width, p->channels, 1, 1, values, places);
}

/* All results of `width` small planes, each place of all planes at a time: rows would be too short for vectors. */
static void OF(planes_part)(const tp_pool *p, const T *x, ptrdiff_t width, T *values, int64_t *places) {
    const ptrdiff_t plane = p->size[0] * p->size[1] * p->size[2], results = p->where[0] * p->where[1] * p->where[2];
    ptrdiff_t r = 0;
    for (ptrdiff_t z = 0; z < p->where[0]; z++)
        for (ptrdiff_t y = 0; y < p->where[1]; y++)
            for (ptrdiff_t w = 0; w < p->where[2]; w++, r++) {
                const ptrdiff_t where[3] = {z, y, w};
                OF(places_part)(p, x, where, width, 1, plane, results, values + r, places + r);
            }
}

static void OF(maximum)(const tp_pool *p, const void *x_, void *values_, int64_t *places) {
    const T *x = x_;
    T *values = values_;
    const ptrdiff_t plane = p->size[0] * p->size[1] * p->size[2], results = p->where[0] * p->where[1] * p->where[2];
    const ptrdiff_t columns = p->where[2], channels = p->channels;
    if (!p->channels_last && columns < NARROW && plane <= SMALL) {
        TP_PARALLEL(p->samples * channels, p->threads, begin, end, {
            for (ptrdiff_t k = begin; k < end; k += BESIDE)
                OF(planes_part)(p, x + k * plane, end - k < BESIDE ? end - k : BESIDE, values + k * results,
                                places + k * results);
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
                    OF(row_part)(p, x + r / rows * plane, depth, row, column, width, values + to, places + to);
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
                OF(channels_part)(p, x + r / results * plane * channels + c, where, width, values + to, places + to);
            }
        }
    });
}
#undef TAKE
