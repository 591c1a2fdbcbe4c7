// What attention does between its products: a block for each row of the scores of (rows, size).
//
// Row r stands for position r % length of the queries. Of a mask there is one row for each, or for each
// position: mask_rows of them. `allowed` and `added` are masks of bools and of numbers, or null.

struct Mask {
    const unsigned char* allowed;
    const T* added;
    Long rows, length, causal;
};

__device__ inline A score_of(const T* scores, Long row, Long i, Long size, const Mask& mask, A scale) {
    Long position = row % mask.length;
    if (mask.causal && i > position) return -INFINITE;
    A score = (A)load(scores[row * size + i]) * scale;
    Long at = row % mask.rows * size + i;
    if (mask.allowed && !mask.allowed[at]) return -INFINITE;
    return mask.added ? score + (A)load(mask.added[at]) : score;
}

// The softmax of each row in its place, and the logarithm of what it divides by; a row with nothing to see has
// no weights.
extern "C" __global__ void attention_weights(
    T* scores, const unsigned char* allowed, const T* added, T* logsumexp, Long rows, Long size,
    Long mask_rows, Long length, int causal, double scale_) {
    __shared__ A scratch[THREADS];
    const Mask mask = {allowed, added, mask_rows, length, causal};
    A scale = (A)scale_;
    for (Long row = blockIdx.x; row < rows; row += gridDim.x) {
        A peak = -INFINITE;
        for (Long i = threadIdx.x; i < size; i += blockDim.x)
            peak = Largest::of(peak, score_of(scores, row, i, size, mask, scale));
        peak = over_block<Largest>(peak, scratch);
        A least = peak == -INFINITE ? (A)0 : peak, total = 0;
        for (Long i = threadIdx.x; i < size; i += blockDim.x)
            total += exp(score_of(scores, row, i, size, mask, scale) - least);
        total = over_block<Sum>(total, scratch);
        if (threadIdx.x == 0) logsumexp[row] = store<T>(total == 0 ? -INFINITE : least + log(total));
        for (Long i = threadIdx.x; i < size; i += blockDim.x) {
            A weight = exp(score_of(scores, row, i, size, mask, scale) - least);
            scores[row * size + i] = store<T>(total == 0 ? (A)0 : weight / total);
        }
    }
}

// The weights once more, in the place of the scores, and in the place of `inner`, which is dO V', the gradient of
// the products of queries and keys.
extern "C" __global__ void attention_gradient(
    T* scores, T* inner, const unsigned char* allowed, const T* added, const T* logsumexp,
    const T* g_output, const T* output, const T* g_logsumexp, Long rows, Long size, Long width,
    Long mask_rows, Long length, int causal, double scale_) {
    __shared__ A scratch[THREADS];
    const Mask mask = {allowed, added, mask_rows, length, causal};
    A scale = (A)scale_;
    for (Long row = blockIdx.x; row < rows; row += gridDim.x) {
        A along = 0;
        for (Long i = threadIdx.x; i < width; i += blockDim.x)
            along += (A)load(g_output[row * width + i]) * (A)load(output[row * width + i]);
        along = over_block<Sum>(along, scratch) - (A)load(g_logsumexp[row]);
        A total = load(logsumexp[row]);
        if (total == -INFINITE) total = 0;
        for (Long i = threadIdx.x; i < size; i += blockDim.x) {
            A weight = exp(score_of(scores, row, i, size, mask, scale) - total);
            Long at = row * size + i;
            scores[at] = store<T>(weight);
            inner[at] = store<T>(weight * ((A)load(inner[at]) - along) * scale);
        }
    }
}
