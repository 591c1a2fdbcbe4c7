// Runs kernels on the host, one block after another, its threads as threads: enough to check their arithmetic
// and their indices, not what is a GPU's own (timing, memory order, the precision of its functions).
#pragma once
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#define HOST_SHIM
#define __global__
#define __device__
#define __shared__ static
#define SYNC barrier_of_block->arrive_and_wait()
#define INFINITE std::numeric_limits<float>::infinity()
#define NOT_A_NUMBER std::numeric_limits<float>::quiet_NaN()

using std::copysign, std::erf, std::exp, std::expm1, std::fabs, std::floor, std::fmod, std::log, std::log1p,
    std::pow, std::sqrt, std::tanh;

struct Dim { unsigned x; };
inline thread_local Dim threadIdx, blockIdx;
inline Dim blockDim, gridDim;
inline std::unique_ptr<std::barrier<>> barrier_of_block;

template <typename N> N atomicCAS(N* address, N expected, N desired) {
    __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}

template <typename N> N atomicAdd(N* address, N value) {
    return std::atomic_ref<N>(*address).fetch_add(value);
}

inline float half_to_float(unsigned short bits) {
    _Float16 number;
    std::memcpy(&number, &bits, 2);
    return (float)number;
}

inline unsigned short float_to_half(float number) {
    _Float16 half = (_Float16)number;
    unsigned short bits;
    std::memcpy(&bits, &half, 2);
    return bits;
}

template <typename... Arguments, std::size_t... I>
void run(void (*kernel)(Arguments...), unsigned grid, unsigned block, void** values,
         std::index_sequence<I...>) {
    gridDim.x = grid;
    blockDim.x = block;
    for (unsigned b = 0; b < grid; ++b) {
        barrier_of_block = std::make_unique<std::barrier<>>(block);
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < block; ++t)
            threads.emplace_back([=] {
                threadIdx.x = t;
                blockIdx.x = b;
                kernel(*(std::remove_const_t<Arguments>*)values[I]...);
            });
        for (auto& thread : threads) thread.join();
    }
}

template <typename... Arguments>
void run(void (*kernel)(Arguments...), unsigned grid, unsigned block, void** values) {
    run(kernel, grid, block, values, std::index_sequence_for<Arguments...>());
}

#define EXPORT(variant, kernel)                                                                      \
    extern "C" void host_##variant##_##kernel(unsigned grid, unsigned block, void** values) {        \
        run(variant::kernel, grid, block, values);                                                   \
    }
