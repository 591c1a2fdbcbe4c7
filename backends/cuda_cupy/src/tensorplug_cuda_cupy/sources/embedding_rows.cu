// Rows of a table by their numbers, as bits; `absent` stands in those that are not there.

extern "C" __global__ void rows_of(
    const T* table, const Long* indices, T* output, Long count, Long width, Long rows, ULong absent) {
    for (Long i = global_thread(); i < count * width; i += all_threads()) {
        Long row = indices[i / width];
        output[i] = row >= 0 && row < rows ? table[row * width + i % width] : store<T>(absent);
    }
}
