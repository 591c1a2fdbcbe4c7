/* Batch normalisation in one type T of images of elements E, which VIEW, IN and PUT convert; included by
   normalization_batch.c for float, for double, and in float for bfloat16. */

/* --- rows: each channel of each sample is a plane of its own --------------------------------------------- */

static void OF(plane_variances)(const E *x, ptrdiff_t n, moments *m) {
    HELD(held, PIECE)
    for (ptrdiff_t from = 0; from < n; from += PIECE) {
        const ptrdiff_t count = n - from < PIECE ? n - from : PIECE, whole = count / LANES * LANES;
        const T *p = VIEW(held, x + from, count);
        T lanes[LANES] = {0};
        for (ptrdiff_t i = 0; i < whole; i += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] += p[i + l];
        for (ptrdiff_t i = whole; i < count; i++) lanes[i - whole] += p[i];
        double sum = 0;
        for (int l = 0; l < LANES; l++) sum += lanes[l];
        const T middle = (T)(sum / (double)count);
        T squares[LANES] = {0};
        for (ptrdiff_t i = 0; i < whole; i += LANES)
            for (int l = 0; l < LANES; l++) squares[l] += (p[i + l] - middle) * (p[i + l] - middle);
        for (ptrdiff_t i = whole; i < count; i++) squares[i - whole] += (p[i] - middle) * (p[i] - middle);
        double total = 0;
        for (int l = 0; l < LANES; l++) total += squares[l];
        merge(m, (double)count, middle, total);
    }
}

/* Add the sums of g and of g * (x - middle) to the two. */
static void OF(plane_sums)(const E *g, const E *x, T middle, ptrdiff_t n, double *sum, double *product) {
    HELD(of_g, PIECE)
    HELD(of_x, PIECE)
    for (ptrdiff_t from = 0; from < n; from += PIECE) {
        const ptrdiff_t count = n - from < PIECE ? n - from : PIECE, whole = count / LANES * LANES;
        const T *p = VIEW(of_g, g + from, count), *q = VIEW(of_x, x + from, count);
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
        for (int l = 0; l < LANES; l++) {
            *sum += sums[l];
            *product += products[l];
        }
    }
}

/* --- channels last: rows of channels --------------------------------------------------------------------- */

ALWAYS void OF(block_variances)(const T *x, ptrdiff_t rows, ptrdiff_t channels, int width, moments *m) {
    T sums[64] = {0}, middle[64], squares[64] = {0};
    for (ptrdiff_t r = 0; r < rows; r++)
        for (int j = 0; j < width; j++) sums[j] += x[r * channels + j];
    for (int j = 0; j < width; j++) middle[j] = sums[j] / (T)rows;
    for (ptrdiff_t r = 0; r < rows; r++)
        for (int j = 0; j < width; j++) {
            const T d = x[r * channels + j] - middle[j];
            squares[j] += d * d;
        }
    for (int j = 0; j < width; j++) merge(&m[j], (double)rows, middle[j], squares[j]);
}

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

static void OF(row_variances)(const E *x, ptrdiff_t rows, ptrdiff_t channels, moments *m) {
    HELD(held, 4 * PIECE)
    const ptrdiff_t piece = rows_of_a_piece(channels);
    for (ptrdiff_t r = 0; r < rows; r += piece) {
        const ptrdiff_t count = rows - r < piece ? rows - r : piece;
        const T *p = VIEW(held, x + r * channels, count * channels);
#define CALL(width) OF(block_variances)(p + at, count, channels, width, m + at)
        BLOCKS(channels, CALL);
#undef CALL
    }
}

static void OF(rows_sums)(const E *g, const E *x, const T *middle, ptrdiff_t rows, ptrdiff_t channels, double *sum,
                          double *product) {
    HELD(of_g, 4 * PIECE)
    HELD(of_x, 4 * PIECE)
    const ptrdiff_t piece = rows_of_a_piece(channels);
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
                for (ptrdiff_t n = 0; n < s->samples; n++)
                    OF(plane_variances)(x + (n * channels + c) * positions, positions, &m);
                OF(finish)(&m, f->eps, &mean[c], &rstd[c]);
                const T middle = mean[c];
                const T scale = rstd[c] * weight[c];
                const T shift = bias[c];
                for (ptrdiff_t n = 0; n < s->samples; n++) {
                    const E *from = x + (n * channels + c) * positions;
                    E *to = y + (n * channels + c) * positions;
                    INDEPENDENT for (ptrdiff_t i = 0; i < positions; i++) to[i] = PUT((IN(from[i]) - middle) * scale + shift);
                }
            }
        });
        return;
    }
    moments *parts = (moments *)s->workspace;
    TP_PARALLEL(s->threads, s->threads, begin, end, {
        for (ptrdiff_t part = begin; part < end; part++) {
            const ptrdiff_t first = rows * part / s->threads;
            moments *m = parts + part * channels;
            for (ptrdiff_t c = 0; c < channels; c++) m[c] = (moments){0, 0, 0};
            OF(row_variances)(x + first * channels, rows * (part + 1) / s->threads - first, channels, m);
        }
    });
    for (ptrdiff_t c = 0; c < channels; c++) {
        for (int part = 1; part < s->threads; part++) {
            const moments *m = &parts[part * channels + c];
            if (m->count > 0) merge(&parts[c], m->count, m->mean, m->squares);
        }
        OF(finish)(&parts[c], f->eps, &mean[c], &rstd[c]);
    }
    T *scale = (T *)s->workspace; /* the moments are no longer needed */
    for (ptrdiff_t c = 0; c < channels; c++) scale[c] = rstd[c] * weight[c];
    TP_PARALLEL(rows, s->threads, begin, end, {
        for (ptrdiff_t r = begin; r < end; r++) {
            const E *from = x + r * channels;
            E *to = y + r * channels;
            INDEPENDENT for (ptrdiff_t c = 0; c < channels; c++) to[c] = PUT((IN(from[c]) - mean[c]) * scale[c] + bias[c]);
        }
    });
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
                for (ptrdiff_t n = 0; n < s->samples; n++) {
                    const ptrdiff_t at = (n * channels + c) * positions;
                    OF(plane_sums)(g + at, x + at, middle, positions, &sum, &product);
                }
                const OF(line) l = OF(line_of)(k, c, count, sum, product);
                for (ptrdiff_t n = 0; n < s->samples; n++) {
                    const ptrdiff_t at = (n * channels + c) * positions;
                    INDEPENDENT for (ptrdiff_t i = at; i < at + positions; i++)
                        o[i] = PUT(l.a * IN(g[i]) + (l.b * (IN(x[i]) - middle) + l.c));
                }
            }
        });
        return;
    }
    TP_PARALLEL(s->threads, s->threads, begin, end, {
        for (ptrdiff_t part = begin; part < end; part++) {
            const ptrdiff_t first = rows * part / s->threads, from = first * channels;
            double *sum = s->workspace + 2 * part * channels;
            for (ptrdiff_t c = 0; c < 2 * channels; c++) sum[c] = 0;
            OF(rows_sums)(g + from, x + from, mean, rows * (part + 1) / s->threads - first, channels, sum,
                          sum + channels);
        }
    });
    double *sum = s->workspace;
    for (ptrdiff_t i = 0; i < 2 * channels; i++)
        for (int part = 1; part < s->threads; part++) sum[i] += sum[2 * part * channels + i];
    T *a = (T *)(s->workspace + 2 * s->threads * channels), *b = a + channels, *d = b + channels;
    for (ptrdiff_t c = 0; c < channels; c++) {
        const OF(line) l = OF(line_of)(k, c, count, sum[c], sum[channels + c]);
        a[c] = l.a;
        b[c] = l.b;
        d[c] = l.c;
    }
    TP_PARALLEL(rows, s->threads, begin, end, {
        for (ptrdiff_t r = begin; r < end; r++) {
            const E *p = g + r * channels, *q = x + r * channels;
            E *to = o + r * channels;
            INDEPENDENT for (ptrdiff_t c = 0; c < channels; c++)
                to[c] = PUT(a[c] * IN(p[c]) + (b[c] * (IN(q[c]) - mean[c]) + d[c]));
        }
    });
}
