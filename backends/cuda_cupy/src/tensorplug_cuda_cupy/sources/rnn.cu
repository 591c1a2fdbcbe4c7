// What LSTM and GRU do with their gates between the matrix products; `h` is the number of hidden units.
//
// Rows lie a number of elements apart that is told (`..._row`), so the parts of larger arrays need no copy.

__device__ inline A sigmoid(A x) { return (A)1 / ((A)1 + exp(-x)); }

struct Rows { Long gates, own, state, g_hidden, g_state, next; };

extern "C" __global__ void lstm_cell(
    const T* gates, const T* own, const T* cell, T* hidden, T* next, Long count, Long h, const Rows row) {
    for (Long at = global_thread(); at < count; at += all_threads()) {
        Long n = at / h, j = at % h;
        const T *x = gates + n * row.gates + j, *y = own + n * row.own + j;
        A i = sigmoid((A)load(x[0]) + (A)load(y[0])), f = sigmoid((A)load(x[h]) + (A)load(y[h]));
        A g = tanh((A)load(x[2 * h]) + (A)load(y[2 * h]));
        A o = sigmoid((A)load(x[3 * h]) + (A)load(y[3 * h]));
        A state = f * (A)load(cell[n * row.state + j]) + i * g;
        next[at] = store<T>(state);
        hidden[at] = store<T>(o * tanh(state));
    }
}

extern "C" __global__ void lstm_cell_backward(
    const T* gates, const T* own, const T* cell, const T* g_hidden, const T* g_state, const T* next,
    T* g_gates, T* g_cell, Long count, Long h, const Rows row) {
    for (Long at = global_thread(); at < count; at += all_threads()) {
        Long n = at / h, j = at % h;
        const T *x = gates + n * row.gates + j, *y = own + n * row.own + j;
        A i = sigmoid((A)load(x[0]) + (A)load(y[0])), f = sigmoid((A)load(x[h]) + (A)load(y[h]));
        A g = tanh((A)load(x[2 * h]) + (A)load(y[2 * h]));
        A o = sigmoid((A)load(x[3 * h]) + (A)load(y[3 * h]));
        A shown = tanh((A)load(next[n * row.next + j])), from = load(g_hidden[n * row.g_hidden + j]);
        A total = (A)load(g_state[n * row.g_state + j]) + from * o * ((A)1 - shown * shown);
        T* to = g_gates + n * 4 * h + j;
        to[0] = store<T>(total * g * i * ((A)1 - i));
        to[h] = store<T>(total * (A)load(cell[n * row.state + j]) * f * ((A)1 - f));
        to[2 * h] = store<T>(total * i * ((A)1 - g * g));
        to[3 * h] = store<T>(from * shown * o * ((A)1 - o));
        g_cell[at] = store<T>(total * f);
    }
}

extern "C" __global__ void gru_cell(
    const T* gates, const T* own, const T* state, T* next, Long count, Long h, const Rows row) {
    for (Long at = global_thread(); at < count; at += all_threads()) {
        Long n = at / h, j = at % h;
        const T *x = gates + n * row.gates + j, *y = own + n * row.own + j;
        A r = sigmoid((A)load(x[0]) + (A)load(y[0])), z = sigmoid((A)load(x[h]) + (A)load(y[h]));
        A fresh = tanh((A)load(x[2 * h]) + r * (A)load(y[2 * h]));
        next[at] = store<T>(fresh + z * ((A)load(state[n * row.state + j]) - fresh));
    }
}

extern "C" __global__ void gru_cell_backward(
    const T* gates, const T* own, const T* state, const T* gradient, T* g_gates, T* g_own, T* g_hidden,
    Long count, Long h, const Rows row) {
    for (Long at = global_thread(); at < count; at += all_threads()) {
        Long n = at / h, j = at % h;
        const T *x = gates + n * row.gates + j, *y = own + n * row.own + j;
        A n_own = load(y[2 * h]), g = load(gradient[n * row.g_hidden + j]);
        A r = sigmoid((A)load(x[0]) + (A)load(y[0])), z = sigmoid((A)load(x[h]) + (A)load(y[h]));
        A fresh = tanh((A)load(x[2 * h]) + r * n_own);
        A g_new = g * ((A)1 - z) * ((A)1 - fresh * fresh);
        A g_reset = g_new * n_own * r * ((A)1 - r);
        A g_update = g * ((A)load(state[n * row.state + j]) - fresh) * z * ((A)1 - z);
        Long to = n * 3 * h + j;
        g_gates[to] = g_own[to] = store<T>(g_reset);
        g_gates[to + h] = g_own[to + h] = store<T>(g_update);
        g_gates[to + 2 * h] = store<T>(g_new);
        g_own[to + 2 * h] = store<T>(g_new * r);
        g_hidden[at] = store<T>(g * z);
    }
}
