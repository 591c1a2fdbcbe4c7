// Steps of optimizers over many tensors in one launch: each block takes a part of one tensor.
//
// The addresses come as an argument of the kernel, which needs no copy to the device and stays valid in a
// captured graph. TENSORS and BLOCKS say how many fit into its 4 kB.

#define TENSORS 40
#define BLOCKS 320
#define CHUNK 16384
#define LISTS 5

struct Batch {
    ULong address[LISTS][TENSORS];
    Long count[TENSORS];
    double rate[TENSORS];  // the learning rate, with the correction of this tensor's step
    double root[TENSORS];  // of Adam: the correction of the second moment
    unsigned short first[BLOCKS];  // the part of the tensor that each block takes
    unsigned char tensor[BLOCKS];
};

#define EACH_ELEMENT(batch)                                                                          \
    int tensor = (batch).tensor[blockIdx.x];                                                         \
    Long start = (Long)(batch).first[blockIdx.x] * CHUNK;                                            \
    Long end = start + CHUNK < (batch).count[tensor] ? start + CHUNK : (batch).count[tensor];        \
    for (Long i = start + threadIdx.x; i < end; i += blockDim.x)

#define LIST(batch, n) ((T*)(batch).address[n][tensor])

extern "C" __global__ void sgd_step(
    const Batch batch, double momentum, double dampening, double weight_decay, int nesterov, int maximize,
    int first, int with_momentum) {
    EACH_ELEMENT(batch) {
        A p = load(LIST(batch, 0)[i]), g = load(LIST(batch, 1)[i]);
        if (maximize) g = -g;
        if (weight_decay != 0) g += (A)weight_decay * p;
        if (with_momentum) {
            A b = first ? g : (A)momentum * (A)load(LIST(batch, 2)[i]) + (A)(1 - dampening) * g;
            LIST(batch, 2)[i] = store<T>(b);
            g = nesterov ? g + (A)momentum * b : b;
        }
        LIST(batch, 0)[i] = store<T>(p - (A)batch.rate[tensor] * g);
    }
}

extern "C" __global__ void adam_step(
    const Batch batch, double lr, double beta1, double beta2, double weight_decay, double eps, int amsgrad,
    int maximize, int decoupled) {
    EACH_ELEMENT(batch) {
        A p = load(LIST(batch, 0)[i]), g = load(LIST(batch, 1)[i]);
        A m = load(LIST(batch, 2)[i]), v = load(LIST(batch, 3)[i]);
        if (maximize) g = -g;
        if (decoupled) p *= (A)(1 - lr * weight_decay);
        else if (weight_decay != 0) g += (A)weight_decay * p;
        m += (A)(1 - beta1) * (g - m);
        v = (A)beta2 * v + (A)(1 - beta2) * g * g;
        LIST(batch, 2)[i] = store<T>(m);
        LIST(batch, 3)[i] = store<T>(v);
        if (amsgrad) {
            v = Largest::of((A)load(LIST(batch, 4)[i]), v);
            LIST(batch, 4)[i] = store<T>(v);
        }
        A denominator = sqrt(v) / (A)batch.root[tensor] + (A)eps;
        LIST(batch, 0)[i] = store<T>(p - (A)batch.rate[tensor] * (m / denominator));
    }
}

extern "C" __global__ void adagrad_step(
    const Batch batch, double weight_decay, double eps, int maximize) {
    EACH_ELEMENT(batch) {
        A p = load(LIST(batch, 0)[i]), g = load(LIST(batch, 1)[i]), s = load(LIST(batch, 2)[i]);
        if (maximize) g = -g;
        if (weight_decay != 0) g += (A)weight_decay * p;
        s += g * g;
        LIST(batch, 2)[i] = store<T>(s);
        LIST(batch, 0)[i] = store<T>(p - (A)batch.rate[tensor] * (g / (sqrt(s) + (A)eps)));
    }
}

// The lists: parameters, gradients, mean squares, mean gradients (centered), buffers (momentum).
extern "C" __global__ void rmsprop_step(
    const Batch batch, double alpha, double eps, double weight_decay, double momentum, int centered,
    int maximize) {
    EACH_ELEMENT(batch) {
        A p = load(LIST(batch, 0)[i]), g = load(LIST(batch, 1)[i]), v = load(LIST(batch, 2)[i]);
        if (maximize) g = -g;
        if (weight_decay != 0) g += (A)weight_decay * p;
        v = (A)alpha * v + (A)(1 - alpha) * g * g;
        LIST(batch, 2)[i] = store<T>(v);
        if (centered) {
            A mean = load(LIST(batch, 3)[i]);
            mean += (A)(1 - alpha) * (g - mean);
            LIST(batch, 3)[i] = store<T>(mean);
            v -= mean * mean;
        }
        A change = g / (sqrt(v) + (A)eps);
        if (momentum > 0) {
            change += (A)momentum * (A)load(LIST(batch, 4)[i]);
            LIST(batch, 4)[i] = store<T>(change);
        }
        LIST(batch, 0)[i] = store<T>(p - (A)batch.rate[tensor] * change);
    }
}
