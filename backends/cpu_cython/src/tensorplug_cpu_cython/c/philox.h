/* Philox 4x32-10: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3. */
#ifndef TENSORPLUG_PHILOX_H
#define TENSORPLUG_PHILOX_H

#include <stdint.h>

/* Blocks computed at a time, so that the compiler vectorises over them. */
enum { TP_PHILOX_LANES = 16 };

typedef struct { uint32_t word[4][TP_PHILOX_LANES]; } tp_philox_words;

/* The words of TP_PHILOX_LANES blocks from counter (upper, offset + first) on. */
static inline __attribute__((always_inline)) void tp_philox(
    tp_philox_words *out, uint64_t seed, uint64_t offset, uint64_t upper, uint64_t first) {
    uint32_t *a = out->word[0], *b = out->word[1], *c = out->word[2], *d = out->word[3];
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int l = 0; l < TP_PHILOX_LANES; l++) {
        const uint64_t low = offset + first + (uint64_t)l, high = upper + (low < offset);
        a[l] = (uint32_t)low;
        b[l] = (uint32_t)(low >> 32);
        c[l] = (uint32_t)high;
        d[l] = (uint32_t)(high >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int l = 0; l < TP_PHILOX_LANES; l++) {
            const uint64_t p = (uint64_t)a[l] * 0xD2511F53u, q = (uint64_t)c[l] * 0xCD9E8D57u;
            const uint32_t x = (uint32_t)(q >> 32) ^ b[l] ^ key0, y = (uint32_t)(p >> 32) ^ d[l] ^ key1;
            a[l] = x;
            b[l] = (uint32_t)q;
            c[l] = y;
            d[l] = (uint32_t)p;
        }
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

#endif
