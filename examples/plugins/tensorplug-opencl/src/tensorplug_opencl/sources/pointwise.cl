// One element of the result per work item: EXPRESSION of a, b and c, of dtypes A, B and C, stored as R.

#define FLOOR_DIVIDE(a, b) floor_divide_((a), (b))

X(A) python_remainder(X(A) a, X(B) b) {
#ifdef FLOATING
    X(A) m = fmod(a, b);
    if (m != 0) return (b < 0) != (m < 0) ? m + b : m;
    return copysign((X(A))0, b);
#else
    return 0;
#endif
}

X(A) floor_divide_(X(A) a, X(B) b) {
#ifdef FLOATING
    if (b == 0) return a / b;
    X(A) m = fmod(a, b);
    X(A) q = (a - m) / b;
    if (m != 0 && (b < 0) != (m < 0)) q -= 1;
    if (q == 0) return copysign((X(A))0, a / b);
    X(A) whole = floor(q);
    return q - whole > (X(A))0.5 ? whole + 1 : whole;
#else
    return 0;
#endif
}

__kernel void pointwise(const Layout layout, __global S(R) *r, __global const S(A) *pa,
                        __global const S(B) *pb, __global const S(C) *pc) {
    const long n = get_global_id(0);
    if (n >= layout.count) return;
#ifdef DENSE
    const long ir = layout.offset[0] + n, ia = layout.offset[1] + n;
    const long ib = layout.offset[2] + n, ic = layout.offset[3] + n;
#else
    const long ir = place(&layout, 0, n), ia = place(&layout, 1, n);
    const long ib = place(&layout, 2, n), ic = place(&layout, 3, n);
#endif
    const X(A) a = LOAD(A)(pa, ia);
    const X(B) b = LOAD(B)(pb, ib);
    const X(C) c = LOAD(C)(pc, ic);
    STORE(R)((EXPRESSION), r, ir);
}
