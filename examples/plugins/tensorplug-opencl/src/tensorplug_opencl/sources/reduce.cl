// `outer` tells where each result is and where its elements begin, `inner` the steps among its elements.
// START, COMBINE and FINISH are expressions; TOTAL is the type in which they are computed.

__kernel void reduce(const Layout outer, const Layout inner, const long parts, __global S(R) *r,
                     __global const S(A) *pa) {
    const long n = get_global_id(0);
    if (n >= outer.count * parts) return;
    const long size = (inner.count + parts - 1) / parts;
    const long first = n % parts * size;
    const long last = min(first + size, inner.count);
    const long start = place(&outer, 1, n / parts);
    TOTAL total = START;
    for (long k = first; k < last; ++k) {
        const X(A) a = LOAD(A)(pa, start + place(&inner, 1, k));
        total = COMBINE;
    }
    STORE(R)(FINISH, r, parts == 1 ? place(&outer, 0, n) : n);
}
