// Pooling over windows of (samples, channels, three spatial dimensions), rows or channels last.
//
// WIDE says whether an element's number needs 64 bits; divisions of 32 bits take a fraction of the time.

#if WIDE
typedef Long Index;
#else
typedef int Index;
#endif

struct Windows {
    Long samples, channels, channels_last;
    Long size[3], where[3], kernel[3], stride[3], padding[3], dilation[3];
};

struct Place { Index sample, channel, at[3]; };

// What the i-th element in memory is of a tensor with these spatial sizes.
__device__ inline Place place_of(Index i, const Windows& w, const Long* sizes) {
    Place p;
    Index channels = (Index)w.channels;
    if (w.channels_last) {
        p.channel = i % channels;
        i /= channels;
    }
    for (int d = 2; d >= 0; --d) {
        Index size = (Index)sizes[d];
        p.at[d] = i % size;
        i /= size;
    }
    if (!w.channels_last) {
        p.channel = i % channels;
        i /= channels;
    }
    p.sample = i;
    return p;
}

__device__ inline Index plane_of(const Place& p, const Windows& w, const Long* sizes) {
    Index plane = (Index)(sizes[0] * sizes[1] * sizes[2]), channels = (Index)w.channels;
    return w.channels_last ? p.sample * channels * plane + p.channel
                           : (p.sample * channels + p.channel) * plane;
}

__device__ inline Index step_of(const Windows& w) { return w.channels_last ? (Index)w.channels : 1; }

// The part of a window's kernel [low, high) along a dimension that lies within the input.
struct Part { Index start, low, high; };

__device__ inline Part part_of(Index at, int d, const Windows& w) {
    Part part;
    Index size = (Index)w.size[d], kernel = (Index)w.kernel[d], apart = (Index)w.dilation[d];
    part.start = at * (Index)w.stride[d] - (Index)w.padding[d];
    part.low = part.start < 0 ? (-part.start + apart - 1) / apart : 0;
    Index fits = part.start >= size ? 0 : (size - 1 - part.start) / apart + 1;
    part.high = fits < kernel ? fits : kernel;
    return part;
}

// The first of equal elements counts, and the last NaN, as in torch.
extern "C" __global__ void max_pool(
    const T* input, T* values, Long* places, const Windows w, Long count) {
    Index step = step_of(w), height = (Index)w.size[1], width = (Index)w.size[2];
    for (Long i = global_thread(); i < count; i += all_threads()) {
        Place p = place_of((Index)i, w, w.where);
        const T* plane = input + plane_of(p, w, w.size);
        Part z = part_of(p.at[0], 0, w), y = part_of(p.at[1], 1, w), x = part_of(p.at[2], 2, w);
        A best = -INFINITE;
        Index found = -1;
        for (Index a = z.low; a < z.high; ++a)
            for (Index b = y.low; b < y.high; ++b)
                for (Index c = x.low; c < x.high; ++c) {
                    Index at = ((z.start + a * (Index)w.dilation[0]) * height + y.start
                                + b * (Index)w.dilation[1]) * width + x.start + c * (Index)w.dilation[2];
                    A value = load(plane[at * step]);
                    if (found < 0 || value > best || value != value) {
                        best = value;
                        found = at;
                    }
                }
        values[i] = store<T>(best);
        places[i] = found < 0 ? 0 : found;
    }
}

// The gradient is added where the maxima were, in A: halves would lose what windows that overlap bring.
extern "C" __global__ void max_pool_backward(
    const T* gradient, const Long* places, A* result, const Windows w, Long count) {
    Index step = step_of(w);
    for (Long i = global_thread(); i < count; i += all_threads()) {
        Place p = place_of((Index)i, w, w.where);
        atomicAdd(result + plane_of(p, w, w.size) + (Index)places[i] * step, (A)load(gradient[i]));
    }
}

// How many elements of a window count.
__device__ inline A divisor_of(const Index* at, const Windows& w, int with_padding, Long divisor) {
    if (divisor) return (A)divisor;
    Index counted = 1;
    for (int d = 0; d < 3; ++d) {
        Index start = at[d] * (Index)w.stride[d] - (Index)w.padding[d];
        Index end = start + (Index)w.kernel[d];
        Index low = with_padding ? -(Index)w.padding[d] : 0;
        Index high = (Index)w.size[d] + (with_padding ? (Index)w.padding[d] : 0);
        counted *= (end < high ? end : high) - (start > low ? start : low);
    }
    return (A)counted;
}

extern "C" __global__ void avg_pool(
    const T* input, T* output, const Windows w, Long count, int with_padding, Long divisor) {
    Index step = step_of(w), height = (Index)w.size[1], width = (Index)w.size[2];
    for (Long i = global_thread(); i < count; i += all_threads()) {
        Place p = place_of((Index)i, w, w.where);
        const T* plane = input + plane_of(p, w, w.size);
        Part z = part_of(p.at[0], 0, w), y = part_of(p.at[1], 1, w), x = part_of(p.at[2], 2, w);
        A total = 0;
        for (Index a = z.low; a < z.high; ++a)
            for (Index b = y.low; b < y.high; ++b)
                for (Index c = x.low; c < x.high; ++c)
                    total += (A)load(
                        plane[(((z.start + a) * height + y.start + b) * width + x.start + c) * step]);
        output[i] = store<T>(total / divisor_of(p.at, w, with_padding, divisor));
    }
}

// One block to a window, for windows so large that there are few of them.
extern "C" __global__ void avg_pool_large(
    const T* input, T* output, const Windows w, Long count, int with_padding, Long divisor) {
    __shared__ A scratch[THREADS];
    Index step = step_of(w), height = (Index)w.size[1], width = (Index)w.size[2];
    for (Long i = blockIdx.x; i < count; i += gridDim.x) {
        Place p = place_of((Index)i, w, w.where);
        const T* plane = input + plane_of(p, w, w.size);
        Part z = part_of(p.at[0], 0, w), y = part_of(p.at[1], 1, w), x = part_of(p.at[2], 2, w);
        Index rows = y.high - y.low, columns = x.high - x.low;
        Index all = rows > 0 && columns > 0 && z.high > z.low ? (z.high - z.low) * rows * columns : 0;
        A total = 0;
        for (Index j = threadIdx.x; j < all; j += blockDim.x) {
            Index c = x.low + j % columns, b = y.low + j / columns % rows, a = z.low + j / columns / rows;
            total += (A)load(
                plane[(((z.start + a) * height + y.start + b) * width + x.start + c) * step]);
        }
        total = over_block<Sum>(total, scratch);
        if (threadIdx.x == 0)
            output[i] = store<T>(total / divisor_of(p.at, w, with_padding, divisor));
    }
}

// Each element of the input takes its share of every window that it is in.
extern "C" __global__ void avg_pool_backward(
    const T* gradient, T* result, const Windows w, Long count, int with_padding, Long divisor) {
    Index step = step_of(w), height = (Index)w.where[1], width = (Index)w.where[2];
    for (Long i = global_thread(); i < count; i += all_threads()) {
        Place p = place_of((Index)i, w, w.size);
        const T* plane = gradient + plane_of(p, w, w.where);
        Index low[3], high[3], at[3];
        for (int d = 0; d < 3; ++d) {
            Index first = p.at[d] + (Index)w.padding[d] - (Index)w.kernel[d] + 1;
            Index stride = (Index)w.stride[d], last = (p.at[d] + (Index)w.padding[d]) / stride;
            low[d] = first <= 0 ? 0 : (first + stride - 1) / stride;
            high[d] = last < (Index)w.where[d] ? last + 1 : (Index)w.where[d];
        }
        A total = 0;
        for (at[0] = low[0]; at[0] < high[0]; ++at[0])
            for (at[1] = low[1]; at[1] < high[1]; ++at[1])
                for (at[2] = low[2]; at[2] < high[2]; ++at[2])
                    total += (A)load(plane[((at[0] * height + at[1]) * width + at[2]) * step])
                        / divisor_of(at, w, with_padding, divisor);
        result[i] = store<T>(total);
    }
}

// Adaptive pooling: share i of `wanted` goes from floor(i size / wanted) to ceil((i + 1) size / wanted).
struct Share { Index low, high; };

__device__ inline Share share_of(Index i, Long size, Long wanted) {
    Long first = i;
    Share share = {(Index)(first * size / wanted), (Index)(((first + 1) * size + wanted - 1) / wanted)};
    return share;
}

extern "C" __global__ void adaptive_avg_pool(const T* input, T* output, const Windows w, Long count) {
    Index step = step_of(w), height = (Index)w.size[1], width = (Index)w.size[2];
    for (Long i = global_thread(); i < count; i += all_threads()) {
        Place p = place_of((Index)i, w, w.where);
        const T* plane = input + plane_of(p, w, w.size);
        Share z = share_of(p.at[0], w.size[0], w.where[0]), y = share_of(p.at[1], w.size[1], w.where[1]);
        Share x = share_of(p.at[2], w.size[2], w.where[2]);
        A total = 0;
        for (Index a = z.low; a < z.high; ++a)
            for (Index b = y.low; b < y.high; ++b)
                for (Index c = x.low; c < x.high; ++c)
                    total += (A)load(plane[((a * height + b) * width + c) * step]);
        output[i] = store<T>(total / (A)((z.high - z.low) * (y.high - y.low) * (x.high - x.low)));
    }
}

// The shares that a place is in are those that the same rule gives with both sizes exchanged.
extern "C" __global__ void adaptive_avg_pool_backward(
    const T* gradient, T* result, const Windows w, Long count) {
    Index step = step_of(w), height = (Index)w.where[1], width = (Index)w.where[2];
    for (Long i = global_thread(); i < count; i += all_threads()) {
        Place p = place_of((Index)i, w, w.size);
        const T* plane = gradient + plane_of(p, w, w.where);
        Share in[3];
        for (int d = 0; d < 3; ++d) in[d] = share_of(p.at[d], w.where[d], w.size[d]);
        A total = 0;
        for (Index a = in[0].low; a < in[0].high; ++a)
            for (Index b = in[1].low; b < in[1].high; ++b)
                for (Index c = in[2].low; c < in[2].high; ++c) {
                    Share z = share_of(a, w.size[0], w.where[0]), y = share_of(b, w.size[1], w.where[1]);
                    Share x = share_of(c, w.size[2], w.where[2]);
                    A counted = (A)((z.high - z.low) * (y.high - y.low) * (x.high - x.low));
                    total += (A)load(plane[((a * height + b) * width + c) * step]) / counted;
                }
        result[i] = store<T>(total);
    }
}
