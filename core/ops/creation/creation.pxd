# Compiled as it is, but for what every op that makes a tensor calls.
cpdef made(object result, object requires_grad, object pin_memory=*)
