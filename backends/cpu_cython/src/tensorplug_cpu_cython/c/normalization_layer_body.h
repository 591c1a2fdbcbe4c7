/* Normalisation for one type T; included by norms.c for float and for double. */

/* --- rows ------------------------------------------------------------------------------------------------ */

static void OF(statistics)(const T *x, ptrdiff_t n, int centred, double eps, T *mean, T *rstd) {
    const moments m = !n ? (moments){0, 0, 0} : centred ? OF(moments)(x, n) : (moments){0, 0, OF(squares)(x, n)};
    *mean = (T)m.mean;
    *rstd = (T)(1 / sqrt(m.squares / (double)n + eps));
}

/* The statistics of up to LANES short rows: one pass beside the first element, of which moments.h tells. */
static void OF(short_statistics)(const T *x, ptrdiff_t n, ptrdiff_t count, int centred, double eps, T *mean, T *rstd) {
    double first[LANES] = {0}, sums[LANES] = {0}, squares[LANES] = {0};
    if (centred)
        for (ptrdiff_t l = 0; l < count; l++) first[l] = x[l * n];
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t l = 0; l < count; l++) {
            const double d = x[l * n + i] - first[l];
            sums[l] += d;
            squares[l] += d * d;
        }
    for (ptrdiff_t l = 0; l < count; l++) {
        const double off = centred ? sums[l] / (double)n : 0;
        mean[l] = (T)(first[l] + off);
        rstd[l] = (T)(1 / sqrt((squares[l] - off * sums[l]) / (double)n + eps));
    }
}

/* The statistics of row r, of those from `begin` to `end` that are gone through in order; `means` and `rstds` are
   of the present LANES short ones. */
static inline void OF(statistics_of)(const tp_norm_rows *s, const T *x, ptrdiff_t r, ptrdiff_t begin, ptrdiff_t end,
                                     T *means, T *rstds, T *mean, T *rstd) {
    const ptrdiff_t lane = (r - begin) % LANES, count = end - r < LANES ? end - r : LANES;
    if (s->length > SHORT || s->length == 0) {
        OF(statistics)(x + r * s->length, s->length, s->centred, s->eps, mean, rstd);
        return;
    }
    if (!lane) OF(short_statistics)(x + r * s->length, s->length, count, s->centred, s->eps, means, rstds);
    *mean = means[lane];
    *rstd = rstds[lane];
}

static void OF(rows)(const tp_norm_rows *s, const void *x_, const void *weight_, const void *bias_, void *y_) {
    const T *x = x_, *weight = weight_, *bias = bias_;
    T *y = y_;
    const ptrdiff_t n = s->length, repeat = s->repeat;
    TP_PARALLEL(s->rows, s->threads, begin, end, {
        T means[LANES];
        T rstds[LANES];
        for (ptrdiff_t r = begin; r < end; r++) {
            const T *from = x + r * n;
            T *to = y + r * n;
            T mean;
            T rstd;
            OF(statistics_of)(s, x, r, begin, end, means, rstds, &mean, &rstd);
            const ptrdiff_t first = weight ? r * n / repeat % s->weights : 0;
            const T *w = weight ? weight + first : NULL;
            const T *b = bias ? bias + first : NULL;
            if (!w) {
                INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) to[i] = (from[i] - mean) * rstd;
            } else if (repeat > 1) {
                for (ptrdiff_t c = 0; c < n / repeat; c++) {
                    const T scale = rstd * w[c];
                    const T shift = b ? b[c] : 0;
                    INDEPENDENT for (ptrdiff_t i = c * repeat; i < (c + 1) * repeat; i++)
                        to[i] = (from[i] - mean) * scale + shift;
                }
            } else if (b) {
                INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) to[i] = (from[i] - mean) * rstd * w[i] + b[i];
            } else {
                INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) to[i] = (from[i] - mean) * rstd * w[i];
            }
        }
    });
}

static void OF(row_statistics)(const tp_norm_rows *s, const void *x_, void *mean_, void *rstd_) {
    const T *x = x_;
    T *mean = mean_, *rstd = rstd_;
    TP_PARALLEL(s->rows, s->threads, begin, end, {
        T means[LANES];
        T rstds[LANES];
        for (ptrdiff_t r = begin; r < end; r++) OF(statistics_of)(s, x, r, begin, end, means, rstds, mean + r, rstd + r);
    });
}

/* With the row's x̂ = (x - mean) rstd and h = g weight, the gradient of x is
   rstd (h - mean(h) - x̂ mean(h x̂)); of the weight it is g x̂, and of the bias g, summed over rows. */
typedef struct { T scale, along, constant; } OF(slopes);

static OF(slopes) OF(slopes_of)(T rstd, double along, double constant, ptrdiff_t n, int centred) {
    const double r = rstd, count = (double)n;
    return (OF(slopes)){rstd, (T)(r * r * r * along / count), centred ? (T)(r * constant / count) : 0};
}

/* Lanes and what brings them together are not worth their while for a short row. */
#define BOTH_OF_A_ROW(n, first, of_first, second, of_second)                                           \
    double first = 0;                                                                                  \
    double second = 0;                                                                                 \
    if ((n) <= SHORT) {                                                                                \
        for (ptrdiff_t i = 0; i < (n); i++) {                                                          \
            first += (double)(of_first);                                                               \
            second += (double)(of_second);                                                             \
        }                                                                                              \
    } else {                                                                                           \
        SUM_BOTH(T, n, one, of_first, other, of_second)                                                \
        first = one;                                                                                   \
        second = other;                                                                                \
    }

static void OF(plain_row_backward)(const T *g, const T *x, T *o, ptrdiff_t n, T mean, T rstd, int centred) {
    BOTH_OF_A_ROW(n, along, g[i] * (x[i] - mean), constant, g[i])
    const OF(slopes) k = OF(slopes_of)(rstd, along, constant, n, centred);
    INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) o[i] = g[i] * k.scale - (x[i] - mean) * k.along - k.constant;
}

static void OF(row_backward)(const T *g, const T *x, const T *w, T *o, ptrdiff_t n, T mean, T rstd, int centred,
                             T *g_weight, T *g_bias) {
    BOTH_OF_A_ROW(n, along, g[i] * w[i] * (x[i] - mean), constant, g[i] * w[i])
    const OF(slopes) k = OF(slopes_of)(rstd, along, constant, n, centred);
    INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {
        const T distance = x[i] - mean;
        g_weight[i] += g[i] * (distance * rstd);
        g_bias[i] += g[i];
        o[i] = g[i] * w[i] * k.scale - distance * k.along - k.constant;
    }
}

/* A row in which each weight counts for several elements. */
static void OF(runs_backward)(const T *g, const T *x, const T *w, T *o, ptrdiff_t n, ptrdiff_t repeat, T mean,
                              T rstd, int centred, double *g_weight, double *g_bias) {
    double along = 0;
    double constant = 0;
    for (ptrdiff_t c = 0; c < n / repeat; c++) {
        const T *p = g + c * repeat;
        const T *q = x + c * repeat;
        BOTH_OF_A_ROW(repeat, product, p[i] * (q[i] - mean), sum, p[i])
        g_weight[c] += product * rstd;
        g_bias[c] += sum;
        along += w[c] * product;
        constant += w[c] * sum;
    }
    const OF(slopes) k = OF(slopes_of)(rstd, along, constant, n, centred);
    for (ptrdiff_t c = 0; c < n / repeat; c++) {
        const T scale = k.scale * w[c];
        INDEPENDENT for (ptrdiff_t i = c * repeat; i < (c + 1) * repeat; i++)
            o[i] = g[i] * scale - (x[i] - mean) * k.along - k.constant;
    }
}

/* Move sums of so many numbers on into those in double. */
static void OF(flush)(T *some, double *total, ptrdiff_t count) {
    INDEPENDENT for (ptrdiff_t i = 0; i < count; i++) {
        total[i] += some[i];
        some[i] = 0;
    }
}

/* Add up the pieces' sums, each of which is followed by as much room. */
static void OF(gather)(const double *parts, ptrdiff_t pieces, ptrdiff_t count, T *g_weight, T *g_bias) {
    for (ptrdiff_t j = 0; j < 2 * count; j++) {
        double total = 0;
        for (ptrdiff_t piece = 0; piece < pieces; piece++) total += parts[4 * piece * count + j];
        if (j < count) g_weight[j] = (T)total;
        else g_bias[j - count] = (T)total;
    }
}

static void OF(rows_gradient)(const tp_norm_rows *s, const void *g_, const void *x_, const void *weight_,
                              void *o_, void *g_weight, void *g_bias) {
    const T *g = g_, *x = x_, *weight = weight_;
    T *o = o_;
    const ptrdiff_t n = s->length, repeat = s->repeat, count = s->weights;
    TP_PARALLEL(s->pieces, s->threads, begin, end, {
        for (ptrdiff_t piece = begin; piece < end; piece++) {
            double *total = s->workspace + 4 * piece * count;
            T *some = (T *)(total + 2 * count);
            for (ptrdiff_t i = 0; i < 2 * count; i++) { total[i] = 0; some[i] = 0; }
            ptrdiff_t deep = 0;
            const ptrdiff_t first = s->rows * piece / s->pieces;
            const ptrdiff_t last = s->rows * (piece + 1) / s->pieces;
            T means[LANES];
            T rstds[LANES];
            for (ptrdiff_t r = first; r < last; r++) {
                const ptrdiff_t at = r * n;
                T mean;
                T rstd;
                OF(statistics_of)(s, x, r, first, last, means, rstds, &mean, &rstd);
                if (!weight) {
                    OF(plain_row_backward)(g + at, x + at, o + at, n, mean, rstd, s->centred);
                    continue;
                }
                const ptrdiff_t k = at / repeat % count;
                if (repeat > 1) {
                    OF(runs_backward)(g + at, x + at, weight + k, o + at, n, repeat, mean, rstd, s->centred,
                                      total + k, total + count + k);
                    continue;
                }
                OF(row_backward)(g + at, x + at, weight + k, o + at, n, mean, rstd, s->centred, some + k,
                                 some + count + k);
                if (++deep == DEEP) {
                    OF(flush)(some, total, 2 * count);
                    deep = 0;
                }
            }
            if (deep) OF(flush)(some, total, 2 * count);
        }
    });
    if (weight) OF(gather)(s->workspace, s->pieces, count, g_weight, g_bias);
}

#undef BOTH_OF_A_ROW

/* --- channels -------------------------------------------------------------------------------------------- */

/* Write 1 / deviation and what a channel is multiplied with. */
static void OF(scales)(const tp_norm_channels *s, const T *variance, const T *weight, T *rstd, T *scale) {
    for (ptrdiff_t c = 0; c < s->channels; c++) {
        rstd[c] = (T)(1 / sqrt((double)variance[c] + s->eps));
        scale[c] = weight ? rstd[c] * weight[c] : rstd[c];
    }
}

static void OF(channels)(const tp_norm_channels *s, const void *x_, const void *mean_, const void *variance,
                         const void *weight, const void *bias_, void *y_) {
    const T *x = x_, *mean = mean_, *bias = bias_;
    T *y = y_;
    const ptrdiff_t channels = s->channels, positions = s->positions;
    T *rstd = (T *)s->workspace, *scale = rstd + channels, *shift = scale + channels;
    OF(scales)(s, variance, weight, rstd, scale);
    for (ptrdiff_t c = 0; c < channels; c++) shift[c] = bias ? bias[c] : 0;
    if (s->channels_last) {
        TP_PARALLEL(s->samples * positions, s->threads, begin, end, {
            for (ptrdiff_t r = begin; r < end; r++) {
                const T *from = x + r * channels;
                T *to = y + r * channels;
                INDEPENDENT for (ptrdiff_t c = 0; c < channels; c++) to[c] = (from[c] - mean[c]) * scale[c] + shift[c];
            }
        });
        return;
    }
    TP_PARALLEL(s->samples * channels, s->threads, begin, end, {
        for (ptrdiff_t p = begin; p < end; p++) {
            const ptrdiff_t c = p % channels;
            const T middle = mean[c];
            const T a = scale[c];
            const T b = shift[c];
            INDEPENDENT for (ptrdiff_t i = p * positions; i < (p + 1) * positions; i++) y[i] = (x[i] - middle) * a + b;
        }
    });
}

static void OF(channels_backward)(const tp_norm_channels *s, const void *g_, const void *x_, const void *mean_,
                                  const void *variance, const void *weight, void *o_, void *g_weight_,
                                  void *g_bias_) {
    const T *g = g_, *x = x_, *mean = mean_;
    T *o = o_, *g_weight = g_weight_, *g_bias = g_bias_;
    const ptrdiff_t channels = s->channels, positions = s->positions, rows = s->samples * positions;
    double *parts = s->workspace + 4 * channels;
    T *rstd = (T *)s->workspace, *scale = rstd + channels;
    OF(scales)(s, variance, weight, rstd, scale);
    if (!s->channels_last) {
        TP_PARALLEL(channels, s->threads, begin, end, {
            for (ptrdiff_t c = begin; c < end; c++) {
                double products = 0;
                double sums = 0;
                const T a = scale[c];
                const T middle = mean[c];
                for (ptrdiff_t k = 0; k < s->samples; k++) {
                    const ptrdiff_t at = (k * channels + c) * positions;
                    INDEPENDENT for (ptrdiff_t i = at; i < at + positions; i++) o[i] = g[i] * a;
                    if (!g_weight) continue;
                    const T *p = g + at;
                    const T *q = x + at;
                    SUM_BOTH(T, positions, product, p[i] * (q[i] - middle), sum, p[i])
                    products += product;
                    sums += sum;
                }
                if (!g_weight) continue;
                g_weight[c] = (T)(products * rstd[c]);
                g_bias[c] = (T)sums;
            }
        });
        return;
    }
    TP_PARALLEL(s->pieces, s->threads, begin, end, {
        for (ptrdiff_t piece = begin; piece < end; piece++) {
            double *total = parts + 4 * piece * channels;
            T *product = (T *)(total + 2 * channels);
            T *sum = product + channels;
            for (ptrdiff_t i = 0; i < 2 * channels; i++) { total[i] = 0; product[i] = 0; }
            const ptrdiff_t last = rows * (piece + 1) / s->pieces;
            ptrdiff_t deep = 0;
            for (ptrdiff_t r = rows * piece / s->pieces; r < last; r++) {
                const T *p = g + r * channels;
                const T *q = x + r * channels;
                T *to = o + r * channels;
                INDEPENDENT for (ptrdiff_t c = 0; c < channels; c++) {
                    product[c] += p[c] * ((q[c] - mean[c]) * rstd[c]);
                    sum[c] += p[c];
                    to[c] = p[c] * scale[c];
                }
                if (++deep == DEEP || r == last - 1) {
                    OF(flush)(product, total, 2 * channels);
                    deep = 0;
                }
            }
        }
    });
    if (g_weight) OF(gather)(parts, s->pieces, channels, g_weight, g_bias);
}

/* --- unit vectors ---------------------------------------------------------------------------------------- */

/* Run the block for each vector, or for each block of columns, with `at` where it begins and `width` its columns. */
#define VECTORS(by_row, by_columns)                                                                    \
    if (after == 1) {                                                                                  \
        TP_PARALLEL(before, threads, begin, end, {                                                     \
            for (ptrdiff_t k = begin; k < end; k++) { const ptrdiff_t at = k * n; by_row }             \
        });                                                                                            \
        return;                                                                                        \
    }                                                                                                  \
    const ptrdiff_t blocks = (after + WIDTH - 1) / WIDTH;                                              \
    TP_PARALLEL(before * blocks, threads, begin, end, {                                                \
        for (ptrdiff_t k = begin; k < end; k++) {                                                      \
            const ptrdiff_t first = k % blocks * WIDTH;                                                \
            const ptrdiff_t at = k / blocks * n * after + first;                                       \
            const ptrdiff_t width = after - first < WIDTH ? after - first : WIDTH;                     \
            by_columns                                                                                 \
        }                                                                                              \
    });

static T OF(length_of)(double squares, double eps) {
    const double length = sqrt(squares);
    return (T)(length < eps ? eps : length); /* NaN stays */
}

/* x / l, where l is the length of x, or a constant below eps: its gradient is (g - y <g, y>) / l, or g / l. */
static void OF(unit_row)(const T *x, T *o, ptrdiff_t n, double eps) {
    SUM_ROW(T, n, squares, x[i] * x[i])
    const T length = OF(length_of)(squares, eps);
    INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) o[i] = x[i] / length;
}

static void OF(unit_row_backward)(const T *g, const T *x, T *o, ptrdiff_t n, double eps) {
    SUM_BOTH(T, n, squares, x[i] * x[i], along, g[i] * x[i])
    const T length = OF(length_of)(squares, eps);
    const T pull = sqrt(squares) < eps || squares == 0 ? 0 : (T)(along / ((double)length * length));
    INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) o[i] = (g[i] - x[i] * pull) / length;
}

static void OF(unit_columns)(const T *x, T *o, ptrdiff_t n, ptrdiff_t step, ptrdiff_t width, double eps) {
    double squares[WIDTH] = {0};
    T length[WIDTH];
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < width; j++) squares[j] += x[i * step + j] * x[i * step + j];
    for (ptrdiff_t j = 0; j < width; j++) length[j] = OF(length_of)(squares[j], eps);
    for (ptrdiff_t i = 0; i < n; i++)
        INDEPENDENT for (ptrdiff_t j = 0; j < width; j++) o[i * step + j] = x[i * step + j] / length[j];
}

static void OF(unit_columns_backward)(const T *g, const T *x, T *o, ptrdiff_t n, ptrdiff_t step, ptrdiff_t width,
                                      double eps) {
    double squares[WIDTH] = {0};
    double along[WIDTH] = {0};
    T length[WIDTH];
    T pull[WIDTH];
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < width; j++) {
            const T v = x[i * step + j];
            squares[j] += v * v;
            along[j] += v * g[i * step + j];
        }
    for (ptrdiff_t j = 0; j < width; j++) {
        length[j] = OF(length_of)(squares[j], eps);
        pull[j] = sqrt(squares[j]) < eps || squares[j] == 0 ? 0 : (T)(along[j] / ((double)length[j] * length[j]));
    }
    for (ptrdiff_t i = 0; i < n; i++)
        INDEPENDENT for (ptrdiff_t j = 0; j < width; j++)
            o[i * step + j] = (g[i * step + j] - x[i * step + j] * pull[j]) / length[j];
}

static void OF(unit)(const void *x_, void *o_, double eps, ptrdiff_t before, ptrdiff_t n, ptrdiff_t after,
                     int threads) {
    const T *x = x_;
    T *o = o_;
    VECTORS(OF(unit_row)(x + at, o + at, n, eps);, OF(unit_columns)(x + at, o + at, n, after, width, eps);)
}

static void OF(unit_backward)(const void *g_, const void *x_, void *o_, double eps, ptrdiff_t before, ptrdiff_t n,
                              ptrdiff_t after, int threads) {
    const T *g = g_, *x = x_;
    T *o = o_;
    VECTORS(OF(unit_row_backward)(g + at, x + at, o + at, n, eps);,
            OF(unit_columns_backward)(g + at, x + at, o + at, n, after, width, eps);)
}

#undef VECTORS
