/* Work shared among OpenMP threads. `threads` of 1 never enters a parallel region, which is what a forked
   child needs: GOMP's threads do not survive a fork. */
#ifndef TENSORPLUG_PARALLEL_H
#define TENSORPLUG_PARALLEL_H

#include <stddef.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* Run the block that follows with `begin` and `end` set to this thread's share of `count` items. */
#ifdef _OPENMP
#define TP_PARALLEL(count, threads, begin, end, ...)                                                  \
    do {                                                                                               \
        const ptrdiff_t tp_count = (count);                                                            \
        const int tp_threads = (threads);                                                              \
        if (tp_threads <= 1) {                                                                         \
            const ptrdiff_t begin = 0, end = tp_count;                                                 \
            __VA_ARGS__                                                                                       \
        } else {                                                                                       \
            _Pragma("omp parallel num_threads(tp_threads)") {                                          \
                const ptrdiff_t tp_team = omp_get_num_threads(), tp_me = omp_get_thread_num();         \
                const ptrdiff_t begin = tp_count * tp_me / tp_team;                                    \
                const ptrdiff_t end = tp_count * (tp_me + 1) / tp_team;                                \
                __VA_ARGS__                                                                                   \
            }                                                                                          \
        }                                                                                              \
    } while (0)
#else
#define TP_PARALLEL(count, threads, begin, end, ...)                                                  \
    do {                                                                                               \
        const ptrdiff_t begin = 0, end = (count);                                                      \
        (void)(threads);                                                                               \
        __VA_ARGS__                                                                                           \
    } while (0)
#endif

#endif
