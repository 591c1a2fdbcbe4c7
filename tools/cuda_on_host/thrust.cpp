// The sorts of Thrust that CuPy calls: stable, NaNs last, complex numbers by real part first.
#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "driver.h"

namespace {

template <typename T> bool is_nan(T x) { return x != x; }

template <typename T> bool less(T a, T b) {
    if (is_nan(b)) return !is_nan(a);
    return a < b;
}

template <typename N> bool less(std::complex<N> a, std::complex<N> b) {
    bool nan_a = is_nan(a.real()) || is_nan(a.imag()), nan_b = is_nan(b.real()) || is_nan(b.imag());
    if (nan_a || nan_b) {
        auto rank = [](std::complex<N> x) { return (is_nan(x.real()) ? 2 : 0) + (is_nan(x.imag()) ? 1 : 0); };
        if (rank(a) != rank(b)) return rank(a) < rank(b);
        return is_nan(a.real()) ? less(a.imag(), b.imag()) : less(a.real(), b.real());
    }
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
}

// Sort each row, and write where its elements came from.
template <typename T> void sort_rows(void* memory, int64_t* order, size_t rows, size_t length) {
    std::vector<int64_t> places(length);
    std::vector<T> row(length);
    for (size_t r = 0; r < rows; ++r) {
        T* data = (T*)memory + r * length;
        std::iota(places.begin(), places.end(), 0);
        std::stable_sort(places.begin(), places.end(), [&](int64_t i, int64_t j) { return less(data[i], data[j]); });
        for (size_t i = 0; i < length; ++i) row[i] = data[places[i]];
        std::copy(row.begin(), row.end(), data);
        if (order) std::copy(places.begin(), places.end(), order + r * length);
    }
}

template <typename T> void sort_keys(void* memory, int64_t* order, size_t keys, size_t length) {
    std::iota(order, order + length, 0);
    for (size_t k = 0; k < keys; ++k) {
        const T* data = (const T*)memory + k * length;
        std::stable_sort(order, order + length, [&](int64_t i, int64_t j) { return less(data[i], data[j]); });
    }
}

template <typename Call> int with_type(char type, Call call) {
    switch (type) {
        case '?': case 'B': call(uint8_t()); return 0;
        case 'b': call(int8_t()); return 0;
        case 'h': call(int16_t()); return 0;
        case 'H': call(uint16_t()); return 0;
        case 'i': call(int32_t()); return 0;
        case 'I': call(uint32_t()); return 0;
        case 'l': case 'q': call(int64_t()); return 0;
        case 'L': case 'Q': call(uint64_t()); return 0;
        case 'e': call(_Float16()); return 0;
        case 'f': call(float()); return 0;
        case 'd': call(double()); return 0;
        case 'F': call(std::complex<float>()); return 0;
        case 'D': call(std::complex<double>()); return 0;
        default: return 1;
    }
}

}  // namespace

extern "C" int hosted_sort(void* stream, char type, void* data, int64_t* order, size_t rows, size_t length) {
    return with_type(type, [=]<typename T>(T) {
        hosted::submit(stream, [=] { sort_rows<T>(data, order, rows, length); });
    });
}

extern "C" int hosted_lexsort(void* stream, char type, void* data, int64_t* order, size_t keys, size_t length) {
    return with_type(type, [=]<typename T>(T) {
        hosted::submit(stream, [=] { sort_keys<T>(data, order, keys, length); });
    });
}
