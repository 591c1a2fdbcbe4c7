// START and COMBINE are expressions; TOTAL is the type in which they are computed.

// Running sums or products along one dimension: a work item per line.
__kernel void running(const Layout lines, const long size, const long step_r, const long step_a,
                      __global S(A) *r, __global const S(A) *pa) {
    const long n = get_global_id(0);
    if (n >= lines.count) return;
    const long ir = place(&lines, 0, n), ia = place(&lines, 1, n);
    TOTAL total = START;
    for (long k = 0; k < size; ++k) {
        const X(A) a = LOAD(A)(pa, ia + k * step_a);
        total = COMBINE;
        STORE(A)(total, r, ir + k * step_r);
    }
}
