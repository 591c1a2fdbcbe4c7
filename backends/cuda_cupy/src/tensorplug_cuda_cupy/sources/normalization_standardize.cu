// Standardization over all but the middle dimension of (outer, groups, inner): a block for each group.
// Layer norm is outer = 1, batch norm inner = the positions.

__device__ inline Long place(Long i, Long group, Long groups, Long inner) {
    if (i < inner) return group * inner + i;  // always so with layer norm; divisions take long
    return (i / inner * groups + group) * inner + i % inner;
}

extern "C" __global__ void standardize(
    const T* input, T* output, T* means, T* rstds, Long outer, Long groups, Long inner, double eps) {
    __shared__ A scratch[THREADS];
    Long count = outer * inner;
    for (Long group = blockIdx.x; group < groups; group += gridDim.x) {
        A total = 0, squares = 0;
        for (Long i = threadIdx.x; i < count; i += blockDim.x)
            total += (A)load(input[place(i, group, groups, inner)]);
        A mean = over_block<Sum>(total, scratch) / (A)count;
        for (Long i = threadIdx.x; i < count; i += blockDim.x) {
            A distance = (A)load(input[place(i, group, groups, inner)]) - mean;
            squares += distance * distance;
        }
        A rstd = (A)1 / sqrt(over_block<Sum>(squares, scratch) / (A)count + (A)eps);
        for (Long i = threadIdx.x; i < count; i += blockDim.x) {
            Long at = place(i, group, groups, inner);
            output[at] = store<T>(((A)load(input[at]) - mean) * rstd);
        }
        if (threadIdx.x == 0) {
            means[group] = store<T>(mean);
            rstds[group] = store<T>(rstd);
        }
    }
}

// dx = rstd (g - mean(g) - y mean(g y)) + g_mean / n - g_rstd rstd^2 y / n, with the output y.
extern "C" __global__ void standardize_gradient(
    const T* g_output, const T* g_mean, const T* g_rstd, const T* output, const T* rstds, T* result,
    Long outer, Long groups, Long inner) {
    __shared__ A scratch[THREADS];
    Long count = outer * inner;
    for (Long group = blockIdx.x; group < groups; group += gridDim.x) {
        A total = 0, products = 0;
        for (Long i = threadIdx.x; i < count; i += blockDim.x) {
            Long at = place(i, group, groups, inner);
            A g = load(g_output[at]);
            total += g;
            products += g * (A)load(output[at]);
        }
        A rstd = load(rstds[group]);
        A constant = (over_block<Sum>(total, scratch) * rstd - (A)load(g_mean[group])) / (A)count;
        A along = (over_block<Sum>(products, scratch) * rstd + (A)load(g_rstd[group]) * rstd * rstd)
            / (A)count;
        for (Long i = threadIdx.x; i < count; i += blockDim.x) {
            Long at = place(i, group, groups, inner);
            result[at] = store<T>((A)load(g_output[at]) * rstd - (A)load(output[at]) * along - constant);
        }
    }
}
