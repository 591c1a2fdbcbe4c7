/* Eight threads allocate, write, check, hand on and release blocks, while they ask for the figures, move the
   limit and empty the cache. The exit status tells whether a block was damaged or a figure is off. Built with
   sanitizers by test_allocator.py. */
#include "allocator.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 4000, SHARED = 16 };

typedef struct {
    unsigned char *data;
    size_t size;
    unsigned char mark;
} piece;

static piece shared[SHARED]; /* pieces on their way from one thread to another */
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static int damaged;

static uint64_t next(uint64_t *state) { /* xorshift */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void drop(piece p) {
    if (!p.data) return;
    for (size_t i = 0; i < p.size; i += p.size > 4096 ? 1021 : 1)
        if (p.data[i] != p.mark) __atomic_store_n(&damaged, 1, __ATOMIC_RELAXED);
    if (p.data[p.size - 1] != p.mark) __atomic_store_n(&damaged, 1, __ATOMIC_RELAXED);
    tp_release(p.data);
}

static void *work(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed * 0x9E3779B97F4A7C15u;
    tp_memory_stats stats;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t random = next(&state);
        piece p = {NULL, 1 + next(&state) % (random % 50 ? 3000 : (size_t)3 << 20), (unsigned char)random};
        p.data = tp_allocate(p.size); /* NULL beyond the limit that a thread may just have set */
        if (p.data) {
            if ((uintptr_t)p.data % 64) __atomic_store_n(&damaged, 1, __ATOMIC_RELAXED);
            memset(p.data, p.mark, p.size);
        }
        pthread_mutex_lock(&shared_lock);
        const piece other = shared[random % SHARED];
        shared[random % SHARED] = p;
        pthread_mutex_unlock(&shared_lock);
        drop(other);
        if (random % 64 == 0) tp_memory(&stats);
        if (random % 256 == 1) tp_memory_set_limit(random % 512 == 1 ? (size_t)8 << 20 : 0);
        if (random % 256 == 2) tp_memory_empty_cache();
        if (random % 256 == 3) tp_memory_reset_peak();
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(i + 1))) return 3;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SHARED; i++) drop(shared[i]);
    tp_memory_stats stats;
    tp_memory_empty_cache();
    tp_memory(&stats);
    printf("%zu allocations, %zu from the cache\n", stats.allocations, stats.hits);
    if (stats.allocations != (size_t)THREADS * ROUNDS || !stats.hits) return 4;
    if (stats.active || stats.allocated || stats.reserved) return 5;
    return damaged;
}
