/* Means over boxes for one type T, with sums of many numbers in type SUM; included by pooling_average.c. */

static SUM OF(sum_run)(const T *x, ptrdiff_t n) {
    SUM all = 0;
    for (ptrdiff_t from = 0; from < n; from += RUN) {
        SUMMED(some, x + from, LEAST(RUN, n - from), v)
        all += some;
    }
    return all;
}

/* Move sums of DEEP numbers on. */
static void OF(move_on)(T *sums, SUM *totals, ptrdiff_t n) {
    INDEPENDENT for (ptrdiff_t j = 0; j < n; j++) {
        totals[j] += sums[j];
        sums[j] = 0;
    }
}

static inline __attribute__((always_inline)) void OF(sum_steps)(const T *x, ptrdiff_t n, ptrdiff_t step,
                                                                ptrdiff_t width, T *sums) {
    for (ptrdiff_t k = 0; k < width; k++)
        INDEPENDENT for (ptrdiff_t j = 0; j < n; j++) sums[j] += x[j * step + k];
}

/* The sums along a row of `n` results from column `c` on; `x` is the place where the first one begins. */
static void OF(sum_row)(const tp_boxes *p, const T *x, ptrdiff_t c, ptrdiff_t n, T *sums) {
    const int64_t *first = p->first[2] + c, *behind = p->behind[2] + c;
    ptrdiff_t step, width;
    for (ptrdiff_t j = 0; j < n; j++) sums[j] = 0;
    if (n > 3 && behind[0] - first[0] <= DEEP && regular(p, c, n, &step, &width)) {
        if (step == 1) OF(sum_steps)(x, n, 1, width, sums);
        else if (step == 2) OF(sum_steps)(x, n, 2, width, sums);
        else OF(sum_steps)(x, n, step, width, sums);
        return;
    }
    for (ptrdiff_t j = 0; j < n; j++) {
        SUMMED(sum, x + (first[j] - first[0]), behind[j] - first[j], v)
        sums[j] = sum;
    }
}

/* A row of results of one plane. */
static void OF(mean_row)(const tp_boxes *p, const T *x, ptrdiff_t depth, ptrdiff_t row, T *o) {
    const ptrdiff_t columns = p->size[2];
    const ptrdiff_t above = p->divisor[0][depth] * p->divisor[1][row];
    const ptrdiff_t lines = (p->behind[0][depth] - p->first[0][depth]) * (p->behind[1][row] - p->first[1][row]);
    T line[WIDTH];
    T sums[WIDTH];
    SUM totals[WIDTH];
    ptrdiff_t n;
    for (ptrdiff_t c = 0; c < p->where[2]; c += n) {
        n = LEAST(fitting(p, c), WIDTH);
        const ptrdiff_t begin = p->first[2][c], end = p->behind[2][c + n - 1], width = LEAST(end - begin, WIDTH);
        const int is_wide = end - begin > WIDTH; /* one result, wider than `line` */
        SUM wide = 0;
        ptrdiff_t deep = 0;
        memset(line, 0, (size_t)width * sizeof *line);
        if (lines > DEEP) memset(totals, 0, (size_t)width * sizeof *totals);
        for (ptrdiff_t z = p->first[0][depth]; z < p->behind[0][depth]; z++) {
            for (ptrdiff_t y = p->first[1][row]; y < p->behind[1][row]; y++) {
                const T *from = x + (z * p->size[1] + y) * columns + begin;
                if (is_wide) {
                    wide += OF(sum_run)(from, end - begin);
                    continue;
                }
                INDEPENDENT for (ptrdiff_t i = 0; i < width; i++) line[i] += from[i];
                if (lines > DEEP && ++deep % DEEP == 0) OF(move_on)(line, totals, width);
            }
        }
        if (is_wide) {
            sums[0] = (T)wide;
        } else {
            if (lines > DEEP)
                for (ptrdiff_t i = 0; i < width; i++) line[i] = (T)(totals[i] + line[i]);
            OF(sum_row)(p, line, c, n, sums);
        }
        for (ptrdiff_t j = 0; j < n; j++) o[c + j] = QUOTIENT(sums[j], (T)(above * p->divisor[2][c + j]));
    }
}

/* One result of `width` channels, or small planes: `apart` is from place to place, `step` from one to the next, and
   `to_step` that of their results. */
static inline __attribute__((always_inline)) void OF(mean_place)(const tp_boxes *p, const T *x, const ptrdiff_t *at,
                                                                 ptrdiff_t width, ptrdiff_t apart, ptrdiff_t step,
                                                                 ptrdiff_t to_step, T *o) {
    const T by = (T)(p->divisor[0][at[0]] * p->divisor[1][at[1]] * p->divisor[2][at[2]]);
    const ptrdiff_t places = (p->behind[0][at[0]] - p->first[0][at[0]]) * (p->behind[1][at[1]] - p->first[1][at[1]]) *
                             (p->behind[2][at[2]] - p->first[2][at[2]]);
    T sums[WIDTH];
    SUM totals[WIDTH];
    ptrdiff_t deep = 0;
    for (ptrdiff_t j = 0; j < width; j++) sums[j] = 0;
    if (places > DEEP)
        for (ptrdiff_t j = 0; j < width; j++) totals[j] = 0;
    for (ptrdiff_t z = p->first[0][at[0]]; z < p->behind[0][at[0]]; z++) {
        for (ptrdiff_t y = p->first[1][at[1]]; y < p->behind[1][at[1]]; y++) {
            for (ptrdiff_t i = p->first[2][at[2]]; i < p->behind[2][at[2]]; i++) {
                const T *from = x + ((z * p->size[1] + y) * p->size[2] + i) * apart;
                INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) sums[j] += from[j * step];
                if (places > DEEP && ++deep % DEEP == 0) OF(move_on)(sums, totals, width);
            }
        }
    }
    if (places > DEEP)
        for (ptrdiff_t j = 0; j < width; j++) sums[j] = (T)(totals[j] + sums[j]);
    INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) o[j * to_step] = QUOTIENT(sums[j], by);
}

static void OF(mean_channels)(const tp_boxes *p, const T *x, const ptrdiff_t *at, ptrdiff_t width, T *o) {
    OF(mean_place)(p, x, at, width, p->channels, 1, 1, o);
}

/* All results of `width` small planes, each place of all planes at a time: rows would be too short for vectors. */
static void OF(mean_planes)(const tp_boxes *p, const T *x, ptrdiff_t width, T *o) {
    const ptrdiff_t plane = p->size[0] * p->size[1] * p->size[2], results = p->where[0] * p->where[1] * p->where[2];
    for (ptrdiff_t z = 0; z < p->where[0]; z++)
        for (ptrdiff_t y = 0; y < p->where[1]; y++)
            for (ptrdiff_t i = 0; i < p->where[2]; i++) {
                const ptrdiff_t at[3] = {z, y, i};
                OF(mean_place)(p, x, at, width, 1, plane, results, o++);
            }
}

static void OF(mean)(const tp_boxes *p, const void *x_, void *o_) {
    const T *x = x_;
    T *o = o_;
    const ptrdiff_t plane = p->size[0] * p->size[1] * p->size[2], results = p->where[0] * p->where[1] * p->where[2];
    const ptrdiff_t columns = p->where[2], rows = results / columns, channels = p->channels;
    if (!p->channels_last && whole(p)) {
        const T by = (T)(p->divisor[0][0] * p->divisor[1][0] * p->divisor[2][0]);
        TP_PARALLEL(p->samples * channels, p->threads, begin, end, {
            for (ptrdiff_t k = begin; k < end; k++) {
                if (plane > RUN) {
                    o[k] = (T)QUOTIENT(OF(sum_run)(x + k * plane, plane), by);
                    continue;
                }
                SUMMED(total, x + k * plane, plane, v)
                o[k] = QUOTIENT(total, by);
            }
        });
        return;
    }
    if (!p->channels_last && single(p)) {
        TP_PARALLEL(p->samples * channels, p->threads, begin, end, {
            for (ptrdiff_t k = begin; k < end; k++)
                for (ptrdiff_t i = 0; i < results; i++) o[k * results + i] = x[k];
        });
        return;
    }
    if (!p->channels_last && columns < NARROW && plane <= SMALL && p->samples * channels >= SEVERAL) {
        TP_PARALLEL(p->samples * channels, p->threads, begin, end, {
            for (ptrdiff_t k = begin; k < end; k += BESIDE)
                OF(mean_planes)(p, x + k * plane, LEAST(BESIDE, end - k), o + k * results);
        });
        return;
    }
    if (!p->channels_last) {
        TP_PARALLEL(p->samples * channels * rows, p->threads, begin, end, {
            for (ptrdiff_t r = begin; r < end; r++)
                OF(mean_row)(p, x + r / rows * plane, r % rows / p->where[1], r % p->where[1], o + r * columns);
        });
        return;
    }
    TP_PARALLEL(p->samples * results, p->threads, begin, end, {
        for (ptrdiff_t r = begin; r < end; r++) {
            const ptrdiff_t i = r % results;
            const ptrdiff_t at[3] = {i / (columns * p->where[1]), i / columns % p->where[1], i % columns};
            for (ptrdiff_t c = 0; c < channels; c += WIDTH)
                OF(mean_channels)(p, x + r / results * plane * channels + c, at, LEAST(WIDTH, channels - c),
                                  o + r * channels + c);
        }
    });
}

static inline __attribute__((always_inline)) void OF(spread_steps)(const T *g, ptrdiff_t n, ptrdiff_t step,
                                                                   ptrdiff_t width, T *line) {
    for (ptrdiff_t k = 0; k < width; k++)
        INDEPENDENT for (ptrdiff_t j = 0; j < n; j++) line[j * step + k] += g[j];
}

/* Add a row of gradients to the places of one plane that took part. */
static void OF(spread_row)(const tp_boxes *p, const T *g, ptrdiff_t depth, ptrdiff_t row, T *o) {
    const ptrdiff_t above = p->divisor[0][depth] * p->divisor[1][row];
    T line[WIDTH];
    T parts[WIDTH];
    ptrdiff_t n, step, width;
    for (ptrdiff_t c = 0; c < p->where[2]; c += n) {
        n = LEAST(fitting(p, c), WIDTH);
        const int64_t *first = p->first[2] + c, *behind = p->behind[2] + c;
        const ptrdiff_t begin = first[0], end = behind[n - 1];
        for (ptrdiff_t j = 0; j < n; j++) parts[j] = g[c + j] / (T)(above * p->divisor[2][c + j]);
        if (end - begin <= WIDTH) {
            memset(line, 0, (size_t)(end - begin) * sizeof *line);
            if (n > 3 && regular(p, c, n, &step, &width)) {
                if (step == 1) OF(spread_steps)(parts, n, 1, width, line);
                else if (step == 2) OF(spread_steps)(parts, n, 2, width, line);
                else OF(spread_steps)(parts, n, step, width, line);
            } else {
                for (ptrdiff_t j = 0; j < n; j++)
                    for (ptrdiff_t i = first[j] - begin; i < behind[j] - begin; i++) line[i] += parts[j];
            }
        }
        for (ptrdiff_t z = p->first[0][depth]; z < p->behind[0][depth]; z++) {
            for (ptrdiff_t y = p->first[1][row]; y < p->behind[1][row]; y++) {
                T *to = o + (z * p->size[1] + y) * p->size[2] + begin;
                if (end - begin <= WIDTH) {
                    INDEPENDENT for (ptrdiff_t i = 0; i < end - begin; i++) to[i] += line[i];
                } else {
                    INDEPENDENT for (ptrdiff_t i = 0; i < end - begin; i++) to[i] += parts[0];
                }
            }
        }
    }
}

/* Add one result's gradients to the places of `width` channels, or small planes, as for mean_place. */
static inline __attribute__((always_inline)) void OF(spread_place)(const tp_boxes *p, const T *g, const ptrdiff_t *at,
                                                                   ptrdiff_t width, ptrdiff_t apart, ptrdiff_t step,
                                                                   ptrdiff_t from_step, T *o) {
    const T by = (T)(p->divisor[0][at[0]] * p->divisor[1][at[1]] * p->divisor[2][at[2]]);
    T parts[BESIDE];
    INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) parts[j] = g[j * from_step] / by;
    for (ptrdiff_t z = p->first[0][at[0]]; z < p->behind[0][at[0]]; z++) {
        for (ptrdiff_t y = p->first[1][at[1]]; y < p->behind[1][at[1]]; y++) {
            for (ptrdiff_t x = p->first[2][at[2]]; x < p->behind[2][at[2]]; x++) {
                T *to = o + ((z * p->size[1] + y) * p->size[2] + x) * apart;
                INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) to[j * step] += parts[j];
            }
        }
    }
}

static void OF(spread_channels)(const tp_boxes *p, const T *g, const ptrdiff_t *at, ptrdiff_t width, T *o) {
    OF(spread_place)(p, g, at, width, p->channels, 1, 1, o);
}

static void OF(spread_planes)(const tp_boxes *p, const T *g, ptrdiff_t width, T *o) {
    const ptrdiff_t plane = p->size[0] * p->size[1] * p->size[2], results = p->where[0] * p->where[1] * p->where[2];
    for (ptrdiff_t z = 0; z < p->where[0]; z++)
        for (ptrdiff_t y = 0; y < p->where[1]; y++)
            for (ptrdiff_t i = 0; i < p->where[2]; i++) {
                const ptrdiff_t at[3] = {z, y, i};
                OF(spread_place)(p, g++, at, width, 1, plane, results, o);
            }
}

static void OF(gradient)(const tp_boxes *p, const void *g_, void *o_) {
    const T *g = g_;
    T *o = o_;
    const ptrdiff_t plane = p->size[0] * p->size[1] * p->size[2], results = p->where[0] * p->where[1] * p->where[2];
    const ptrdiff_t columns = p->where[2], rows = results / columns, channels = p->channels;
    if (!p->channels_last && whole(p)) {
        const T by = (T)(p->divisor[0][0] * p->divisor[1][0] * p->divisor[2][0]);
        TP_PARALLEL(p->samples * channels, p->threads, begin, end, {
            for (ptrdiff_t k = begin; k < end; k++) {
                const T part = g[k] / by;
                for (ptrdiff_t i = 0; i < plane; i++) o[k * plane + i] += part;
            }
        });
        return;
    }
    if (!p->channels_last && single(p)) {
        TP_PARALLEL(p->samples * channels, p->threads, begin, end, {
            for (ptrdiff_t k = begin; k < end; k++) {
                SUMMED(total, g + k * results, results, v)
                o[k] += total;
            }
        });
        return;
    }
    if (!p->channels_last && columns < NARROW && plane <= SMALL && p->samples * channels >= SEVERAL) {
        TP_PARALLEL(p->samples * channels, p->threads, begin, end, {
            for (ptrdiff_t k = begin; k < end; k += BESIDE)
                OF(spread_planes)(p, g + k * results, LEAST(BESIDE, end - k), o + k * plane);
        });
        return;
    }
    if (!p->channels_last) {
        TP_PARALLEL(p->samples * channels, p->threads, begin, end, {
            for (ptrdiff_t k = begin; k < end; k++)
                for (ptrdiff_t r = 0; r < rows; r++)
                    OF(spread_row)(p, g + k * results + r * columns, r / p->where[1], r % p->where[1], o + k * plane);
        });
        return;
    }
    /* A channel is one thread's alone, so that no two write to the same place. */
    const ptrdiff_t blocks = (channels + BESIDE - 1) / BESIDE;
    TP_PARALLEL(p->samples * blocks, p->threads, begin, end, {
        for (ptrdiff_t k = begin; k < end; k++) {
            const ptrdiff_t c = k % blocks * BESIDE, width = LEAST(BESIDE, channels - c);
            for (ptrdiff_t r = 0; r < results; r++) {
                const ptrdiff_t at[3] = {r / (columns * p->where[1]), r / columns % p->where[1], r % columns};
                OF(spread_channels)(p, g + (k / blocks * results + r) * channels + c, at, width,
                                    o + k / blocks * plane * channels + c);
            }
        }
    });
}
