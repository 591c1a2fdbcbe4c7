// A step of Adafactor: what it looks at in between, two norms, stays on the device.
//
// A parameter is seen as (matrices, rows, columns); sums of squares come as one part per block, which whoever
// needs the sum adds up, always in the same order.

struct Sizes { Long matrices, rows, columns; };

// Return the sum of `count` parts to each thread of the block.
__device__ inline A sum_of(const A* parts, int count, A* scratch) {
    A total = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) total += parts[i];
    return over_block<Sum>(total, scratch);
}

// The sum of squares of a parameter, a part per block.
extern "C" __global__ void squares(const T* input, A* parts, Long count) {
    __shared__ A scratch[THREADS];
    A total = 0;
    for (Long i = global_thread(); i < count; i += all_threads()) {
        A x = load(input[i]);
        total += x * x;
    }
    total = over_block<Sum>(total, scratch);
    if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

// As lerp: the end that is nearer is kept to the bit.
__device__ inline T moved(T old, A to, double weight) {
    A from = load(old);
    return store<T>(weight < 0.5 ? from + (A)weight * (to - from) : to - (to - from) * (A)(1 - weight));
}

// One block to a row.
extern "C" __global__ void row_means(const T* gradient, T* rows, const Sizes n, double forgotten) {
    __shared__ A scratch[THREADS];
    for (Long row = blockIdx.x; row < n.matrices * n.rows; row += gridDim.x) {
        A total = 0;
        for (Long i = threadIdx.x; i < n.columns; i += blockDim.x) {
            A g = load(gradient[row * n.columns + i]);
            total += g * g;
        }
        total = over_block<Sum>(total, scratch);
        if (threadIdx.x == 0) rows[row] = moved(rows[row], total / (A)n.columns, forgotten);
    }
}

// One thread to a column; neighbours read neighbours.
extern "C" __global__ void column_means(const T* gradient, T* columns, const Sizes n, double forgotten) {
    for (Long i = global_thread(); i < n.matrices * n.columns; i += all_threads()) {
        const T* matrix = gradient + i / n.columns * n.rows * n.columns + i % n.columns;
        A total = 0;
        for (Long row = 0; row < n.rows; ++row) {
            A g = load(matrix[row * n.columns]);
            total += g * g;
        }
        columns[i] = moved(columns[i], total / (A)n.rows, forgotten);
    }
}

// One block to a matrix: the mean of its rows' means.
extern "C" __global__ void matrix_means(const T* rows, A* means, const Sizes n, double least) {
    __shared__ A scratch[THREADS];
    for (Long matrix = blockIdx.x; matrix < n.matrices; matrix += gridDim.x) {
        A total = 0;
        for (Long i = threadIdx.x; i < n.rows; i += blockDim.x) total += (A)load(rows[matrix * n.rows + i]);
        total = over_block<Sum>(total, scratch);
        if (threadIdx.x == 0) means[matrix] = Largest::of((A)least, total / (A)n.rows);
    }
}

// What `rows` is null for has no rows and columns: `columns` is then each element's mean square itself.
__device__ inline A update_of(
    const T* gradient, const T* rows, const T* columns, const A* means, const Sizes& n, Long i, A least) {
    A g = load(gradient[i]), variance;
    if (rows) {
        Long row = i / n.columns, matrix = row / n.rows;
        variance = (A)load(rows[row]) * (A)load(columns[matrix * n.columns + i % n.columns]) / means[matrix];
    } else {
        variance = load(columns[i]);
    }
    return g / sqrt(Largest::of(variance, least));
}

extern "C" __global__ void element_means(const T* gradient, T* variances, Long count, double forgotten) {
    for (Long i = global_thread(); i < count; i += all_threads()) {
        A g = load(gradient[i]);
        variances[i] = moved(variances[i], g * g, forgotten);
    }
}

// The sum of squares of the update, a part per block.
extern "C" __global__ void update_squares(
    const T* gradient, const T* rows, const T* columns, const A* means, A* parts, const Sizes n,
    double least) {
    __shared__ A scratch[THREADS];
    A total = 0;
    for (Long i = global_thread(); i < n.matrices * n.rows * n.columns; i += all_threads()) {
        A update = update_of(gradient, rows, columns, means, n, i, (A)least);
        total += update * update;
    }
    total = over_block<Sum>(total, scratch);
    if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

extern "C" __global__ void apply(
    T* parameter, const T* gradient, const T* rows, const T* columns, const A* means, const A* squares,
    const A* updates, int parts, const Sizes n, double least, double rate, double smallest, double clip,
    double keep, int maximize) {
    __shared__ A scratch[THREADS];
    Long count = n.matrices * n.rows * n.columns;
    double size = sqrt((double)sum_of(squares, parts, scratch) / (double)count);
    double change = sqrt((double)sum_of(updates, parts, scratch) / (double)count) / clip;
    A scale = (A)((size > smallest ? size : smallest) * rate / (change > 1 ? change : 1));
    if (maximize) scale = -scale;
    for (Long i = global_thread(); i < count; i += all_threads()) {
        A update = update_of(gradient, rows, columns, means, n, i, (A)least);
        parameter[i] = store<T>((A)load(parameter[i]) * (A)keep - scale * update);
    }
}
