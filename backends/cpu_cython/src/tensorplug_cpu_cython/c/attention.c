#include "attention.h"

#include <math.h>

#include "attention_products.h"
#include "parallel.h"
#include "vmath.h"

enum { ROWS = 128, COLUMNS = 256, LANES = 16 };

/* Take lanes together by halves, so that few of these steps wait for each other. */
#define HALVE(statement)                                                                               \
    _Pragma("GCC unroll 4") for (int half = LANES / 2; half; half /= 2)                                \
        for (int l = 0; l < half; l++) statement

static ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

static ptrdiff_t workspace_size(const tp_attention *a, int backward) {
    return (ptrdiff_t)ROWS * COLUMNS * (backward ? 2 : 1) + (backward ? a->length : 0);
}

/* The start of an array's rows for head number `head` of the batch. */
static ptrdiff_t offset(const tp_attention *a, const ptrdiff_t *strides, ptrdiff_t head) {
    ptrdiff_t sum = 0;
    for (int d = a->dims - 1; d >= 0; d--) {
        sum += head % a->shape[d] * strides[d];
        head /= a->shape[d];
    }
    return sum;
}

static float *rows_of(const tp_attention *a, const tp_head_rows *r, ptrdiff_t head, ptrdiff_t row) {
    return r->data + offset(a, r->heads, head) + row * r->row;
}

static ptrdiff_t count_heads(const tp_attention *a) {
    ptrdiff_t count = 1;
    for (int d = 0; d < a->dims; d++) count *= a->shape[d];
    return count;
}

/* Write alpha A B + beta C, of which A and B may be transposed, to C; beta is 0 or 1. Returns 0 if all went well. */
static int product(const tp_attention *a, int turn_a, int turn_b, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha,
                   const float *A, ptrdiff_t row_a, const float *B, ptrdiff_t row_b, float beta, float *C, ptrdiff_t row_c) {
    if (!is_small(m, n, k))
        return a->gemm(turn_a, turn_b, m, n, k, alpha, A, row_a, B, row_b, beta, C, row_c);
    small_product(turn_a, turn_b, m, n, k, alpha, A, row_a, B, row_b, beta, C, row_c);
    return 0;
}

/* Compute a block of scores: rows from `i`, columns from `j`, masked. Returns 0 if all went well. */
static int score(const tp_attention *a, ptrdiff_t head, ptrdiff_t i, ptrdiff_t rows, ptrdiff_t j,
                 ptrdiff_t columns, float *s) {
    if (product(a, 0, 1, rows, columns, a->size, a->scale, rows_of(a, &a->query, head, i), a->query.row,
                rows_of(a, &a->key, head, j), a->key.row, 0, s, columns))
        return 1;
    const ptrdiff_t masked = offset(a, a->mask_heads, head) + j * a->mask_column;
    for (ptrdiff_t r = 0; r < rows; r++) {
        float *row = s + r * columns;
        const ptrdiff_t at = masked + (i + r) * a->mask_row, step = a->mask_column;
        if (a->added)
            for (ptrdiff_t c = 0; c < columns; c++) row[c] += a->added[at + c * step];
        if (a->allowed)
            for (ptrdiff_t c = 0; c < columns; c++) row[c] = a->allowed[at + c * step] ? row[c] : -INFINITY;
        if (a->causal && i + r - j < columns - 1) { /* whole rows: loops of other lengths take longer */
            const int seen = (int)(i + r - j);
            for (int c = 0; c < (int)columns; c++) row[c] = c <= seen ? row[c] : -INFINITY;
        }
    }
    return 0;
}

static float largest(const float *x, ptrdiff_t n, float start) {
    ptrdiff_t i = 0;
    if (n >= LANES) {
        float lanes[LANES];
        for (int l = 0; l < LANES; l++) lanes[l] = x[l];
        for (i = LANES; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
        HALVE(lanes[l] = lanes[l + half] > lanes[l] ? lanes[l + half] : lanes[l]);
        start = lanes[0] > start ? lanes[0] : start;
    }
    for (; i < n; i++) start = x[i] > start ? x[i] : start;
    return start;
}

/* Turn a row of scores into exp(score - peak); returns their sum. */
static float raise(float *x, ptrdiff_t n, float peak) {
    float total = 0;
    INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) x[i] = m_exp_F32(x[i] - peak);
    ptrdiff_t i = 0;
    if (n >= LANES) {
        float lanes[LANES] = {0};
        for (; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] += x[i + l];
        HALVE(lanes[l] += lanes[l + half]);
        total = lanes[0];
    }
    for (; i < n; i++) total += x[i];
    return total;
}

static void scale_row(float *x, ptrdiff_t n, float factor) {
    for (ptrdiff_t i = 0; i < n; i++) x[i] *= factor;
}

/* One block of rows of one head. */
static int forward_rows(const tp_attention *a, ptrdiff_t head, ptrdiff_t i, ptrdiff_t rows, float *s) {
    float peak[ROWS], total[ROWS];
    float *output = rows_of(a, &a->output, head, i), *logsumexp = a->logsumexp + head * a->length + i;
    for (ptrdiff_t r = 0; r < rows; r++) {
        peak[r] = -INFINITY;
        total[r] = 0;
    }
    const ptrdiff_t seen = a->causal ? smaller(a->source, i + rows) : a->source;
    for (ptrdiff_t j = 0; j < seen; j += COLUMNS) {
        const ptrdiff_t columns = smaller(COLUMNS, seen - j);
        if (score(a, head, i, rows, j, columns, s)) return 1;
        for (ptrdiff_t r = 0; r < rows; r++) {
            float *row = s + r * columns;
            const float now = largest(row, columns, peak[r]);
            /* Where nothing may be seen yet, minus infinity less zero stays what it is. */
            const float sum = raise(row, columns, now == -INFINITY ? 0.0f : now);
            if (j && now != peak[r]) {
                const float shrink = m_exp_F32(peak[r] - now);
                total[r] *= shrink;
                scale_row(output + r * a->output.row, a->value_size, shrink);
            }
            total[r] += sum;
            peak[r] = now;
        }
        if (product(a, 0, 0, rows, a->value_size, columns, 1, s, columns, rows_of(a, &a->value, head, j),
                    a->value.row, j ? 1 : 0, output, a->output.row))
            return 1;
    }
    for (ptrdiff_t r = 0; r < rows; r++) {
        scale_row(output + r * a->output.row, a->value_size, total[r] == 0 ? 0.0f : 1 / total[r]);
        logsumexp[r] = peak[r] + logf(total[r]);
    }
    return 0;
}

static int forward(const tp_attention *a, float *workspace, int threads) {
    const ptrdiff_t heads = count_heads(a), each = workspace_size(a, 0);
    /* Smaller blocks where else there were too few to share, or a causal mask would waste work. */
    const ptrdiff_t rows = a->length <= 256 || a->causal ? 64 : ROWS;
    const ptrdiff_t blocks = (a->length + rows - 1) / rows;
    int failed = 0;
    TP_PARALLEL(threads, threads, begin, end, {
        for (ptrdiff_t team = begin; team < end; team++) {
            /* Every so many-th block, for with a causal mask the later ones are longer. */
            for (ptrdiff_t n = team; n < heads * blocks; n += threads) {
                const ptrdiff_t i = n % blocks * rows;
                if (forward_rows(a, n / blocks, i, smaller(rows, a->length - i), workspace + team * each))
                    failed = 1;
            }
        }
    });
    return failed;
}

/* What each row's gradients of scores are reduced by: rowsum(dO O) - the logsumexp's gradient. */
static void along_rows(const tp_attention *a, ptrdiff_t head, float *along) {
    for (ptrdiff_t i = 0; i < a->length; i++) {
        const float *g = rows_of(a, &a->g_output, head, i), *o = rows_of(a, &a->output, head, i);
        float lanes[LANES] = {0};
        ptrdiff_t c = 0;
        for (; c + LANES <= a->value_size; c += LANES)
            for (int l = 0; l < LANES; l++) lanes[l] += g[c + l] * o[c + l];
        for (; c < a->value_size; c++) lanes[0] += g[c] * o[c];
        HALVE(lanes[l] += lanes[l + half]);
        along[i] = lanes[0] - a->g_logsumexp[head * a->length + i];
    }
}

static void zero_rows(const tp_attention *a, const tp_head_rows *r, ptrdiff_t head, ptrdiff_t rows, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < rows; i++) {
        float *row = rows_of(a, r, head, i);
        for (ptrdiff_t c = 0; c < n; c++) row[c] = 0;
    }
}

static int backward_head(const tp_attention *a, ptrdiff_t head, float *space) {
    float *p = space, *ds = p + (ptrdiff_t)ROWS * COLUMNS, *along = ds + (ptrdiff_t)ROWS * COLUMNS;
    const float *logsumexp = a->logsumexp + head * a->length;
    const ptrdiff_t step = a->length <= 256 || a->causal ? 64 : ROWS;
    int failed = 0;
    along_rows(a, head, along);
    zero_rows(a, &a->g_query, head, a->length, a->size);
    zero_rows(a, &a->g_key, head, a->source, a->size);
    zero_rows(a, &a->g_value, head, a->source, a->value_size);
    for (ptrdiff_t j = 0; j < a->source; j += COLUMNS) {
        const ptrdiff_t columns = smaller(COLUMNS, a->source - j);
        const float *value = rows_of(a, &a->value, head, j), *key = rows_of(a, &a->key, head, j);
        float *g_key = rows_of(a, &a->g_key, head, j), *g_value = rows_of(a, &a->g_value, head, j);
        for (ptrdiff_t i = a->causal ? j / step * step : 0; i < a->length; i += step) {
            const ptrdiff_t rows = smaller(step, a->length - i);
            const ptrdiff_t seen = a->causal ? smaller(columns, i + rows - j) : columns;
            const float *g = rows_of(a, &a->g_output, head, i);
            failed |= score(a, head, i, rows, j, seen, p);
            for (ptrdiff_t r = 0; r < rows; r++) {
                const float total = logsumexp[i + r] == -INFINITY ? 0.0f : logsumexp[i + r];
                float *row = p + r * seen;
                INDEPENDENT for (ptrdiff_t c = 0; c < seen; c++) row[c] = m_exp_F32(row[c] - total);
            }
            failed |= product(a, 1, 0, seen, a->value_size, rows, 1, p, seen, g, a->g_output.row, 1, g_value,
                              a->g_value.row);
            failed |= product(a, 0, 1, rows, seen, a->value_size, 1, g, a->g_output.row, value, a->value.row, 0, ds,
                              seen);
            for (ptrdiff_t r = 0; r < rows; r++) {
                float *row = ds + r * seen;
                const float *weights = p + r * seen;
                for (ptrdiff_t c = 0; c < seen; c++) row[c] = weights[c] * (row[c] - along[i + r]);
            }
            failed |= product(a, 0, 0, rows, a->size, seen, a->scale, ds, seen, key, a->key.row, 1,
                              rows_of(a, &a->g_query, head, i), a->g_query.row);
            failed |= product(a, 1, 0, seen, a->size, rows, a->scale, ds, seen, rows_of(a, &a->query, head, i),
                              a->query.row, 1, g_key, a->g_key.row);
        }
    }
    return failed;
}

static int backward(const tp_attention *a, float *workspace, int threads) {
    const ptrdiff_t each = workspace_size(a, 1);
    const ptrdiff_t heads = count_heads(a);
    int failed = 0;
    TP_PARALLEL(threads, threads, begin, end, {
        for (ptrdiff_t team = begin; team < end; team++)
            for (ptrdiff_t head = team; head < heads; head += threads)
                if (backward_head(a, head, workspace + team * each)) failed = 1;
    });
    return failed;
}

const tp_attention_kernels LEVEL(tp_attention_table) = {workspace_size, forward, backward};
