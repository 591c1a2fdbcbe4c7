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

// The gradients of both, from that of the result and the result: r (g - sum(g r)), and g - exp(r) sum(g).
extern "C" __global__ void softmax_gradient_rows(
    const T* gradient, const T* result, T* output, Long rows, Long size, int logarithm) {
    __shared__ A scratch[THREADS];
    for (Long row = blockIdx.x; row < rows; row += gridDim.x) {
        Long first = row * size;
        A total = 0;
        for (Long i = threadIdx.x; i < size; i += blockDim.x) {
            A g = load(gradient[first + i]);
            total += logarithm ? g : g * (A)load(result[first + i]);
        }
        total = over_block<Sum>(total, scratch);
        for (Long i = threadIdx.x; i < size; i += blockDim.x) {
            A g = load(gradient[first + i]), r = load(result[first + i]);
            output[first + i] = store<T>(logarithm ? g - exp(r) * total : r * (g - total));
        }
    }
}

extern "C" __global__ void softmax_gradient_columns(
    const T* gradient, const T* result, T* output, Long outer, Long size, Long inner, int logarithm) {
    for (Long row = global_thread(); row < outer * inner; row += all_threads()) {
        Long first = row / inner * size * inner + row % inner;
        A total = 0;
        for (Long i = 0; i < size; ++i) {
            A g = load(gradient[first + i * inner]);
            total += logarithm ? g : g * (A)load(result[first + i * inner]);
        }
        for (Long i = 0; i < size; ++i) {
            Long at = first + i * inner;
            A g = load(gradient[at]), r = load(result[at]);
            output[at] = store<T>(logarithm ? g - exp(r) * total : r * (g - total));
        }
    }
}
