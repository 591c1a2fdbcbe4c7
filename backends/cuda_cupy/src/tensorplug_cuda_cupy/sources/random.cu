// Random words by counter, see philox.cuh.

// out[i] = word i % 4 of the block with the counter (low, high) + i / 4.
extern "C" __global__ void philox_bits(
    Long* out, Long count, ULong seed, ULong low, ULong high, const ULong* shift) {
    for (Long block = global_thread(); 4 * block < count; block += all_threads()) {
        Block words = words_of(block, seed, low, high, shift);
        for (int i = 0; i < 4; ++i)
            if (4 * block + i < count) out[4 * block + i] = (Long)words.word[i];
    }
}
