// The functions of cuFFT that CuPy calls, as its documentation says, by the definition of the transform.
#include <complex>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "driver.h"

namespace {

using C = std::complex<double>;
enum Status { fine = 0, invalid_plan = 1, invalid_value = 4, failed = 6, unsupported = 16 };
// Of cufftType.
enum Type { r2c = 0x2a, c2r = 0x2c, c2c = 0x29, d2z = 0x6a, z2d = 0x6c, z2z = 0x69 };

struct Plan {
    std::vector<long long> sizes, in_embed, out_embed;
    long long in_stride, in_step, out_stride, out_step;
    int type, batch;
    void* stream = nullptr;
};

std::map<int, std::shared_ptr<Plan>> plans;
int next_plan = 1;

// One transform along an axis of row-major data, without normalization.
void along(std::vector<C>& data, const std::vector<long long>& sizes, size_t axis, int sign) {
    long long n = sizes[axis], inner = 1, outer = 1;
    for (size_t d = 0; d < axis; ++d) outer *= sizes[d];
    for (size_t d = axis + 1; d < sizes.size(); ++d) inner *= sizes[d];
    std::vector<C> roots(n), line(n);
    for (long long i = 0; i < n; ++i) roots[i] = std::polar(1.0, sign * 2 * M_PI * i / n);
    for (long long o = 0; o < outer; ++o)
        for (long long i = 0; i < inner; ++i) {
            for (long long k = 0; k < n; ++k) {
                line[k] = 0;
                for (long long j = 0; j < n; ++j) line[k] += data[(o * n + j) * inner + i] * roots[j * k % n];
            }
            for (long long k = 0; k < n; ++k) data[(o * n + k) * inner + i] = line[k];
        }
}

// Call with each index into `sizes`, and its place in memory laid out as `embed`.
void each(const std::vector<long long>& sizes, const std::vector<long long>& embed, long long stride,
          const std::function<void(const std::vector<long long>&, long long)>& call) {
    std::vector<long long> index(sizes.size(), 0);
    for (long long size : sizes)
        if (!size) return;
    while (true) {
        long long place = 0;
        for (size_t d = 0; d < sizes.size(); ++d) place = place * (d ? embed[d] : 1) + index[d];
        call(index, place * stride);
        size_t d = sizes.size();
        while (d && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
        if (!d) return;
    }
}

long long flat(const std::vector<long long>& index, const std::vector<long long>& sizes) {
    long long place = 0;
    for (size_t d = 0; d < sizes.size(); ++d) place = place * sizes[d] + index[d];
    return place;
}

template <typename R> void transform(const Plan& plan, const void* in, void* out, int sign) {
    bool from_real = plan.type == r2c || plan.type == d2z, to_real = plan.type == c2r || plan.type == z2d;
    std::vector<long long> half = plan.sizes;
    half.back() = half.back() / 2 + 1;
    long long count = 1;
    for (long long size : plan.sizes) count *= size;
    std::vector<std::vector<C>> results;
    for (int batch = 0; batch < plan.batch; ++batch) {
        std::vector<C> data(count);
        const R* real = (const R*)in + batch * plan.in_step;
        const std::complex<R>* complex = (const std::complex<R>*)in + batch * plan.in_step;
        each(to_real ? half : plan.sizes, plan.in_embed, plan.in_stride, [&](auto& index, long long place) {
            C value = from_real ? C(real[place]) : C(complex[place]);
            data[flat(index, plan.sizes)] = value;
            if (!to_real) return;
            auto mirrored = index;  // the other half of the last dimension
            for (size_t d = 0; d < index.size(); ++d)
                mirrored[d] = (plan.sizes[d] - index[d]) % plan.sizes[d];
            if (mirrored.back() >= half.back()) data[flat(mirrored, plan.sizes)] = std::conj(value);
        });
        for (size_t axis = 0; axis < plan.sizes.size(); ++axis) along(data, plan.sizes, axis, sign);
        results.push_back(std::move(data));
    }
    for (int batch = 0; batch < plan.batch; ++batch) {
        R* real = (R*)out + batch * plan.out_step;
        std::complex<R>* complex = (std::complex<R>*)out + batch * plan.out_step;
        each(from_real ? half : plan.sizes, plan.out_embed, plan.out_stride, [&](auto& index, long long place) {
            C value = results[batch][flat(index, plan.sizes)];
            if (to_real)
                real[place] = (R)value.real();
            else
                complex[place] = std::complex<R>((R)value.real(), (R)value.imag());
        });
    }
}

int run(int handle, const void* in, void* out, int sign) {
    auto found = plans.find(handle);
    if (found == plans.end()) return invalid_plan;
    auto plan = found->second;
    bool narrow = plan->type == c2c || plan->type == r2c || plan->type == c2r;
    return hosted::submit(plan->stream, [=] {
        narrow ? transform<float>(*plan, in, out, sign) : transform<double>(*plan, in, out, sign);
    }) ? failed : fine;
}

template <typename I>
int make(int handle, int rank, const I* sizes, const I* in_embed, long long in_stride, long long in_step,
         const I* out_embed, long long out_stride, long long out_step, int type, int batch, size_t* work) {
    auto found = plans.find(handle);
    if (found == plans.end()) return invalid_plan;
    Plan plan{{sizes, sizes + rank}, {}, {}, in_stride, in_step, out_stride, out_step, type, batch, found->second->stream};
    for (long long size : plan.sizes)
        if (size < 1) return invalid_value;
    bool from_real = type == r2c || type == d2z, to_real = type == c2r || type == z2d;
    auto half = plan.sizes;
    half.back() = half.back() / 2 + 1;
    auto dense = [&](const std::vector<long long>& shape) {
        long long all = 1;
        for (long long size : shape) all *= size;
        return all;
    };
    if (in_embed && out_embed) {
        plan.in_embed.assign(in_embed, in_embed + rank);
        plan.out_embed.assign(out_embed, out_embed + rank);
    } else {  // then the strides are not looked at
        plan.in_embed = to_real ? half : plan.sizes;
        plan.out_embed = from_real ? half : plan.sizes;
        plan.in_stride = plan.out_stride = 1;
        plan.in_step = dense(plan.in_embed);
        plan.out_step = dense(plan.out_embed);
    }
    *work = 0;
    *found->second = plan;
    return fine;
}

}  // namespace

extern "C" {

int cufftCreate(int* handle) {
    *handle = next_plan++;
    plans[*handle].reset(new Plan);
    return fine;
}

int cufftDestroy(int handle) { return plans.erase(handle) ? fine : invalid_plan; }

int cufftGetVersion(int* version) {
    *version = 12000;
    return fine;
}

int cufftSetStream(int handle, void* stream) {
    plans.at(handle)->stream = stream;
    return fine;
}

int cufftSetAutoAllocation(int, int) { return fine; }
int cufftSetWorkArea(int, void*) { return fine; }

int cufftMakePlan1d(int handle, int size, int type, int batch, size_t* work) {
    return make<int>(handle, 1, &size, nullptr, 1, 0, nullptr, 1, 0, type, batch, work);
}

int cufftMakePlanMany(int handle, int rank, int* sizes, int* in_embed, int in_stride, int in_step, int* out_embed,
                      int out_stride, int out_step, int type, int batch, size_t* work) {
    return make<int>(handle, rank, sizes, in_embed, in_stride, in_step, out_embed, out_stride, out_step, type, batch, work);
}

int cufftExecC2C(int handle, void* in, void* out, int sign) { return run(handle, in, out, sign); }
int cufftExecZ2Z(int handle, void* in, void* out, int sign) { return run(handle, in, out, sign); }
int cufftExecR2C(int handle, void* in, void* out) { return run(handle, in, out, -1); }
int cufftExecD2Z(int handle, void* in, void* out) { return run(handle, in, out, -1); }
int cufftExecC2R(int handle, void* in, void* out) { return run(handle, in, out, 1); }
int cufftExecZ2D(int handle, void* in, void* out) { return run(handle, in, out, 1); }

}  // extern "C"

// Functions that CuPy's module refers to, and that nothing here calls.
#define MISSING(name) \
    extern "C" int name() { return unsupported; }
MISSING(cufftXtExec)
MISSING(cufftXtExecDescriptorC2C)
MISSING(cufftXtExecDescriptorZ2Z)
MISSING(cufftXtMakePlanMany)
MISSING(cufftXtMemcpy)
MISSING(cufftXtSetGPUs)
MISSING(cufftXtSetWorkArea)
