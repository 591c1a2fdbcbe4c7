/* The functions of linalg_tall.c for one type T. */

/* The product of two columns of a block: of one sum each step would wait for the one before. */
static inline T NAME(dot)(const T *one, const T *other) {
    enum { SUMS = 32 };
    T sums[SUMS] = {0};
    for (int i = 0; i < TP_TALL_ROWS; i += SUMS)
        for (int l = 0; l < SUMS; l++) sums[l] += one[i + l] * other[i + l];
    for (int half = SUMS / 2; half; half /= 2)
        for (int l = 0; l < half; l++) sums[l] += sums[l + half];
    return sums[0];
}

/* Reflect a vector below `alpha` into that: leave the reflector, whose first element is 1, in its place. */
static T NAME(reflector)(T *alpha, T *x, ptrdiff_t n, ptrdiff_t step) {
    T squares = 0;
    if (n == TP_TALL_ROWS) squares = NAME(dot)(x, x); /* a column of a block */
    else
        for (ptrdiff_t i = 0; i < n; i++) squares += x[i * step] * x[i * step];
    if (squares == 0) return 0;
    const T norm = SQRT(*alpha * *alpha + squares), beta = *alpha > 0 ? -norm : norm;
    const T scale = 1 / (*alpha - beta), tau = (beta - *alpha) / beta;
    for (ptrdiff_t i = 0; i < n; i++) x[i * step] *= scale;
    *alpha = beta;
    return tau;
}

/* Make a square matrix triangular, and write the orthogonal one. */
static void NAME(begin)(T *r, T *q, int n) {
    for (int i = 0; i < n * n; i++) q[i] = i % (n + 1) == 0;
    for (int j = 0; j < n; j++) {
        T *v = r + (j + 1) * n + j; /* below the diagonal, n apart */
        const int below = n - 1 - j;
        const T tau = NAME(reflector)(r + j * n + j, v, below, n);
        for (int k = j + 1; k < n; k++) {
            T dot = r[j * n + k];
            for (int i = 0; i < below; i++) dot += v[i * n] * r[(j + 1 + i) * n + k];
            dot *= tau;
            r[j * n + k] -= dot;
            for (int i = 0; i < below; i++) r[(j + 1 + i) * n + k] -= dot * v[i * n];
        }
        for (int k = 0; k < n; k++) {
            T *row = q + k * n + j;
            T dot = row[0];
            for (int i = 0; i < below; i++) dot += v[i * n] * row[1 + i];
            dot *= tau;
            row[0] -= dot;
            for (int i = 0; i < below; i++) row[1 + i] -= dot * v[i * n];
        }
        for (int i = 0; i < below; i++) v[i * n] = 0;
    }
}

/* Write rows as columns. */
static inline __attribute__((always_inline)) void NAME(turn)(const T *restrict from, int columns, ptrdiff_t rows,
                                                             T *restrict block) {
    for (ptrdiff_t i = 0; i < rows; i++)
        for (int c = 0; c < columns; c++) block[c * TP_TALL_ROWS + i] = from[i * columns + c];
}

/* Write some rows as columns with zeros behind; return whether all numbers are in range. */
static int NAME(load)(const tp_tall_pair *pair, ptrdiff_t first, ptrdiff_t rows, T *block) {
    int out = 0;
    for (int which = 0; which < 2; which++) {
        const int columns = pair->columns[which];
        const T *from = (const T *)pair->data[which] + first * columns;
        switch (columns) { /* of few, the compiler makes shuffles */
        case 1: NAME(turn)(from, 1, rows, block); break;
        case 2: NAME(turn)(from, 2, rows, block); break;
        case 3: NAME(turn)(from, 3, rows, block); break;
        case 4: NAME(turn)(from, 4, rows, block); break;
        default:
            for (int c = 0; c < columns; c++)
                for (ptrdiff_t i = 0; i < rows; i++) block[c * TP_TALL_ROWS + i] = from[i * columns + c];
        }
        for (int c = 0; c < columns; c++, block += TP_TALL_ROWS) {
            for (ptrdiff_t i = rows; i < TP_TALL_ROWS; i++) block[i] = 0;
            for (ptrdiff_t i = 0; i < TP_TALL_ROWS; i++) out |= !(block[i] <= LIMIT) | !(block[i] >= -LIMIT);
        }
    }
    return !out;
}

static int NAME(reduce)(const tp_tall_pair *pair, void *into, void *kept) {
    const int n = pair->columns[0] + pair->columns[1];
    T first[TP_TALL_COLUMNS * TP_TALL_ROWS], q[TP_TALL_COLUMNS * TP_TALL_COLUMNS], taus[TP_TALL_COLUMNS];
    T *r = into, largest = 0;
    if (!NAME(load)(pair, 0, n, first)) return 0;
    for (int i = 0; i < n; i++)
        for (int c = 0; c < n; c++) r[i * n + c] = first[c * TP_TALL_ROWS + i];
    NAME(begin)(r, q, n);
    T *next = kept;
    if (kept) {
        memcpy(next, q, sizeof(T) * (size_t)(n * n));
        next += n * n;
    }
    for (ptrdiff_t start = n; start < pair->rows; start += TP_TALL_ROWS) {
        const ptrdiff_t rows = pair->rows - start < TP_TALL_ROWS ? pair->rows - start : TP_TALL_ROWS;
        T *block = kept ? next : first, *tau = kept ? next + TP_TALL_ROWS * n : taus;
        next += kept ? (TP_TALL_ROWS + 1) * n : 0;
        if (!NAME(load)(pair, start, rows, block)) return 0;
        for (int j = 0; j < n; j++) {
            T *v = block + j * TP_TALL_ROWS;
            tau[j] = NAME(reflector)(r + j * n + j, v, TP_TALL_ROWS, 1);
            for (int k = j + 1; k < n; k++) {
                T *y = block + k * TP_TALL_ROWS;
                const T dot = (NAME(dot)(v, y) + r[j * n + k]) * tau[j];
                r[j * n + k] -= dot;
                INDEPENDENT for (int i = 0; i < TP_TALL_ROWS; i++) y[i] -= dot * v[i];
            }
        }
    }
    for (int i = 0; i < n * n; i++) largest = FABS(r[i]) > largest ? FABS(r[i]) : largest;
    return largest == 0 || largest > SMALLEST;
}

/* Write -V z as rows, several at a time. Each is written in whole vectors, of which the next row overwrites the rest. */
static void NAME(expand_wide)(const T *restrict v, const T *restrict z, int n, T *restrict out) {
    enum { PER = VECTOR / sizeof(T), ROWS = 4 };
    T rows[ROWS][TP_TALL_COLUMNS];
    for (int first = 0; first < TP_TALL_ROWS; first += ROWS) {
        for (int c = 0; c < n; c += PER) {
            NAME(vector) sums[ROWS] = {{0}};
            for (int j = 0; j < n; j++) {
                const NAME(vector) factors = *(const NAME(vector) *)(z + j * TP_TALL_COLUMNS + c);
                for (int i = 0; i < ROWS; i++) sums[i] -= v[j * TP_TALL_ROWS + first + i] * factors;
            }
            for (int i = 0; i < ROWS; i++) memcpy(rows[i] + c, sums + i, VECTOR);
        }
        for (int i = 0; i < ROWS; i++, out += n)
            for (int c = 0; c < n; c += PER) memcpy(out + c, rows[i] + c, VECTOR);
    }
}

/* The same for few columns, of which a vector would hold many rows. */
static inline __attribute__((always_inline)) void NAME(expand_few)(const T *restrict v, const T *restrict z, int n,
                                                                   T *restrict out) {
    for (int i = 0; i < TP_TALL_ROWS; i++)
        for (int c = 0; c < n; c++) {
            T total = 0;
            for (int j = 0; j < n; j++) total -= v[j * TP_TALL_ROWS + i] * z[j * TP_TALL_COLUMNS + c];
            out[i * n + c] = total;
        }
}

static void NAME(expand_block)(const T *restrict v, const T *restrict z, int n, T *restrict out) {
    switch (n) {
    case 1: NAME(expand_few)(v, z, 1, out); break;
    case 2: NAME(expand_few)(v, z, 2, out); break;
    case 3: NAME(expand_few)(v, z, 3, out); break;
    default: NAME(expand_wide)(v, z, n, out);
    }
}

static void NAME(expand)(const void *kept, ptrdiff_t rows, int n, void *factor, void *into) {
    T *w = factor, *out = into;
    enum { WIDE = TP_TALL_COLUMNS };
    T t[TP_TALL_COLUMNS * TP_TALL_COLUMNS], z[TP_TALL_COLUMNS * WIDE] = {0};
    T y[TP_TALL_COLUMNS * TP_TALL_ROWS + TP_TALL_COLUMNS]; /* with room for what the last row's vector has too much */
    const ptrdiff_t blocks = (rows - n + TP_TALL_ROWS - 1) / TP_TALL_ROWS;
    for (ptrdiff_t b = blocks - 1; b >= 0; b--) {
        const T *block = (const T *)kept + n * n + b * (TP_TALL_ROWS + 1) * n, *tau = block + TP_TALL_ROWS * n;
        const ptrdiff_t start = n + b * TP_TALL_ROWS;
        const ptrdiff_t count = rows - start < TP_TALL_ROWS ? rows - start : TP_TALL_ROWS;
        /* The block's reflections are I - V t V^T, where V is I over what lies in the block (Schreiber and Van Loan). */
        for (int j = 0; j < n; j++) {
            T dots[TP_TALL_COLUMNS];
            for (int i = 0; i < j; i++) dots[i] = NAME(dot)(block + i * TP_TALL_ROWS, block + j * TP_TALL_ROWS);
            t[j * n + j] = tau[j];
            for (int i = 0; i < j; i++) {
                T total = 0;
                for (int l = i; l < j; l++) total += t[i * n + l] * dots[l];
                t[i * n + j] = -tau[j] * total;
            }
        }
        for (int i = 0; i < n; i++)
            for (int c = 0; c < n; c++) {
                T total = 0;
                for (int l = i; l < n; l++) total += t[i * n + l] * w[l * n + c];
                z[i * WIDE + c] = total;
            }
        for (int i = 0; i < n; i++)
            for (int c = 0; c < n; c++) w[i * n + c] -= z[i * WIDE + c];
        NAME(expand_block)(block, z, n, y);
        memcpy(out + start * n, y, sizeof(T) * (size_t)(count * n));
    }
    const T *q = kept;
    for (int i = 0; i < n; i++)
        for (int c = 0; c < n; c++) {
            T total = 0;
            for (int l = 0; l < n; l++) total += q[i * n + l] * w[l * n + c];
            out[i * n + c] = total;
        }
}
