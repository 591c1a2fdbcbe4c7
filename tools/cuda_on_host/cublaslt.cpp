// The functions of cuBLASLt that linear layers take, as its documentation says; products go by columns.
// Objects that are used after they were destroyed, wrong sizes and alignments that were not announced are errors.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>

#include "driver.h"
#include "halves.h"

namespace {
const int SUCCESS = 0, INVALID_VALUE = 7, INTERNAL_ERROR = 14, NOT_SUPPORTED = 15;

struct Product { int compute, scale, turn_a, turn_b; uint32_t epilogue; const void* bias; };
struct Layout { int type; uint64_t rows, columns; int64_t step; };
struct Preference { uint64_t workspace; uint32_t alignment[4]; };
struct Algorithm { uint64_t data[8]; };
struct Heuristic { Algorithm algorithm; size_t workspace; int state; float waves; int reserved[4]; };

std::mutex lock;
std::set<const void*> alive;

bool is_alive(const void* object) {
    std::lock_guard locked(lock);
    return alive.count(object);
}

template <typename Object> int made(Object** place, Object object) {
    *place = new Object(object);
    std::lock_guard locked(lock);
    alive.insert(*place);
    return SUCCESS;
}

template <typename Object> int destroyed(Object* object) {
    std::lock_guard locked(lock);
    if (!alive.erase(object)) return INVALID_VALUE;
    delete object;
    return SUCCESS;
}

int copied(void* place, size_t expected, const void* value, size_t size) {
    if (size != expected) return INVALID_VALUE;
    std::memcpy(place, value, size);
    return SUCCESS;
}

template <typename T>
void multiply(const Product& p, const T* a, const Layout& la, const T* b, const Layout& lb, T* d, const Layout& ld) {
    int64_t m = ld.rows, n = ld.columns, k = p.turn_a ? la.rows : la.columns;
    for (int64_t column = 0; column < n; ++column)
        for (int64_t row = 0; row < m; ++row) {
            float total = 0;
            for (int64_t i = 0; i < k; ++i) {
                int64_t at = p.turn_a ? row * la.step + i : i * la.step + row;
                int64_t bt = p.turn_b ? i * lb.step + column : column * lb.step + i;
                total += (float)a[at] * (float)b[bt];
            }
            if (p.epilogue & 4) total += (float)((const T*)p.bias)[row];
            if (p.epilogue & 2) total = total < 0 ? 0 : total;
            if (p.epilogue & 32)
                total *= 0.5f + 0.5f * std::tanh(0.7978845608f * (total + 0.044715f * total * total * total));
            d[column * ld.step + row] = (T)total;
        }
}
}  // namespace

extern "C" {
// How many objects have not been destroyed.
int hosted_living() { return (int)alive.size(); }

int cublasLtMatmulDescCreate(Product** place, int compute, int scale) {
    return made(place, Product{compute, scale, 0, 0, 1, nullptr});
}
int cublasLtMatmulDescDestroy(Product* object) { return destroyed(object); }
int cublasLtMatmulDescSetAttribute(Product* p, int attribute, const void* value, size_t size) {
    if (!is_alive(p)) return INVALID_VALUE;
    switch (attribute) {
        case 3: return copied(&p->turn_a, 4, value, size);
        case 4: return copied(&p->turn_b, 4, value, size);
        case 7: return copied(&p->epilogue, 4, value, size);
        case 8: return copied(&p->bias, 8, value, size);
    }
    return INVALID_VALUE;
}

int cublasLtMatrixLayoutCreate(Layout** place, int type, uint64_t rows, uint64_t columns, int64_t step) {
    return made(place, Layout{type, rows, columns, step});
}
int cublasLtMatrixLayoutDestroy(Layout* object) { return destroyed(object); }

int cublasLtMatmulPreferenceCreate(Preference** place) {
    return made(place, Preference{0, {256, 256, 256, 256}});
}
int cublasLtMatmulPreferenceDestroy(Preference* object) { return destroyed(object); }
int cublasLtMatmulPreferenceSetAttribute(Preference* p, int attribute, const void* value, size_t size) {
    if (!is_alive(p)) return INVALID_VALUE;
    if (attribute == 1) return copied(&p->workspace, 8, value, size);
    if (attribute >= 5 && attribute <= 8) return copied(&p->alignment[attribute - 5], 4, value, size);
    return INVALID_VALUE;
}

int cublasLtMatmulAlgoGetHeuristic(
    void* handle, Product* p, Layout* a, Layout* b, Layout* c, Layout* d, Preference* preference, int asked,
    Heuristic* found, int* count) {
    for (const void* object : {(void*)p, (void*)a, (void*)b, (void*)c, (void*)d, (void*)preference})
        if (!is_alive(object)) return INVALID_VALUE;
    if (!handle || asked < 1 || !preference->workspace || p->scale != 0) return INVALID_VALUE;
    *count = 0;
    uint64_t m = p->turn_a ? a->columns : a->rows, k = p->turn_a ? a->rows : a->columns;
    uint64_t k2 = p->turn_b ? b->columns : b->rows, n = p->turn_b ? b->rows : b->columns;
    if (k != k2 || d->rows != m || d->columns != n) return INVALID_VALUE;
    for (Layout* layout : {a, b, c, d})
        if (layout->step < (int64_t)layout->rows || layout->type != d->type) return INVALID_VALUE;
    if (d->type != 0 && d->type != 2 && d->type != 14) return NOT_SUPPORTED;
    *found = Heuristic{};
    // The algorithm relies on what was said, and needs a byte for each row.
    for (int i = 0; i < 4; ++i) found->algorithm.data[i] = preference->alignment[i];
    uint64_t bias = (uint64_t)p->bias;
    found->algorithm.data[4] = bias ? bias & -bias : 256;
    found->algorithm.data[5] = 77;
    found->workspace = m;
    *count = 1;
    return SUCCESS;
}

int cublasLtMatmul(
    void* handle, Product* p, const void* alpha, const void* a, Layout* layout_a, const void* b,
    Layout* layout_b, const void* beta, const void* c, Layout* layout_c, void* d, Layout* layout_d,
    const Algorithm* algorithm, void* workspace, size_t size, void* stream) {
    for (const void* object : {(void*)p, (void*)layout_a, (void*)layout_b, (void*)layout_c, (void*)layout_d})
        if (!is_alive(object)) return INVALID_VALUE;
    if (!handle || *(const float*)alpha != 1 || *(const float*)beta != 0) return INVALID_VALUE;
    if (algorithm->data[5] != 77 || size != layout_d->rows || p->epilogue & ~39u) return INVALID_VALUE;
    if ((p->epilogue & 4) && !p->bias) return INVALID_VALUE;
    const void* places[] = {a, b, c, d};
    for (int i = 0; i < 4; ++i)
        if ((uint64_t)places[i] % algorithm->data[i]) return INVALID_VALUE;
    uint64_t aligned = algorithm->data[4] < 256 ? algorithm->data[4] : 256;
    if ((p->epilogue & 4) && (uint64_t)p->bias % aligned) return INVALID_VALUE;
    // What describes the product may change or go as soon as it is queued.
    auto work = [=, product = *p, la = *layout_a, lb = *layout_b, ld = *layout_d] {
        std::memset(workspace, 0xff, size);
        auto go = [&]<typename T>(T* result) { multiply<T>(product, (const T*)a, la, (const T*)b, lb, result, ld); };
        if (ld.type == 0) go((float*)d);
        if (ld.type == 2) go((Half*)d);
        if (ld.type == 14) go((BFloat16*)d);
    };
    return hosted::submit(stream, work) ? INTERNAL_ERROR : SUCCESS;
}
}
