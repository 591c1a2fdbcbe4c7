/* Jacobi's methods: cyclic rotations of a symmetric matrix (Golub and Van Loan, "Matrix Computations", 8.5), and
   one-sided ones, which make columns orthogonal (Demmel and Veselić, "Jacobi's method is more accurate than QR", 1992).
   Matrices are divided by powers of two about as large as they are first, so that no square overflows. */
#include "linalg_spectra.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { BESIDE = 16, SWEEPS = 40, MOST = TP_SPECTRUM };

#define SPECTRA(S, T)                                                                                  \
    typedef T S##_tile[MOST * MOST][BESIDE];                                                           \
    typedef T S##_lanes[BESIDE];                                                                       \
    /* Divide by powers of two about as large as the matrices; return whether all are finite. */       \
    static int scaled_##S(S##_tile m, S##_lanes scale, int size) {                                     \
        int finite = 1;                                                                                \
        memset(scale, 0, sizeof(S##_lanes));                                                           \
        for (int e = 0; e < size; e++)                                                                 \
            for (int j = 0; j < BESIDE; j++) scale[j] += ABS_##S(m[e][j]);                             \
        for (int j = 0; j < BESIDE; j++) {                                                             \
            finite &= scale[j] <= LARGEST_##S;                                                         \
            int exponent = 0;                                                                          \
            FREXP_##S(scale[j], &exponent);                                                            \
            scale[j] = scale[j] == 0 ? 1 : LDEXP_##S(1, exponent - 1);                                 \
        }                                                                                              \
        for (int e = 0; e < size; e++)                                                                 \
            for (int j = 0; j < BESIDE; j++) m[e][j] /= scale[j];                                      \
        return finite;                                                                                 \
    }                                                                                                  \
    static void identity_##S(S##_tile v, int n) {                                                      \
        memset(v, 0, (size_t)(n * n) * sizeof *v);                                                     \
        for (int i = 0; i < n; i++)                                                                    \
            for (int j = 0; j < BESIDE; j++) v[i * n + i][j] = 1;                                      \
    }                                                                                                  \
    /* The tangent, cosine and sine of the rotation that takes away what is between two. */            \
    static void rotation_##S(const S##_lanes p, const S##_lanes q, const S##_lanes between, const S##_lanes least,\
                             S##_lanes tangent, S##_lanes cosine, S##_lanes sine) {                    \
        INDEPENDENT for (int j = 0; j < BESIDE; j++) {                                                 \
            const T half = (q[j] - p[j]) / (2 * between[j]);                                           \
            const T found = (half < 0 ? -1 : 1) / (ABS_##S(half) + SQRT_##S(1 + half * half));         \
            const T t = ABS_##S(between[j]) > least[j] ? found : 0;                                    \
            const T c = 1 / SQRT_##S(1 + t * t);                                                       \
            tangent[j] = t;                                                                            \
            cosine[j] = c;                                                                             \
            sine[j] = t * c;                                                                           \
        }                                                                                              \
    }                                                                                                  \
    static void rotate_##S(S##_lanes a, S##_lanes b, const S##_lanes c, const S##_lanes s) {           \
        INDEPENDENT for (int j = 0; j < BESIDE; j++) {                                                 \
            const T x = a[j], y = b[j];                                                                \
            a[j] = c[j] * x - s[j] * y;                                                                \
            b[j] = s[j] * x + c[j] * y;                                                                \
        }                                                                                              \
    }                                                                                                  \
    static void sort_##S(const T *values, int *order, int n, int descending) {                         \
        for (int i = 0; i < n; i++) {                                                                  \
            int k = i;                                                                                 \
            for (; k > 0 && (descending ? values[order[k - 1]] < values[i] : values[order[k - 1]] > values[i]); k--)\
                order[k] = order[k - 1];                                                               \
            order[k] = i;                                                                              \
        }                                                                                              \
    }                                                                                                  \
    static int eigh_beside_##S(const T *a, T *values, T *vectors, int n, int upper, ptrdiff_t width) { \
        S##_tile m, v;                                                                                 \
        S##_lanes scale, least, c, s, t;                                                               \
        memset(m, 0, (size_t)(n * n) * sizeof *m);                                                     \
        for (ptrdiff_t j = 0; j < width; j++)                                                          \
            for (int i = 0; i < n; i++)                                                                \
                for (int k = i; k < n; k++)                                                            \
                    m[i * n + k][j] = m[k * n + i][j] = a[j * n * n + (upper ? i * n + k : k * n + i)];\
        if (!scaled_##S(m, scale, n * n)) return 0;                                                    \
        if (vectors) identity_##S(v, n);                                                               \
        for (int j = 0; j < BESIDE; j++) least[j] = EPS_##S * EPS_##S;                                 \
        int more = 1;                                                                                  \
        for (int sweep = 0; more && sweep < SWEEPS; sweep++) {                                         \
            S##_lanes largest = {0};                                                                   \
            for (int p = 0; p < n; p++)                                                                \
                for (int q = p + 1; q < n; q++) {                                                      \
                    T *between = m[p * n + q];                                                         \
                    for (int j = 0; j < BESIDE; j++)                                                   \
                        largest[j] = ABS_##S(between[j]) > largest[j] ? ABS_##S(between[j]) : largest[j];\
                    rotation_##S(m[p * n + p], m[q * n + q], between, least, t, c, s);                 \
                    for (int j = 0; j < BESIDE; j++) {                                                 \
                        m[p * n + p][j] -= t[j] * between[j];                                          \
                        m[q * n + q][j] += t[j] * between[j];                                          \
                        between[j] = 0;                                                                \
                    }                                                                                  \
                    for (int i = 0; i < n; i++) {                                                      \
                        if (i != p && i != q)                                                          \
                            rotate_##S(m[i < p ? i * n + p : p * n + i], m[i < q ? i * n + q : q * n + i], c, s);\
                        if (vectors) rotate_##S(v[i * n + p], v[i * n + q], c, s);                     \
                    }                                                                                  \
                }                                                                                      \
            more = 0;                                                                                  \
            for (int j = 0; j < BESIDE; j++) more |= largest[j] > EPS_##S / MOST;                      \
        }                                                                                              \
        if (more) return 0;                                                                            \
        for (ptrdiff_t j = 0; j < width; j++) {                                                        \
            T found[MOST];                                                                             \
            int order[MOST];                                                                           \
            for (int i = 0; i < n; i++) found[i] = m[i * n + i][j] * scale[j];                         \
            sort_##S(found, order, n, 0);                                                              \
            for (int r = 0; r < n; r++) {                                                              \
                values[j * n + r] = found[order[r]];                                                   \
                for (int i = 0; vectors && i < n; i++) vectors[(j * n + i) * n + r] = v[i * n + order[r]][j];\
            }                                                                                          \
        }                                                                                              \
        return 1;                                                                                      \
    }                                                                                                  \
    /* Make column `c` orthogonal to those before it, of all unit vectors from the one that is least among them. */\
    static void complete_##S(T q[MOST][MOST], int m, int c) {                                          \
        T best = -1;                                                                                   \
        for (int e = 0; e < m; e++) {                                                                  \
            T w[MOST] = {0}, norm = 0;                                                                 \
            w[e] = 1;                                                                                  \
            for (int again = 0; again < 2; again++)                                                    \
                for (int k = 0; k < c; k++) {                                                          \
                    T along = 0;                                                                       \
                    for (int i = 0; i < m; i++) along += q[k][i] * w[i];                               \
                    for (int i = 0; i < m; i++) w[i] -= along * q[k][i];                               \
                }                                                                                      \
            for (int i = 0; i < m; i++) norm += w[i] * w[i];                                           \
            if (norm <= best) continue;                                                                \
            best = norm;                                                                               \
            for (int i = 0; i < m; i++) q[c][i] = w[i] / SQRT_##S(norm);                               \
        }                                                                                              \
    }                                                                                                  \
    static int svd_beside_##S(const T *a, T *left, T *values, T *right, int rows, int columns, int whole,\
                              ptrdiff_t width) {                                                       \
        const int tall = rows >= columns, m = tall ? rows : columns, n = tall ? columns : rows;        \
        const int across = whole ? m : n; /* vectors of the longer side */                             \
        S##_tile u, v;                                                                                 \
        S##_lanes scale, norms[MOST];                                                                  \
        memset(u, 0, (size_t)(m * n) * sizeof *u);                                                     \
        for (ptrdiff_t j = 0; j < width; j++)                                                          \
            for (int i = 0; i < m; i++)                                                                \
                for (int k = 0; k < n; k++)                                                            \
                    u[i * n + k][j] = a[j * m * n + (tall ? i * n + k : k * m + i)];                   \
        if (!scaled_##S(u, scale, m * n)) return 0;                                                    \
        if (left) identity_##S(v, n);                                                                  \
        int more = 1;                                                                                  \
        for (int sweep = 0; more && sweep < SWEEPS; sweep++) {                                         \
            S##_lanes over = {0};                                                                      \
            for (int p = 0; p < n; p++)                                                                \
                for (int q = p + 1; q < n; q++) {                                                      \
                    S##_lanes of_p = {0}, of_q = {0}, between = {0}, least, t, c, s;                   \
                    for (int i = 0; i < m; i++)                                                        \
                        for (int j = 0; j < BESIDE; j++) {                                             \
                            const T x = u[i * n + p][j], y = u[i * n + q][j];                          \
                            of_p[j] += x * x;                                                          \
                            of_q[j] += y * y;                                                          \
                            between[j] += x * y;                                                       \
                        }                                                                              \
                    for (int j = 0; j < BESIDE; j++) {                                                 \
                        const T smaller = of_p[j] < of_q[j] ? of_p[j] : of_q[j];                       \
                        const T found = EPS_##S * SQRT_##S(of_p[j]) * SQRT_##S(of_q[j]);               \
                        least[j] = smaller > LEAST_##S * LEAST_##S ? found : 1;                        \
                        const T excess = ABS_##S(between[j]) - 3 * least[j];                           \
                        over[j] = excess > over[j] ? excess : over[j];                                 \
                    }                                                                                  \
                    rotation_##S(of_p, of_q, between, least, t, c, s);                                 \
                    for (int i = 0; i < m; i++) rotate_##S(u[i * n + p], u[i * n + q], c, s);          \
                    for (int i = 0; left && i < n; i++) rotate_##S(v[i * n + p], v[i * n + q], c, s);  \
                }                                                                                      \
            more = 0;                                                                                  \
            for (int j = 0; j < BESIDE; j++) more |= over[j] > 0;                                      \
        }                                                                                              \
        if (more) return 0;                                                                            \
        for (int k = 0; k < n; k++) {                                                                  \
            memset(norms[k], 0, sizeof norms[k]);                                                      \
            for (int i = 0; i < m; i++)                                                                \
                for (int j = 0; j < BESIDE; j++) norms[k][j] += u[i * n + k][j] * u[i * n + k][j];     \
            for (int j = 0; j < BESIDE; j++) norms[k][j] = SQRT_##S(norms[k][j]);                      \
        }                                                                                              \
        for (ptrdiff_t j = 0; j < width; j++) {                                                        \
            T found[MOST], longer[MOST][MOST];                                                         \
            int order[MOST];                                                                           \
            for (int k = 0; k < n; k++) found[k] = norms[k][j];                                        \
            sort_##S(found, order, n, 1);                                                              \
            for (int r = 0; r < n; r++) values[j * n + r] = found[order[r]] * scale[j];                \
            if (!left) continue;                                                                       \
            for (int r = 0; r < across; r++) {                                                         \
                if (r < n && found[order[r]] > LEAST_##S)                                              \
                    for (int i = 0; i < m; i++) longer[r][i] = u[i * n + order[r]][j] / found[order[r]];\
                else                                                                                   \
                    complete_##S(longer, m, r);                                                        \
            }                                                                                          \
            for (int r = 0; r < across; r++)                                                           \
                for (int i = 0; i < m; i++) {                                                          \
                    if (tall) left[(j * m + i) * across + r] = longer[r][i];                           \
                    else right[(j * across + r) * m + i] = longer[r][i];                               \
                }                                                                                      \
            for (int r = 0; r < n; r++)                                                                \
                for (int i = 0; i < n; i++) {                                                          \
                    if (tall) right[(j * n + r) * n + i] = v[i * n + order[r]][j];                     \
                    else left[(j * n + i) * n + r] = v[i * n + order[r]][j];                           \
                }                                                                                      \
        }                                                                                              \
        return 1;                                                                                      \
    }                                                                                                  \
    static int eigh_##S(const void *a, void *values, void *vectors, int n, int upper, ptrdiff_t count) {\
        for (ptrdiff_t at = 0; at < count; at += BESIDE)                                               \
            if (!eigh_beside_##S((const T *)a + at * n * n, (T *)values + at * n,                      \
                                 vectors ? (T *)vectors + at * n * n : NULL, n, upper,                 \
                                 count - at < BESIDE ? count - at : BESIDE))                           \
                return 0;                                                                              \
        return 1;                                                                                      \
    }                                                                                                  \
    static int svd_##S(const void *a, void *u, void *values, void *vh, int rows, int columns, int whole,\
                       ptrdiff_t count) {                                                              \
        const int least = rows < columns ? rows : columns;                                             \
        const ptrdiff_t of_u = rows * (whole ? rows : least), of_v = columns * (whole ? columns : least);\
        for (ptrdiff_t at = 0; at < count; at += BESIDE)                                               \
            if (!svd_beside_##S((const T *)a + at * rows * columns, u ? (T *)u + at * of_u : NULL,     \
                                (T *)values + at * least, u ? (T *)vh + at * of_v : NULL, rows, columns, whole,\
                                count - at < BESIDE ? count - at : BESIDE))                            \
                return 0;                                                                              \
        return 1;                                                                                      \
    }
#define ABS_F32 fabsf
#define ABS_F64 fabs
#define FREXP_F32 frexpf
#define FREXP_F64 frexp
#define LDEXP_F32 ldexpf
#define LDEXP_F64 ldexp
#define SQRT_F32 sqrtf
#define SQRT_F64 sqrt
#define EPS_F32 FLT_EPSILON
#define EPS_F64 DBL_EPSILON
/* Columns that are shorter are taken for zero: the squares of longer ones are normal numbers. */
#define LEAST_F32 1e-15F
#define LEAST_F64 1e-140
#define LARGEST_F32 FLT_MAX
#define LARGEST_F64 DBL_MAX
SPECTRA(F32, float)
SPECTRA(F64, double)

const tp_spectra LEVEL(tp_spectrum_table) = {.eigh = {eigh_F32, eigh_F64}, .svd = {svd_F32, svd_F64}};
