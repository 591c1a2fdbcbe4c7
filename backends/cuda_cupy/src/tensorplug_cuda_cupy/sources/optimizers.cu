// Steps of optimizers over many tensors in one launch, see batches.cuh. The lists begin with the parameters
// and the gradients, then come the states in the order of the op's arguments.

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

extern "C" __global__ void adadelta_step(
    const Batch batch, double rho, double eps, double weight_decay, int maximize) {
    EACH_ELEMENT(batch) {
        A p = load(LIST(batch, 0)[i]), g = load(LIST(batch, 1)[i]);
        A v = load(LIST(batch, 2)[i]), d = load(LIST(batch, 3)[i]);
        if (maximize) g = -g;
        if (weight_decay != 0) g += (A)weight_decay * p;
        v = (A)rho * v + (A)(1 - rho) * g * g;
        A change = sqrt(d + (A)eps) / sqrt(v + (A)eps) * g;
        LIST(batch, 2)[i] = store<T>(v);
        LIST(batch, 3)[i] = store<T>((A)rho * d + (A)(1 - rho) * change * change);
        LIST(batch, 0)[i] = store<T>(p - (A)batch.rate[tensor] * change);
    }
}

extern "C" __global__ void adamax_step(
    const Batch batch, double beta1, double beta2, double weight_decay, double eps, int maximize) {
    EACH_ELEMENT(batch) {
        A p = load(LIST(batch, 0)[i]), g = load(LIST(batch, 1)[i]);
        A m = load(LIST(batch, 2)[i]), u = load(LIST(batch, 3)[i]);
        if (maximize) g = -g;
        if (weight_decay != 0) g += (A)weight_decay * p;
        m += (A)(1 - beta1) * (g - m);
        u = Largest::of(u * (A)beta2, fabs(g) + (A)eps);
        LIST(batch, 2)[i] = store<T>(m);
        LIST(batch, 3)[i] = store<T>(u);
        LIST(batch, 0)[i] = store<T>(p - (A)batch.rate[tensor] * (m / u));
    }
}

// Here `rate` is each parameter's learning rate, and `root` what its average moves by.
extern "C" __global__ void asgd_step(const Batch batch, double lambd, double weight_decay, int maximize) {
    EACH_ELEMENT(batch) {
        A p = load(LIST(batch, 0)[i]), g = load(LIST(batch, 1)[i]), mean = load(LIST(batch, 2)[i]);
        if (maximize) g = -g;
        if (weight_decay != 0) g += (A)weight_decay * p;
        A eta = (A)batch.rate[tensor], mu = (A)batch.root[tensor];
        p = p * (A)(1 - lambd * batch.rate[tensor]) - eta * g;
        LIST(batch, 0)[i] = store<T>(p);
        LIST(batch, 2)[i] = store<T>(mu == 1 ? p : mean + mu * (p - mean));
    }
}

// `rate` and `more` weigh the gradient and the average, `root` corrects the second moment.
extern "C" __global__ void nadam_step(
    const Batch batch, double shrink, double beta1, double beta2, double weight_decay, double eps,
    int maximize, int decoupled) {
    EACH_ELEMENT(batch) {
        A p = load(LIST(batch, 0)[i]), g = load(LIST(batch, 1)[i]);
        A m = load(LIST(batch, 2)[i]), v = load(LIST(batch, 3)[i]);
        if (maximize) g = -g;
        if (decoupled) p *= (A)shrink;
        else if (weight_decay != 0) g += (A)weight_decay * p;
        m += (A)(1 - beta1) * (g - m);
        v = (A)beta2 * v + (A)(1 - beta2) * g * g;
        LIST(batch, 2)[i] = store<T>(m);
        LIST(batch, 3)[i] = store<T>(v);
        A denominator = sqrt(v / (A)batch.root[tensor]) + (A)eps;
        p -= (A)batch.rate[tensor] * (g / denominator);
        LIST(batch, 0)[i] = store<T>(p - (A)batch.more[tensor] * (m / denominator));
    }
}

// `root` is zero as long as the variance is not to be relied upon: then the average alone counts.
extern "C" __global__ void radam_step(
    const Batch batch, double shrink, double beta1, double beta2, double weight_decay, double eps,
    int maximize, int decoupled) {
    EACH_ELEMENT(batch) {
        A p = load(LIST(batch, 0)[i]), g = load(LIST(batch, 1)[i]);
        A m = load(LIST(batch, 2)[i]), v = load(LIST(batch, 3)[i]);
        if (maximize) g = -g;
        if (decoupled) p *= (A)shrink;
        else if (weight_decay != 0) g += (A)weight_decay * p;
        m += (A)(1 - beta1) * (g - m);
        v = (A)beta2 * v + (A)(1 - beta2) * g * g;
        LIST(batch, 2)[i] = store<T>(m);
        LIST(batch, 3)[i] = store<T>(v);
        A change = batch.root[tensor] == 0 ? m : (A)batch.root[tensor] * (m / (sqrt(v) + (A)eps));
        LIST(batch, 0)[i] = store<T>(p - (A)batch.rate[tensor] * change);
    }
}

extern "C" __global__ void rprop_step(
    const Batch batch, double shrink, double grow, double smallest, double largest, int maximize) {
    EACH_ELEMENT(batch) {
        A p = load(LIST(batch, 0)[i]), g = load(LIST(batch, 1)[i]);
        A previous = load(LIST(batch, 2)[i]), size = load(LIST(batch, 3)[i]);
        if (maximize) g = -g;
        A agreement = g * previous;
        if (agreement > 0) size *= (A)grow;
        if (agreement < 0) {
            size *= (A)shrink;
            g = 0;
        }
        size = size < (A)smallest ? (A)smallest : size > (A)largest ? (A)largest : size;
        A sign = (A)(g > 0) - (A)(g < 0);
        LIST(batch, 0)[i] = store<T>(p - sign * size);
        LIST(batch, 2)[i] = store<T>(g);
        LIST(batch, 3)[i] = store<T>(size);
    }
}

// --- steps that are counted, or skipped, on the device: for captured graphs and for scaled gradients ---

// Add one to each parameter's count of steps, unless this one is skipped.
extern "C" __global__ void count_steps(const Batch batch, const float* found) {
    if (found && *found != 0) return;
    EACH_ELEMENT(batch) LIST(batch, 0)[i] = store<T>((A)load(LIST(batch, 0)[i]) + (A)1);
}

// As adam_step; `steps` of each tensor and the learning rate, where `rate` is not null, are on the device.
extern "C" __global__ void adam_step_there(
    const Batch batch, const float* rate, const float* found, double lr, double beta1, double beta2,
    double weight_decay, double eps, int amsgrad, int maximize, int decoupled) {
    if (found && *found != 0) return;
    double number = *(const float*)batch.step[batch.tensor[blockIdx.x]];
    if (rate) lr = *rate;
    A size = (A)(lr / (1 - pow(beta1, number))), root = (A)sqrt(1 - pow(beta2, number));
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
        LIST(batch, 0)[i] = store<T>(p - size * (m / (sqrt(v) / root + (A)eps)));
    }
}

extern "C" __global__ void sgd_step_there(
    const Batch batch, const float* rate, const float* found, double lr, double momentum,
    double dampening, double weight_decay, int nesterov, int maximize, int first, int with_momentum) {
    if (found && *found != 0) return;
    if (rate) lr = *rate;
    EACH_ELEMENT(batch) {
        A p = load(LIST(batch, 0)[i]), g = load(LIST(batch, 1)[i]);
        if (maximize) g = -g;
        if (weight_decay != 0) g += (A)weight_decay * p;
        if (with_momentum) {
            A b = first ? g : (A)momentum * (A)load(LIST(batch, 2)[i]) + (A)(1 - dampening) * g;
            LIST(batch, 2)[i] = store<T>(b);
            g = nesterov ? g + (A)momentum * b : b;
        }
        LIST(batch, 0)[i] = store<T>(p - (A)lr * g);
    }
}
