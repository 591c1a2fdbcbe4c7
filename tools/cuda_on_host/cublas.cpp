// The functions of cuBLAS that matrix products take, as its documentation says; products go by columns.
#include <algorithm>
#include <complex>
#include <vector>

#include "driver.h"
#include "halves.h"

using C64 = std::complex<float>;
using C128 = std::complex<double>;

namespace {

struct Handle {
    void* stream = nullptr;
    int math = 0, pointers = 0;
};

enum Status { fine = 0, invalid = 7, unsupported = 15 };
// Of cudaDataType_t.
enum Type { f32 = 0, f64 = 1, f16 = 2, c64 = 4, c128 = 5, bf16 = 14 };

double conjugate(double x) { return x; }
float conjugate(float x) { return x; }
template <typename N> std::complex<N> conjugate(std::complex<N> x) { return std::conj(x); }

struct Product {
    int turn_a, turn_b, m, n, k;
    const void *a, *b;
    int lda, ldb, ldc;
    long long step_a, step_b, step_c;
    void* c;
    int count;
};

// Row after row in S, in which sums are held: a as (k, m), b as (n, k).
template <typename T, typename S>
std::vector<S> packed(const T* from, int rows, int columns, int step, bool turned, bool conjugated) {
    std::vector<S> to((size_t)rows * columns);
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c) {
            S value = (S)(turned ? from[(size_t)c * step + r] : from[(size_t)r * step + c]);
            to[(size_t)r * columns + c] = conjugated ? conjugate(value) : value;
        }
    return to;
}

template <typename T, typename S> void multiply(const Product& p, S alpha, S beta) {
    std::vector<S> sums(p.m);
    for (int batch = 0; batch < p.count; ++batch) {
        auto a = packed<T, S>((const T*)p.a + batch * p.step_a, p.k, p.m, p.lda, p.turn_a, p.turn_a == 2);
        auto b = packed<T, S>((const T*)p.b + batch * p.step_b, p.n, p.k, p.ldb, p.turn_b, p.turn_b == 2);
        for (int j = 0; j < p.n; ++j) {
            std::fill(sums.begin(), sums.end(), S(0));
            for (int l = 0; l < p.k; ++l) {
                S factor = b[(size_t)j * p.k + l];
                const S* column = &a[(size_t)l * p.m];
                for (int i = 0; i < p.m; ++i) sums[i] += column[i] * factor;
            }
            T* c = (T*)p.c + batch * p.step_c + (long long)j * p.ldc;
            for (int i = 0; i < p.m; ++i)
                c[i] = (T)(beta == S(0) ? alpha * sums[i] : alpha * sums[i] + beta * (S)c[i]);
        }
    }
}

template <typename T, typename S> int queue(Handle* handle, const Product& p, const void* alpha, const void* beta) {
    if (p.m < 0 || p.n < 0 || p.k < 0 || p.lda < std::max(1, p.turn_a ? p.k : p.m) ||
        p.ldb < std::max(1, p.turn_b ? p.n : p.k) || p.ldc < std::max(1, p.m))
        return invalid;
    S by = *(const S*)alpha, with = *(const S*)beta;
    return hosted::submit(handle->stream, [=] { multiply<T, S>(p, by, with); }) ? 14 : fine;
}

int product(Handle* handle, const Product& p, const void* alpha, const void* beta, int a, int b, int c) {
    if (a != b || a != c) return unsupported;
    switch (a) {
        case f32: return queue<float, float>(handle, p, alpha, beta);
        case f64: return queue<double, double>(handle, p, alpha, beta);
        case f16: return queue<Half, float>(handle, p, alpha, beta);
        case bf16: return queue<BFloat16, float>(handle, p, alpha, beta);
        case c64: return queue<C64, C64>(handle, p, alpha, beta);
        case c128: return queue<C128, C128>(handle, p, alpha, beta);
        default: return unsupported;
    }
}

}  // namespace

extern "C" {

int cublasCreate_v2(Handle** handle) {
    *handle = new Handle;
    return fine;
}

int cublasDestroy_v2(Handle* handle) {
    delete handle;
    return fine;
}

int cublasGetVersion_v2(Handle*, int* version) {
    *version = 130000;
    return fine;
}

int cublasSetStream_v2(Handle* handle, void* stream) {
    handle->stream = stream;
    return fine;
}

int cublasGetStream_v2(Handle* handle, void** stream) {
    *stream = handle->stream;
    return fine;
}

int cublasSetMathMode(Handle* handle, int mode) {
    handle->math = mode;
    return fine;
}

int cublasGetMathMode(Handle* handle, int* mode) {
    *mode = handle->math;
    return fine;
}

int cublasSetPointerMode_v2(Handle* handle, int mode) {
    handle->pointers = mode;
    return fine;
}

int cublasGetPointerMode_v2(Handle* handle, int* mode) {
    *mode = handle->pointers;
    return fine;
}

int cublasGemmStridedBatchedEx(Handle* handle, int turn_a, int turn_b, int m, int n, int k, const void* alpha,
                               const void* a, int a_type, int lda, long long step_a, const void* b, int b_type,
                               int ldb, long long step_b, const void* beta, void* c, int c_type, int ldc,
                               long long step_c, int count, int, int) {
    return product(handle, {turn_a, turn_b, m, n, k, a, b, lda, ldb, ldc, step_a, step_b, step_c, c, count}, alpha,
                   beta, a_type, b_type, c_type);
}

int cublasGemmEx(Handle* handle, int turn_a, int turn_b, int m, int n, int k, const void* alpha, const void* a,
                 int a_type, int lda, const void* b, int b_type, int ldb, const void* beta, void* c, int c_type,
                 int ldc, int, int) {
    return product(handle, {turn_a, turn_b, m, n, k, a, b, lda, ldb, ldc, 0, 0, 0, c, 1}, alpha, beta, a_type,
                   b_type, c_type);
}

#define PRODUCT(name, T, type)                                                                                     \
    int cublas##name##gemm_v2(Handle* handle, int turn_a, int turn_b, int m, int n, int k, const T* alpha,         \
                              const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc) {            \
        return product(handle, {turn_a, turn_b, m, n, k, a, b, lda, ldb, ldc, 0, 0, 0, c, 1}, alpha, beta, type,   \
                       type, type);                                                                                \
    }                                                                                                              \
    int cublas##name##gemmStridedBatched(Handle* handle, int turn_a, int turn_b, int m, int n, int k,              \
                                         const T* alpha, const T* a, int lda, long long step_a, const T* b,        \
                                         int ldb, long long step_b, const T* beta, T* c, int ldc,                  \
                                         long long step_c, int count) {                                            \
        return product(handle, {turn_a, turn_b, m, n, k, a, b, lda, ldb, ldc, step_a, step_b, step_c, c, count},   \
                       alpha, beta, type, type, type);                                                             \
    }
PRODUCT(S, float, f32)
PRODUCT(D, double, f64)
PRODUCT(C, C64, c64)
PRODUCT(Z, C128, c128)

}  // extern "C"

// Functions of cuBLAS that CuPy's module refers to, and that nothing here calls.
#define MISSING(name) \
    extern "C" int name() { return unsupported; }
MISSING(cublasCaxpy_v2)
MISSING(cublasCdgmm)
MISSING(cublasCdotc_v2)
MISSING(cublasCdotu_v2)
MISSING(cublasCgeam)
MISSING(cublasCgemmBatched)
MISSING(cublasCgemv_v2)
MISSING(cublasCgerc_v2)
MISSING(cublasCgeru_v2)
MISSING(cublasCgetrfBatched)
MISSING(cublasCgetriBatched)
MISSING(cublasCgetrsBatched)
MISSING(cublasCscal_v2)
MISSING(cublasCsscal_v2)
MISSING(cublasCsyrk_v2)
MISSING(cublasCtrsmBatched)
MISSING(cublasCtrsm_v2)
MISSING(cublasDasum_v2)
MISSING(cublasDaxpy_v2)
MISSING(cublasDdgmm)
MISSING(cublasDdot_v2)
MISSING(cublasDgeam)
MISSING(cublasDgemmBatched)
MISSING(cublasDgemv_v2)
MISSING(cublasDger_v2)
MISSING(cublasDgetrfBatched)
MISSING(cublasDgetriBatched)
MISSING(cublasDgetrsBatched)
MISSING(cublasDnrm2_v2)
MISSING(cublasDsbmv_v2)
MISSING(cublasDscal_v2)
MISSING(cublasDsyrk_v2)
MISSING(cublasDtpttr)
MISSING(cublasDtrsmBatched)
MISSING(cublasDtrsm_v2)
MISSING(cublasDtrttp)
MISSING(cublasDzasum_v2)
MISSING(cublasDznrm2_v2)
MISSING(cublasIcamax_v2)
MISSING(cublasIcamin_v2)
MISSING(cublasIdamax_v2)
MISSING(cublasIdamin_v2)
MISSING(cublasIsamax_v2)
MISSING(cublasIsamin_v2)
MISSING(cublasIzamax_v2)
MISSING(cublasIzamin_v2)
MISSING(cublasSasum_v2)
MISSING(cublasSaxpy_v2)
MISSING(cublasScasum_v2)
MISSING(cublasScnrm2_v2)
MISSING(cublasSdgmm)
MISSING(cublasSdot_v2)
MISSING(cublasSgeam)
MISSING(cublasSgemmBatched)
MISSING(cublasSgemmEx)
MISSING(cublasSgemv_v2)
MISSING(cublasSger_v2)
MISSING(cublasSgetrfBatched)
MISSING(cublasSgetriBatched)
MISSING(cublasSgetrsBatched)
MISSING(cublasSnrm2_v2)
MISSING(cublasSsbmv_v2)
MISSING(cublasSscal_v2)
MISSING(cublasSsyrk_v2)
MISSING(cublasStpttr)
MISSING(cublasStrsmBatched)
MISSING(cublasStrsm_v2)
MISSING(cublasStrttp)
MISSING(cublasZaxpy_v2)
MISSING(cublasZdgmm)
MISSING(cublasZdotc_v2)
MISSING(cublasZdotu_v2)
MISSING(cublasZdscal_v2)
MISSING(cublasZgeam)
MISSING(cublasZgemmBatched)
MISSING(cublasZgemv_v2)
MISSING(cublasZgerc_v2)
MISSING(cublasZgeru_v2)
MISSING(cublasZgetrfBatched)
MISSING(cublasZgetriBatched)
MISSING(cublasZgetrsBatched)
MISSING(cublasZscal_v2)
MISSING(cublasZsyrk_v2)
MISSING(cublasZtrsmBatched)
MISSING(cublasZtrsm_v2)
