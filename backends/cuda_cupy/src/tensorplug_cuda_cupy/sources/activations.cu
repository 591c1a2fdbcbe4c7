// Activations and their derivatives, element by element.

__device__ inline A tanh_argument(A x) {
    return (A)0.79788456080286535588 * (x + (A)0.044715 * x * x * x);  // sqrt(2 / pi)
}

extern "C" __global__ void gelu(const T* input, T* output, Long count, int by_tanh) {
    for (Long i = global_thread(); i < count; i += all_threads()) {
        A x = load(input[i]);
        A share = by_tanh ? tanh(tanh_argument(x)) : erf(x * (A)0.70710678118654752440);
        output[i] = store<T>((A)0.5 * x * ((A)1 + share));
    }
}

extern "C" __global__ void gelu_gradient(
    const T* gradient, const T* input, T* output, Long count, int by_tanh) {
    for (Long i = global_thread(); i < count; i += all_threads()) {
        A x = load(input[i]), slope;
        if (by_tanh) {
            // (1 + tanh(u)) / 2 is sigmoid(2 u), and 1 - tanh(u)^2, in which digits cancel, a product of two.
            A u = (A)2 * tanh_argument(x);
            A s = (A)1 / ((A)1 + exp(-u)), rest = (A)1 / ((A)1 + exp(u));
            A inner = (A)(2 * 0.79788456080286535588) * ((A)1 + (A)(3 * 0.044715) * x * x);
            slope = s + x * s * rest * inner;
        } else {
            A density = exp((A)-0.5 * x * x) * (A)0.39894228040143267794;  // 1 / sqrt(2 pi)
            slope = (A)0.5 * ((A)1 + erf(x * (A)0.70710678118654752440)) + x * density;
        }
        output[i] = store<T>((A)load(gradient[i]) * slope);
    }
}

extern "C" __global__ void silu(const T* input, T* output, Long count) {
    for (Long i = global_thread(); i < count; i += all_threads()) {
        A x = load(input[i]);
        output[i] = store<T>(x / ((A)1 + exp(-x)));
    }
}

extern "C" __global__ void silu_gradient(
    const T* gradient, const T* input, T* output, Long count) {
    for (Long i = global_thread(); i < count; i += all_threads()) {
        A x = load(input[i]);
        A s = (A)1 / ((A)1 + exp(-x));
        output[i] = store<T>((A)load(gradient[i]) * (s * ((A)1 + x * ((A)1 - s))));
    }
}
