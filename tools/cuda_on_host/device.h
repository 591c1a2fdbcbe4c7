// What the compiler of the device knows by itself, for kernels that are compiled for the host.
//
// Blocks run one after another and threads in turn, so atomic functions need no atomics.
#pragma once
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "driver.h"

#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __shared__
#undef __forceinline__
#undef __launch_bounds__
#undef __noinline__
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define HOSTED_DYNAMIC_SHARED(type, name) type* name = (type*)hosted::shared_memory

#define threadIdx hosted::thread_index
#define blockIdx hosted::block_index
#define blockDim hosted::block_size
#define gridDim hosted::grid_size
constexpr int warpSize = 32;

// --- synchronization ---

inline void __syncthreads() { hosted::wait_for(hosted::Wait::block); }
inline void __syncwarp(unsigned = ~0u) { hosted::wait_for(hosted::Wait::warp); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

namespace hosted {

inline unsigned lane() {
    return (thread_index.x + block_size.x * (thread_index.y + block_size.y * thread_index.z)) % 32;
}

// Show every lane's value to the warp, and return that of `from`.
template <typename T> T exchanged(T value, unsigned from) {
    static_assert(sizeof(T) <= 16);
    unsigned char* places = exchange_of_warp();
    memcpy(places + 16 * lane(), &value, sizeof(T));
    __syncwarp();
    T result = value;
    memcpy(&result, places + 16 * (from % 32), sizeof(T));
    __syncwarp();
    return result;
}

}  // namespace hosted

template <typename T> T __shfl_sync(unsigned, T value, int from, int width = 32) {
    unsigned first = hosted::lane() / width * width;
    return hosted::exchanged(value, first + (unsigned)from % width);
}
template <typename T> T __shfl_down_sync(unsigned, T value, unsigned by, int width = 32) {
    unsigned own = hosted::lane(), from = own + by;
    return hosted::exchanged(value, from / width == own / width ? from : own);
}
template <typename T> T __shfl_up_sync(unsigned, T value, unsigned by, int width = 32) {
    unsigned own = hosted::lane();
    return hosted::exchanged(value, own % width >= by ? own - by : own);
}
template <typename T> T __shfl_xor_sync(unsigned, T value, int mask, int width = 32) {
    unsigned own = hosted::lane(), from = own ^ mask;
    return hosted::exchanged(value, from / width <= own / width ? from : own);
}
inline unsigned __ballot_sync(unsigned mask, int holds) {
    unsigned all = 0;
    for (int i = 0; i < 32; ++i) {
        int other = hosted::exchanged(holds, i);
        if ((hosted::lanes_of_warp() & mask) >> i & 1 && other) all |= 1u << i;
    }
    return all;
}
inline unsigned __activemask() { return hosted::lanes_of_warp(); }
inline int __any_sync(unsigned mask, int holds) { return __ballot_sync(mask, holds) != 0; }
inline int __all_sync(unsigned mask, int holds) {
    return __ballot_sync(mask, holds) == (hosted::lanes_of_warp() & mask);
}

// --- atomic functions ---

// Of the types that CUDA knows, as headers add others.
#define HOSTED_ATOMIC_OF(name, T, expression) \
    inline T name(T* address, T value) {      \
        T old = *address;                     \
        *address = (T)(expression);           \
        return old;                           \
    }
#define HOSTED_INTEGERS(name, expression)                  \
    HOSTED_ATOMIC_OF(name, int, expression)                \
    HOSTED_ATOMIC_OF(name, unsigned, expression)           \
    HOSTED_ATOMIC_OF(name, unsigned long long, expression)
HOSTED_INTEGERS(atomicAdd, old + value)
HOSTED_ATOMIC_OF(atomicAdd, float, old + value)
HOSTED_ATOMIC_OF(atomicAdd, double, old + value)
HOSTED_ATOMIC_OF(atomicSub, int, old - value)
HOSTED_ATOMIC_OF(atomicSub, unsigned, old - value)
HOSTED_INTEGERS(atomicExch, value)
HOSTED_ATOMIC_OF(atomicExch, float, value)
HOSTED_INTEGERS(atomicMin, value < old ? value : old)
HOSTED_ATOMIC_OF(atomicMin, long long, value < old ? value : old)
HOSTED_INTEGERS(atomicMax, value > old ? value : old)
HOSTED_ATOMIC_OF(atomicMax, long long, value > old ? value : old)
HOSTED_INTEGERS(atomicAnd, old & value)
HOSTED_INTEGERS(atomicOr, old | value)
HOSTED_INTEGERS(atomicXor, old ^ value)

#define HOSTED_SWAP(T)                                   \
    inline T atomicCAS(T* address, T expected, T value) { \
        T old = *address;                                \
        if (old == expected) *address = value;           \
        return old;                                      \
    }
HOSTED_SWAP(int)
HOSTED_SWAP(unsigned)
HOSTED_SWAP(unsigned long long)
HOSTED_SWAP(unsigned short)

// --- bits ---

namespace hosted {
template <typename To, typename From> To bits(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To result;
    memcpy(&result, &value, sizeof result);
    return result;
}
}  // namespace hosted

inline float __int_as_float(int x) { return hosted::bits<float>(x); }
inline float __uint_as_float(unsigned x) { return hosted::bits<float>(x); }
inline int __float_as_int(float x) { return hosted::bits<int>(x); }
inline unsigned __float_as_uint(float x) { return hosted::bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return hosted::bits<double>(x); }
inline long long __double_as_longlong(double x) { return hosted::bits<long long>(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
template <typename T> T __ldg(const T* address) { return *address; }

inline float half_to_float(unsigned short x) { return (float)hosted::bits<_Float16>(x); }
inline unsigned short float_to_half(float x) { return hosted::bits<unsigned short>((_Float16)x); }

// --- functions that C++ lacks ---

// As in C, operands of two types are taken as the one that both convert to.
#define HOSTED_PAIR(name, T, expression) \
    inline T name(T a, T b) { return expression; }
#define HOSTED_ORDER(T)                  \
    HOSTED_PAIR(min, T, b < a ? b : a)   \
    HOSTED_PAIR(max, T, b > a ? b : a)
HOSTED_ORDER(int)
HOSTED_ORDER(unsigned)
HOSTED_ORDER(long)
HOSTED_ORDER(unsigned long)
HOSTED_ORDER(long long)
HOSTED_ORDER(unsigned long long)
HOSTED_PAIR(min, float, fmin(a, b))
HOSTED_PAIR(max, float, fmax(a, b))
HOSTED_PAIR(min, double, fmin(a, b))
HOSTED_PAIR(max, double, fmax(a, b))
template <typename A, typename B> requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && !std::is_same_v<A, B>)
std::common_type_t<A, B> min(A a, B b) { return min((std::common_type_t<A, B>)a, (std::common_type_t<A, B>)b); }
template <typename A, typename B> requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && !std::is_same_v<A, B>)
std::common_type_t<A, B> max(A a, B b) { return max((std::common_type_t<A, B>)a, (std::common_type_t<A, B>)b); }

namespace hosted {

// Newton's method on the logarithm of erfc, which is nearly a parabola.
inline double inverse_erfc(double y) {
    if (!(y >= 0 && y <= 2)) return NAN;
    if (y == 0) return INFINITY;
    if (y == 2) return -INFINITY;
    if (y > 1) return -inverse_erfc(2 - y);
    long double target = logl(y), x = sqrtl(-target) / 1.5L;
    for (int i = 0; i < 60; ++i) {
        long double value = erfcl(x), step = (logl(value) - target) * value * expl(x * x) * sqrtl(M_PIl) / 2;
        x += step;
        if (fabsl(step) < 1e-18L * fabsl(x)) break;
    }
    return (double)x;
}

inline double inverse_erf(double y) {
    if (fabs(y) > 0.5) return y > 0 ? inverse_erfc(1 - y) : -inverse_erfc(1 + y);
    long double x = y * sqrtl(M_PIl) / 2;
    for (int i = 0; i < 30; ++i) x -= (erfl(x) - y) * expl(x * x) * sqrtl(M_PIl) / 2;
    return (double)x;
}

// erfc(x) exp(x^2); a continued fraction where both would leave the range.
inline double scaled_erfc(double x) {
    if (x < 25) return (double)(erfcl(x) * expl((long double)x * x));
    long double tail = x;
    for (int i = 60; i > 0; --i) tail = x + i / 2.0L / tail;
    return (double)(1 / (sqrtl(M_PIl) * tail));
}

inline double bessel_i(int order, double x) {
    double value = fabs(x) > 713 ? INFINITY : std::cyl_bessel_i((double)order, fabs(x));
    return order % 2 && x < 0 ? -value : value;
}

}  // namespace hosted

#define HOSTED_BOTH(name, f, expression)                    \
    inline double name(double x) { return expression; }     \
    inline float name(float x) { return (float)(expression); } \
    inline float f(float x) { return (float)(expression); }
HOSTED_BOTH(rsqrt, rsqrtf, 1 / sqrt((double)x))
HOSTED_BOTH(rcbrt, rcbrtf, 1 / cbrt((double)x))
HOSTED_BOTH(sinpi, sinpif, sin(M_PI * fmod((double)x, 2)))
HOSTED_BOTH(cospi, cospif, cos(M_PI * fmod((double)x, 2)))
HOSTED_BOTH(normcdf, normcdff, erfc((double)x * -M_SQRT1_2) / 2)
HOSTED_BOTH(normcdfinv, normcdfinvf, -M_SQRT2 * hosted::inverse_erfc(2 * (double)x))
HOSTED_BOTH(erfinv, erfinvf, hosted::inverse_erf((double)x))
HOSTED_BOTH(erfcinv, erfcinvf, hosted::inverse_erfc((double)x))
HOSTED_BOTH(erfcx, erfcxf, hosted::scaled_erfc((double)x))
HOSTED_BOTH(cyl_bessel_i0, cyl_bessel_i0f, hosted::bessel_i(0, (double)x))
HOSTED_BOTH(cyl_bessel_i1, cyl_bessel_i1f, hosted::bessel_i(1, (double)x))

// What CuPy's kernels include, here to be compiled once.
#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/math_constants.h>
