/* Loops of complex numbers: part of pointwise.c, whose macros it uses. */

/* Where all numbers lie behind each other, the loop of their parts does it, which are twice as many. */
#define BY_PARTS(name, inputs, C, S, T)                                                                \
    static void name##_##C(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {      \
        ptrdiff_t steps[inputs + 1];                                                                   \
        int is_dense = 1;                                                                              \
        for (int k = 0; k <= inputs; k++) {                                                            \
            steps[k] = sizeof(T);                                                                      \
            is_dense &= s[k] == 2 * steps[k];                                                          \
        }                                                                                              \
        if (is_dense) name##_##S(args, steps, 2 * n, p);                                               \
        else name##_any_##C(args, s, n, p);                                                            \
    }

/* Quotients, in double, by the larger part of the divisor (Smith, "Algorithm 116", 1962). What is divided by zero is
   infinite or NaN, each part for itself. */
#define QUOTIENTS(C, T)                                                                                \
    static void parts_##C(double *real, double *imaginary, const char *from, ptrdiff_t step, ptrdiff_t n) { \
        if (step == 2 * (ptrdiff_t)sizeof(T)) {                                                        \
            const T *at = (const T *)from;                                                             \
            for (ptrdiff_t i = 0; i < n; i++) {                                                        \
                real[i] = at[2 * i];                                                                   \
                imaginary[i] = at[2 * i + 1];                                                          \
            }                                                                                          \
        } else {                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++) {                                                        \
                const T *at = (const T *)(from + i * step);                                            \
                real[i] = at[0];                                                                       \
                imaginary[i] = at[1];                                                                  \
            }                                                                                          \
        }                                                                                              \
    }                                                                                                  \
    static void true_divide_##C(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *given) { \
        double x[BLOCK / 4], y[BLOCK / 4], re[BLOCK / 4], im[BLOCK / 4];                               \
        (void)given;                                                                                   \
        for (ptrdiff_t start = 0; start < n; start += BLOCK / 4) {                                     \
            const ptrdiff_t count = n - start < BLOCK / 4 ? n - start : BLOCK / 4;                     \
            parts_##C(x, y, args[0] + start * s[0], s[0], count);                                     \
            parts_##C(re, im, args[1] + start * s[1], s[1], count);                                   \
            for (ptrdiff_t i = 0; i < count; i++) {                                                    \
                const int64_t turned = !(fabs(re[i]) >= fabs(im[i])), zero = re[i] == 0 && im[i] == 0; \
                const double p = turned ? im[i] : re[i], q = turned ? re[i] : im[i];                   \
                const double u = turned ? y[i] : x[i], v = turned ? x[i] : y[i];                       \
                const double ratio = q / p, scale = zero ? (double)INFINITY : 1 / (p + q * ratio);     \
                const double imaginary = (zero ? v : v - u * ratio) * scale;                           \
                x[i] = (zero ? u : u + v * ratio) * scale;                                             \
                y[i] = turned ? -imaginary : imaginary;                                                \
            }                                                                                          \
            char *to = args[2] + start * s[2];                                                         \
            if (s[2] == 2 * (ptrdiff_t)sizeof(T)) {                                                    \
                for (ptrdiff_t i = 0; i < count; i++) {                                                \
                    ((T *)to)[2 * i] = (T)x[i];                                                        \
                    ((T *)to)[2 * i + 1] = (T)y[i];                                                    \
                }                                                                                      \
            } else {                                                                                   \
                for (ptrdiff_t i = 0; i < count; i++) {                                                \
                    ((T *)(to + i * s[2]))[0] = (T)x[i];                                               \
                    ((T *)(to + i * s[2]))[1] = (T)y[i];                                               \
                }                                                                                      \
            }                                                                                          \
        }                                                                                              \
    }

#define COMPLEX_LOOPS(C, S, T)                                                                         \
    typedef T _Complex complex_##C;                                                                    \
    BINARY_LOOP(add_any_##C, complex_##C, complex_##C, x + y)                                          \
    BINARY_LOOP(sub_any_##C, complex_##C, complex_##C, x - y)                                          \
    UNARY_LOOP(neg_any_##C, complex_##C, complex_##C, -x)                                              \
    BY_PARTS(add, 2, C, S, T) BY_PARTS(sub, 2, C, S, T) BY_PARTS(neg, 1, C, S, T)                      \
    BINARY_LOOP(mul_##C, complex_##C, complex_##C, COMPLEX_PRODUCT(x, y))                                      \
    UNARY_LOOP(square_##C, complex_##C, complex_##C, COMPLEX_PRODUCT(x, x))                                    \
    BINARY_LOOP(eq_##C, complex_##C, uint8_t, (RE(x) == RE(y)) & (IM(x) == IM(y)))                     \
    BINARY_LOOP(ne_##C, complex_##C, uint8_t, (RE(x) != RE(y)) | (IM(x) != IM(y)))                     \
    QUOTIENTS(C, T)
COMPLEX_LOOPS(C64, F32, float)
COMPLEX_LOOPS(C128, F64, double)
