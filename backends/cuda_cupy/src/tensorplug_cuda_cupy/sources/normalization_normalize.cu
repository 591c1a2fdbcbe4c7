// Vectors along one dimension of (outer, size, inner), divided by their lengths.
//
// With an inner extent of 1 a block takes a vector; else a thread does, whose neighbours read neighbours.

template <bool by_block> struct Team {
    A* scratch;
    Long first, step, vector, vectors_apart;
    __device__ Team(A* memory) {
        scratch = memory;
        first = by_block ? threadIdx.x : 0;
        step = by_block ? blockDim.x : 1;
        vector = by_block ? (Long)blockIdx.x : global_thread();
        vectors_apart = by_block ? (Long)gridDim.x : all_threads();
    }
    __device__ A sum(A own) const { return by_block ? over_block<Sum>(own, scratch) : own; }
};

__device__ inline Long start_of(Long vector, Long size, Long inner) {
    return vector / inner * size * inner + vector % inner;
}

template <bool by_block>
__device__ inline void divide(
    const T* input, T* output, Long vectors, Long size, Long inner, double eps, A* scratch) {
    Team<by_block> team(scratch);
    for (Long v = team.vector; v < vectors; v += team.vectors_apart) {
        Long start = start_of(v, size, inner);
        A total = 0;
        for (Long i = team.first; i < size; i += team.step) {
            A x = load(input[start + i * inner]);
            total += x * x;
        }
        A length = Largest::of((A)sqrt(team.sum(total)), (A)eps);
        for (Long i = team.first; i < size; i += team.step)
            output[start + i * inner] = store<T>((A)load(input[start + i * inner]) / length);
    }
}

template <bool by_block>
__device__ inline void differentiate(
    const T* gradient, const T* input, T* result, Long vectors, Long size, Long inner, double eps,
    A* scratch) {
    Team<by_block> team(scratch);
    for (Long v = team.vector; v < vectors; v += team.vectors_apart) {
        Long start = start_of(v, size, inner);
        A total = 0, products = 0;
        for (Long i = team.first; i < size; i += team.step) {
            A x = load(input[start + i * inner]);
            total += x * x;
            products += x * (A)load(gradient[start + i * inner]);
        }
        A length = (A)sqrt(team.sum(total)), along = team.sum(products);
        bool below = length < (A)eps;
        length = Largest::of(length, (A)eps);
        along = below ? 0 : along / length;  // <g, y>
        for (Long i = team.first; i < size; i += team.step) {
            Long at = start + i * inner;
            result[at] = store<T>(((A)load(gradient[at]) - (A)load(input[at]) / length * along) / length);
        }
    }
}

extern "C" __global__ void divide_rows(
    const T* input, T* output, Long vectors, Long size, Long inner, double eps) {
    __shared__ A scratch[THREADS];
    divide<true>(input, output, vectors, size, inner, eps, scratch);
}

extern "C" __global__ void divide_columns(
    const T* input, T* output, Long vectors, Long size, Long inner, double eps) {
    divide<false>(input, output, vectors, size, inner, eps, 0);
}

extern "C" __global__ void gradient_of_rows(
    const T* gradient, const T* input, T* result, Long vectors, Long size, Long inner, double eps) {
    __shared__ A scratch[THREADS];
    differentiate<true>(gradient, input, result, vectors, size, inner, eps, scratch);
}

extern "C" __global__ void gradient_of_columns(
    const T* gradient, const T* input, T* result, Long vectors, Long size, Long inner, double eps) {
    differentiate<false>(gradient, input, result, vectors, size, inner, eps, 0);
}
