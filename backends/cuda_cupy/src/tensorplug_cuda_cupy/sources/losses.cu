// Negative log-likelihood of (outer, classes, inner) log-probabilities; targets are (outer, inner).

// A target that is no class gives NaN: to raise an error would mean to wait for the device.
extern "C" __global__ void negative_log_likelihood(
    const T* input, const Long* target, const T* weight, T* losses, T* weights,
    Long outer, Long classes, Long inner, Long ignored) {
    for (Long i = global_thread(); i < outer * inner; i += all_threads()) {
        Long chosen = target[i];
        A loss = 0, factor = 0;
        if (chosen != ignored) {
            if (chosen < 0 || chosen >= classes) {
                loss = factor = (A)NOT_A_NUMBER;
            } else {
                factor = weight ? (A)load(weight[chosen]) : (A)1;
                loss = -(A)load(input[(i / inner * classes + chosen) * inner + i % inner]) * factor;
            }
        }
        losses[i] = store<T>(loss);
        weights[i] = store<T>(factor);
    }
}
