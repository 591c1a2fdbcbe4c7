// The gradient scaler: gradients are divided and looked through in one pass, and nothing waits for the host.

extern "C" __global__ void unscale(const Batch batch, float* found, const float* inverse) {
    A factor = (A)*inverse;
    bool bad = false;
    EACH_ELEMENT(batch) {
        A g = load(LIST(batch, 0)[i]);
        if (!(fabs(g) < INFINITE)) bad = true;
        LIST(batch, 0)[i] = store<T>(g * factor);
    }
    if (bad) *found = 1;  // whichever thread writes it, it is the same
}

extern "C" __global__ void update_scale(
    float* scale, int* tracker, const float* found, double growth, double backoff, int interval) {
    if (global_thread() != 0) return;
    if (*found != 0) {
        *scale = (float)(*scale * (float)backoff);
        *tracker = 0;
        return;
    }
    int taken = *tracker + 1;
    if (taken == interval) {
        float larger = *scale * (float)growth;
        if (larger < INFINITE) *scale = larger;
        taken = 0;
    }
    *tracker = taken;
}
