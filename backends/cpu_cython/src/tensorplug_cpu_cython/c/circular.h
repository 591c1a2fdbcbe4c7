/* Loops of sine, cosine and tangent: part of pointwise.c, whose macros it uses. */

/* The reduction of huge angles is C's: blocks that hold one are done again. */
#define CIRCULAR_BLOCKS(name, S, T, near_limit, limit)                                                 \
    static void name##_loop_##S(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) { \
        T block[BLOCK];                                                                                \
        for (ptrdiff_t start = 0; start < n; start += BLOCK) {                                         \
            const ptrdiff_t count = n - start < BLOCK ? n - start : BLOCK;                             \
            const T *from = (const T *)(args[0] + start * s[0]);                                       \
            if (s[0] != sizeof(T)) {                                                                   \
                for (ptrdiff_t i = 0; i < count; i++) block[i] = AT(T, (const char *)from, i, s[0]);   \
                from = block;                                                                          \
            }                                                                                          \
            int far = 0, huge = 0; /* a largest one is no sum that can be vectorised */                \
            for (ptrdiff_t i = 0; i < count; i++) {                                                    \
                far |= C_##S(fabs)(from[i]) > near_limit;                                              \
                huge |= C_##S(fabs)(from[i]) > limit;                                                  \
            }                                                                                          \
            char *ends[2] = {(char *)from, args[1] + start * s[1]};                                    \
            const ptrdiff_t steps[2] = {sizeof(T), s[1]};                                              \
            if (!far) {                                                                                \
                name##_near_##S(ends, steps, count, p);                                                \
            } else if (!huge) {                                                                        \
                name##_within_##S(ends, steps, count, p);                                              \
            } else {                                                                                   \
                for (ptrdiff_t i = 0; i < count; i++) TO(T, ends[1], i, s[1]) = C_##S(name)(from[i]);  \
            }                                                                                          \
        }                                                                                              \
    }
#define CIRCULAR(name)                                                                                 \
    LONG_UNARY(name##_near_F32, float, near_##name##_F32(x))                                           \
    LONG_UNARY(name##_within_F32, float, m_##name##_F32(x))                                            \
    LONG_UNARY(name##_near_F64, double, m_##name##_F64(x))                                             \
    CIRCULAR_BLOCKS(name, F32, float, NEAR_LIMIT, CIRCULAR_LIMIT)                                      \
    CIRCULAR_BLOCKS(name, F64, double, (double)CIRCULAR_LIMIT, (double)CIRCULAR_LIMIT)                 \
    HALVES(name##_loop, 1)
/* In double one reduction does for all but huge angles. */
#define sin_within_F64 sin_near_F64
#define cos_within_F64 cos_near_F64
#define tan_within_F64 tan_near_F64
CIRCULAR(sin)
CIRCULAR(cos)
CIRCULAR(tan)
