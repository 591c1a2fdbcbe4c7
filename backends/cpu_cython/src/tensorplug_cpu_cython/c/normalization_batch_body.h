/* Batch normalisation in one type T of images of elements E, which VIEW and PUT convert; included by
   normalization_batch.c for float, for double, and in float for both sorts of half precision. */

/* --- rows: each channel of each sample is a plane of its own --------------------------------------------- */

/* In double; several sums beside each other, for of short planes the lanes are as many as what adds up in them. */
ALWAYS double OF(total)(const T *lanes) {
    double a = 0, b = 0, c = 0, d = 0;
    for (int l = 0; l < LANES; l += 4) {
        a += lanes[l];
        b += lanes[l + 1];
        c += lanes[l + 2];
        d += lanes[l + 3];
    }
    return (a + b) + (c + d);
}

/* Add the sums of p and of p * (q - middle) to the two. */
static void OF(run_sums)(const T *p, const T *q, T middle, ptrdiff_t count, double *sum, double *product) {
    const ptrdiff_t whole = count / LANES * LANES;
    T sums[LANES] = {0}, products[LANES] = {0};
    for (ptrdiff_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) {
            sums[l] += p[i + l];
            products[l] += p[i + l] * (q[i + l] - middle);
        }
    for (ptrdiff_t i = whole; i < count; i++) {
        sums[i - whole] += p[i];
        products[i - whole] += p[i] * (q[i] - middle);
    }
    *sum += OF(total)(sums);
    *product += OF(total)(products);
}

/* Bring the planes of a channel from sample `n` on behind each other, as many as go into a piece; return how many. */
static ptrdiff_t OF(gathered)(const tp_images *s, const E *x, ptrdiff_t c, ptrdiff_t n, T *to) {
    const ptrdiff_t most = PIECE / s->positions, count = s->samples - n < most ? s->samples - n : most;
    for (ptrdiff_t k = 0; k < count; k++) FILL(to + k * s->positions, x + ((n + k) * s->channels + c) * s->positions, s->positions);
    return count;
}

/* Short planes go together, for each run has an end that takes as long as some hundred elements. */
static void OF(channel_variances)(const tp_images *s, const E *x, ptrdiff_t c, moments *m) {
    const ptrdiff_t positions = s->positions;
    if (positions <= SHORT_PLANE) {
        T held[PIECE];
        for (ptrdiff_t n = 0, count; n < s->samples; n += count) {
            count = OF(gathered)(s, x, c, n, held);
            *m = joined(*m, OF_RUN(moments)(held, count * positions));
        }
        return;
    }
    HELD(held, PIECE)
    for (ptrdiff_t n = 0; n < s->samples; n++)
        for (ptrdiff_t from = 0; from < positions; from += PIECE) {
            const ptrdiff_t count = positions - from < PIECE ? positions - from : PIECE;
            const E *plane = x + (n * s->channels + c) * positions;
            *m = joined(*m, OF_RUN(moments)(VIEW(held, plane + from, count), count));
        }
}

static void OF(channel_sums)(const tp_images *s, const E *g, const E *x, T middle, ptrdiff_t c, double *sum, double *product) {
    const ptrdiff_t positions = s->positions;
    if (positions <= SHORT_PLANE) {
        T of_g[PIECE], of_x[PIECE];
        for (ptrdiff_t n = 0, count; n < s->samples; n += count) {
            count = OF(gathered)(s, g, c, n, of_g);
            OF(gathered)(s, x, c, n, of_x);
            OF(run_sums)(of_g, of_x, middle, count * positions, sum, product);
        }
        return;
    }
    HELD(of_g, PIECE)
    HELD(of_x, PIECE)
    for (ptrdiff_t n = 0; n < s->samples; n++)
        for (ptrdiff_t from = 0; from < positions; from += PIECE) {
            const ptrdiff_t count = positions - from < PIECE ? positions - from : PIECE;
            const ptrdiff_t at = (n * s->channels + c) * positions + from;
            OF(run_sums)(VIEW(of_g, g + at, count), VIEW(of_x, x + at, count), middle, count, sum, product);
        }
}

/* --- channels last: rows of channels --------------------------------------------------------------------- */

ALWAYS void OF(block_sums)(const T *g, const T *x, const T *middle, ptrdiff_t rows, ptrdiff_t channels, int width,
                           double *sum, double *product) {
    T sums[64] = {0}, products[64] = {0};
    for (ptrdiff_t r = 0; r < rows; r++)
        for (int j = 0; j < width; j++) {
            const T p = g[r * channels + j];
            sums[j] += p;
            products[j] += p * (x[r * channels + j] - middle[j]);
        }
    for (int j = 0; j < width; j++) {
        sum[j] += sums[j];
        product[j] += products[j];
    }
}

static void OF(row_variances)(const E *x, ptrdiff_t rows, ptrdiff_t channels, ptrdiff_t piece, moments *m) {
    HELD(held, 4 * PIECE)
    for (ptrdiff_t r = 0; r < rows; r += piece) {
        const ptrdiff_t count = rows - r < piece ? rows - r : piece;
        const T *p = VIEW(held, x + r * channels, count * channels);
        for (ptrdiff_t at = 0; at < channels; at += 64)
            OF_RUN(column_moments)(p + at, count, channels, channels - at < 64 ? channels - at : 64, m + at);
    }
}

static void OF(rows_sums)(const E *g, const E *x, const T *middle, ptrdiff_t rows, ptrdiff_t channels, ptrdiff_t piece,
                          double *sum, double *product) {
    HELD(of_g, 4 * PIECE)
    HELD(of_x, 4 * PIECE)
    for (ptrdiff_t r = 0; r < rows; r += piece) {
        const ptrdiff_t count = rows - r < piece ? rows - r : piece, from = r * channels;
        const T *p = VIEW(of_g, g + from, count * channels), *q = VIEW(of_x, x + from, count * channels);
#define CALL(width)                                                                                    \
    OF(block_sums)(p + at, q + at, middle + at, count, channels, width, sum + at, product + at)
        BLOCKS(channels, CALL);
#undef CALL
    }
}

/* --- forward --------------------------------------------------------------------------------------------- */

static void OF(finish)(const moments *m, double eps, T *mean, T *rstd) {
    *mean = (T)m->mean;
    *rstd = (T)(1 / sqrt(m->squares / m->count + eps));
}

static void OF(scaled)(E *to, const E *from, ptrdiff_t n, T middle, T scale, T shift, const tp_batch_forward *f) {
    const T low = (T)f->low, high = (T)f->high;
    HELD(held, RUN)
    for (ptrdiff_t at = 0; at < n; at += RUN) {
        const ptrdiff_t count = n - at < RUN ? n - at : RUN;
        const T *p = VIEW(held, from + at, count);
        T *q = ROOM(held, to + at);
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
            const T y = (p[i] - middle) * scale + shift;
            q[i] = y < low ? low : y > high ? high : y;
        }
        PUT(to + at, held, count);
    }
}

static void OF(scaled_columns)(E *to, const E *from, ptrdiff_t n, const T *middle, const T *scale, const T *shift,
                               const tp_batch_forward *f) {
    const T low = (T)f->low, high = (T)f->high;
    HELD(held, RUN)
    for (ptrdiff_t at = 0; at < n; at += RUN) {
        const ptrdiff_t count = n - at < RUN ? n - at : RUN;
        const T *p = VIEW(held, from + at, count), *m = middle + at, *a = scale + at, *b = shift + at;
        T *q = ROOM(held, to + at);
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
            const T y = (p[i] - m[i]) * a[i] + b[i];
            q[i] = y < low ? low : y > high ? high : y;
        }
        PUT(to + at, held, count);
    }
}

/* Write what is standardised by the means and deviations that are known, where channels lie last. */
static void OF(rows_by)(const tp_images *s, const tp_batch_forward *f) {
    const E *x = f->x;
    const T *weight = f->weight, *bias = f->bias, *mean = f->mean, *rstd = f->rstd;
    E *y = f->y;
    const ptrdiff_t columns = s->columns, beside = columns / s->channels;
    /* Short rows go together, for each run takes as many vectors as it begins. */
    const ptrdiff_t together = columns < RUN ? RUN / columns : 1, width = together * columns;
    T some[3][RUN];
    T *scale = together > 1 ? some[0] : (T *)s->workspace, *middle = together > 1 ? some[1] : scale + columns;
    T *shift = together > 1 ? some[2] : middle + columns;
    for (ptrdiff_t j = 0; j < width; j++) {
        const ptrdiff_t c = j % columns / beside;
        scale[j] = rstd[c] * weight[c];
        middle[j] = mean[c];
        shift[j] = bias[c];
    }
    TP_PARALLEL(s->samples * s->positions / beside, s->threads, begin, end, {
        for (ptrdiff_t r = begin; r < end; r += together) {
            const ptrdiff_t at = r * columns;
            const ptrdiff_t count = (end - r < together ? end - r : together) * columns;
            OF(scaled_columns)(y + at, x + at, count, middle, scale, shift, f);
        }
    });
}

/* The same of given statistics. */
static void OF(by_statistics)(const tp_images *s, const tp_batch_forward *f) {
    const ptrdiff_t channels = s->channels, positions = s->positions;
    const T *weight = f->weight, *bias = f->bias, *mean = f->mean, *rstd = f->rstd;
    if (s->channels_last) {
        OF(rows_by)(s, f);
        return;
    }
    TP_PARALLEL(s->samples * channels, s->threads, begin, end, {
        for (ptrdiff_t p = begin; p < end; p++) {
            const ptrdiff_t c = p % channels;
            const ptrdiff_t at = p * positions;
            OF(scaled)((E *)f->y + at, (const E *)f->x + at, positions, mean[c], rstd[c] * weight[c], bias[c], f);
        }
    });
}

static void OF(forward)(const tp_images *s, const tp_batch_forward *f) {
    const E *x = f->x;
    const T *weight = f->weight, *bias = f->bias;
    E *y = f->y;
    T *mean = f->mean, *rstd = f->rstd;
    const ptrdiff_t channels = s->channels, positions = s->positions, rows = s->samples * positions;
    if (!s->channels_last) {
        TP_PARALLEL(channels, s->threads, begin, end, {
            for (ptrdiff_t c = begin; c < end; c++) {
                moments m = {0, 0, 0};
                OF(channel_variances)(s, x, c, &m);
                OF(finish)(&m, f->eps, &mean[c], &rstd[c]);
                for (ptrdiff_t n = 0; n < s->samples; n++) {
                    const ptrdiff_t at = (n * channels + c) * positions;
                    OF(scaled)(y + at, x + at, positions, mean[c], rstd[c] * weight[c], bias[c], f);
                }
            }
        });
        return;
    }
    /* Planes of few positions are columns beside each other, of which a channel has several. */
    const ptrdiff_t columns = s->columns, beside = columns / channels, lines = rows * channels / columns;
    const ptrdiff_t piece = rows_of_a_piece(columns);
    moments *parts = (moments *)s->workspace;
    TP_PARALLEL(s->threads, s->threads, begin, end, {
        for (ptrdiff_t part = begin; part < end; part++) {
            const ptrdiff_t first = lines * part / s->threads;
            moments *m = parts + part * columns;
            for (ptrdiff_t c = 0; c < columns; c++) m[c] = (moments){0, 0, 0};
            OF(row_variances)(x + first * columns, lines * (part + 1) / s->threads - first, columns, piece, m);
        }
    });
    for (ptrdiff_t c = 0; c < channels; c++) {
        moments all = {0, 0, 0};
        for (ptrdiff_t j = c * beside; j < (c + 1) * beside; j++)
            for (int part = 0; part < s->threads; part++) {
                const moments *m = &parts[part * columns + j];
                all = joined(all, *m);
            }
        OF(finish)(&all, f->eps, &mean[c], &rstd[c]);
    }
    OF(rows_by)(s, f); /* the moments are no longer needed */
}

/* --- backward -------------------------------------------------------------------------------------------- */

/* With n values in a channel and the sums of g and of g (x - mean), the gradient of x is
   a g + b (x - mean) + c, where a = weight rstd, b = -(a rstd² sum(g (x - mean)) + g_rstd rstd³) / n and
   c = (g_mean - a sum(g)) / n. */
typedef struct { T a, b, c; } OF(line);

static OF(line) OF(line_of)(const tp_batch_backward *k, ptrdiff_t c, double n, double sum, double product) {
    const double r = ((const T *)k->rstd)[c], a = ((const T *)k->weight)[c] * r;
    const double g_mean = ((const T *)k->g_mean)[c], g_rstd = ((const T *)k->g_rstd)[c];
    ((T *)k->g_weight)[c] = (T)(product * r);
    ((T *)k->g_bias)[c] = (T)sum;
    return (OF(line)){(T)a, (T)(-(a * r * r * product + g_rstd * r * r * r) / n), (T)((g_mean - a * sum) / n)};
}

static void OF(line_run)(E *to, const E *g, const E *x, ptrdiff_t n, T middle, OF(line) l) {
    HELD(of_g, RUN)
    HELD(of_x, RUN)
    for (ptrdiff_t at = 0; at < n; at += RUN) {
        const ptrdiff_t count = n - at < RUN ? n - at : RUN;
        const T *p = VIEW(of_g, g + at, count), *q = VIEW(of_x, x + at, count);
        T *o = ROOM(of_g, to + at);
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) o[i] = l.a * p[i] + (l.b * (q[i] - middle) + l.c);
        PUT(to + at, of_g, count);
    }
}

static void OF(line_columns)(E *to, const E *g, const E *x, ptrdiff_t n, const T *middle, const T *a, const T *b, const T *c) {
    HELD(of_g, RUN)
    HELD(of_x, RUN)
    for (ptrdiff_t at = 0; at < n; at += RUN) {
        const ptrdiff_t count = n - at < RUN ? n - at : RUN;
        const T *p = VIEW(of_g, g + at, count), *q = VIEW(of_x, x + at, count);
        T *o = ROOM(of_g, to + at);
        INDEPENDENT for (ptrdiff_t i = 0; i < count; i++)
            o[i] = a[at + i] * p[i] + (b[at + i] * (q[i] - middle[at + i]) + c[at + i]);
        PUT(to + at, of_g, count);
    }
}

static void OF(backward)(const tp_images *s, const tp_batch_backward *k) {
    const E *g = k->g, *x = k->x;
    const T *mean = k->mean;
    E *o = k->g_x;
    const ptrdiff_t channels = s->channels, positions = s->positions, rows = s->samples * positions;
    const double count = (double)rows;
    if (!s->channels_last) {
        TP_PARALLEL(channels, s->threads, begin, end, {
            for (ptrdiff_t c = begin; c < end; c++) {
                const T middle = mean[c];
                double sum = 0;
                double product = 0;
                OF(channel_sums)(s, g, x, middle, c, &sum, &product);
                const OF(line) l = OF(line_of)(k, c, count, sum, product);
                for (ptrdiff_t n = 0; n < s->samples; n++) {
                    const ptrdiff_t at = (n * channels + c) * positions;
                    OF(line_run)(o + at, g + at, x + at, positions, middle, l);
                }
            }
        });
        return;
    }
    const ptrdiff_t columns = s->columns, beside = columns / channels, lines = rows * channels / columns;
    T *middle = (T *)(s->workspace + 2 * s->threads * columns), *a = middle + columns, *b = a + columns, *d = b + columns;
    /* Elements of small planes are added up in double, as those of planes by themselves are when they are few. */
    const ptrdiff_t piece = beside > 1 ? 1 : rows_of_a_piece(columns);
    for (ptrdiff_t j = 0; j < columns; j++) middle[j] = mean[j / beside];
    TP_PARALLEL(s->threads, s->threads, begin, end, {
        for (ptrdiff_t part = begin; part < end; part++) {
            const ptrdiff_t first = lines * part / s->threads, from = first * columns;
            double *sum = s->workspace + 2 * part * columns;
            for (ptrdiff_t c = 0; c < 2 * columns; c++) sum[c] = 0;
            OF(rows_sums)(g + from, x + from, middle, lines * (part + 1) / s->threads - first, columns, piece, sum,
                          sum + columns);
        }
    });
    for (ptrdiff_t c = 0; c < channels; c++) {
        double sum = 0, product = 0;
        for (int part = 0; part < s->threads; part++) {
            const double *of_part = s->workspace + 2 * part * columns;
            for (ptrdiff_t j = c * beside; j < (c + 1) * beside; j++) {
                sum += of_part[j];
                product += of_part[columns + j];
            }
        }
        const OF(line) l = OF(line_of)(k, c, count, sum, product);
        for (ptrdiff_t j = c * beside; j < (c + 1) * beside; j++) {
            a[j] = l.a;
            b[j] = l.b;
            d[j] = l.c;
        }
    }
    /* Short rows go together, for each run takes as many vectors as it begins. */
    const ptrdiff_t together = columns < RUN ? RUN / columns : 1;
    T some[4][RUN];
    if (together > 1) {
        T *const of_rows[] = {middle, a, b, d};
        for (int m = 0; m < 4; m++)
            for (ptrdiff_t r = 0; r < together; r++) memcpy(some[m] + r * columns, of_rows[m], (size_t)columns * sizeof(T));
        middle = some[0], a = some[1], b = some[2], d = some[3];
    }
    TP_PARALLEL(lines, s->threads, begin, end, {
        for (ptrdiff_t r = begin; r < end; r += together) {
            const ptrdiff_t at = r * columns, n = (end - r < together ? end - r : together) * columns;
            OF(line_columns)(o + at, g + at, x + at, n, middle, a, b, d);
        }
    });
}
