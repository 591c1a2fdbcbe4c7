/* Elements as unsigned keys in the same order: -0 equals 0, and all NaN are the largest key. */
#ifndef TENSORPLUG_KEYS_H
#define TENSORPLUG_KEYS_H

#include "types.h"

static inline uint32_t key_F32(float x) {
    union { float f; uint32_t u; } b = {.f = x + 0.0f}; /* -0 becomes 0 */
    return x != x ? UINT32_MAX : b.u ^ ((uint32_t)((int32_t)b.u >> 31) | 0x80000000u);
}
static inline uint64_t key_F64(double x) {
    union { double f; uint64_t u; } b = {.f = x + 0.0};
    return x != x ? UINT64_MAX : b.u ^ ((uint64_t)((int64_t)b.u >> 63) | 0x8000000000000000u);
}
static inline uint64_t key_I64(int64_t x) { return (uint64_t)x ^ 0x8000000000000000u; }
static inline uint32_t key_I32(int32_t x) { return (uint32_t)x ^ 0x80000000u; }
static inline uint32_t key_I16(int16_t x) { return (uint32_t)(uint16_t)(x ^ 0x8000); }
static inline uint32_t key_I8(int8_t x) { return (uint32_t)(uint8_t)(x ^ 0x80); }
static inline uint32_t key_U8(uint8_t x) { return x; }
static inline uint32_t key_BOOL(uint8_t x) { return x != 0; }
static inline uint32_t key_half(uint16_t x, uint32_t infinity) {
    const uint32_t size = x & 0x7fff;
    return size > infinity ? UINT32_MAX : x & 0x8000 ? 0x8000 - size : 0x8000 + size;
}
static inline uint32_t key_F16(uint16_t x) { return key_half(x, 0x7c00); }
static inline uint32_t key_BF16(uint16_t x) { return key_half(x, 0x7f80); }

#endif
