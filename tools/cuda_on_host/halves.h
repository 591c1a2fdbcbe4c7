// Numbers of 16 bits, which convert to float and back, rounded to nearest.
#pragma once
#include <cstdint>
#include <cstring>

using Half = _Float16;
struct BFloat16 {
    uint16_t bits;
    operator float() const {
        uint32_t word = (uint32_t)bits << 16;
        float number;
        std::memcpy(&number, &word, 4);
        return number;
    }
    BFloat16() = default;
    BFloat16(float number) {
        uint32_t word;
        std::memcpy(&word, &number, 4);
        bits = number != number ? (uint16_t)(word >> 16 | 0x40) : (uint16_t)((word + 0x7fff + (word >> 16 & 1)) >> 16);
    }
};
