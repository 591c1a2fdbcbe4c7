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

extern "C" __global__ void gelu_backward(
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

extern "C" __global__ void silu_backward(
    const T* gradient, const T* input, T* output, Long count) {
    for (Long i = global_thread(); i < count; i += all_threads()) {
        A x = load(input[i]);
        A s = (A)1 / ((A)1 + exp(-x));
        output[i] = store<T>((A)load(gradient[i]) * (s * ((A)1 + x * ((A)1 - s))));
    }
}

// The rest by their formulas; a, b and c are the options in the order of the op's arguments.

#define ACTIVATION(name, formula)                                                                    \
    extern "C" __global__ void name(                                                                 \
        const T* input, T* output, Long count, double a_, double b_, double c_) {                    \
        [[maybe_unused]] A a = (A)a_, b = (A)b_, c = (A)c_;                                          \
        for (Long i = global_thread(); i < count; i += all_threads()) {                              \
            A x = load(input[i]);                                                                    \
            output[i] = store<T>(formula);                                                           \
        }                                                                                            \
    }

#define GRADIENT(name, formula)                                                                      \
    extern "C" __global__ void name(                                                                 \
        const T* gradient, const T* input, T* output, Long count, double a_, double b_, double c_) { \
        [[maybe_unused]] A a = (A)a_, b = (A)b_, c = (A)c_;                                          \
        for (Long i = global_thread(); i < count; i += all_threads()) {                              \
            A g = load(gradient[i]), x = load(input[i]);                                             \
            output[i] = store<T>(formula);                                                           \
        }                                                                                            \
    }

// NaN stays NaN in each.
__device__ inline A cut(A x, A low, A high) { return x < low ? low : x > high ? high : x; }
__device__ inline A log_of_one_and_exp(A x) { return x > (A)20 ? x : log1p(exp(x)); }

ACTIVATION(relu, x < 0 ? (A)0 : x)
GRADIENT(relu_backward, x <= 0 ? (A)0 : g)
ACTIVATION(hyperbolic_tangent, tanh(x))
ACTIVATION(logistic, (A)1 / ((A)1 + exp(-x)))
ACTIVATION(leaky_relu, x > 0 ? x : x * a)
GRADIENT(leaky_relu_backward, x > 0 ? g : g * a)
ACTIVATION(elu, x > 0 ? x * b : expm1(x * c) * (a * b))
GRADIENT(elu_backward, x > 0 ? g * b : g * (exp(x * c) * (a * b * c)))
ACTIVATION(softplus, x * a > b ? x : log1p(exp(x * a)) / a)
GRADIENT(softplus_backward, x * a > b ? g : g / ((A)1 + exp(-x * a)))
ACTIVATION(logsigmoid, (x < 0 ? x : x != x ? x : (A)0) - log1p(exp(-fabs(x))))
GRADIENT(logsigmoid_backward, g / ((A)1 + exp(x)))
ACTIVATION(mish, x * tanh(log_of_one_and_exp(x)))
ACTIVATION(hardtanh, cut(x, a, b))
GRADIENT(hardtanh_backward, x > a && x < b ? g : (A)0)
ACTIVATION(hardsigmoid, cut(x + 3, 0, 6) / 6)
ACTIVATION(hardswish, x * cut(x + 3, 0, 6) / 6)
GRADIENT(hardswish_backward, x <= -3 ? (A)0 : x < 3 ? g * (x / 3 + (A)0.5) : g)
ACTIVATION(threshold, x <= a ? b : x)
