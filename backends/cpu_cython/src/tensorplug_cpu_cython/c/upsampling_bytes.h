/* Images of bytes resampled, along the last dimension first: rounded to bytes after each, as torch does. */
#ifndef TENSORPLUG_UPSAMPLING_BYTES_H
#define TENSORPLUG_UPSAMPLING_BYTES_H

#include <stdlib.h>
#include <string.h>

#include "parallel.h"
#include "upsampling.h"

/* The nearest byte to each of some sums of products with weights of so many bits after the point. */
static void bytes_of(const int32_t *sums, ptrdiff_t n, int bits, uint8_t *o) {
    INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) {
        const int32_t whole = sums[i] >> bits;
        o[i] = (uint8_t)(whole < 0 ? 0 : whole > 255 ? 255 : whole);
    }
}

/* A row resampled. Taps stand outside, so that the compiler gathers many elements of the row at once. */
static void bytes_along(const tp_upsampling *s, const uint8_t *x, int32_t *wide, int32_t *sums, uint8_t *o) {
    const ptrdiff_t n = s->where[2], taps = s->taps[2];
    const int32_t *at = s->at[2], *w = s->weight[2], half = s->bits[2] ? 1 << (s->bits[2] - 1) : 0;
    if (taps == 1) { /* of which the weight is one */
        for (ptrdiff_t i = 0; i < n; i++) o[i] = x[at[i]];
        return;
    }
    INDEPENDENT for (ptrdiff_t i = 0; i < s->size[2]; i++) wide[i] = x[i];
    if (taps == 4) { /* two passes less over the sums */
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++)
            sums[i] = half + w[i] * wide[at[i]] + w[n + i] * wide[at[n + i]] +
                      w[2 * n + i] * wide[at[2 * n + i]] + w[3 * n + i] * wide[at[3 * n + i]];
    } else {
        for (ptrdiff_t i = 0; i < n; i++) sums[i] = half;
        for (ptrdiff_t k = 0; k < taps; k++)
            INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) sums[i] += w[k * n + i] * wide[at[k * n + i]];
    }
    bytes_of(sums, n, s->bits[2], o);
}

/* Row y of the result: the sum of rows that are resampled already. */
static void bytes_down(const tp_upsampling *s, const uint8_t *rows, ptrdiff_t y, int32_t *sums, uint8_t *o) {
    const ptrdiff_t n = s->where[2], taps = s->taps[1];
    const int32_t half = s->bits[1] ? 1 << (s->bits[1] - 1) : 0;
    for (ptrdiff_t i = 0; i < n; i++) sums[i] = half;
    for (ptrdiff_t k = 0; k < taps; k++) {
        const int32_t w = ((const int32_t *)s->weight[1])[k * s->where[1] + y];
        if (!w) continue; /* what fills up shorter filters, too */
        const uint8_t *from = rows + s->at[1][k * s->where[1] + y] * n;
        INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) sums[i] += w * from[i];
    }
    bytes_of(sums, n, s->bits[1], o);
}

static void bytes_of_plane(const tp_upsampling *s, const uint8_t *x, int32_t *wide, uint8_t *rows, uint8_t *y) {
    const ptrdiff_t n = s->where[2];
    int32_t *sums = wide + s->size[2];
    if (s->taps[1] > 1) {
        for (ptrdiff_t r = 0; r < s->size[1]; r++)
            bytes_along(s, x + r * s->size[2], wide, sums, rows + r * n);
        for (ptrdiff_t r = 0; r < s->where[1]; r++) bytes_down(s, rows, r, sums, y + r * n);
        return;
    }
    for (ptrdiff_t r = 0; r < s->where[1]; r++) { /* which are rows of the image, often some times the same */
        const int32_t *at = s->at[1] + r;
        if (r && at[0] == at[-1])
            memcpy(y + r * n, y + (r - 1) * n, (size_t)n);
        else
            bytes_along(s, x + at[0] * s->size[2], wide, sums, y + r * n);
    }
}

static int forward_bytes(const tp_upsampling *s, const void *x_, void *y_) {
    int failed = 0;
    TP_PARALLEL(s->planes * s->where[0], s->threads, begin, end, {
        int32_t *wide = malloc((size_t)(s->size[2] + s->where[2]) * sizeof *wide);
        uint8_t *rows = malloc((size_t)(s->size[1] * s->where[2]));
        const int ready = wide && rows;
        if (!ready) failed = 1;
        for (ptrdiff_t p = begin; ready && p < end; p++) {
            const ptrdiff_t from = p / s->where[0] * s->size[0] + s->at[0][p % s->where[0]];
            bytes_of_plane(
                s, (const uint8_t *)x_ + from * s->size[1] * s->size[2], wide, rows,
                (uint8_t *)y_ + p * s->where[1] * s->where[2]
            );
        }
        free(wide);
        free(rows);
    });
    return !failed;
}

#endif
