// `outer` tells where each result is and where its elements begin, `inner` the steps among its elements.
// The place of the first best element; a nan is better than any number.

__kernel void find_best(const Layout outer, const Layout inner, __global long *r,
                        __global const S(A) *pa) {
    const long n = get_global_id(0);
    if (n >= outer.count) return;
    const long start = place(&outer, 1, n);
    X(A) best = LOAD(A)(pa, start + place(&inner, 1, 0));
    long found = 0;
    for (long k = 1; k < inner.count && best == best; ++k) {
        const X(A) a = LOAD(A)(pa, start + place(&inner, 1, k));
        if (a BETTER best || a != a) {
            best = a;
            found = k;
        }
    }
    r[place(&outer, 0, n)] = found;
}
