// Values combined at positions, several of them at one position in any order.
//
// WAY is 0 for sums, 1 for products, 2 for the largest and 3 for the least; PARTS is 2 for complex numbers,
// whose T is that of their parts (only sums: the parts add up by themselves), else 1.

__device__ inline A combined(A a, A b) {
#if WAY == 0
    return a + b;
#elif WAY == 1
    return a * b;
#elif WAY == 2
    return a > b || a != a ? a : b;
#else
    return a < b || a != a ? a : b;
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

// out[positions[i]] is combined with values[i]; positions that are not among the `size` elements are left out.
extern "C" __global__ void accumulate(
    T* out, const Long* positions, const T* values, Long count, Long size) {
    for (Long i = global_thread(); i < count * PARTS; i += all_threads()) {
        Long at = positions[i / PARTS];
        if (at >= 0 && at < size) combine_at(out + at * PARTS + i % PARTS, (A)load(values[i]));
    }
}

// out[rows[i]] is combined with values[i], both of `width` elements; negative rows count from the end.
extern "C" __global__ void accumulate_rows(
    T* out, const Long* rows, const T* values, Long count, Long width, Long size) {
    Long parts = width * PARTS;
    for (Long i = global_thread(); i < count * parts; i += all_threads()) {
        Long at = rows[i / parts];
        if (at < 0) at += size;
        if (at >= 0 && at < size) combine_at(out + at * parts + i % parts, (A)load(values[i]));
    }
}
