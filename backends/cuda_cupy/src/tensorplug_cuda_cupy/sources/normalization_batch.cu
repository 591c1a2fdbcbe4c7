// Batch normalization of (samples, channels, positions), rows or channels last, in three launches: partial
// results of many blocks per channel, their combination, and a pass over the elements. The order of all sums
// is fixed, so results do not differ from run to run.
//
// P is the type of weights, biases, means and of what goes with them: A, or T where those are halves, too.
// WIDE says whether an element's number needs 64 bits.

#if WIDE
typedef Long Index;
#else
typedef int Index;
#endif
#if NARROW
typedef T P;
#else
typedef A P;
#endif

#define LANES 32

struct Images { Long samples, channels, positions, channels_last; };

// Count, mean and squared distances of some numbers (Chan et al., "Updating formulae", 1979).
struct Welford { A count, mean, squares; };

struct Merge {
    static __device__ inline Welford of(Welford a, Welford b) {
        Welford both;
        both.count = a.count + b.count;
        if (both.count == 0) return a;
        A apart = b.mean - a.mean, share = b.count / both.count;
        both.mean = a.mean + apart * share;
        both.squares = a.squares + b.squares + apart * apart * a.count * share;
        return both;
    }
};

struct Pair { A first, second; };

struct AddPairs {
    static __device__ inline Pair of(Pair a, Pair b) {
        Pair both = {a.first + b.first, a.second + b.second};
        return both;
    }
};

// What a block does of a channel: numbers [start, end) of its samples * positions elements. With the channels
// last a block has LANES channels, and each of its rows of threads every so-manieth element.
struct Share { Index channel, start, end, step; bool within; };

__device__ inline Share share_of(const Images& s, Index splits) {
    Share share;
    Index count = (Index)(s.samples * s.positions), split = blockIdx.x % splits, group = blockIdx.x / splits;
    Index size = (count + splits - 1) / splits;
    share.start = split * size;
    share.end = share.start + size < count ? share.start + size : count;
    if (s.channels_last) {
        share.channel = group * LANES + threadIdx.x % LANES;
        share.start += threadIdx.x / LANES;
        share.step = blockDim.x / LANES;
    } else {
        share.channel = group;
        share.start += threadIdx.x;
        share.step = blockDim.x;
    }
    share.within = share.channel < (Index)s.channels;
    return share;
}

// Goes through a share's elements without a division for each.
struct Walk {
    Index at, sample, position, leap, rest;
    __device__ inline Walk(const Share& share, const Images& s) {
        Index positions = (Index)s.positions;
        if (s.channels_last) positions = 1;
        sample = share.start / positions;
        position = share.start % positions;
        leap = share.step / positions;
        rest = share.step % positions;
        move(share, s);
    }
    __device__ inline void move(const Share& share, const Images& s) {
        at = s.channels_last ? sample * (Index)s.channels + share.channel
                             : (sample * (Index)s.channels + share.channel) * (Index)s.positions + position;
    }
    __device__ inline void next(const Share& share, const Images& s) {
        Index positions = s.channels_last ? 1 : (Index)s.positions;
        sample += leap;
        position += rest;
        if (position >= positions) {
            position -= positions;
            ++sample;
        }
        move(share, s);
    }
};

// Combine the threads' values of a channel; the result is in the threads that `leads` says.
template <typename Op, typename N>
__device__ inline N over_channel(N value, N* scratch, const Images& s) {
    if (!s.channels_last) return over_block<Op>(value, scratch);
    scratch[threadIdx.x] = value;
    SYNC;
    if (threadIdx.x < LANES)
        for (Word other = threadIdx.x + LANES; other < blockDim.x; other += LANES)
            value = Op::of(value, scratch[other]);
    SYNC;
    return value;
}

__device__ inline bool leads(const Images& s) {
    return s.channels_last ? threadIdx.x < LANES : threadIdx.x == 0;
}

extern "C" __global__ void batch_partial_variances(const T* input, Welford* partial, const Images s, Long splits) {
    __shared__ Welford scratch[THREADS];
    Share share = share_of(s, (Index)splits);
    Welford own = {0, 0, 0};
    if (share.within && share.start < share.end) {
        // Sums of distances from the thread's first element: few digits cancel, and nothing is divided.
        Walk walk(share, s);
        A first = load(input[walk.at]), total = 0, squares = 0;
        Index count = 0;
        for (Index i = share.start; i < share.end; i += share.step) {
            A distance = (A)load(input[walk.at]) - first;
            total += distance;
            squares += distance * distance;
            ++count;
            walk.next(share, s);
        }
        own.count = (A)count;
        A mean = total / own.count;
        own.mean = first + mean;
        own.squares = squares - total * mean;
        if (own.squares < 0) own.squares = 0;
    }
    own = over_channel<Merge>(own, scratch, s);
    if (leads(s) && share.within) partial[share.channel * splits + blockIdx.x % splits] = own;
}

extern "C" __global__ void batch_statistics(
    const Welford* partial, P* means, P* rstds, A* workspace, Long channels, Long splits, double eps) {
    for (Long c = global_thread(); c < channels; c += all_threads()) {
        Welford all = partial[c * splits];
        for (Long i = 1; i < splits; ++i) all = Merge::of(all, partial[c * splits + i]);
        A rstd = (A)1 / sqrt(all.squares / all.count + (A)eps);
        means[c] = store<P>(all.mean);
        rstds[c] = store<P>(rstd);
        workspace[2 * c] = all.mean;
        workspace[2 * c + 1] = rstd;
    }
}

__device__ inline Index channel_of(Index i, const Images& s) {
    return s.channels_last ? i % (Index)s.channels : i / (Index)s.positions % (Index)s.channels;
}

extern "C" __global__ void batch_apply(
    const T* input, const P* weight, const P* bias, const A* workspace, T* output, const Images s,
    Long count) {
    for (Long i = global_thread(); i < count; i += all_threads()) {
        Index c = channel_of((Index)i, s);
        A standard = ((A)load(input[i]) - workspace[2 * c]) * workspace[2 * c + 1];
        output[i] = store<T>(standard * (A)load(weight[c]) + (A)load(bias[c]));
    }
}

extern "C" __global__ void batch_sums(
    const T* gradient, const T* input, const P* means, const P* rstds, Pair* partial, const Images s,
    Long splits) {
    __shared__ Pair scratch[THREADS];
    Share share = share_of(s, (Index)splits);
    Pair own = {0, 0};
    if (share.within && share.start < share.end) {
        Walk walk(share, s);
        A mean = load(means[share.channel]);
        for (Index i = share.start; i < share.end; i += share.step) {
            A g = load(gradient[walk.at]);
            own.first += g;
            own.second += g * ((A)load(input[walk.at]) - mean);
            walk.next(share, s);
        }
        own.second *= (A)load(rstds[share.channel]);
    }
    own = over_channel<AddPairs>(own, scratch, s);
    if (leads(s) && share.within) partial[share.channel * splits + blockIdx.x % splits] = own;
}

// dx = scale g - along x̂ - constant, with the gradients of mean and rstd (g_mean, g_rstd) taken in.
extern "C" __global__ void batch_factors(
    const Pair* partial, const P* g_mean, const P* g_rstd, const P* weight, const P* rstds, P* g_weight,
    P* g_bias, A* factors, Long channels, Long splits, Long count) {
    for (Long c = global_thread(); c < channels; c += all_threads()) {
        Pair all = partial[c * splits];
        for (Long i = 1; i < splits; ++i) all = AddPairs::of(all, partial[c * splits + i]);
        A w = load(weight[c]), rstd = load(rstds[c]), n = (A)count;
        g_bias[c] = store<P>(all.first);
        g_weight[c] = store<P>(all.second);
        factors[3 * c] = w * rstd;
        factors[3 * c + 1] = (w * all.second * rstd + (A)load(g_rstd[c]) * rstd * rstd) / n;
        factors[3 * c + 2] = (w * all.first * rstd - (A)load(g_mean[c])) / n;
    }
}

extern "C" __global__ void batch_gradient(
    const T* gradient, const T* input, const P* means, const P* rstds, const A* factors, T* result,
    const Images s, Long count) {
    for (Long i = global_thread(); i < count; i += all_threads()) {
        Index c = channel_of((Index)i, s);
        A standard = ((A)load(input[i]) - (A)load(means[c])) * (A)load(rstds[c]);
        result[i] = store<T>(
            (A)load(gradient[i]) * factors[3 * c] - standard * factors[3 * c + 1] - factors[3 * c + 2]);
    }
}

// Standardization by given statistics; weight and bias may be null.
extern "C" __global__ void channel_norm(
    const T* input, const P* means, const P* variances, const P* weight, const P* bias, T* output,
    const Images s, Long count, double eps) {
    for (Long i = global_thread(); i < count; i += all_threads()) {
        Index c = channel_of((Index)i, s);
        A scale = (A)1 / sqrt((A)load(variances[c]) + (A)eps);
        if (weight) scale *= (A)load(weight[c]);
        A scaled = ((A)load(input[i]) - (A)load(means[c])) * scale;
        output[i] = store<T>(bias ? scaled + (A)load(bias[c]) : scaled);
    }
}

// Running statistics move towards those of a batch.
extern "C" __global__ void update_statistics(
    T* running_mean, T* running_var, const T* means, const T* rstds, Long channels, double momentum,
    double eps, double unbiased) {
    for (Long c = global_thread(); c < channels; c += all_threads()) {
        A rstd = load(rstds[c]), mean = load(means[c]);
        A variance = ((A)1 / (rstd * rstd) - (A)eps) * (A)unbiased;
        A kept = (A)(1 - momentum), taken = (A)momentum;
        running_mean[c] = store<T>((A)load(running_mean[c]) * kept + mean * taken);
        running_var[c] = store<T>((A)load(running_var[c]) * kept + variance * taken);
    }
}
