/* Loops of gcd and lcm: part of pointwise.c, whose macros it uses. */

enum { PAIRS = 32 };

/* How often 2 divides a number, by the exponent of its lowest bit as a float; there is no vector instruction for it. */
INLINE uint32_t twos_of(uint32_t x) {
    bits32 b = {.f = (float)(int32_t)(x & (0 - x))};
    return ((b.u >> 23) + 1) & 31; /* less the bias, and without the sign */
}

#if defined(__x86_64__) && !defined(__AVX2__)
enum { SHIFTS_LANES = 0 }; /* each by a number of its own */
#else
enum { SHIFTS_LANES = 1 };
#endif

/* Stein's algorithm in all pairs at once: of two odd numbers take the difference, without its twos, and the smaller one.
   The divisors replace the numbers of `a`. */
static void common_divisors(uint32_t *a, uint32_t *b) {
    uint32_t twos[PAIRS], more = 0;
    for (int i = 0; i < PAIRS; i++) {
        const uint32_t x = a[i] ? a[i] : b[i], y = b[i] ? b[i] : a[i];
        twos[i] = twos_of(x | y);
        a[i] = x >> twos_of(x);
        b[i] = y >> twos_of(y);
        more |= a[i] ^ b[i];
    }
    while (more) {
        more = 0;
        for (int i = 0; i < PAIRS; i++) {
            const uint32_t x = a[i], y = b[i], low = x < y ? x : y, gap = (x < y ? y : x) - low;
            a[i] = gap ? gap >> twos_of(gap) : low;
            b[i] = low;
            more |= a[i] ^ low;
        }
    }
    for (int i = 0; i < PAIRS; i++) a[i] <<= twos[i];
}
static uint64_t common_divisor(uint64_t x, uint64_t y) {
    if (!x || !y) return x | y;
    const int twos = __builtin_ctzll(x | y);
    x >>= __builtin_ctzll(x);
    y >>= __builtin_ctzll(y);
    while (x != y) {
        const uint64_t gap = x - y, below = 0 - (uint64_t)(x < y);
        y += gap & below; /* without a branch, which would be random */
        x = ((gap ^ below) - below) >> __builtin_ctzll(gap);
    }
    return x << twos;
}

/* Of the absolute values x and y and their divisor d; unsigned, the smallest number has an opposite. */
#define DIVISORS(name, S, T, U, expression)                                                            \
    static void name##_##S(char *const *args, const ptrdiff_t *s, ptrdiff_t n, const double *p) {      \
        (void)p;                                                                                       \
        for (ptrdiff_t start = 0; start < n; start += PAIRS) {                                         \
            const ptrdiff_t count = n - start < PAIRS ? n - start : PAIRS;                             \
            U left[PAIRS], right[PAIRS];                                                               \
            uint32_t a[PAIRS] = {0}, b[PAIRS] = {0};                                                   \
            U all = 0;                                                                                 \
            for (ptrdiff_t i = 0; i < count; i++) {                                                    \
                const T x = AT(T, args[0], start + i, s[0]), y = AT(T, args[1], start + i, s[1]);      \
                left[i] = x < 0 ? 0 - (U)x : (U)x;                                                     \
                right[i] = y < 0 ? 0 - (U)y : (U)y;                                                    \
                a[i] = (uint32_t)left[i];                                                              \
                b[i] = (uint32_t)right[i];                                                             \
                all |= left[i] | right[i];                                                             \
            }                                                                                          \
            const int small = all <= UINT32_MAX && SHIFTS_LANES;                                       \
            if (small) common_divisors(a, b);                                                          \
            for (ptrdiff_t i = 0; i < count; i++) {                                                    \
                const U x = left[i], y = right[i], d = small ? (U)a[i] : (U)common_divisor(x, y);      \
                (void)x, (void)y;                                                                      \
                TO(T, args[2], start + i, s[2]) = (T)(expression);                                     \
            }                                                                                          \
        }                                                                                              \
    }
#define DIVISORS_OF_ALL(name, expression)                                                              \
    DIVISORS(name, I64, int64_t, uint64_t, expression) DIVISORS(name, I32, int32_t, uint32_t, expression) \
    DIVISORS(name, I16, int16_t, uint32_t, expression) DIVISORS(name, I8, int8_t, uint32_t, expression)   \
    DIVISORS(name, U8, uint8_t, uint32_t, expression)
DIVISORS_OF_ALL(gcd, d)
DIVISORS_OF_ALL(lcm, d ? x / d * y : 0)
