// A CUDA driver and runtime whose devices are the host: what CuPy asks of them, as their documentation says.
//
// Work that is queued on a stream is not run before something waits for it, so that what reads a result too
// early, or gives memory away too early, gets wrong values. Kernels are functions of shared libraries, which
// `device.py` compiles; a block runs after the other, its threads in turn.
#include "driver.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <elf.h>
#include <immintrin.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<unsigned char>;

std::recursive_mutex one_at_a_time;

#define ENTER std::lock_guard<std::recursive_mutex> entered(one_at_a_time)

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

int number_of(const char* variable, int otherwise) {
    const char* text = std::getenv(variable);
    return text && *text ? std::atoi(text) : otherwise;
}

int device_count() {
    static const int count = number_of("HOSTED_DEVICES", 1);
    return count;
}

size_t device_memory() {
    static const size_t bytes = (size_t)number_of("HOSTED_MEMORY_MB", 4096) << 20;
    return bytes;
}

// Whether to run what is queued at once instead.
bool eager() {
    static const bool at_once = number_of("HOSTED_EAGER", 0);
    return at_once;
}

// Whether nothing is computed, to count what would be: then memory is not touched either.
bool dry() {
    static const bool is = number_of("HOSTED_DRY", 0);
    return is;
}

// How many calls have made the host wait for what is queued, as a GPU would have, too.
unsigned long long waits = 0;

cudaError_t failed(cudaError_t error) {
    if (error != cudaSuccess) last_error = error;
    return error;
}

// --- memory ---

struct Block {
    size_t size;
    int device;  // -1: page-locked memory of the host
};

std::map<uintptr_t, Block> blocks;
std::vector<size_t> in_use(64, 0);
std::set<std::pair<int, int>> peers;

const Block* block_at(const void* pointer) {
    auto next = blocks.upper_bound((uintptr_t)pointer);
    if (next == blocks.begin()) return nullptr;
    --next;
    return (uintptr_t)pointer < next->first + std::max<size_t>(next->second.size, 1) ? &next->second : nullptr;
}

bool is_page_locked(const void* pointer) {
    const Block* block = block_at(pointer);
    return block && block->device < 0;
}

bool is_of_device(const void* pointer) {
    const Block* block = block_at(pointer);
    return block && block->device >= 0;
}

// Whether memory ends where a page begins that nobody may touch, so that what reaches beyond ends the process.
bool guarded() {
    static const bool guard = number_of("HOSTED_GUARD", 0);
    return guard;
}

constexpr size_t PAGE = 4096;

size_t pages(size_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

void* reserve(size_t size) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (dry()) {
        void* memory = mmap(nullptr, pages(size), PROT_READ | PROT_WRITE, flags, -1, 0);
        return memory == MAP_FAILED ? nullptr : memory;
    }
    if (!guarded()) return std::aligned_alloc(512, (size + 511) / 512 * 512);
    auto* first = (char*)mmap(nullptr, pages(size) + PAGE, PROT_NONE, flags, -1, 0);
    if (first == MAP_FAILED) return nullptr;
    mprotect(first, pages(size), PROT_READ | PROT_WRITE);
    return first + pages(size) - (size + 15) / 16 * 16;
}

void give_back(void* memory, size_t size) {
    if (dry()) {
        munmap(memory, pages(size));
        return;
    }
    if (!guarded()) return std::free(memory);
    munmap((void*)((uintptr_t)memory / PAGE * PAGE), pages(size) + PAGE);
}

// New memory holds NaNs, and integers nobody expects.
cudaError_t allocate(void** pointer, size_t size, int device) {
    if (device >= 0 && in_use[device] + size > device_memory()) return failed(cudaErrorMemoryAllocation);
    void* memory = reserve(std::max<size_t>(size, 1));
    if (!memory) return failed(cudaErrorMemoryAllocation);
    if (!dry()) std::memset(memory, 0xff, size);
    blocks[(uintptr_t)memory] = {size, device};
    if (device >= 0) in_use[device] += size;
    *pointer = memory;
    return cudaSuccess;
}

cudaError_t release(void* pointer) {
    if (!pointer) return cudaSuccess;
    auto found = blocks.find((uintptr_t)pointer);
    if (found == blocks.end()) return failed(cudaErrorInvalidValue);
    if (found->second.device >= 0) in_use[found->second.device] -= found->second.size;
    if (!dry()) std::memset(pointer, 0xfe, found->second.size);
    give_back(pointer, std::max<size_t>(found->second.size, 1));
    blocks.erase(found);
    return cudaSuccess;
}

// --- streams, events, graphs ---

struct Stream;

struct Position {
    std::shared_ptr<Stream> stream;
    unsigned long long count = 0;
};

struct Task {
    std::function<void()> run;
    std::vector<Position> after;
};

struct Graph {
    std::vector<std::function<void()>> tasks;
    std::vector<std::shared_ptr<Stream>> streams;
    cudaStreamCaptureMode mode;
    std::thread::id thread;
    bool invalid = false;  // after an error; then only the end of the capture is allowed
};

struct Stream {
    int device;
    bool blocking;
    int priority;
    std::deque<Task> queue;
    unsigned long long done = 0;
    std::shared_ptr<Graph> capture;

    unsigned long long end() const { return done + queue.size(); }
};

struct Event {
    bool timed;
    int device;
    Position recorded;
    std::shared_ptr<Graph> capture;
    std::shared_ptr<Clock::time_point> time;
};

std::map<Stream*, std::shared_ptr<Stream>> streams;
std::vector<std::shared_ptr<Stream>> null_streams(64);
std::vector<std::shared_ptr<Graph>> captures;

const std::shared_ptr<Stream>& null_stream(int device) {
    auto& stream = null_streams[device];
    if (!stream) stream.reset(new Stream{device, true, 0});
    return stream;
}

std::shared_ptr<Stream> stream_of(void* handle) {
    if (!handle || handle == (void*)cudaStreamLegacy || handle == (void*)cudaStreamPerThread)
        return null_stream(current_device);
    auto found = streams.find((Stream*)handle);
    return found == streams.end() ? nullptr : found->second;
}

void run_until(const std::shared_ptr<Stream>& stream, unsigned long long count) {
    while (stream->done < count) {
        Task task = std::move(stream->queue.front());
        stream->queue.pop_front();
        ++stream->done;  // first: what the task waits for may come back here
        for (auto& position : task.after) run_until(position.stream, position.count);
        if (task.run) task.run();
    }
}

void run_all(const std::shared_ptr<Stream>& stream) { run_until(stream, stream->end()); }

void run_device(int device) {
    run_all(null_stream(device));
    for (auto& [_, stream] : streams)
        if (stream->device == device) run_all(stream);
}

// The null stream waits for all that is on the blocking streams, and they for what is on it.
cudaError_t submit(const std::shared_ptr<Stream>& stream, std::function<void()> run,
                   std::vector<Position> after = {}) {
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    if (dry()) run = nullptr;
    if (stream->capture) {
        if (stream->capture->invalid) return failed(cudaErrorStreamCaptureInvalidated);
        if (run) stream->capture->tasks.push_back(std::move(run));
        return cudaSuccess;
    }
    const auto& null = null_stream(stream->device);
    if (stream == null) {
        for (auto& [_, other] : streams)
            if (other->device == stream->device && other->blocking) {
                if (other->capture) return failed(cudaErrorStreamCaptureImplicit);
                if (!other->queue.empty()) after.push_back({other, other->end()});
            }
    } else if (stream->blocking && !null->queue.empty()) {
        after.push_back({null, null->end()});
    }
    stream->queue.push_back({std::move(run), std::move(after)});
    if (eager()) run_all(stream);
    return cudaSuccess;
}

// What may wait is forbidden while a stream is captured, as far as the capture's mode and this thread's say.
cudaError_t forbidden() {
    if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
    for (auto& graph : captures) {
        bool own = graph->thread == std::this_thread::get_id() && graph->mode != cudaStreamCaptureModeRelaxed;
        bool all = graph->mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
        if (own || all) {
            graph->invalid = true;
            return failed(cudaErrorStreamCaptureUnsupported);
        }
    }
    return cudaSuccess;
}

cudaError_t invalidate(const std::shared_ptr<Graph>& graph, cudaError_t error) {
    graph->invalid = true;
    return failed(error);
}

#define UNLESS_CAPTURING                                            \
    if (cudaError_t error = forbidden(); error != cudaSuccess) return error

}  // namespace

// --- threads of a block ---

namespace hosted {
Triple thread_index, block_index, block_size, grid_size;
unsigned char* shared_memory;
}  // namespace hosted

namespace {

using hosted::Kernel;
using hosted::Triple;
using hosted::Wait;

constexpr size_t STACK = 64 << 10;
constexpr size_t MOST_SHARED = 228 << 10;

struct Thread {
    jmp_buf at;
    ucontext_t start;
    Triple index;
    Wait wait;
    bool started, ended;
};

jmp_buf scheduler;
std::vector<Thread> threads;
std::vector<unsigned char*> stacks;
Thread* running;
const Kernel* running_kernel;
void** running_arguments;
unsigned char exchanges[32][32 * 16];

void begin() {
    running_kernel->call(running_arguments);
    running->ended = true;
    _longjmp(scheduler, 1);
}

void go_on(Thread& thread) {
    running = &thread;
    hosted::thread_index = thread.index;
    thread.wait = Wait::nothing;
    if (_setjmp(scheduler) == 0) {
        if (thread.started) _longjmp(thread.at, 1);
        thread.started = true;
        setcontext(&thread.start);
    }
    running = nullptr;
}

// Let go on those that all wait alike; those that have returned are not waited for.
bool release_those(size_t from, size_t to, Wait wait) {
    bool any = false;
    for (size_t i = from; i < to; ++i) {
        if (threads[i].ended) continue;
        if (threads[i].wait != wait) return false;
        any = true;
    }
    for (size_t i = from; any && i < to; ++i) threads[i].wait = Wait::nothing;
    return any;
}

// What HOSTED_FLUSH=1 asks for: denormal numbers are zero, as CuPy compiles float32 arithmetic; here float64, too.
struct Denormals {
    unsigned before = _mm_getcsr();
    Denormals() {
        static const bool flush = number_of("HOSTED_FLUSH", 0);
        if (flush) _mm_setcsr(before | 0x8040);
    }
    ~Denormals() { _mm_setcsr(before); }
};

// Whether the last block and the last thread go first, so that what needs a certain order fails in one of both.
unsigned turn(unsigned i, unsigned count) {
    static const bool last_first = number_of("HOSTED_REVERSE", 0);
    return last_first ? count - 1 - i : i;
}

void run_waiting_block(size_t size) {
    threads.resize(size);
    while (stacks.size() < size) stacks.push_back((unsigned char*)std::malloc(STACK));
    size_t i = 0;
    for (unsigned z = 0; z < hosted::block_size.z; ++z)
        for (unsigned y = 0; y < hosted::block_size.y; ++y)
            for (unsigned x = 0; x < hosted::block_size.x; ++x, ++i) {
                Thread& thread = threads[i];
                thread.index = {x, y, z};
                thread.started = thread.ended = false;
                thread.wait = Wait::nothing;
                getcontext(&thread.start);
                thread.start.uc_stack.ss_sp = stacks[i];
                thread.start.uc_stack.ss_size = STACK;
                thread.start.uc_link = nullptr;
                makecontext(&thread.start, begin, 0);
            }
    for (bool live = true; live;) {
        live = false;
        bool moved = false;
        for (size_t next = 0; next < size; ++next) {
            Thread& thread = threads[turn(next, size)];
            if (thread.ended || thread.wait != Wait::nothing) continue;
            go_on(thread);
            moved = true;
        }
        for (size_t warp = 0; warp < size; warp += 32)
            moved |= release_those(warp, std::min(warp + 32, size), Wait::warp);
        moved |= release_those(0, size, Wait::block);
        for (auto& thread : threads) live |= !thread.ended;
        if (live && !moved) {
            std::fprintf(stderr, "hosted CUDA: the threads of a block wait for different things\n");
            std::abort();
        }
    }
}

void run_kernel(const Kernel& kernel, Triple grid, Triple block, size_t shared, void** arguments) {
    Denormals denormals;
    static std::vector<unsigned char> memory(MOST_SHARED);
    hosted::grid_size = grid;
    hosted::block_size = block;
    hosted::shared_memory = memory.data();
    running_kernel = &kernel;
    running_arguments = arguments;
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) {
                hosted::block_index = {turn(x, grid.x), turn(y, grid.y), turn(z, grid.z)};
                std::memset(memory.data(), 0xff, shared);
                if (kernel.waits) {
                    run_waiting_block((size_t)block.x * block.y * block.z);
                    continue;
                }
                for (unsigned c = 0; c < block.z; ++c)
                    for (unsigned b = 0; b < block.y; ++b)
                        for (unsigned a = 0; a < block.x; ++a) {
                            hosted::thread_index = {turn(a, block.x), turn(b, block.y), turn(c, block.z)};
                            kernel.call(arguments);
                        }
            }
}

}  // namespace

namespace hosted {

void wait_for(Wait wait) {
    if (!running) {
        std::fprintf(stderr, "hosted CUDA: a kernel waits that was compiled as one that does not\n");
        std::abort();
    }
    running->wait = wait;
    if (_setjmp(running->at) == 0) _longjmp(scheduler, 1);
}

unsigned char* exchange_of_warp() { return exchanges[(running - threads.data()) / 32]; }

unsigned lanes_of_warp() {
    size_t first = (running - threads.data()) / 32 * 32, last = std::min(first + 32, threads.size());
    unsigned lanes = 0;
    for (size_t i = first; i < last; ++i) lanes |= threads[i].ended ? 0u : 1u << (i - first);
    return lanes;
}

}  // namespace hosted

// --- modules and launches ---

namespace {

struct Module {
    void* library;
    int device;
};

struct Function {
    const Kernel* kernel;
    int device;
    std::string name;
    int most_shared = 48 << 10;
};

// What is launched, while that is logged: a line each, with the sizes of the allocations it is given.
bool logging = false;
std::string logged;

void note(const std::string& name, const Kernel& kernel, void** arguments) {
    logged += name;
    std::set<const Block*> seen;
    for (int i = 0; i < kernel.count; ++i) {
        // CuPy's arrays begin with their address, and may end with anything; an optimizer's batch holds many.
        size_t end = kernel.sizes[i] > 1024 ? kernel.sizes[i] : std::min(kernel.sizes[i], sizeof(void*));
        for (size_t at = 0; at + sizeof(void*) <= end; at += sizeof(void*)) {
            void* word;
            std::memcpy(&word, (unsigned char*)arguments[i] + at, sizeof word);
            const Block* block = block_at(word);
            if (block && block->device >= 0 && seen.insert(block).second)
                logged += ' ' + std::to_string(block->size);
        }
    }
    logged += '\n';
}

void note_copy(const char* name, size_t size) {
    if (logging) logged += name + (' ' + std::to_string(size)) + '\n';
}

std::map<std::pair<Module*, std::string>, std::unique_ptr<Function>> functions;

// Whether an argument begins with an address of another device's memory, which this one may not use. CuPy's
// arrays do; what its indexers end with is not set, and may be anything.
bool reaches_elsewhere(const Kernel& kernel, void** arguments, int device) {
    if (device_count() == 1) return false;
    for (int i = 0; i < kernel.count; ++i) {
        void* word;
        if (kernel.sizes[i] < sizeof word) continue;
        std::memcpy(&word, arguments[i], sizeof word);
        const Block* block = block_at(word);
        if (block && block->device >= 0 && block->device != device && !peers.count({device, block->device}))
            return true;
    }
    return false;
}

cudaError_t launch(Function* function, Triple grid, Triple block, unsigned shared, void* handle, void** arguments) {
    ENTER;
    auto stream = stream_of(handle);
    if (!stream || function->device != current_device || stream->device != current_device)
        return cudaErrorInvalidResourceHandle;
    size_t size = (size_t)block.x * block.y * block.z;
    if (!size || size > 1024 || !grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > 65535 ||
        grid.z > 65535 || shared > (unsigned)function->most_shared)
        return cudaErrorInvalidValue;
    const Kernel& kernel = *function->kernel;
    if (logging) note(function->name, kernel, arguments);
    if (dry()) return submit(stream, nullptr);
    if (reaches_elsewhere(kernel, arguments, current_device)) return cudaErrorIllegalAddress;
    auto copies = std::make_shared<std::vector<Bytes>>();
    for (int i = 0; i < kernel.count; ++i) {
        auto* first = (unsigned char*)arguments[i];
        copies->emplace_back(first, first + kernel.sizes[i]);
    }
    return submit(stream, [&kernel, grid, block, shared, copies] {
        std::vector<void*> pointers;
        for (auto& copy : *copies) pointers.push_back(copy.data());
        run_kernel(kernel, grid, block, shared, pointers.data());
    });
}

}  // namespace

extern "C" unsigned long long hosted_waits() { return waits; }

// Begin to log launches and copies, or end it.
extern "C" void hosted_log(int on) {
    ENTER;
    logging = on;
    if (on) logged.clear();
}

// The log: a line each, with a name and the bytes of the allocations that it was given.
extern "C" const char* hosted_logged() { return logged.c_str(); }

// How many bytes an argument of a kernel has; 0 where there is none.
extern "C" size_t hosted_size_of(CUfunction function, int argument) {
    const Kernel& kernel = *((Function*)function)->kernel;
    return argument < kernel.count ? kernel.sizes[argument] : 0;
}

int hosted::submit(void* stream, std::function<void()> work) {
    ENTER;
    return ::submit(stream_of(stream), std::move(work));
}

extern "C" {

CUresult cuGetErrorName(CUresult error, const char** text) {
    *text = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
    *text = cudaGetErrorString((cudaError_t)error);
    return CUDA_SUCCESS;
}

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }

// A context is the device's number, one more, as no address.
CUresult cuCtxGetCurrent(CUcontext* context) {
    *context = (CUcontext)(uintptr_t)(current_device + 1);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    current_device = (int)(uintptr_t)context - 1;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
    *device = current_device;
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    auto wanted = (cudaStreamCaptureMode)*mode;
    *mode = (CUstreamCaptureMode)thread_mode;
    thread_mode = wanted;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
    ENTER;
    auto stream = stream_of(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    *context = (CUcontext)(uintptr_t)(stream->device + 1);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    ENTER;
    auto* header = (const Elf64_Ehdr*)image;
    if (std::memcmp(header->e_ident, ELFMAG, SELFMAG)) return CUDA_ERROR_INVALID_IMAGE;
    size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    char path[] = "/tmp/hosted-kernels-XXXXXX";
    int file = mkstemp(path);
    bool written = file >= 0 && write(file, image, size) == (ssize_t)size;
    void* library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (file >= 0) {
        close(file);
        unlink(path);
    }
    if (!library) {
        std::fprintf(stderr, "hosted CUDA: %s\n", dlerror());
        return CUDA_ERROR_INVALID_IMAGE;
    }
    *module = (CUmodule) new Module{library, current_device};
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
    ENTER;
    auto* module = (Module*)handle;
    auto* kernel = (const Kernel*)dlsym(module->library, (std::string("hosted_") + name).c_str());
    if (!kernel) return CUDA_ERROR_NOT_FOUND;
    auto& known = functions[{module, name}];
    if (!known) known.reset(new Function{kernel, module->device, name});
    *function = (CUfunction)known.get();
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle, const char* name) {
    ENTER;
    void* found = dlsym(((Module*)handle)->library, name);
    if (!found) return CUDA_ERROR_NOT_FOUND;
    *address = (CUdeviceptr)found;
    *bytes = 0;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void** arguments, void**) {
    return (CUresult)launch((Function*)function, {gx, gy, gz}, {bx, by, bz}, shared, stream, arguments);
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK             ? 1024
             : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? ((Function*)function)->most_shared
                                                                              : 0;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        if (value > (int)MOST_SHARED) return CUDA_ERROR_INVALID_VALUE;
        ((Function*)function)->most_shared = value;
    }
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, CUfunction, int size, size_t) {
    *count = std::max(1, 2048 / size);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction, CUoccupancyB2DSize, size_t, int) {
    *grid = 8;
    *block = 256;
    return CUDA_SUCCESS;
}

// --- the runtime: errors, devices ---

const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
        case cudaSuccess: return "cudaSuccess";
        case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
        case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
        case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
        case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
        case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
        case cudaErrorNotReady: return "cudaErrorNotReady";
        case cudaErrorNotSupported: return "cudaErrorNotSupported";
        case cudaErrorPeerAccessAlreadyEnabled: return "cudaErrorPeerAccessAlreadyEnabled";
        case cudaErrorPeerAccessNotEnabled: return "cudaErrorPeerAccessNotEnabled";
        case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
        case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
        case cudaErrorStreamCaptureImplicit: return "cudaErrorStreamCaptureImplicit";
        case cudaErrorIllegalState: return "cudaErrorIllegalState";
        default: return "cudaErrorUnknown";
    }
}

const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaErrorMemoryAllocation: return "out of memory";
        case cudaErrorInvalidDevice: return "invalid device ordinal";
        default: return cudaGetErrorName(error);
    }
}

cudaError_t cudaGetLastError() {
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaDriverGetVersion(int* version) {
    *version = CUDA_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
    *device = current_device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
    *count = device_count();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= device_count()) return failed(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* facts, int device) {
    if (device < 0 || device >= device_count()) return failed(cudaErrorInvalidDevice);
    std::memset(facts, 0, sizeof *facts);
    std::strcpy(facts->name, "the host");
    facts->totalGlobalMem = device_memory();
    facts->major = 9;
    facts->minor = 0;
    facts->multiProcessorCount = 4;
    facts->warpSize = 32;
    facts->maxThreadsPerBlock = 1024;
    facts->sharedMemPerBlock = 48 << 10;
    facts->sharedMemPerBlockOptin = 227 << 10;
    facts->regsPerBlock = 65536;
    facts->maxThreadsPerMultiProcessor = 2048;
    facts->pciBusID = device + 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    if (device < 0 || device >= device_count()) return failed(cudaErrorInvalidDevice);
    switch (attribute) {
        case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
        case cudaDevAttrWarpSize: *value = 32; break;
        case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
        case cudaDevAttrMultiProcessorCount: *value = 4; break;
        case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 << 10; break;
        case cudaDevAttrMaxGridDimX: *value = 0x7fffffff; break;
        default: *value = 0;
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
    std::snprintf(text, size, "0000:%02x:00.0", device + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
    ENTER;
    UNLESS_CAPTURING;
    ++waits;
    run_device(current_device);
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
    ENTER;
    return peers.insert({current_device, peer}).second ? cudaSuccess
                                                        : failed(cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    ENTER;
    return peers.erase({current_device, peer}) ? cudaSuccess : failed(cudaErrorPeerAccessNotEnabled);
}

// --- memory ---

cudaError_t cudaMalloc(void** pointer, size_t size) {
    ENTER;
    UNLESS_CAPTURING;
    return allocate(pointer, size, current_device);
}

cudaError_t cudaFree(void* pointer) {
    ENTER;
    UNLESS_CAPTURING;
    ++waits;
    if (const Block* block = block_at(pointer)) run_device(block->device);
    return release(pointer);
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned) {
    ENTER;
    UNLESS_CAPTURING;
    return allocate(pointer, size, -1);
}

cudaError_t cudaFreeHost(void* pointer) {
    ENTER;
    UNLESS_CAPTURING;
    ++waits;
    for (int device = 0; device < device_count(); ++device) run_device(device);
    return release(pointer);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
    ENTER;
    *total = device_memory();
    *free = *total - in_use[current_device];
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* facts, const void* pointer) {
    ENTER;
    std::memset(facts, 0, sizeof *facts);
    const Block* block = block_at(pointer);
    facts->type = !block ? cudaMemoryTypeUnregistered : block->device < 0 ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    facts->device = block ? std::max(block->device, 0) : -2;
    facts->devicePointer = block ? (void*)pointer : nullptr;
    facts->hostPointer = block && block->device >= 0 ? nullptr : (void*)pointer;
    return cudaSuccess;
}

// Memory of the host that is not page-locked is read before the call returns, and has been written then.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind, cudaStream_t handle) {
    ENTER;
    auto stream = stream_of(handle);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    bool from_pageable = !block_at(from), to_pageable = !block_at(to);
    note_copy(is_of_device(from) && is_of_device(to) ? "copy" : "copy_host", size);
    if ((from_pageable || to_pageable) && stream->capture)
        return invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
    if (from_pageable) {
        auto copy = std::make_shared<Bytes>((const unsigned char*)from, (const unsigned char*)from + size);
        cudaError_t error = submit(stream, [=] { std::memmove(to, copy->data(), size); });
        if (error != cudaSuccess) return error;
    } else {
        cudaError_t error = submit(stream, [=] { std::memmove(to, from, size); });
        if (error != cudaSuccess) return error;
    }
    if (to_pageable) {
        ++waits;
        run_all(stream);
    }
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
    ENTER;
    UNLESS_CAPTURING;
    cudaError_t error = cudaMemcpyAsync(to, from, size, kind, nullptr);
    if (error == cudaSuccess && !(is_of_device(to) && is_of_device(from))) {
        ++waits;
        run_all(null_stream(current_device));
    }
    return error;
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t size,
                                cudaStream_t handle) {
    ENTER;
    const Block *target = block_at(to), *source = block_at(from);
    if (!target || !source || target->device != to_device || source->device != from_device)
        return failed(cudaErrorInvalidValue);
    return submit(stream_of(handle), [=] { std::memmove(to, from, size); });
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t size) {
    return cudaMemcpyPeerAsync(to, to_device, from, from_device, size, nullptr);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t handle) {
    ENTER;
    auto stream = stream_of(handle);
    cudaError_t error = submit(stream, [=] {
        for (size_t row = 0; row < height; ++row)
            std::memmove((char*)to + row * to_pitch, (const char*)from + row * from_pitch, width);
    });
    if (error == cudaSuccess && (!block_at(to) || !block_at(from))) {
        ++waits;
        run_all(stream);
    }
    return error;
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
    cudaError_t error = cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
    if (error == cudaSuccess) run_all(null_stream(current_device));
    return error;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t handle) {
    ENTER;
    if (!is_of_device(to) && !is_page_locked(to) && size) return failed(cudaErrorInvalidValue);
    note_copy("memset", size);
    return submit(stream_of(handle), [=] { std::memset(to, value, size); });
}

cudaError_t cudaMemset(void* to, int value, size_t size) { return cudaMemsetAsync(to, value, size, nullptr); }

// --- streams ---

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int priority) {
    ENTER;
    std::shared_ptr<Stream> stream(new Stream{current_device, !(flags & cudaStreamNonBlocking), priority});
    streams[stream.get()] = stream;
    *handle = (cudaStream_t)stream.get();
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
    return cudaStreamCreateWithPriority(handle, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* handle) { return cudaStreamCreateWithPriority(handle, 0, 0); }

// What is queued is still done, which nothing could wait for any more but the device.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    ENTER;
    auto found = streams.find((Stream*)handle);
    if (found == streams.end()) return failed(cudaErrorInvalidResourceHandle);
    run_all(found->second);
    streams.erase(found);
    return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
    ENTER;
    auto stream = stream_of(handle);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    *flags = stream->blocking ? cudaStreamDefault : cudaStreamNonBlocking;
    return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
    ENTER;
    auto stream = stream_of(handle);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    *priority = stream->priority;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    ENTER;
    auto stream = stream_of(handle);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    if (stream->capture) return invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
    UNLESS_CAPTURING;
    ++waits;
    run_all(stream);
    return cudaSuccess;
}

// Each question lets one more of what is queued be done, so that asking in a loop ends.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
    ENTER;
    auto stream = stream_of(handle);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    if (stream->capture) return invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
    UNLESS_CAPTURING;
    if (stream->queue.empty()) return cudaSuccess;
    run_until(stream, stream->done + 1);
    return cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned) {
    ENTER;
    auto stream = stream_of(handle);
    auto* event = (Event*)event_handle;
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    if (event->capture) {  // forks the capture to this stream, or joins it again
        if (event->capture->invalid) return failed(cudaErrorStreamCaptureInvalidated);
        if (stream->capture == event->capture) return cudaSuccess;
        if (stream->capture) return failed(cudaErrorStreamCaptureIsolation);
        stream->capture = event->capture;
        event->capture->streams.push_back(stream);
        return cudaSuccess;
    }
    if (stream->capture && event->recorded.stream) return failed(cudaErrorStreamCaptureIsolation);
    return event->recorded.stream ? submit(stream, {}, {event->recorded}) : cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
    ENTER;
    return submit(stream_of(handle), [=] { function(data); });
}

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t function, void* data, unsigned) {
    ENTER;
    return submit(stream_of(handle), [=] { function(handle, cudaSuccess, data); });
}

// --- events ---

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
    ENTER;
    *handle = (cudaEvent_t) new Event{!(flags & cudaEventDisableTiming), current_device, {}, {}, {}};
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* handle) { return cudaEventCreateWithFlags(handle, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    delete (Event*)handle;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
    ENTER;
    auto* event = (Event*)handle;
    auto stream = stream_of(stream_handle);
    if (!stream || stream->device != event->device) return failed(cudaErrorInvalidResourceHandle);
    event->capture = stream->capture;
    if (stream->capture) return cudaSuccess;
    auto time = std::make_shared<Clock::time_point>();
    cudaError_t error = submit(stream, [time] { *time = Clock::now(); });
    event->time = time;
    event->recorded = {stream, stream->end()};
    return error;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    ENTER;
    UNLESS_CAPTURING;
    auto* event = (Event*)handle;
    if (event->capture) return invalidate(event->capture, cudaErrorCapturedEvent);
    ++waits;
    if (event->recorded.stream) run_until(event->recorded.stream, event->recorded.count);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    ENTER;
    UNLESS_CAPTURING;
    auto* event = (Event*)handle;
    if (event->capture) return invalidate(event->capture, cudaErrorCapturedEvent);
    auto& [stream, count] = event->recorded;
    if (!stream || stream->done >= count) return cudaSuccess;
    run_until(stream, stream->done + 1);
    return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle) {
    ENTER;
    auto *start = (Event*)start_handle, *end = (Event*)end_handle;
    for (auto* event : {start, end}) {
        if (!event->timed || !event->recorded.stream) return failed(cudaErrorInvalidResourceHandle);
        if (event->recorded.stream->done < event->recorded.count) return failed(cudaErrorNotReady);
    }
    *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *start->time).count();
    return cudaSuccess;
}

// --- graphs ---

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
    ENTER;
    auto stream = stream_of(handle);
    if (!stream || stream == null_stream(current_device)) return failed(cudaErrorStreamCaptureUnsupported);
    if (stream->capture) return failed(cudaErrorIllegalState);
    stream->capture.reset(new Graph{{}, {stream}, mode, std::this_thread::get_id()});
    captures.push_back(stream->capture);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
    ENTER;
    auto stream = stream_of(handle);
    if (!stream || !stream->capture) return failed(cudaErrorIllegalState);
    auto ended = stream->capture;
    if (ended->streams.front() != stream) return failed(cudaErrorStreamCaptureUnmatched);
    for (auto& each : ended->streams) each->capture.reset();
    ended->streams.clear();
    captures.erase(std::find(captures.begin(), captures.end(), ended));
    *graph = nullptr;
    if (ended->invalid) return failed(cudaErrorStreamCaptureInvalidated);
    *graph = (cudaGraph_t) new std::shared_ptr<Graph>(ended);
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
    ENTER;
    auto stream = stream_of(handle);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    *status = !stream->capture           ? cudaStreamCaptureStatusNone
              : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
    ENTER;
    *executable = (cudaGraphExec_t) new std::shared_ptr<Graph>(*(std::shared_ptr<Graph>*)graph);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    ENTER;
    auto graph = *(std::shared_ptr<Graph>*)executable;
    return submit(stream_of(stream), [graph] {
        for (auto& task : graph->tasks) task();
    });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    ENTER;
    delete (std::shared_ptr<Graph>*)graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    ENTER;
    delete (std::shared_ptr<Graph>*)executable;
    return cudaSuccess;
}

cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

}  // extern "C"
