/* A caching allocator of aligned blocks. Thread-safe. */
#ifndef TENSORPLUG_ALLOCATOR_H
#define TENSORPLUG_ALLOCATOR_H

#include <stddef.h>

typedef struct {
    size_t allocated, peak_allocated; /* bytes in blocks that are in use */
    size_t reserved, peak_reserved;   /* these and the cached ones */
    size_t allocations, hits, active; /* calls; those served from the cache; blocks in use */
    size_t limit;                     /* most bytes reserved; 0 for no limit */
} tp_memory_stats;

void *tp_allocate(size_t bytes); /* aligned to 64 bytes; NULL if there is no memory */
void tp_release(void *block);    /* a block of tp_allocate, or NULL */
size_t tp_block_size(const void *block); /* as it was asked for */

void tp_memory(tp_memory_stats *stats);
void tp_memory_reset_peak(void);
void tp_memory_set_limit(size_t bytes);
void tp_memory_empty_cache(void);

#endif
