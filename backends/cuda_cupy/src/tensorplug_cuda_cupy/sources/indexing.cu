// Values combined at positions, several of them at one position in any order.
//
// WAY is 0 for sums, 1 for products, 2 for the largest, 3 for the least and 4 for the last; PARTS is 2 for complex numbers,
// whose T is that of their parts (only sums: the parts add up by themselves), else 1.

__device__ inline A combined(A a, A b) {
#if WAY == 0
    return a + b;
#elif WAY == 1
    return a * b;
#elif WAY == 2
    return a > b || a != a ? a : b;
#elif WAY == 3
    return a < b || a != a ? a : b;
#else
    return b;
#endif
}

#if WAY == 0
// These sums have an instruction; the others go around until nobody was in between.
#define ADDS(N)                                                                                      \
    __device__ inline void combine_at(N* target, N value) { atomicAdd(target, value); }
ADDS(float)
ADDS(double)
ADDS(int)
ADDS(unsigned int)
ADDS(unsigned long long)
__device__ inline void combine_at(Long* target, Long value) { atomicAdd((ULong*)target, (ULong)value); }
#endif

// Combine a value into one place of memory, whatever the size of T. Types of fewer than four bytes are
// changed within their aligned word.
template <typename T, typename A> __device__ inline void combine_at(T* target, A value) {
    if (sizeof(T) == 8) {
        ULong* address = (ULong*)target;
        union { ULong bits; T number; } before, after;
        before.bits = *(volatile ULong*)address;
        while (true) {
            ULong seen = before.bits;
            after.number = store<T>(combined((A)load(before.number), value));
            before.bits = atomicCAS(address, seen, after.bits);
            if (before.bits == seen) return;
        }
    } else if (sizeof(T) == 4) {
        Word* address = (Word*)target;
        union { Word bits; T number; } before, after;
        before.bits = *(volatile Word*)address;
        while (true) {
            Word seen = before.bits;
            after.number = store<T>(combined((A)load(before.number), value));
            before.bits = atomicCAS(address, seen, after.bits);
            if (before.bits == seen) return;
        }
    } else {
        Word shift = (Word)((ULong)target & 3) * 8;
        Word mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
        Word* address = (Word*)((ULong)target & ~(ULong)3);
        Word before = *(volatile Word*)address;
        while (true) {
            Word seen = before;
            union { Word bits; T number; } part;
            part.bits = (seen & mask) >> shift;
            T changed = store<T>(combined((A)load(part.number), value));
            part.bits = 0;
            part.number = changed;
            before = atomicCAS(address, seen, (seen & ~mask) | ((part.bits << shift) & mask));
            if (before == seen) return;
        }
    }
}

// Row positions[i] of `out` is combined with values[i], both of `width` elements; positions that are not among
// the `size` rows are left out; with `wraps` negative ones count from the end.
extern "C" __global__ void accumulate(
    T* out, const Long* positions, const T* values, Long count, Long width, Long size, int wraps) {
    Long parts = width * PARTS;
    for (Long i = global_thread(); i < count * parts; i += all_threads()) {
        Long at = positions[i / parts];
        if (wraps && at < 0) at += size;
        if (at >= 0 && at < size) combine_at(out + at * parts + i % parts, (A)load(values[i]));
    }
}

// The same in the order of the values: each row of `positions`, which are sorted, is one thread's for each of its
// elements. order[n] is the value that belongs to positions[n].
extern "C" __global__ void accumulate_sorted(
    T* out, const Long* positions, const Long* order, const T* values, Long count, Long width, Long size) {
    Long parts = width * PARTS;
    for (Long i = global_thread(); i < count * parts; i += all_threads()) {
        Long n = i / parts, part = i % parts, at = positions[n];
        if (at < 0 || at >= size || (n > 0 && positions[n - 1] == at)) continue;
        A found = (A)load(out[at * parts + part]);
        for (; n < count && positions[n] == at; ++n)
            found = combined(found, (A)load(values[order[n] * parts + part]));
        out[at * parts + part] = store<T>(found);
    }
}
