// New arrays from a few numbers.

__kernel void fill(const long count, const X(A) value, __global S(A) *r) {
    const long n = get_global_id(0);
    if (n < count) STORE(A)(value, r, n);
}

__kernel void arange(const long count, const NUMBER start, const NUMBER step, __global S(A) *r) {
    const long n = get_global_id(0);
    if (n < count) STORE(A)(start + (NUMBER)n * step, r, n);
}

// Philox 4x32-10 (Salmon et al. 2011): four words for each 128-bit counter, from `offset` on.
__kernel void philox(const long count, const ulong seed, const ulong low, const ulong high,
                     __global long *r) {
    const ulong block = get_global_id(0);
    if ((long)(4 * block) >= count) return;
    const ulong lower = low + block;
    const ulong upper = high + (lower < low ? 1 : 0);
    uint x0 = (uint)lower, x1 = (uint)(lower >> 32), x2 = (uint)upper, x3 = (uint)(upper >> 32);
    uint k0 = (uint)seed, k1 = (uint)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const ulong p = (ulong)x0 * 0xD2511F53u, q = (ulong)x2 * 0xCD9E8D57u;
        x0 = (uint)(q >> 32) ^ x1 ^ k0;
        x1 = (uint)q;
        x2 = (uint)(p >> 32) ^ x3 ^ k1;
        x3 = (uint)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const uint words[4] = {x0, x1, x2, x3};
    for (int i = 0; i < 4 && (long)(4 * block) + i < count; ++i) r[4 * block + i] = words[i];
}
