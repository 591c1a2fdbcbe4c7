#include "matmul_products.h"

#include "parallel.h"
#include "vectors.h"

/* Results of MANY vectors in ROWS rows stay in registers while the inner dimension is gone through. */
enum { MANY = 4, ROWS = 2, ABREAST = 4 };

/* Rows of few elements: several at once, since each addition waits for the last one of its row. */
#define THIN(S, T)                                                                                     \
    static void thin_##S(const tp_product *o, ptrdiff_t begin, ptrdiff_t end) {                        \
        const T *b = o->b;                                                                             \
        T *to = o->result;                                                                             \
        ptrdiff_t i = begin;                                                                           \
        for (; i + ABREAST <= end; i += ABREAST) {                                                     \
            const T *a = (const T *)o->a + i * o->lda;                                                 \
            T s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                          \
            for (ptrdiff_t k = 0; k < o->inner; k++) {                                                 \
                s0 += a[k] * b[k];                                                                     \
                s1 += a[o->lda + k] * b[k];                                                            \
                s2 += a[2 * o->lda + k] * b[k];                                                        \
                s3 += a[3 * o->lda + k] * b[k];                                                        \
            }                                                                                          \
            to[i] = s0;                                                                                \
            to[i + 1] = s1;                                                                            \
            to[i + 2] = s2;                                                                            \
            to[i + 3] = s3;                                                                            \
        }                                                                                              \
        for (; i < end; i++) {                                                                         \
            const T *a = (const T *)o->a + i * o->lda;                                                 \
            T sum = 0;                                                                                 \
            for (ptrdiff_t k = 0; k < o->inner; k++) sum += a[k] * b[k];                               \
            to[i] = sum;                                                                               \
        }                                                                                              \
    }                                                                                                  \
    static void vector_##S(const tp_product *o, int threads) {                                         \
        TP_PARALLEL(o->rows, threads, begin, end, { thin_##S(o, begin, end); });                       \
    }
TP_FLOATS(THIN)

/* T is without a sign: products wrap, which is what integers do. */
#define WHOLE(S, T)                                                                                    \
    typedef T S##_vector __attribute__((vector_size(VECTOR), aligned(sizeof(T)), may_alias));          \
    static void vector_##S(const tp_product *o, int threads) {                                         \
        const T *b = o->b;                                                                             \
        TP_PARALLEL(o->rows, threads, begin, end, {                                                    \
            for (ptrdiff_t i = begin; i < end; i++) {                                                  \
                const T *a = (const T *)o->a + i * o->lda;                                             \
                T sum = 0;                                                                             \
                for (ptrdiff_t k = 0; k < o->inner; k++) sum = (T)(sum + a[k] * (WIDER)b[k]);          \
                ((T *)o->result)[i] = sum;                                                             \
            }                                                                                          \
        });                                                                                            \
    }                                                                                                  \
    /* `rows` rows of `vectors` vectors of the result. */                                              \
    static inline __attribute__((always_inline)) void tile_##S(const tp_product *o, ptrdiff_t row, ptrdiff_t column,\
                                                               int rows, int vectors) {                \
        enum { PER = VECTOR / sizeof(T) };                                                             \
        const T *a = (const T *)o->a + row * o->lda;                                                   \
        const T *b = (const T *)o->b + column;                                                         \
        S##_vector sums[ROWS][MANY] = {{{0}}};                                                         \
        for (ptrdiff_t k = 0; k < o->inner; k++, b += o->ldb)                                          \
            for (int v = 0; v < vectors; v++) {                                                        \
                const S##_vector these = *(const S##_vector *)(b + v * PER);                           \
                for (int r = 0; r < rows; r++) sums[r][v] += these * a[r * o->lda + k];                \
            }                                                                                          \
        for (int r = 0; r < rows; r++)                                                                 \
            for (int v = 0; v < vectors; v++)                                                          \
                *(S##_vector *)((T *)o->result + (row + r) * o->columns + column + v * PER) = sums[r][v];\
    }                                                                                                  \
    static inline __attribute__((always_inline)) void columns_##S(const tp_product *o, ptrdiff_t begin, ptrdiff_t end,\
                                                                  ptrdiff_t column, int vectors) {     \
        ptrdiff_t row = begin;                                                                         \
        for (; row + ROWS <= end; row += ROWS) tile_##S(o, row, column, ROWS, vectors);                \
        for (; row < end; row++) tile_##S(o, row, column, 1, vectors);                                 \
    }                                                                                                  \
    /* Less than a vector. */                                                                          \
    static void narrow_##S(const tp_product *o, ptrdiff_t begin, ptrdiff_t end) {                      \
        for (ptrdiff_t row = begin; row < end; row++) {                                                \
            const T *a = (const T *)o->a + row * o->lda;                                               \
            T *to = (T *)o->result + row * o->columns;                                                 \
            memset(to, 0, (size_t)o->columns * sizeof *to);                                            \
            for (ptrdiff_t k = 0; k < o->inner; k++) {                                                 \
                const T *b = (const T *)o->b + k * o->ldb;                                             \
                for (ptrdiff_t j = 0; j < o->columns; j++) to[j] = (T)(to[j] + a[k] * (WIDER)b[j]);    \
            }                                                                                          \
        }                                                                                              \
    }                                                                                                  \
    static void matrix_##S(const tp_product *o, int threads) {                                         \
        enum { PER = VECTOR / sizeof(T) };                                                             \
        TP_PARALLEL(o->rows, threads, begin, end, {                                                    \
            if (o->columns < PER) {                                                                    \
                narrow_##S(o, begin, end);                                                             \
            } else {                                                                                   \
                ptrdiff_t column = 0;                                                                  \
                for (; column + MANY * PER <= o->columns; column += MANY * PER)                        \
                    columns_##S(o, begin, end, column, MANY);                                          \
                for (; column + PER <= o->columns; column += PER) columns_##S(o, begin, end, column, 1);\
                /* The last vector ends with the row, and has some columns again. */                   \
                if (column < o->columns) columns_##S(o, begin, end, o->columns - PER, 1);              \
            }                                                                                          \
        });                                                                                            \
    }
#define WIDER uint64_t
WHOLE(I64, uint64_t)
#undef WIDER
#define WIDER uint32_t
WHOLE(I32, uint32_t)
WHOLE(I16, uint16_t)
WHOLE(I8, uint8_t)

/* Small matrices: rows of the result, of up to MANY vectors, stay in registers. The last vector may stand out over the
   end of a row. What is read there is of no use, and what is written there is written again with the next row. */
enum { AT_ONCE = VECTOR == 64 ? 4 : 2 }; /* rows of MANY vectors, as there are registers for */
#define SMALL(S, T)                                                                                    \
    enum { PER_##S = VECTOR / sizeof(T) };                                                             \
    static inline __attribute__((always_inline)) void some_rows_##S(const tp_batch *o, const T *a, const T *b,\
                                                                    ptrdiff_t ldb, T *to, int rows, int vectors) {\
        T##_vector sums[MANY][MANY] = {{{0}}};                                                         \
        for (ptrdiff_t k = 0; k < o->inner; k++, b += ldb)                                             \
            for (int v = 0; v < vectors; v++) {                                                        \
                const T##_vector these = *(const T##_vector *)(b + v * PER_##S);                       \
                for (int r = 0; r < rows; r++) sums[r][v] += these * a[r * o->a_down + k * o->a_along];\
            }                                                                                          \
        for (int r = 0; r < rows; r++)                                                                 \
            for (int v = 0; v < vectors; v++) *(T##_vector *)(to + r * o->columns + v * PER_##S) = sums[r][v];\
    }                                                                                                  \
    static inline __attribute__((always_inline)) void product_##S(const tp_batch *o, const T *a, const T *b,\
                                                                  ptrdiff_t ldb, T *to, int abreast, int vectors) {\
        ptrdiff_t i = 0;                                                                               \
        for (; i + abreast <= o->rows; i += abreast)                                                   \
            some_rows_##S(o, a + i * o->a_down, b, ldb, to + i * o->columns, abreast, vectors);        \
        for (; i < o->rows; i++) some_rows_##S(o, a + i * o->a_down, b, ldb, to + i * o->columns, 1, vectors);\
    }                                                                                                  \
    static void small_range_##S(const tp_batch *o, ptrdiff_t begin, ptrdiff_t end) {                   \
        const int vectors = (int)((o->columns + PER_##S - 1) / PER_##S);                               \
        const ptrdiff_t width = vectors * PER_##S;                                                     \
        T padded[TP_SMALL * MANY * PER_##S];                                                           \
        T last[(TP_SMALL + 1) * MANY * PER_##S];                                                       \
        const T *padded_of = NULL;                                                                     \
        memset(padded, 0, (size_t)(o->inner * width) * sizeof(T));                                     \
        for (ptrdiff_t i = begin; i < end; i++) {                                                      \
            const T *a = o->a, *b = o->b;                                                              \
            T *to = (T *)o->result + i * o->rows * o->columns;                                         \
            ptrdiff_t rest = i, ldb = o->b_down;                                                       \
            for (int d = o->dims - 1; d >= 0; d--) {                                                   \
                const ptrdiff_t at = rest % o->shape[d];                                               \
                rest /= o->shape[d];                                                                   \
                a += at * o->a_strides[d];                                                             \
                b += at * o->b_strides[d];                                                             \
            }                                                                                          \
            if (o->b_along != 1 || (b - (const T *)o->b) + (o->inner - 1) * ldb + width > o->b_span) { \
                if (padded_of != b)                                                                    \
                    for (ptrdiff_t k = 0; k < o->inner; k++)                                           \
                        for (ptrdiff_t j = 0; j < o->columns; j++)                                     \
                            padded[k * width + j] = b[k * ldb + j * o->b_along];                       \
                padded_of = b;                                                                         \
                b = padded;                                                                            \
                ldb = width;                                                                           \
            }                                                                                          \
            /* Behind the last of the range there may be another thread's, or nothing. */              \
            T *into = (end - i) * o->rows * o->columns < (o->rows - 1) * o->columns + width ? last : to;\
            switch (vectors) {                                                                         \
            case 1: product_##S(o, a, b, ldb, into, 4, 1); break;                                      \
            case 2: product_##S(o, a, b, ldb, into, 4, 2); break;                                      \
            case 3: product_##S(o, a, b, ldb, into, 4, 3); break;                                      \
            default: product_##S(o, a, b, ldb, into, AT_ONCE, MANY);                                   \
            }                                                                                          \
            if (into == last) memcpy(to, last, (size_t)(o->rows * o->columns) * sizeof(T));            \
        }                                                                                              \
    }                                                                                                  \
    static void small_##S(const tp_batch *o, int threads) {                                            \
        TP_PARALLEL(o->count, threads, begin, end, { small_range_##S(o, begin, end); });               \
    }
TP_FLOATS(SMALL)

const tp_products LEVEL(tp_product_table) = {
    .columns = {[TP_F32] = MANY * PER_F32, [TP_F64] = MANY * PER_F64},
    .small = {[TP_F32] = small_F32, [TP_F64] = small_F64},
    .vector = {[TP_F32] = vector_F32, [TP_F64] = vector_F64, [TP_I64] = vector_I64, [TP_I32] = vector_I32,
               [TP_I16] = vector_I16, [TP_I8] = vector_I8, [TP_U8] = vector_I8},
    .matrix = {[TP_I64] = matrix_I64, [TP_I32] = matrix_I32, [TP_I16] = matrix_I16, [TP_I8] = matrix_I8,
               [TP_U8] = matrix_I8},
};
