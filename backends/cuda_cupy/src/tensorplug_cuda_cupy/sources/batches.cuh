// Work on many tensors in one launch: each block takes a part of one tensor.
//
// The addresses come as an argument of the kernel, which needs no copy to the device and stays valid in a
// captured graph. TENSORS and BLOCKS say how many fit into its 4 kB.
#ifndef TENSORPLUG_BATCHES
#define TENSORPLUG_BATCHES

#define TENSORS 30
#define BLOCKS 320
#define CHUNK 16384
#define LISTS 5

struct Batch {
    ULong address[LISTS][TENSORS];
    Long count[TENSORS];
    double rate[TENSORS];  // the learning rate, with the correction of this tensor's step
    double root[TENSORS];  // what else differs from tensor to tensor, see the kernels
    double more[TENSORS];
    ULong step[TENSORS];  // where the tensor's count of steps is, if on the device
    unsigned short first[BLOCKS];  // the part of the tensor that each block takes
    unsigned char tensor[BLOCKS];
};

#define EACH_ELEMENT(batch)                                                                          \
    int tensor = (batch).tensor[blockIdx.x];                                                         \
    Long start = (Long)(batch).first[blockIdx.x] * CHUNK;                                            \
    Long end = start + CHUNK < (batch).count[tensor] ? start + CHUNK : (batch).count[tensor];        \
    for (Long i = start + threadIdx.x; i < end; i += blockDim.x)

#define LIST(batch, n) ((T*)(batch).address[n][tensor])

#endif
