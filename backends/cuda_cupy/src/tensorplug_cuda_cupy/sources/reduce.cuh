// Reductions over the threads of a block, which all call them.
#ifndef TENSORPLUG_REDUCE
#define TENSORPLUG_REDUCE

struct Sum {
    template <typename N> static __device__ inline N of(N a, N b) { return a + b; }
};

struct Largest {  // NaN wins
    template <typename N> static __device__ inline N of(N a, N b) { return a > b || a != a ? a : b; }
};

// Return the combination of every thread's value to every thread. `scratch` has one place per thread.
template <typename Op, typename N> __device__ inline N over_block(N value, N* scratch) {
    scratch[threadIdx.x] = value;
    SYNC;
    for (Word half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            scratch[threadIdx.x] = Op::of(scratch[threadIdx.x], scratch[threadIdx.x + half]);
        SYNC;
    }
    N result = scratch[0];
    SYNC;  // before the scratch is used again
    return result;
}

#endif
