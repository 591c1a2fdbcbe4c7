// Sums of what comes back to the rows of a table. Rows that are not there are left out.

extern "C" __global__ void count_rows(const Long* indices, int* counts, Long count, Long rows) {
    for (Long i = global_thread(); i < count; i += all_threads())
        if (indices[i] >= 0 && indices[i] < rows) atomicAdd(counts + indices[i], 1);
}

extern "C" __global__ void add_rows(
    const T* gradient, const Long* indices, const int* counts, A* result, Long count, Long width,
    Long rows, Long padding) {
    for (Long i = global_thread(); i < count * width; i += all_threads()) {
        Long row = indices[i / width];
        if (row < 0 || row >= rows || row == padding) continue;
        A g = load(gradient[i]);
        atomicAdd(result + row * width + i % width, counts ? g / (A)counts[row] : g);
    }
}
