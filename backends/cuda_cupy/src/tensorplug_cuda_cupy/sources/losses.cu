// Cross-entropy of (outer, classes, inner) scores with target classes (outer, inner), without the
// log-probabilities in memory. A target that is no class gives NaN.

// The largest score of a row, and the sum of exponentials of what the others are less; both in one pass.
struct Total { A peak, sum; };

struct MergeTotals {
    static __device__ inline Total of(Total a, Total b) {
        Total both;
        both.peak = Largest::of(a.peak, b.peak);
        if (both.peak == -INFINITE) {
            both.sum = a.sum + b.sum;
            return both;
        }
        both.sum = a.sum * exp(a.peak - both.peak) + b.sum * exp(b.peak - both.peak);
        return both;
    }
};

// A thread's part of a row, four elements at a time so that there are fewer exponentials.
__device__ inline Total total_of(const T* row, Long first, Long size, Long step, Long inner) {
    Total total = {-INFINITE, 0};
    for (Long i = first; i < size; i += 4 * step) {
        A x[4], peak = total.peak;
        for (int j = 0; j < 4; ++j) {
            Long at = i + j * step;
            x[j] = at < size ? (A)load(row[at * inner]) : (A)-INFINITE;
            peak = Largest::of(peak, x[j]);
        }
        if (peak == -INFINITE) continue;
        A sum = total.sum * exp(total.peak - peak);
        for (int j = 0; j < 4; ++j) sum += exp(x[j] - peak);
        total.peak = peak;
        total.sum = sum;
    }
    return total;
}

__device__ inline A weight_of(const T* weight, Long chosen, Long classes, Long ignored) {
    if (chosen == ignored) return 0;
    if (chosen < 0 || chosen >= classes) return (A)NOT_A_NUMBER;
    return weight ? (A)load(weight[chosen]) : (A)1;
}

__device__ inline A loss_of(const T* row, Total total, Long chosen, Long classes, A factor, Long ignored,
                            Long inner) {
    if (chosen == ignored) return 0;
    if (chosen < 0 || chosen >= classes) return (A)NOT_A_NUMBER;
    return (total.peak + log(total.sum) - (A)load(row[chosen * inner])) * factor;
}

// One block to a row, whose elements lie together.
extern "C" __global__ void cross_entropy_rows(
    const T* input, const Long* target, const T* weight, A* losses, A* weights, Long rows, Long classes,
    Long ignored) {
    __shared__ Total scratch[THREADS];
    for (Long row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* in = input + row * classes;
        Total total = total_of(in, threadIdx.x, classes, blockDim.x, 1);
        total = over_block<MergeTotals>(total, scratch);
        if (threadIdx.x == 0) {
            Long chosen = target[row];
            A factor = weight_of(weight, chosen, classes, ignored);
            losses[row] = loss_of(in, total, chosen, classes, factor, ignored, 1);
            weights[row] = factor;
        }
    }
}

// One thread to a row, whose elements lie `inner` apart.
extern "C" __global__ void cross_entropy_columns(
    const T* input, const Long* target, const T* weight, A* losses, A* weights, Long outer, Long classes,
    Long inner, Long ignored) {
    for (Long i = global_thread(); i < outer * inner; i += all_threads()) {
        const T* in = input + i / inner * classes * inner + i % inner;
        Long chosen = target[i];
        A factor = weight_of(weight, chosen, classes, ignored);
        losses[i] = loss_of(in, total_of(in, 0, classes, 1, inner), chosen, classes, factor, ignored, inner);
        weights[i] = factor;
    }
}

// The same of log-probabilities, element by element.
extern "C" __global__ void nll(
    const T* input, const Long* target, const T* weight, A* losses, A* weights, Long outer, Long classes,
    Long inner, Long ignored) {
    for (Long i = global_thread(); i < outer * inner; i += all_threads()) {
        Long chosen = target[i];
        A factor = weight_of(weight, chosen, classes, ignored), loss = factor;
        if (chosen != ignored && chosen >= 0 && chosen < classes)
            loss = -(A)load(input[(i / inner * classes + chosen) * inner + i % inner]) * factor;
        losses[i] = loss;
        weights[i] = factor;
    }
}

// By one block: the sum of the losses, divided by that of the weights for the mean.
extern "C" __global__ void sum_losses(
    const A* losses, const A* weights, T* result, Long count, int mean) {
    __shared__ A scratch[THREADS];
    A loss = 0, weight = 0;
    for (Long i = threadIdx.x; i < count; i += blockDim.x) {
        loss += losses[i];
        weight += weights[i];
    }
    loss = over_block<Sum>(loss, scratch);
    weight = over_block<Sum>(weight, scratch);
    if (threadIdx.x == 0) result[0] = store<T>(mean ? loss / weight : loss);
}

// By one block: what the weights of all targets add up to; 1 where it is zero, as nothing is learned then.
extern "C" __global__ void sum_weights(
    const Long* target, const T* weight, A* result, Long count, Long classes, Long ignored) {
    __shared__ A scratch[THREADS];
    A total = 0;
    for (Long i = threadIdx.x; i < count; i += blockDim.x)
        total += weight_of(weight, target[i], classes, ignored);
    total = over_block<Sum>(total, scratch);
    if (threadIdx.x == 0) result[0] = total == 0 ? (A)1 : total;
}

// The gradient of a sample's loss, which is one for all, or one each (`each`); `whole` is null for sums.
__device__ inline A share_of(
    const T* gradient, int each, const T* weight, const A* whole, Long i, Long chosen, Long classes,
    Long ignored) {
    if (chosen == ignored) return 0;
    A factor = weight_of(weight, chosen, classes, ignored);
    if (whole) factor /= *whole;
    return (A)load(gradient[each ? i : 0]) * factor;
}

// Written among zeros.
extern "C" __global__ void nll_backward(
    const T* gradient, int each, const Long* target, const T* weight, const A* whole, T* output,
    Long outer, Long classes, Long inner, Long ignored) {
    for (Long i = global_thread(); i < outer * inner; i += all_threads()) {
        Long chosen = target[i];
        A share = share_of(gradient, each, weight, whole, i, chosen, classes, ignored);
        if (chosen >= 0 && chosen < classes)
            output[(i / inner * classes + chosen) * inner + i % inner] = store<T>(-share);
    }
}

extern "C" __global__ void cross_entropy_gradient_rows(
    const T* gradient, int each, const T* input, const Long* target, const T* weight, const A* whole,
    T* output, Long rows, Long classes, Long ignored) {
    __shared__ Total scratch[THREADS];
    for (Long row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* in = input + row * classes;
        T* out = output + row * classes;
        Total total = total_of(in, threadIdx.x, classes, blockDim.x, 1);
        total = over_block<MergeTotals>(total, scratch);
        Long chosen = target[row];
        A share = share_of(gradient, each, weight, whole, row, chosen, classes, ignored);
        for (Long i = threadIdx.x; i < classes; i += blockDim.x) {
            A part = exp((A)load(in[i]) - total.peak) / total.sum * share;
            out[i] = store<T>(i == chosen ? part - share : part);
        }
    }
}

extern "C" __global__ void cross_entropy_gradient_columns(
    const T* gradient, int each, const T* input, const Long* target, const T* weight, const A* whole,
    T* output, Long outer, Long classes, Long inner, Long ignored) {
    for (Long i = global_thread(); i < outer * inner; i += all_threads()) {
        Long first = i / inner * classes * inner + i % inner, chosen = target[i];
        Total total = total_of(input + first, 0, classes, 1, inner);
        A share = share_of(gradient, each, weight, whole, i, chosen, classes, ignored);
        for (Long c = 0; c < classes; ++c) {
            A part = exp((A)load(input[first + c * inner]) - total.peak) / total.sum * share;
            output[first + c * inner] = store<T>(c == chosen ? part - share : part);
        }
    }
}
