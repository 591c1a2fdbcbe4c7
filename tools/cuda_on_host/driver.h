// What a kernel that is compiled for the host shares with the driver that runs it.
#pragma once
#include <cstddef>
#include <functional>

namespace hosted {

struct Triple { unsigned x, y, z; };

// Where the thread that runs at the moment stands, and the memory that its block shares.
extern Triple thread_index, block_index, block_size, grid_size;
extern unsigned char* shared_memory;

enum class Wait { nothing, warp, block };

// Give way to the block's other threads until all that take part have come to such a wait.
void wait_for(Wait wait);

// 32 places of 16 bytes, which the lanes of the running thread's warp share.
unsigned char* exchange_of_warp();
unsigned lanes_of_warp();  // a bit for each that has not returned

// One kernel: what a compiled source exports.
struct Kernel {
    void (*call)(void** arguments);
    const size_t* sizes;  // of the arguments, in bytes
    int count;            // of the arguments
    bool waits;           // whether its threads wait for each other, and so need stacks of their own
};

// Queue work of a library on a stream of the current device; 0, or the error.
int submit(void* stream, std::function<void()> work);

}  // namespace hosted
