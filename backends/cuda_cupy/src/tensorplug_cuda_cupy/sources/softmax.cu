// Softmax and its logarithm along one dimension of (outer, size, inner).

// Where the elements of a row lie together: a block for each row.
extern "C" __global__ void softmax_rows(const T* input, T* output, Long rows, Long size, int logarithm) {
    __shared__ A scratch[THREADS];
    for (Long row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* in = input + row * size;
        T* out = output + row * size;
        A peak = -INFINITE;
        for (Long i = threadIdx.x; i < size; i += blockDim.x) peak = Largest::of(peak, (A)load(in[i]));
        peak = over_block<Largest>(peak, scratch);
        A total = 0;
        for (Long i = threadIdx.x; i < size; i += blockDim.x) total += exp((A)load(in[i]) - peak);
        total = over_block<Sum>(total, scratch);
        A logarithm_of_total = log(total);
        for (Long i = threadIdx.x; i < size; i += blockDim.x) {
            A shifted = (A)load(in[i]) - peak;
            out[i] = store<T>(logarithm ? shifted - logarithm_of_total : exp(shifted) / total);
        }
    }
}

// Where they are `inner` apart: a thread for each row, neighbours in memory beside each other.
extern "C" __global__ void softmax_columns(
    const T* input, T* output, Long outer, Long size, Long inner, int logarithm) {
    for (Long row = global_thread(); row < outer * inner; row += all_threads()) {
        Long first = row / inner * size * inner + row % inner;
        A peak = -INFINITE, total = 0;
        for (Long i = 0; i < size; ++i) peak = Largest::of(peak, (A)load(input[first + i * inner]));
        for (Long i = 0; i < size; ++i) total += exp((A)load(input[first + i * inner]) - peak);
        A logarithm_of_total = log(total);
        for (Long i = 0; i < size; ++i) {
            A shifted = (A)load(input[first + i * inner]) - peak;
            output[first + i * inner] =
                store<T>(logarithm ? shifted - logarithm_of_total : exp(shifted) / total);
        }
    }
}
