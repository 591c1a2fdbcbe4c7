// Activations and their derivatives, of one element each; A is the type to compute in. NaN stays NaN.

template <typename A> __device__ inline A cut(A x, A low, A high) {
    return x < low ? low : x > high ? high : x;
}

template <typename A> __device__ inline A log_of_one_and_exp(A x) {
    return x > (A)20 ? x : log1p(exp(x));
}

template <typename A> __device__ inline A tanh_argument(A x) {
    return (A)0.79788456080286535588 * (x + (A)0.044715 * x * x * x);  // sqrt(2 / pi)
}

template <typename A> __device__ inline A gelu_of(A x, bool by_tanh) {
    A share = by_tanh ? tanh(tanh_argument(x)) : erf(x * (A)0.70710678118654752440);
    return (A)0.5 * x * ((A)1 + share);
}

template <typename A> __device__ inline A gelu_backward_of(A g, A x, bool by_tanh) {
    A slope;
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
    return g * slope;
}

template <typename A> __device__ inline A silu_of(A x) { return x / ((A)1 + exp(-x)); }

template <typename A> __device__ inline A silu_backward_of(A g, A x) {
    A s = (A)1 / ((A)1 + exp(-x));
    return g * (s * ((A)1 + x * ((A)1 - s)));
}

// The rest by their formulas; a, b and c are the options in the order of the op's arguments.

#define ACTIVATION(name, formula)                                                                    \
    template <typename A> __device__ inline A name##_of(                                             \
        A x, [[maybe_unused]] A a = 0, [[maybe_unused]] A b = 0, [[maybe_unused]] A c = 0) {         \
        return formula;                                                                              \
    }

#define GRADIENT(name, formula)                                                                      \
    template <typename A> __device__ inline A name##_of(                                             \
        A g, A x, [[maybe_unused]] A a = 0, [[maybe_unused]] A b = 0, [[maybe_unused]] A c = 0) {    \
        return formula;                                                                              \
    }

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
ACTIVATION(hardsigmoid, cut(x + 3, (A)0, (A)6) / 6)
ACTIVATION(hardswish, x * cut(x + 3, (A)0, (A)6) / 6)
GRADIENT(hardswish_backward, x <= -3 ? (A)0 : x < 3 ? g * (x / 3 + (A)0.5) : g)
ACTIVATION(threshold, x <= a ? b : x)
