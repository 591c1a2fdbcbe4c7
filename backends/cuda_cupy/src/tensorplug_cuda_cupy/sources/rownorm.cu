// Layer norm and RMS norm of (rows, size) with weights: a block for each row.
//
// Means and 1 / deviations are of type A. NARROW says whether the weights are of type T, else they are A;
// without `means` it is RMS norm, which takes no mean off.

#if NARROW
typedef T W;
#else
typedef A W;
#endif

#ifdef HOST_SHIM
#define LANES 4
#else
#define LANES 32
#endif

extern "C" __global__ void normalize_rows(
    const T* input, const W* weight, const W* bias, T* output, A* means, A* rstds, Long rows, Long size,
    double eps) {
    __shared__ A scratch[THREADS];
    for (Long row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* in = input + row * size;
        A mean = 0, squares = 0;
        if (means) {
            for (Long i = threadIdx.x; i < size; i += blockDim.x) mean += (A)load(in[i]);
            mean = over_block<Sum>(mean, scratch) / (A)size;
        }
        for (Long i = threadIdx.x; i < size; i += blockDim.x) {
            A distance = (A)load(in[i]) - mean;
            squares += distance * distance;
        }
        A rstd = (A)1 / sqrt(over_block<Sum>(squares, scratch) / (A)size + (A)eps);
        for (Long i = threadIdx.x; i < size; i += blockDim.x) {
            A standard = ((A)load(in[i]) - mean) * rstd * (A)load(weight[i]);
            output[row * size + i] = store<T>(bias ? standard + (A)load(bias[i]) : standard);
        }
        if (threadIdx.x == 0) {
            if (means) means[row] = mean;
            rstds[row] = rstd;
        }
    }
}

// dx = rstd (w g - mean(w g) - x̂ mean(w g x̂)) + g_mean / n - g_rstd rstd^2 x̂ / n
extern "C" __global__ void normalize_rows_gradient(
    const T* gradient, const A* g_means, const A* g_rstds, const T* input, const W* weight,
    const A* means, const A* rstds, T* result, Long rows, Long size) {
    __shared__ A scratch[THREADS];
    for (Long row = blockIdx.x; row < rows; row += gridDim.x) {
        Long first = row * size;
        A mean = means ? means[row] : (A)0, rstd = rstds[row], total = 0, products = 0;
        for (Long i = threadIdx.x; i < size; i += blockDim.x) {
            A g = (A)load(gradient[first + i]) * (A)load(weight[i]);
            total += g;
            products += g * ((A)load(input[first + i]) - mean);
        }
        A constant = 0;
        if (means) constant = (over_block<Sum>(total, scratch) * rstd - g_means[row]) / (A)size;
        A along = (over_block<Sum>(products, scratch) * rstd + g_rstds[row] * rstd) * rstd / (A)size;
        for (Long i = threadIdx.x; i < size; i += blockDim.x) {
            A g = (A)load(gradient[first + i]) * (A)load(weight[i]);
            A standard = ((A)load(input[first + i]) - mean) * rstd;
            result[first + i] = store<T>(g * rstd - standard * along - constant);
        }
    }
}

struct Pair { A first, second; };

// The sums of g and of g x̂ over some of the rows, LANES columns to a block.
extern "C" __global__ void sums_of_columns(
    const T* gradient, const T* input, const A* means, const A* rstds, Pair* partial, Long rows,
    Long size, Long splits) {
    __shared__ Pair scratch[THREADS];
    Long column = (Long)(blockIdx.x / splits) * LANES + threadIdx.x % LANES, split = blockIdx.x % splits;
    Long share = (rows + splits - 1) / splits;
    Long end = (split + 1) * share < rows ? (split + 1) * share : rows;
    Pair own = {0, 0};
    if (column < size)
        for (Long row = split * share + threadIdx.x / LANES; row < end; row += blockDim.x / LANES) {
            A g = load(gradient[row * size + column]);
            A mean = means ? means[row] : (A)0;
            own.first += g;
            own.second += g * ((A)load(input[row * size + column]) - mean) * rstds[row];
        }
    scratch[threadIdx.x] = own;
    SYNC;
    if (threadIdx.x < LANES && column < size) {
        for (Word other = threadIdx.x + LANES; other < blockDim.x; other += LANES) {
            own.first += scratch[other].first;
            own.second += scratch[other].second;
        }
        partial[split * size + column] = own;
    }
}

extern "C" __global__ void add_up_columns(
    const Pair* partial, W* g_weight, W* g_bias, Long size, Long splits) {
    for (Long i = global_thread(); i < size; i += all_threads()) {
        Pair all = partial[i];
        for (Long split = 1; split < splits; ++split) {
            all.first += partial[split * size + i].first;
            all.second += partial[split * size + i].second;
        }
        g_weight[i] = store<W>(all.second);
        if (g_bias) g_bias[i] = store<W>(all.first);
    }
}
