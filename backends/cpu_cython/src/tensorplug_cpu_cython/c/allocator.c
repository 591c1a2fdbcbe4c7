/* A caching allocator: fresh memory costs more than most kernels, for each new page is a fault.

   Blocks come in size classes, eight to a power of two, so that at most an eighth is unused. A free block
   waits in the list of its class, newest first, since that one is in the processor's cache. Blocks from
   1 MiB on are also in a list by age: before new ones are mapped, the oldest give way as soon as more than
   the most that was ever in use, plus some slack, would be reserved. Blocks from 256 MiB on are given back at
   once: to keep one might double what a process holds, and in huge pages their faults cost little. */
#define _GNU_SOURCE
#include "allocator.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifndef _WIN32
#include <pthread.h>
#include <sys/mman.h>
#endif
#ifdef __SANITIZE_ADDRESS__ /* to touch what is cached, or the unused end of a block, is an error */
#include <sanitizer/asan_interface.h>
#define forbid(memory, bytes) __asan_poison_memory_region(memory, bytes)
#define permit(memory, bytes) __asan_unpoison_memory_region(memory, bytes)
#else
#define forbid(memory, bytes) ((void)(bytes))
#define permit(memory, bytes) ((void)(bytes))
#endif

enum { HEADER = 64, STEPS = 8, SMALLEST = 64, CLASSES = 8 * 44 };
static const size_t LARGE = (size_t)1 << 20, HUGE_PAGE = (size_t)2 << 20, SLACK = (size_t)64 << 20, GIANT = (size_t)256 << 20;

typedef struct block {
    size_t size;                  /* bytes behind the header */
    size_t asked;                 /* how many of them are in use */
    int class_;
    struct block *next;           /* in the list of its class */
    struct block *older, *newer;  /* among cached large blocks */
} block;

_Static_assert(sizeof(block) <= HEADER, "a block's facts have to fit before it");

static block *cache[CLASSES];
static block *oldest, *newest;
static tp_memory_stats now;

#ifdef _WIN32
static volatile long busy;
#define lock() do {} while (_InterlockedExchange(&busy, 1))
#define unlock() _InterlockedExchange(&busy, 0)
#else
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) { pthread_mutex_unlock(&mutex); }
/* A child gets the lock as it was: hold it during the fork, so that the lists are whole. */
__attribute__((constructor)) static void on_fork(void) { pthread_atfork(lock, unlock, unlock); }
#endif

/* Return the class of a size and round the size up to the class's. */
static int class_of(size_t *size) {
    size_t wanted = *size < SMALLEST ? SMALLEST : *size;
    int power = 63 - __builtin_clzll((unsigned long long)wanted);
    size_t step = (size_t)1 << (power >= 9 ? power - 3 : 6); /* an eighth, but whole cache lines */
    wanted = (wanted + step - 1) / step * step;
    *size = wanted;
    power = 63 - __builtin_clzll((unsigned long long)wanted);
    step = (size_t)1 << (power >= 9 ? power - 3 : 6);
    return (power - 6) * STEPS + (int)((wanted - ((size_t)1 << power)) / step);
}

static void forget_age(block *b) {
    *(b->older ? &b->older->newer : &oldest) = b->newer;
    *(b->newer ? &b->newer->older : &newest) = b->older;
}

/* Large blocks are mapped, so that what is given back does leave the process: the heap of the C library keeps
   it, in pieces that larger blocks do not fit into. */
#ifdef _WIN32
static block *map(size_t size) { return _aligned_malloc(size + HEADER, HEADER); }
static void unmap(block *b) { _aligned_free(b); }
#else
enum { PAGE = 4096 };

static size_t mapped_size(size_t size) { return (size + HEADER + PAGE - 1) & ~(size_t)(PAGE - 1); }

/* Return a mapping that begins with a huge page: map one more than needed, and cut off both ends. */
static block *map_large(size_t size) {
    const size_t total = mapped_size(size);
    char *memory = mmap(NULL, total + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    char *start = (char *)(((uintptr_t)memory + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    if (start > memory) munmap(memory, (size_t)(start - memory));
    if (memory + HUGE_PAGE > start) munmap(start + total, (size_t)(memory + HUGE_PAGE - start));
#ifdef MADV_HUGEPAGE
    if (size >= HUGE_PAGE) madvise(start, total & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
    return (block *)start;
}

static block *map(size_t size) {
    void *memory = NULL;
    if (size >= LARGE) return map_large(size);
    return posix_memalign(&memory, HEADER, size + HEADER) ? NULL : memory;
}

static void unmap(block *b) {
    if (b->size >= LARGE) munmap(b, mapped_size(b->size));
    else free(b);
}
#endif

static void give_back(block *b) {
    now.reserved -= b->size;
    permit((char *)b + HEADER, b->size);
    unmap(b);
}

/* Take `b`, which is cached, out of the list of its class. */
static void uncache(block *b) {
    block **place = &cache[b->class_];
    while (*place != b) place = &(*place)->next;
    *place = b->next;
    if (b->size >= LARGE) forget_age(b);
}

static void empty(void) {
    for (int class_ = 0; class_ < CLASSES; class_++) {
        while (cache[class_]) {
            block *b = cache[class_];
            uncache(b);
            give_back(b);
        }
    }
}

static block *fresh(size_t size) {
    if (now.limit && now.reserved + size > now.limit) {
        empty();
        if (now.reserved + size > now.limit) return NULL;
    }
    if (size >= LARGE) {
        size_t most = now.peak_allocated > now.allocated + size ? now.peak_allocated : now.allocated + size;
        while (oldest && now.reserved + size > most + most / 8 + SLACK) {
            block *b = oldest;
            uncache(b);
            give_back(b);
        }
    }
    block *b = map(size);
    if (!b) { /* the cache may hold what is missing */
        empty();
        b = map(size);
    }
    if (b) {
        now.reserved += size;
        if (now.reserved > now.peak_reserved) now.peak_reserved = now.reserved;
    }
    return b;
}

void *tp_allocate(size_t bytes) {
    if (bytes > (size_t)1 << 47) return NULL;
    const size_t asked = bytes;
    int class_ = class_of(&bytes);
    lock();
    now.allocations++;
    block *b = cache[class_];
    if (b) {
        now.hits++;
        cache[class_] = b->next;
        if (bytes >= LARGE) forget_age(b);
    } else if ((b = fresh(bytes))) {
        b->size = bytes;
        b->class_ = class_;
    }
    if (b) {
        b->asked = asked;
        now.active++;
        now.allocated += bytes;
        if (now.allocated > now.peak_allocated) now.peak_allocated = now.allocated;
    }
    unlock();
    if (!b) return NULL;
    char *memory = (char *)b + HEADER;
    permit(memory, asked);
    forbid(memory + asked, bytes - asked);
    return memory;
}

void tp_release(void *memory) {
    if (!memory) return;
    block *b = (block *)((char *)memory - HEADER);
    forbid(memory, b->size);
    lock();
    now.active--;
    now.allocated -= b->size;
    if (b->size >= GIANT) {
        give_back(b);
        unlock();
        return;
    }
    b->next = cache[b->class_];
    cache[b->class_] = b;
    if (b->size >= LARGE) {
        b->older = newest;
        b->newer = NULL;
        *(newest ? &newest->newer : &oldest) = b;
        newest = b;
    }
    unlock();
}

size_t tp_block_size(const void *memory) {
    return ((const block *)((const char *)memory - HEADER))->asked;
}

void tp_memory(tp_memory_stats *stats) {
    lock();
    *stats = now;
    unlock();
}

void tp_memory_reset_peak(void) {
    lock();
    now.peak_allocated = now.allocated;
    now.peak_reserved = now.reserved;
    unlock();
}

void tp_memory_set_limit(size_t bytes) {
    lock();
    now.limit = bytes;
    if (bytes && now.reserved > bytes) empty();
    unlock();
}

void tp_memory_empty_cache(void) {
    lock();
    empty();
    unlock();
}
