"""What the processor has: the SIMD level of the kernels, and how many threads they use."""

import os

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define tp_most_threads() omp_get_max_threads()
    #define tp_use_threads(number) omp_set_num_threads(number)
    #else
    #define tp_most_threads() 1
    #define tp_use_threads(number)
    #endif
    #if defined(TP_LEVELS) && !defined(_MSC_VER)
    static int tp_best_level(void) {
        __builtin_cpu_init();
        #if __GNUC__ >= 12 || defined(__clang__)
        if (__builtin_cpu_supports("x86-64-v4")) return 4;
        if (__builtin_cpu_supports("x86-64-v3")) return 3;
        return __builtin_cpu_supports("x86-64-v2") ? 2 : 1;
        #else
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl")) return 4;
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi2")) return 3;
        return __builtin_cpu_supports("sse4.2") ? 2 : 1;
        #endif
    }
    #else
    static int tp_best_level(void) { return 0; }
    #endif
    """
    int tp_most_threads()
    void tp_use_threads(int number)
    int tp_best_level()

LEVEL_VARIABLE = "TENSORPLUG_CPU_SIMD"


def _choose_level():
    best = tp_best_level()
    if best == 1:
        raise ImportError(
            "tensorplug-cpu-cython needs an x86-64 processor with SSE4.2; uninstall it to use NumPy's kernels"
        )
    wanted = os.environ.get(LEVEL_VARIABLE, "")
    if not wanted or not best:
        return best
    if wanted not in ("v2", "v3", "v4"):
        raise ValueError(f"{LEVEL_VARIABLE} must be v2, v3 or v4, got {wanted!r}")
    if int(wanted[1]) > best:
        raise ValueError(f"{LEVEL_VARIABLE} is {wanted}, but this processor has x86-64-v{best}")
    return int(wanted[1])


simd_level = _choose_level()


def level():
    """Return the SIMD level in use: "v2", "v3", "v4", or "plain" where there is one only."""
    return f"v{simd_level}" if simd_level else "plain"


# --- threads ---------------------------------------------------------------------------------------

cdef int threads = tp_most_threads()
cdef bint forked = False


def set_num_threads(int number):
    """Set how many threads kernels use; a forked child stays with one."""
    global threads
    if not forked:
        threads = number


def get_num_threads():
    """Return how many threads kernels use."""
    return threads


def _after_fork():
    global threads, forked
    # GOMP's threads are gone, but its notes of them are not: the next parallel region would wait forever.
    forked = True
    threads = 1
    tp_use_threads(1)  # for libraries that decide themselves how many they use


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


GRAIN_VARIABLE = "TENSORPLUG_CPU_GRAIN"


def _choose_grain():
    text = os.environ.get(GRAIN_VARIABLE, "")
    if text and not (text.isascii() and text.isdigit() and 1 <= int(text) < 1 << 60):
        raise ValueError(f"{GRAIN_VARIABLE} must be a number of elements from 1 on, got {text!r}")
    return int(text or 1 << 60)


# No kernel wants more elements per thread than this: tests set it to 1, to have small arrays shared out.
cdef Py_ssize_t largest_grain = _choose_grain()


cdef int threads_for(Py_ssize_t count, Py_ssize_t grain) noexcept nogil:
    if threads == 1:
        return 1
    if grain > largest_grain:
        grain = largest_grain
    if count < 2 * grain:
        return 1
    cdef Py_ssize_t wanted = count // grain
    return threads if wanted > threads else <int> wanted
