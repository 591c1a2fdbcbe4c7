// Functions of numbers that CuPy has with other results, or not in every type.

template <typename N> __device__ inline N whole_fmod(N a, N b) { return b == 0 ? (N)0 : (N)(a % b); }

// Python's %: the sign is that of b.
template <typename N> __device__ inline N float_remainder(N a, N b) {
    N rest = fmod(a, b);
    if (b == 0 || rest != rest) return rest;
    if (rest == 0) return copysign((N)0, b);
    return (b < 0) != (rest < 0) ? rest + b : rest;
}

// Python's //: what the remainder leaves, divided, is whole up to rounding.
template <typename N> __device__ inline N float_floor_divide(N a, N b) {
    if (b == 0) return a / b;
    N rest = fmod(a, b);
    N quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
    if (quotient == 0) return copysign((N)0, a / b);
    N below = floor(quotient);
    return quotient - below > (N)0.5 ? below + 1 : below;
}

// Most powers are squares.
template <typename N> __device__ inline N raised(N a, N b) { return b == (N)2 ? a * a : pow(a, b); }

// By squaring; a negative power is below 1, save of 1 and -1.
template <typename N> __device__ inline N whole_power(N a, N b) {
    if (b < 0) return a == (N)1 ? (N)1 : a == (N)-1 ? (N)(b & 1 ? -1 : 1) : (N)0;
    unsigned long long result = 1, base = (unsigned long long)a;
    for (; b; b >>= 1, base *= base)
        if (b & 1) result *= base;
    return (N)result;
}

// A shift by a negative number, or by as many bits as there are, moves every bit out.
template <typename N> __device__ inline N shifted_left(N a, N by) {
    if (by < 0 || by >= (N)(8 * sizeof(N))) return 0;
    return (N)((unsigned long long)a << by);
}

template <typename N> __device__ inline N shifted_right(N a, N by) {
    if (by < 0 || by >= (N)(8 * sizeof(N))) return a < 0 ? (N)-1 : (N)0;
    return a >> by;
}

template <typename N> __device__ inline N log_of_sum(N a, N b) {
    if (a == b) return a + (N)0.69314718055994530942;  // infinities, too
    N peak = a > b || a != a ? a : b;
    return peak + log1p(exp(-fabs(a - b)));
}
