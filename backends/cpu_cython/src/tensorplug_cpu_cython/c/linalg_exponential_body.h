/* The functions of linalg_exponential.c for one type T, or for complex numbers of two PARTS, the imaginary ones of which
   are behind the real ones of a matrix. */

typedef T NAME(tile)[PARTS * MOST * MOST][BESIDE];
typedef T NAME(lanes)[BESIDE];

static void NAME(product)(NAME(tile) a, NAME(tile) b, NAME(tile) out, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            T sums[PARTS][BESIDE] = {{0}};
            for (int k = 0; k < n; k++) {
                const T *x = a[i * n + k], *y = b[k * n + j];
#if PARTS == 1
                for (int l = 0; l < BESIDE; l++) sums[0][l] += x[l] * y[l];
#else
                const T *u = a[n * n + i * n + k], *v = b[n * n + k * n + j];
                for (int l = 0; l < BESIDE; l++) {
                    sums[0][l] += x[l] * y[l] - u[l] * v[l];
                    sums[1][l] += x[l] * v[l] + u[l] * y[l];
                }
#endif
            }
            for (int part = 0; part < PARTS; part++) memcpy(out[part * n * n + i * n + j], sums[part], sizeof sums[part]);
        }
}

/* The largest sums of a column's magnitudes, which are those of both parts, added up. */
static void NAME(norm)(NAME(tile) a, int n, NAME(lanes) out) {
    memset(out, 0, sizeof(NAME(lanes)));
    for (int j = 0; j < n; j++) {
        T sums[BESIDE] = {0};
        for (int i = 0; i < PARTS * n; i++)
            for (int l = 0; l < BESIDE; l++) sums[l] += a[i * n + j][l] < 0 ? -a[i * n + j][l] : a[i * n + j][l];
        for (int l = 0; l < BESIDE; l++) out[l] = sums[l] > out[l] || sums[l] != sums[l] ? sums[l] : out[l];
    }
}

/* Add a group of terms over the power that they have in common: `factors` times the identity and `terms` powers. */
static void NAME(add_group)(NAME(tile) *powers, const T *factors, int terms, NAME(tile) out, int n) {
    for (int e = 0; e < PARTS * n * n; e++)
        for (int p = 1; p <= terms; p++)
            for (int l = 0; l < BESIDE; l++) out[e][l] += factors[p] * powers[p - 1][e][l];
    for (int i = 0; i < n; i++)
        for (int l = 0; l < BESIDE; l++) out[i * (n + 1)][l] += factors[0];
}

/* Divide the powers by those of powers of two; return how often to square, or -1 where one is not finite. */
static int NAME(scale)(NAME(tile) *powers, int n, int squarings[BESIDE]) {
    NAME(lanes) norms[GROUPS], factor;
    int most = 0;
    for (int p = 0; p < GROUPS; p++) {
        NAME(norm)(powers[p], n, norms[p]);
        for (int l = 0; l < BESIDE; l++)
            if (!(norms[p][l] <= LARGEST)) return -1;
    }
    for (int l = 0; l < BESIDE; l++) {
        double roots[GROUPS], reach;
        for (int p = 0; p < GROUPS; p++) roots[p] = pow(norms[p][l], 1.0 / (p + 1));
        reach = roots[0];
        for (int p = 1; p + 1 < GROUPS; p++) reach = fmin(reach, fmax(roots[p], roots[p + 1]));
        int exponent = 0;
        if (reach > REACH) frexp(reach / REACH, &exponent);
        squarings[l] = exponent;
        factor[l] = (T)ldexp(1, -exponent);
        most = exponent > most ? exponent : most;
    }
    for (int p = 0; p < GROUPS; p++)
        for (int e = 0; e < PARTS * n * n; e++)
            for (int times = 0; times <= p; times++)
                for (int l = 0; l < BESIDE; l++) powers[p][e][l] *= factor[l];
    return most;
}

static int NAME(beside)(const T *a, T *out, int n, ptrdiff_t width) {
    NAME(tile) powers[GROUPS], found, next;
    T factors[GROUPS * GROUPS + 1] = {1};
    int squarings[BESIDE];
    for (int i = 1; i <= GROUPS * GROUPS; i++) factors[i] = factors[i - 1] / i;
    memset(powers[0], 0, (size_t)(PARTS * n * n) * sizeof *found);
    for (ptrdiff_t l = 0; l < width; l++)
        for (int e = 0; e < PARTS * n * n; e++) powers[0][e % PARTS * n * n + e / PARTS][l] = a[l * PARTS * n * n + e];
    for (int p = 1; p < GROUPS; p++) NAME(product)(powers[0], powers[p - 1], powers[p], n);
    const int most = NAME(scale)(powers, n, squarings);
    if (most < 0) return 0;
    memset(found, 0, (size_t)(PARTS * n * n) * sizeof *found);
    NAME(add_group)(powers, factors + GROUPS * (GROUPS - 1), GROUPS, found, n);
    for (int group = GROUPS - 2; group >= 0; group--) {
        NAME(product)(found, powers[GROUPS - 1], next, n);
        NAME(add_group)(powers, factors + GROUPS * group, GROUPS - 1, next, n);
        memcpy(found, next, (size_t)(PARTS * n * n) * sizeof *found);
    }
    for (int step = 0; step < most; step++) {
        NAME(product)(found, found, next, n);
        for (int e = 0; e < PARTS * n * n; e++)
            for (int l = 0; l < BESIDE; l++) found[e][l] = step < squarings[l] ? next[e][l] : found[e][l];
    }
    for (ptrdiff_t l = 0; l < width; l++)
        for (int e = 0; e < PARTS * n * n; e++) out[l * PARTS * n * n + e] = found[e % PARTS * n * n + e / PARTS][l];
    return 1;
}

static int NAME(exponential)(const void *a, void *out, int n, ptrdiff_t count) {
    for (ptrdiff_t at = 0; at < count; at += BESIDE)
        if (!NAME(beside)((const T *)a + at * PARTS * n * n, (T *)out + at * PARTS * n * n, n,
                          count - at < BESIDE ? count - at : BESIDE))
            return 0;
    return 1;
}
