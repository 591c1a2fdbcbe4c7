// Element types, and how they are read and written.
//
// A source is compiled once for each type of elements that is asked for, with these macros:
//   T     the type of the elements: float, double, Half, BFloat16, an integer type
//   A     the type to compute in: float for the halves and float, double for double
// No header of the toolkit is included, so NVRTC alone suffices.
#ifndef TENSORPLUG_PRELUDE
#define TENSORPLUG_PRELUDE

#define SYNC __syncthreads()
#define INFINITE __int_as_float(0x7f800000)
#define NOT_A_NUMBER __int_as_float(0x7fc00000)

typedef long long Long;
typedef unsigned long long ULong;
typedef unsigned int Word;

struct Half { unsigned short bits; };
struct BFloat16 { unsigned short bits; };

#define THREADS 256  // of each block that reduces

__device__ inline Word word_of(float x) {
    union { float number; Word word; } both;
    both.number = x;
    return both.word;
}

__device__ inline float float_of(Word x) {
    union { float number; Word word; } both;
    both.word = x;
    return both.number;
}

template <typename N> __device__ inline N load(N x) { return x; }

__device__ inline float load(BFloat16 x) { return float_of((Word)x.bits << 16); }

__device__ inline float load(Half x) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
    return result;
}

// store<T>(x) rounds to nearest, ties to even.
template <typename N> struct Rounded {
    template <typename M> static __device__ inline N of(M x) { return (N)x; }
};

template <> struct Rounded<BFloat16> {
    static __device__ inline BFloat16 of(float x) {
        Word word = word_of(x);
        BFloat16 result;
        if ((word & 0x7fffffffu) > 0x7f800000u)
            result.bits = (unsigned short)((word >> 16) | 0x40);  // a quiet NaN stays one
        else
            result.bits = (unsigned short)((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
        return result;
    }
};

template <> struct Rounded<Half> {
    static __device__ inline Half of(float x) {
        Half result;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
        return result;
    }
};

template <typename N, typename M> __device__ inline N store(M x) { return Rounded<N>::of(x); }

__device__ inline Long global_thread() {
    return (Long)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline Long all_threads() { return (Long)gridDim.x * blockDim.x; }

#endif
