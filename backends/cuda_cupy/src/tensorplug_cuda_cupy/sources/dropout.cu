// Dropout: element i takes word i % 4 of block i / 4, as tp.rand would.

extern "C" __global__ void dropout(
    const T* input, T* output, bool* kept, Long count, ULong seed, ULong low, ULong high,
    const ULong* shift, Word least, double scale) {
    for (Long block = global_thread(); 4 * block < count; block += all_threads()) {
        Block words = words_of(block, seed, low, high, shift);
        for (int j = 0; j < 4; ++j) {
            Long i = 4 * block + j;
            if (i >= count) break;
            bool keep = words.word[j] >> 8 >= least;
            kept[i] = keep;
            output[i] = store<T>((A)load(input[i]) * (keep ? (A)scale : (A)0));
        }
    }
}

extern "C" __global__ void native_dropout_backward(
    const T* gradient, const bool* kept, T* output, Long count, double scale) {
    for (Long i = global_thread(); i < count; i += all_threads())
        output[i] = store<T>((A)load(gradient[i]) * (kept[i] ? (A)scale : (A)0));
}
