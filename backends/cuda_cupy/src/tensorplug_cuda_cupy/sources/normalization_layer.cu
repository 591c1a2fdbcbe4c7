// Runs of `size` elements standardized, or divided by their root mean square, with weights: a block for each.
//
// Element i has the weight i / repeat % weights, so that layer norm, group norm and instance norm are the same.

#define LANES 32

struct Weights { Long count, repeat; };

__device__ inline A weight_of(const T* weight, Long i, const Weights& w) {
    return (A)load(weight[w.repeat == 1 && w.count > i ? i : i / w.repeat % w.count]);
}

// What is taken off a run, and what it is multiplied by.
struct Statistics { A mean, rstd; };

__device__ inline Statistics statistics_of(const T* run, Long size, double eps, int centred, A* scratch) {
    Statistics found;
    A total = 0, squares = 0;
    if (centred)
        for (Long i = threadIdx.x; i < size; i += blockDim.x) total += (A)load(run[i]);
    found.mean = over_block<Sum>(total, scratch) / (A)size;
    for (Long i = threadIdx.x; i < size; i += blockDim.x) {
        A distance = (A)load(run[i]) - found.mean;
        squares += distance * distance;
    }
    found.rstd = (A)1 / sqrt(over_block<Sum>(squares, scratch) / (A)size + (A)eps);
    return found;
}

// `weight` and `bias` may be null.
extern "C" __global__ void normalize_rows(
    const T* input, const T* weight, const T* bias, T* output, Long rows, Long size, const Weights w,
    double eps, int centred) {
    __shared__ A scratch[THREADS];
    for (Long row = blockIdx.x; row < rows; row += gridDim.x) {
        Long first = row * size, along = w.count * w.repeat;
        Long turn = along ? first % along : 0;  // where in the turn of weights the run begins
        Statistics s = statistics_of(input + first, size, eps, centred, scratch);
        for (Long i = threadIdx.x; i < size; i += blockDim.x) {
            A standard = ((A)load(input[first + i]) - s.mean) * s.rstd;
            if (weight) standard *= weight_of(weight, turn + i, w);
            if (bias) standard += weight_of(bias, turn + i, w);
            output[first + i] = store<T>(standard);
        }
    }
}

// dx = rstd (w g - mean(w g) - x̂ mean(w g x̂)), without mean(w g) where no mean was taken off; the statistics
// are written for the gradients of the weights.
extern "C" __global__ void normalize_rows_backward(
    const T* gradient, const T* input, const T* weight, T* result, Statistics* statistics, Long rows,
    Long size, const Weights w, double eps, int centred) {
    __shared__ A scratch[THREADS];
    for (Long row = blockIdx.x; row < rows; row += gridDim.x) {
        Long first = row * size, along = w.count * w.repeat;
        Long turn = along ? first % along : 0;
        Statistics s = statistics_of(input + first, size, eps, centred, scratch);
        A total = 0, products = 0;
        for (Long i = threadIdx.x; i < size; i += blockDim.x) {
            A g = load(gradient[first + i]);
            if (weight) g *= weight_of(weight, turn + i, w);
            total += g;
            products += g * ((A)load(input[first + i]) - s.mean);
        }
        A constant = over_block<Sum>(total, scratch) / (A)size;
        if (!centred) constant = 0;
        A slope = over_block<Sum>(products, scratch) * s.rstd / (A)size;
        for (Long i = threadIdx.x; i < size; i += blockDim.x) {
            A g = load(gradient[first + i]);
            if (weight) g *= weight_of(weight, turn + i, w);
            A standard = ((A)load(input[first + i]) - s.mean) * s.rstd;
            result[first + i] = store<T>((g - constant - standard * slope) * s.rstd);
        }
        if (statistics && threadIdx.x == 0) statistics[row] = s;
    }
}

struct Pair { A first, second; };

struct AddPairs {
    static __device__ inline Pair of(Pair a, Pair b) {
        Pair both = {a.first + b.first, a.second + b.second};
        return both;
    }
};

// The sums of g and g x̂ over some of the rows, each as long as the weights: LANES columns to a block.
extern "C" __global__ void sums_of_columns(
    const T* gradient, const T* input, const Statistics* statistics, Pair* partial, Long rows, Long size,
    Long splits) {
    __shared__ Pair scratch[THREADS];
    Long column = (Long)(blockIdx.x / splits) * LANES + threadIdx.x % LANES, split = blockIdx.x % splits;
    Long share = (rows + splits - 1) / splits;
    Long end = (split + 1) * share < rows ? (split + 1) * share : rows;
    Pair own = {0, 0};
    if (column < size)
        for (Long row = split * share + threadIdx.x / LANES; row < end; row += blockDim.x / LANES) {
            A g = load(gradient[row * size + column]);
            Statistics s = statistics[row];
            own.first += g;
            own.second += g * ((A)load(input[row * size + column]) - s.mean) * s.rstd;
        }
    scratch[threadIdx.x] = own;
    SYNC;
    if (threadIdx.x < LANES && column < size) {
        for (Word other = threadIdx.x + LANES; other < blockDim.x; other += LANES)
            own = AddPairs::of(own, scratch[other]);
        partial[split * size + column] = own;
    }
}

// The same where weights count for several elements in succession, or rows are longer or shorter than all
// weights: a block takes some of the turns of one weight.
extern "C" __global__ void sums_of_turns(
    const T* gradient, const T* input, const Statistics* statistics, Pair* partial, Long turns, Long size,
    const Weights w, Long splits) {
    __shared__ Pair scratch[THREADS];
    Long weight = blockIdx.x / splits, split = blockIdx.x % splits;
    Long share = (turns + splits - 1) / splits;
    Long end = (split + 1) * share < turns ? (split + 1) * share : turns;
    Pair own = {0, 0};
    for (Long turn = split * share; turn < end; ++turn)
        for (Long i = threadIdx.x; i < w.repeat; i += blockDim.x) {
            Long at = (turn * w.count + weight) * w.repeat + i;
            A g = load(gradient[at]);
            Statistics s = statistics[at / size];
            own.first += g;
            own.second += g * ((A)load(input[at]) - s.mean) * s.rstd;
        }
    own = over_block<AddPairs>(own, scratch);
    if (threadIdx.x == 0) partial[split * w.count + weight] = own;
}

extern "C" __global__ void add_up_columns(
    const Pair* partial, T* g_weight, T* g_bias, Long size, Long splits) {
    for (Long i = global_thread(); i < size; i += all_threads()) {
        Pair all = partial[i];
        for (Long split = 1; split < splits; ++split) all = AddPairs::of(all, partial[split * size + i]);
        g_weight[i] = store<T>(all.second);
        g_bias[i] = store<T>(all.first);
    }
}
