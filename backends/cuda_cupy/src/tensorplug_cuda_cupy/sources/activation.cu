// Kernels of activations and their derivatives, see activations.cuh.

extern "C" __global__ void gelu(const T* input, T* output, Long count, int by_tanh) {
    for (Long i = global_thread(); i < count; i += all_threads())
        output[i] = store<T>(gelu_of((A)load(input[i]), by_tanh));
}

extern "C" __global__ void gelu_backward(
    const T* gradient, const T* input, T* output, Long count, int by_tanh) {
    for (Long i = global_thread(); i < count; i += all_threads())
        output[i] = store<T>(gelu_backward_of((A)load(gradient[i]), (A)load(input[i]), by_tanh));
}

extern "C" __global__ void silu(const T* input, T* output, Long count) {
    for (Long i = global_thread(); i < count; i += all_threads())
        output[i] = store<T>(silu_of((A)load(input[i])));
}

extern "C" __global__ void silu_backward(
    const T* gradient, const T* input, T* output, Long count) {
    for (Long i = global_thread(); i < count; i += all_threads())
        output[i] = store<T>(silu_backward_of((A)load(gradient[i]), (A)load(input[i])));
}

#define ACTIVATION_KERNEL(name)                                                                      \
    extern "C" __global__ void name(                                                                 \
        const T* input, T* output, Long count, double a, double b, double c) {                       \
        for (Long i = global_thread(); i < count; i += all_threads())                                \
            output[i] = store<T>(name##_of((A)load(input[i]), (A)a, (A)b, (A)c));                    \
    }

#define GRADIENT_KERNEL(name)                                                                        \
    extern "C" __global__ void name(                                                                 \
        const T* gradient, const T* input, T* output, Long count, double a, double b, double c) {    \
        for (Long i = global_thread(); i < count; i += all_threads())                                \
            output[i] =                                                                              \
                store<T>(name##_of((A)load(gradient[i]), (A)load(input[i]), (A)a, (A)b, (A)c));      \
    }

ACTIVATION_KERNEL(relu)
GRADIENT_KERNEL(relu_backward)
ACTIVATION_KERNEL(hyperbolic_tangent)
ACTIVATION_KERNEL(logistic)
ACTIVATION_KERNEL(leaky_relu)
GRADIENT_KERNEL(leaky_relu_backward)
ACTIVATION_KERNEL(elu)
GRADIENT_KERNEL(elu_backward)
ACTIVATION_KERNEL(softplus)
GRADIENT_KERNEL(softplus_backward)
ACTIVATION_KERNEL(logsigmoid)
GRADIENT_KERNEL(logsigmoid_backward)
ACTIVATION_KERNEL(mish)
ACTIVATION_KERNEL(hardtanh)
GRADIENT_KERNEL(hardtanh_backward)
ACTIVATION_KERNEL(hardsigmoid)
ACTIVATION_KERNEL(hardswish)
GRADIENT_KERNEL(hardswish_backward)
ACTIVATION_KERNEL(threshold)
