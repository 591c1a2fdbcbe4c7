#include "linalg_small.h"

#include <float.h>
#include <math.h>

#include "vectors.h"

/* An element of a tile is that of so many matrices. Right sides are solved so many columns at a time. */
enum { BESIDE = 16, COLUMNS = 8 };

/* I is as wide as T. */
#define EQUATIONS(S, T, I)                                                                             \
    typedef T S##_tile[TP_SMALL * TP_SMALL][BESIDE];                                                   \
    typedef I S##_bits __attribute__((vector_size(VECTOR), aligned(sizeof(I)), may_alias));            \
    static void load_##S(T (*m)[BESIDE], const T *a, int size, ptrdiff_t width) {                      \
        if (width < BESIDE) memset(m, 0, (size_t)size * sizeof *m);                                    \
        for (ptrdiff_t j = 0; j < width; j++)                                                          \
            for (int e = 0; e < size; e++) m[e][j] = a[j * size + e];                                  \
    }                                                                                                  \
    static void factor_beside_##S(T *a, int *pivots, int *info, int rows, int n, ptrdiff_t width) {    \
        const int least = rows < n ? rows : n;                                                         \
        S##_tile m;                                                                                    \
        I zeros[BESIDE] = {0};                                                                         \
        load_##S(m, a, rows * n, width);                                                               \
        for (int k = 0; k < least; k++) {                                                              \
            T most[BESIDE], scale[BESIDE];                                                             \
            I chosen[BESIDE], any = 0;                                                                 \
            for (int j = 0; j < BESIDE; j++) {                                                         \
                most[j] = ABS_##S(m[k * n + k][j]);                                                    \
                chosen[j] = k;                                                                         \
            }                                                                                          \
            for (int i = k + 1; i < rows; i++)                                                         \
                for (int j = 0; j < BESIDE; j++) {                                                     \
                    const T other = ABS_##S(m[i * n + k][j]);                                          \
                    chosen[j] = other > most[j] ? i : chosen[j];                                       \
                    most[j] = other > most[j] ? other : most[j];                                       \
                }                                                                                      \
            for (int i = k + 1; i < rows; i++) {                                                       \
                I mask[BESIDE];                                                                        \
                for (int j = 0; j < BESIDE; j++) mask[j] = chosen[j] == i ? -1 : 0;                    \
                /* As bits, and as vectors: of choices the compiler makes branches, and of loops single steps. */\
                for (int c = 0; c < n; c++) {                                                          \
                    S##_bits *upper = (S##_bits *)m[k * n + c], *lower = (S##_bits *)m[i * n + c];     \
                    for (int v = 0; v < BESIDE * (int)sizeof(T) / VECTOR; v++) {                       \
                        const S##_bits turned = (upper[v] ^ lower[v]) & ((const S##_bits *)mask)[v];   \
                        upper[v] ^= turned;                                                            \
                        lower[v] ^= turned;                                                            \
                    }                                                                                  \
                }                                                                                      \
            }                                                                                          \
            for (ptrdiff_t j = 0; j < width; j++) pivots[j * least + k] = (int)chosen[j] + 1;          \
            for (int j = 0; j < BESIDE; j++) {                                                         \
                const T pivot = m[k * n + k][j];                                                       \
                zeros[j] = pivot == 0 && zeros[j] == 0 ? k + 1 : zeros[j];                             \
                scale[j] = 1 / pivot;                                                                  \
                any |= !(ABS_##S(pivot) >= LEAST_##S);                                                 \
            }                                                                                          \
            for (int i = k + 1; i < rows; i++) {                                                       \
                T held[BESIDE];                                                                        \
                for (int j = 0; j < BESIDE; j++) held[j] = m[i * n + k][j] * scale[j];                 \
                /* Where the pivot is zero, so are all below it, or NaN: nothing changes. That of a    \
                   subnormal one has an infinite reciprocal. */                                        \
                if (any) {                                                                             \
                    for (int j = 0; j < BESIDE; j++) {                                                 \
                        const T pivot = m[k * n + k][j], below = m[i * n + k][j];                      \
                        if (ABS_##S(pivot) < LEAST_##S) held[j] = pivot == 0 ? below : below / pivot;  \
                        m[i * n + k][j] = held[j];                                                     \
                    }                                                                                  \
                    for (int c = k + 1; c < n; c++)                                                    \
                        for (int j = 0; j < BESIDE; j++)                                               \
                            m[i * n + c][j] -= m[k * n + k][j] == 0 ? 0 : held[j] * m[k * n + c][j];   \
                } else {                                                                               \
                    memcpy(m[i * n + k], held, sizeof held);                                           \
                    for (int c = k + 1; c < n; c++)                                                    \
                        INDEPENDENT for (int j = 0; j < BESIDE; j++) m[i * n + c][j] -= held[j] * m[k * n + c][j];\
                }                                                                                      \
            }                                                                                          \
        }                                                                                              \
        for (ptrdiff_t j = 0; j < width; j++) {                                                        \
            info[j] = (int)zeros[j];                                                                   \
            for (int e = 0; e < rows * n; e++) a[j * rows * n + e] = m[e][j];                          \
        }                                                                                              \
    }                                                                                                  \
    static void solve_beside_##S(const T *a, const int *pivots, T *b, int n, ptrdiff_t columns, ptrdiff_t width) {\
        S##_tile m;                                                                                    \
        T x[TP_SMALL][COLUMNS][BESIDE];                                                                \
        int order[BESIDE][TP_SMALL];                                                                   \
        load_##S(m, a, n * n, width);                                                                  \
        for (ptrdiff_t j = width; j < BESIDE; j++)                                                     \
            for (int i = 0; i < n; i++) m[i * n + i][j] = 1;                                           \
        memset(x, 0, sizeof x);                                                                        \
        for (ptrdiff_t j = 0; j < width; j++) {                                                        \
            for (int i = 0; i < n; i++) order[j][i] = i;                                               \
            for (int i = 0; i < n; i++) {                                                              \
                const int other = pivots[j * n + i] - 1, held = order[j][i];                           \
                order[j][i] = order[j][other];                                                         \
                order[j][other] = held;                                                                \
            }                                                                                          \
        }                                                                                              \
        for (ptrdiff_t first = 0; first < columns; first += COLUMNS) {                                 \
            const int some = columns - first < COLUMNS ? (int)(columns - first) : COLUMNS;             \
            for (ptrdiff_t j = 0; j < width; j++)                                                      \
                for (int i = 0; i < n; i++)                                                            \
                    for (int c = 0; c < some; c++) x[i][c][j] = b[(j * n + order[j][i]) * columns + first + c];\
            for (int i = 0; i < n; i++)                                                                \
                for (int k = 0; k < i; k++)                                                            \
                    for (int c = 0; c < some; c++)                                                     \
                        INDEPENDENT for (int j = 0; j < BESIDE; j++) x[i][c][j] -= m[i * n + k][j] * x[k][c][j];\
            for (int i = n - 1; i >= 0; i--) {                                                         \
                for (int k = i + 1; k < n; k++)                                                        \
                    for (int c = 0; c < some; c++)                                                     \
                        INDEPENDENT for (int j = 0; j < BESIDE; j++) x[i][c][j] -= m[i * n + k][j] * x[k][c][j];\
                for (int c = 0; c < some; c++)                                                         \
                    for (int j = 0; j < BESIDE; j++) x[i][c][j] /= m[i * n + i][j];                    \
            }                                                                                          \
            for (ptrdiff_t j = 0; j < width; j++)                                                      \
                for (int i = 0; i < n; i++)                                                            \
                    for (int c = 0; c < some; c++) b[(j * n + i) * columns + first + c] = x[i][c][j];  \
        }                                                                                              \
    }                                                                                                  \
    static void factor_##S(void *a, int *pivots, int *info, int rows, int n, ptrdiff_t count) {        \
        for (ptrdiff_t at = 0; at < count; at += BESIDE)                                               \
            factor_beside_##S((T *)a + at * rows * n, pivots + at * (rows < n ? rows : n), info + at, rows, n,\
                              count - at < BESIDE ? count - at : BESIDE);                              \
    }                                                                                                  \
    static void solve_##S(const void *a, const int *pivots, void *b, int n, ptrdiff_t columns, ptrdiff_t count) {\
        for (ptrdiff_t at = 0; at < count; at += BESIDE)                                               \
            solve_beside_##S((const T *)a + at * n * n, pivots + at * n, (T *)b + at * n * columns, n, columns,\
                             count - at < BESIDE ? count - at : BESIDE);                               \
    }
#define ABS_F32 fabsf
#define ABS_F64 fabs
#define LEAST_F32 FLT_MIN
#define LEAST_F64 DBL_MIN
EQUATIONS(F32, float, int32_t)
EQUATIONS(F64, double, int64_t)

const tp_equations LEVEL(tp_equation_table) = {.factor = {factor_F32, factor_F64}, .solve = {solve_F32, solve_F64}};
