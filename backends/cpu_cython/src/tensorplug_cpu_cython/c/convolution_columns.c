#include "convolution_columns.h"

#include <string.h>

#include "parallel.h"

/* In one dimension, where a place of the kernel sees the image: elements at `first + i * stride`, i from `low` to `high`. */
typedef struct { ptrdiff_t first, low, high; } seen;

static seen seen_along(const tp_windows *w, int d, ptrdiff_t at) {
    const ptrdiff_t step = w->stride[d], first = at * w->dilation[d] - w->before[d];
    ptrdiff_t low = first >= 0 ? 0 : (step - 1 - first) / step;
    ptrdiff_t high = first >= w->size[d] ? 0 : (w->size[d] - 1 - first) / step + 1;
    if (low < w->begins[d]) low = w->begins[d];
    if (high > w->ends[d]) high = w->ends[d];
    return (seen){first, low, high < low ? low : high};
}

static ptrdiff_t span(const tp_windows *w, int d) { return w->ends[d] - w->begins[d]; }

/* Run the block for each row of the channels from `begin` to `end`, with the places `z`, `y` and `x` that it sees. */
#define FOR_ROWS(...)                                                                                  \
    const ptrdiff_t places = span(w, 0) * span(w, 1) * span(w, 2);                                     \
    const ptrdiff_t height = span(w, 1), width = span(w, 2), step = w->stride[2];                      \
    const ptrdiff_t plane = w->size[0] * w->size[1] * w->size[2], window = w->kernel[0] * w->kernel[1] * w->kernel[2]; \
    TP_PARALLEL(w->channels, w->threads, begin, end, {                                                 \
        for (ptrdiff_t c = begin; c < end; c++)                                                        \
            for (ptrdiff_t k = 0; k < window; k++) {                                                   \
                const seen z = seen_along(w, 0, k / (w->kernel[1] * w->kernel[2]));                    \
                const seen y = seen_along(w, 1, k / w->kernel[2] % w->kernel[1]);                      \
                const seen x = seen_along(w, 2, k % w->kernel[2]);                                     \
                for (ptrdiff_t n = 0; n < w->samples; n++) __VA_ARGS__                                 \
            }                                                                                          \
    });

#define COLUMNS(S, T)                                                                                  \
    static void spread_##S(const tp_windows *w, const void *image_, void *columns_) {                  \
        FOR_ROWS({                                                                                     \
            const T *image = (const T *)image_ + (n * w->channels + c) * plane;                        \
            T *to = (T *)columns_ + (c * window + k) * w->row + n * places;                            \
            for (ptrdiff_t i = w->begins[0]; i < w->ends[0]; i++) {                                        \
                if (i < z.low || i >= z.high) {                                                        \
                    memset(to, 0, (size_t)(height * width) * sizeof(T));                               \
                    to += height * width;                                                              \
                    continue;                                                                          \
                }                                                                                      \
                for (ptrdiff_t j = w->begins[1]; j < w->ends[1]; j++, to += width) {                       \
                    if (j < y.low || j >= y.high) {                                                    \
                        for (ptrdiff_t l = 0; l < width; l++) to[l] = 0;                               \
                        continue;                                                                      \
                    }                                                                                  \
                    const T *from = image + ((z.first + i * w->stride[0]) * w->size[1] + y.first + j * w->stride[1]) \
                                                * w->size[2] + x.first;                                \
                    T *at = to - w->begins[2];                                                           \
                    for (ptrdiff_t l = w->begins[2]; l < x.low; l++) at[l] = 0;                          \
                    if (step == 1)                                                                     \
                        INDEPENDENT for (ptrdiff_t l = x.low; l < x.high; l++) at[l] = from[l];        \
                    else                                                                               \
                        INDEPENDENT for (ptrdiff_t l = x.low; l < x.high; l++) at[l] = from[l * step]; \
                    for (ptrdiff_t l = x.high; l < w->ends[2]; l++) at[l] = 0;                           \
                }                                                                                      \
            }                                                                                          \
        })                                                                                             \
    }                                                                                                  \
    static void collect_##S(const tp_windows *w, const void *columns_, void *image_) {                 \
        FOR_ROWS({                                                                                     \
            T *image = (T *)image_ + (n * w->channels + c) * plane;                                    \
            const T *from = (const T *)columns_ + (c * window + k) * w->row + n * places;              \
            for (ptrdiff_t i = z.low; i < z.high; i++)                                                 \
                for (ptrdiff_t j = y.low; j < y.high; j++) {                                           \
                    T *to = image + ((z.first + i * w->stride[0]) * w->size[1] + y.first + j * w->stride[1]) \
                                        * w->size[2] + x.first;                                        \
                    const T *at = from + ((i - w->begins[0]) * height + j - w->begins[1]) * width - w->begins[2]; \
                    if (step == 1)                                                                     \
                        INDEPENDENT for (ptrdiff_t l = x.low; l < x.high; l++) to[l] += at[l];         \
                    else                                                                               \
                        INDEPENDENT for (ptrdiff_t l = x.low; l < x.high; l++) to[l * step] += at[l];  \
                }                                                                                      \
        })                                                                                             \
    }                                                                                                  \
    static void place_##S(const tp_rows *r, const void *from_, const void *bias, void *to_) {          \
        TP_PARALLEL(r->samples * r->rows, r->threads, begin, end, {                                    \
            for (ptrdiff_t p = begin; p < end; p++) {                                                  \
                const ptrdiff_t n = p / r->rows;                                                       \
                const ptrdiff_t k = p % r->rows;                                                       \
                const T *from = (const T *)from_ + n * r->from_sample + k * r->from_row;               \
                const T more = bias ? ((const T *)bias)[k] : 0;                                        \
                T *to = (T *)to_ + n * r->to_sample + k * r->to_row;                                   \
                if (!bias) INDEPENDENT for (ptrdiff_t i = 0; i < r->length; i++) to[i] = from[i];      \
                else INDEPENDENT for (ptrdiff_t i = 0; i < r->length; i++) to[i] = from[i] + more;     \
            }                                                                                          \
        });                                                                                            \
    }
COLUMNS(F32, float)
COLUMNS(F64, double)

const tp_column_kernels LEVEL(tp_column_table) = {
    .spread = {spread_F32, spread_F64},
    .collect = {collect_F32, collect_F64},
    .place = {place_F32, place_F64},
};
