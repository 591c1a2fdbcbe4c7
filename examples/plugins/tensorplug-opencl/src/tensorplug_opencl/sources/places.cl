// Reading and writing at positions along a dimension.

// r[n] = a[..., index[n], ...]; the second array is the index, of dtype I.
__kernel void gather(const Layout layout, const long step, __global S(A) *r,
                     __global const S(A) *pa, __global const S(I) *index) {
    const long n = get_global_id(0);
    if (n >= layout.count) return;
    const long at = LOAD(I)(index, place(&layout, 2, n)) * step;
    const X(A) value = LOAD(A)(pa, place(&layout, 1, n) + at);
    STORE(A)(value, r, place(&layout, 0, n));
}

// Add to (ADDING) or overwrite r[..., index[n], ...]. A work item has a line along the dimension, whose
// positions nobody else writes to, so that the sum is the same each time.
__kernel void scatter(const Layout lines, const long size, const long step, const long step_index,
                      const long step_source, __global S(A) *r, __global const S(I) *index,
                      __global const S(A) *source) {
    const long n = get_global_id(0);
    if (n >= lines.count) return;
    const long ir = place(&lines, 0, n), ii = place(&lines, 1, n), is = place(&lines, 2, n);
    for (long k = 0; k < size; ++k) {
        const long at = ir + (long)LOAD(I)(index, ii + k * step_index) * step;
        const X(A) value = LOAD(A)(source, is + k * step_source);
#ifdef ADDING
        STORE(A)(LOAD(A)(r, at) + value, r, at);
#else
        STORE(A)(value, r, at);
#endif
    }
}
