/* Loops of floor_divide, remainder, fmod and powers of integers: part of pointwise.c, whose macros it uses. */

/* As Python's % and //, of the remainder m that C has: the remainder gets the sign of the divisor. */
#define FLOORED(S, T)                                                                                  \
    INLINE T remainder_of_##S(T x, T y, T m) {                                                         \
        (void)x;                                                                                       \
        T r = m != 0 && (y < 0) != (m < 0) ? m + y : m;                                                \
        return r == 0 && y != 0 ? C_##S(copysign)(0, y) : r;                                           \
    }                                                                                                  \
    INLINE T floor_divide_of_##S(T x, T y, T m) {                                                      \
        T d = (x - m) / y, ratio = x / y;                                                              \
        d = m != 0 && (y < 0) != (m < 0) ? d - 1 : d;                                                  \
        T whole = C_##S(floor)(d);                                                                     \
        whole = d - whole > (T)0.5 ? whole + 1 : whole;                                                \
        whole = d == 0 ? C_##S(copysign)(0, ratio) : whole;                                            \
        return y == 0 ? ratio : whole;                                                                 \
    }                                                                                                  \
    INLINE T fmod_of_##S(T x, T y, T m) {                                                              \
        (void)x;                                                                                       \
        (void)y;                                                                                       \
        return m;                                                                                      \
    }
FLOORED(F32, float)
FLOORED(F64, double)

/* Blocks that hold a huge quotient, an infinity or NaN take C's fmod. */
#define DIVISION_BLOCKS(name, S, T)                                                                    \
    BINARY_LOOP(name##_near_##S, T, T, name##_of_##S(x, y, near_fmod_##S(x, y)))                       \
    LONG_BINARY(name##_far_##S, T, name##_of_##S(x, y, C_##S(fmod)(x, y)))                             \
    static void name##_##S(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {      \
        for (ptrdiff_t start = 0; start < n; start += BLOCK) {                                         \
            const ptrdiff_t count = n - start < BLOCK ? n - start : BLOCK;                             \
            char *ends[3];                                                                             \
            int near = 1;                                                                              \
            for (int k = 0; k < 3; k++) ends[k] = args[k] + start * s[k];                              \
            if (s[0] == sizeof(T) && s[1] == sizeof(T)) {                                              \
                const T *a = (const T *)ends[0], *b = (const T *)ends[1];                              \
                for (ptrdiff_t i = 0; i < count; i++) near &= is_near_##S(a[i], b[i]);                 \
            } else if (s[0] == sizeof(T) && !s[1]) {                                                   \
                const T *a = (const T *)ends[0], y = *(const T *)ends[1];                              \
                for (ptrdiff_t i = 0; i < count; i++) near &= is_near_##S(a[i], y);                    \
            } else {                                                                                   \
                for (ptrdiff_t i = 0; i < count; i++)                                                  \
                    near &= is_near_##S(AT(T, ends[0], i, s[0]), AT(T, ends[1], i, s[1]));             \
            }                                                                                          \
            (near ? name##_near_##S : name##_far_##S)(ends, s, count, p);                              \
        }                                                                                              \
    }
#define DIVISION(name)                                                                                 \
    DIVISION_BLOCKS(name, F32, float)                                                                  \
    DIVISION_BLOCKS(name, F64, double)                                                                 \
    HALVES(name, 2)
DIVISION(fmod)
DIVISION(remainder)
DIVISION(floor_divide)

/* Integers, of which no divisor is zero. */
#define INTEGER_DIVISION(name, whole, of_quotient)                                                     \
    INLINE double name##_exact(double x, double y) {                                                   \
        const double q = whole(x / y); /* on the right side of a whole number below 2^53 */            \
        return of_quotient;                                                                            \
    }                                                                                                  \
    BINARY_LOOP(name##_near_I64, int64_t, int64_t,                                                     \
                whole_F64(name##_exact(double_of(x), double_of(y)) + WHOLE))                           \
    BINARY_LOOP(name##_far_I64, int64_t, int64_t, name##_of_I64(x, y))                                 \
    static void name##_I64(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {      \
        for (ptrdiff_t start = 0; start < n; start += BLOCK) {                                         \
            const ptrdiff_t count = n - start < BLOCK ? n - start : BLOCK;                             \
            char *ends[3];                                                                             \
            for (int k = 0; k < 3; k++) ends[k] = args[k] + start * s[k];                              \
            const int near = are_small(ends[0], s[0], count) && are_small(ends[1], s[1], count);       \
            (near ? name##_near_I64 : name##_far_I64)(ends, s, count, p);                              \
        }                                                                                              \
    }                                                                                                  \
    BINARY_LOOP(name##_I32, int32_t, int32_t, (int64_t)name##_exact(x, y))                             \
    BINARY_LOOP(name##_I16, int16_t, int16_t, (int32_t)name##_exact(x, y))                             \
    BINARY_LOOP(name##_I8, int8_t, int8_t, (int32_t)name##_exact(x, y))                                \
    BINARY_LOOP(name##_U8, uint8_t, uint8_t, (int32_t)name##_exact(x, y))

/* Whether all are within 2^50 of zero, so that double is exact. */
static int are_small(const char *at, ptrdiff_t stride, ptrdiff_t n) {
    const uint64_t half = (uint64_t)1 << 50;
    uint64_t all = 0;
    if (stride == sizeof(int64_t)) {
        const int64_t *a = (const int64_t *)at;
        for (ptrdiff_t i = 0; i < n; i++) all |= (uint64_t)a[i] + half;
    } else {
        for (ptrdiff_t i = 0; i < (stride ? n : n > 0); i++) all |= (uint64_t)AT(int64_t, at, i, stride) + half;
    }
    return all < 2 * half;
}
INLINE double double_of(int64_t x) {
    bits64 b = {.f = WHOLE};
    b.u += (uint64_t)x;
    return b.f - WHOLE;
}

/* The smallest number has no opposite: a division by -1 wraps around, rather than end the process. */
INLINE int64_t fmod_of_I64(int64_t x, int64_t y) { return y == -1 || !y ? 0 : x % y; }
INLINE int64_t remainder_of_I64(int64_t x, int64_t y) {
    const int64_t m = fmod_of_I64(x, y);
    return m && (m < 0) != (y < 0) ? m + y : m;
}
INLINE int64_t floor_divide_of_I64(int64_t x, int64_t y) {
    if (y == -1 || !y) return (int64_t)(0 - (uint64_t)x);
    return x / y - (x % y && (x < 0) != (y < 0));
}
INTEGER_DIVISION(floor_divide, floor, q)
INTEGER_DIVISION(remainder, floor, x - q * y)
INTEGER_DIVISION(fmod, trunc, x - q * y)

/* Powers, by squaring; a negative one is below 1, save of 1 and -1. */
INLINE int64_t whole_power(int64_t x, int64_t exponent) {
    if (exponent < 0) return x == 1 ? 1 : x == -1 ? (exponent & 1 ? -1 : 1) : 0;
    uint64_t result = 1;
    uint64_t base = (uint64_t)x;
    for (; exponent; exponent >>= 1, base *= base) result *= exponent & 1 ? base : 1;
    return (int64_t)result;
}
#define WHOLE_POWERS(S, T)                                                                             \
    BINARY_LOOP(any_power_##S, T, T, whole_power(x, y))                                                \
    UNARY_LOOP(cube_##S, T, T, (uint64_t)x * (uint64_t)x * (uint64_t)x)                                \
    static void pow_##S(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {       \
        const T exponent = n ? *(const T *)args[1] : 0; /* of no elements there may be no exponent */  \
        if (!s[1] && (exponent == 2 || exponent == 3)) {                                               \
            char *const ends[2] = {args[0], args[2]};                                                  \
            const ptrdiff_t steps[2] = {s[0], s[2]};                                                   \
            (exponent == 2 ? square_##S : cube_##S)(ends, steps, n, p);                                \
        } else {                                                                                       \
            any_power_##S(args, s, n, p);                                                              \
        }                                                                                              \
    }
