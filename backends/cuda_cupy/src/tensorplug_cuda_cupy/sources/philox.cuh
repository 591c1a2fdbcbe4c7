// Random words by counter: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
#ifndef TENSORPLUG_PHILOX
#define TENSORPLUG_PHILOX

struct Block { Word word[4]; };

__device__ inline Block philox(ULong low, ULong high, ULong seed) {
    Word a = (Word)low, b = (Word)(low >> 32), c = (Word)high, d = (Word)(high >> 32);
    Word key0 = (Word)seed, key1 = (Word)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        ULong p = (ULong)a * 0xD2511F53u, q = (ULong)c * 0xCD9E8D57u;
        a = (Word)(q >> 32) ^ b ^ key0;
        b = (Word)q;
        c = (Word)(p >> 32) ^ d ^ key1;
        d = (Word)p;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    Block result = {{a, b, c, d}};
    return result;
}

// The words of a block, counted from (low, high). In a captured graph `shift` says how much further the
// generator has come since, or how much less far, and in which bits its seed differs, so that each replay
// draws other numbers.
__device__ inline Block words_of(Long block, ULong seed, ULong low, ULong high, const ULong* shift) {
    if (shift) {
        ULong from = low + shift[0];
        high += (ULong)(from < low) - (ULong)((Long)shift[0] < 0);
        low = from;
        seed ^= shift[1];
    }
    ULong lower = low + (ULong)block;
    return philox(lower, high + (lower < low ? 1 : 0), seed);
}

#endif
