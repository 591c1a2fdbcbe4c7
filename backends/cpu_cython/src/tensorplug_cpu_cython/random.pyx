"""Random bits, and numbers made of them."""

cimport numpy as np
from libc.stdint cimport int64_t, uint64_t

from .allocator cimport new_array, new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .memory_overlap cimport may_share
from .types cimport TP_BOOL, TP_F16, TP_BF16, TP_F32, TP_F64, TP_I64, TP_TYPES, descriptors, type_of

np.import_array()

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int *) except? -1

cdef extern from "c/random.h":
    ctypedef struct tp_counter:
        uint64_t seed, offset, upper
    ctypedef struct tp_random:
        void (*philox)(int64_t *, Py_ssize_t, uint64_t, uint64_t, uint64_t, int) noexcept nogil
        void (*uniform)(const int64_t *, float *, Py_ssize_t, int) noexcept nogil
        void (*normal)(const int64_t *, const int64_t *, float *, Py_ssize_t, int) noexcept nogil
        void (*uniform_new[TP_TYPES])(void *, Py_ssize_t, tp_counter, int) noexcept nogil
        void (*normal_new[TP_TYPES])(void *, Py_ssize_t, tp_counter, int) noexcept nogil
        void (*bernoulli_new[TP_TYPES])(void *, const void *, Py_ssize_t, Py_ssize_t, tp_counter, int) noexcept nogil
        void (*integers_new[TP_TYPES])(void *, int64_t, uint64_t, Py_ssize_t, tp_counter, int) noexcept nogil

cdef extern from *:
    """
    #define tp_random_of(level) TP_CHOOSE(tp_random_table, level)
    """
    const tp_random *tp_random_of(int)

cdef extern from "c/random_distributions.h":
    ctypedef struct tp_distributions:
        void (*poisson[2])(const void *, void *, Py_ssize_t, tp_counter) noexcept nogil
        void (*choices[2])(
            const void *, const void *, void *, int64_t *, Py_ssize_t, Py_ssize_t, Py_ssize_t) noexcept nogil
        Py_ssize_t (*fewest[2])(const void *, Py_ssize_t, Py_ssize_t) noexcept nogil
        int (*permutation)(int64_t *, Py_ssize_t, tp_counter) noexcept nogil

cdef extern from *:
    """
    #define tp_distributions_of(level) TP_CHOOSE(tp_distributions_table, level)
    """
    const tp_distributions *tp_distributions_of(int)

cdef const tp_random *kernels = tp_random_of(simd_level)
cdef const tp_distributions *distributions = tp_distributions_of(simd_level)


cdef np.ndarray new_of(object shape, int type_number):
    """Return a new array of some sizes."""
    cdef np.npy_intp sizes[64]
    cdef int i, dims = len(shape)
    for i in range(dims):
        sizes[i] = shape[i]
    return new_array(<np.dtype> descriptors[type_number], dims, sizes, NULL)


cdef np.ndarray memory_for(object shape, int type_number, object out):
    """Return where numbers are drawn that shall go to `out`: there if they lie in their order, or to a new array."""
    if out is not None and np.PyArray_CheckExact(out) and type_of(<np.ndarray> out) == type_number:
        if np.PyArray_ISCARRAY(<np.ndarray> out):
            return <np.ndarray> out
    return new_of(shape, type_number)


cdef object delivered(np.ndarray made, object out):
    """Return `out` with the numbers that were made for it, or, without it, the array of these."""
    if out is None or made is out:
        return made
    out[...] = made
    return out


cdef tp_counter counter_of(object seed, object offset):
    cdef int beyond = 0
    cdef long long low = PyLong_AsLongLongAndOverflow(offset, &beyond)
    if not beyond:
        return tp_counter(seed, <uint64_t> low, 0)
    return tp_counter(seed, offset & 0xFFFFFFFFFFFFFFFF, offset >> 64)


def philox_bits(shape, seed, offset):
    """Return 32-bit words by counter, as int64."""
    cdef np.ndarray result = new_of(shape, TP_I64)
    cdef Py_ssize_t count = np.PyArray_SIZE(result)
    cdef tp_counter first = counter_of(seed, offset)
    if count:
        with nogil:
            kernels.philox(
                <int64_t *> np.PyArray_DATA(result), count, first.seed, first.offset, first.upper,
                threads_for(count, 16384),
            )
    return result


# Drawn at once, numbers need no memory for words; but where the body draws them in pieces, each of them begins
# with the words that the one before left, and so does each piece here.
cdef enum:
    FEW = 1 << 12  # for so many it takes longer to let other threads run than to draw
    PIECE = 1 << 22
    WORDS_PER_BLOCK = 4

ctypedef void (*draw)(void *, Py_ssize_t, tp_counter, int) noexcept nogil


cdef tp_counter next_piece(tp_counter first, int words) noexcept nogil:
    """Return where the words of a piece's numbers end that take some each."""
    cdef uint64_t before = first.offset
    first.offset += words * (PIECE // WORDS_PER_BLOCK)
    first.upper += first.offset < before
    return first


cdef void draw_pieces(draw run, char *to, int size, Py_ssize_t count, tp_counter first, int words) noexcept nogil:
    cdef Py_ssize_t start = 0
    while start < count:
        run(to + start * size, min(PIECE, count - start), first, threads_for(min(PIECE, count - start), 16384))
        first = next_piece(first, words)
        start += PIECE


def floats_of(int type_number, bint normal):
    """Return the kernel of uniform or normal numbers drawn by counter, of a TP_ type of floats."""
    cdef draw run = kernels.normal_new[type_number] if normal else kernels.uniform_new[type_number]
    cdef int size = (<np.dtype> descriptors[type_number]).itemsize
    cdef int words = (2 if normal else 1) * (2 if type_number == TP_F64 else 1)

    def numbers_new(shape, seed, offset, dtype, device, out=None):
        cdef np.ndarray result = memory_for(shape, type_number, out)
        cdef tp_counter first = counter_of(seed, offset)
        cdef Py_ssize_t count = np.PyArray_SIZE(result)
        if count <= FEW:
            run(np.PyArray_DATA(result), count, first, 1)
            return delivered(result, out)
        with nogil:
            draw_pieces(run, <char *> np.PyArray_DATA(result), size, count, first, words)
        return delivered(result, out)

    return numbers_new


def integers_of(int type_number, fallback):
    """Return the kernel of whole numbers drawn by counter, of a TP_ type."""

    cdef bint few = type_number in (TP_BOOL, TP_F16, TP_BF16)

    def integers_new(shape, seed, offset, dtype, device, low, high, out=None):
        cdef np.ndarray result
        cdef tp_counter first = counter_of(seed, offset)
        cdef Py_ssize_t count
        cdef int64_t least
        cdef uint64_t span
        cdef object all_of_them = high - low
        if not 0 < all_of_them <= 1 << 63 or not -(1 << 63) <= low < 1 << 63 or (
            few and not (all_of_them <= 1 << 16 and -(1 << 23) <= low < 1 << 23)
        ):
            return delivered(fallback(shape, seed, offset, dtype, device, low, high), out)
        least, span = low, all_of_them
        result = memory_for(shape, type_number, out)
        count = np.PyArray_SIZE(result)
        if count <= FEW:
            kernels.integers_new[type_number](np.PyArray_DATA(result), least, span, count, first, 1)
        else:
            with nogil:
                kernels.integers_new[type_number](
                    np.PyArray_DATA(result), least, span, count, first, threads_for(count, 16384)
                )
        return delivered(result, out)

    return integers_new


def bernoulli_of(int type_number, own, fallback):
    """Return the kernel of zeros and ones drawn by counter, of the TP_ type that dtype `own` has."""
    cdef int size = (<np.dtype> descriptors[type_number]).itemsize
    cdef int words = 2 if type_number == TP_F64 else 1

    def bernoulli_new(shape, seed, offset, dtype, device, chance, out=None):
        cdef np.ndarray result
        cdef tp_counter first = counter_of(seed, offset)
        cdef Py_ssize_t count, start = 0, step = 0
        cdef double precise
        cdef float single
        cdef const char *chances
        cdef char *at
        if isinstance(chance, (float, int)):
            precise = chance
            single = <float> precise
            chances = <const char *> &precise if type_number == TP_F64 else <const char *> &single
        elif type_number <= TP_F64 and are_chances(chance, type_number, shape) and dtype is own:
            chances = <const char *> np.PyArray_DATA(<np.ndarray> chance)
            step = size
        else:
            return delivered(fallback(shape, seed, offset, dtype, device, chance), out)
        if step and out is not None and may_share(<np.ndarray> chance, <np.ndarray?> out):
            result = new_of(shape, type_number)
        else:
            result = memory_for(shape, type_number, out)
        count = np.PyArray_SIZE(result)
        at = <char *> np.PyArray_DATA(result)
        if count <= FEW:
            kernels.bernoulli_new[type_number](at, chances, step, count, first, 1)
            return delivered(result, out)
        with nogil:
            while start < count:
                kernels.bernoulli_new[type_number](
                    at + start * size, chances + start * step, step,
                    min(PIECE, count - start), first, threads_for(min(PIECE, count - start), 16384),
                )
                first = next_piece(first, words)
                start += PIECE
        return delivered(result, out)

    return bernoulli_new


cdef bint are_chances(object value, int type_number, object shape):
    return (
        np.PyArray_CheckExact(value) and type_of(value) == type_number and np.PyArray_ISCARRAY_RO(value)
        and value.shape == shape
    )


# --- distributions and orders ----------------------------------------------------------------------


cdef np.ndarray in_rows(object value):
    """Return an array of floats as one that lies row by row."""
    cdef np.ndarray array = plain_array(value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else np.PyArray_GETCONTIGUOUS(array)


def poisson_new(shape, seed, offset, dtype, device, rates):
    """Return numbers of Poisson distributions, of rates of float32 or float64."""
    cdef np.ndarray given = in_rows(rates), result = new_like(given, type_of(given))
    cdef bint wide = type_of(given) == TP_F64
    cdef Py_ssize_t count = np.PyArray_SIZE(given)
    cdef tp_counter first = counter_of(seed, offset)
    if count <= 64:
        distributions.poisson[wide](np.PyArray_DATA(given), np.PyArray_DATA(result), count, first)
    else:
        with nogil:
            distributions.poisson[wide](np.PyArray_DATA(given), np.PyArray_DATA(result), count, first)
    return result


def multinomial_new(shape, seed, offset, dtype, device, weights):
    """Return which of the weights, of float32 or float64, numbers choose."""
    cdef np.ndarray given = in_rows(weights), result = new_of(shape, TP_I64), draws, sums
    cdef int type_number = type_of(given), dims = np.PyArray_NDIM(given)
    cdef bint wide = type_number == TP_F64
    cdef Py_ssize_t total = np.PyArray_SIZE(result), categories = np.PyArray_DIM(given, dims - 1) if dims else 1
    cdef Py_ssize_t rows = np.PyArray_DIM(given, 0) if dims > 1 else 1
    cdef Py_ssize_t count = total // rows if rows else 0
    cdef tp_counter first = counter_of(seed, offset)
    cdef np.npy_intp size = total
    draws = new_array(<np.dtype> descriptors[type_number], 1, &size, NULL)
    size = categories
    sums = new_array(<np.dtype> descriptors[type_number], 1, &size, NULL)
    if total:
        with nogil:
            draw_pieces(
                kernels.uniform_new[type_number], <char *> np.PyArray_DATA(draws), 8 if wide else 4, total, first,
                2 if wide else 1,
            )
            distributions.choices[wide](
                np.PyArray_DATA(given), np.PyArray_DATA(draws), np.PyArray_DATA(sums),
                <int64_t *> np.PyArray_DATA(result), rows, categories, count,
            )
    return result


def fewest_positive(weights):
    """Return how many weights of a row are positive, at the least; -1 where they are no weights."""
    cdef np.ndarray given = in_rows(weights)
    cdef int dims = np.PyArray_NDIM(given)
    cdef Py_ssize_t categories = np.PyArray_DIM(given, dims - 1) if dims else 1
    return distributions.fewest[type_of(given) == TP_F64](
        np.PyArray_DATA(given), np.PyArray_DIM(given, 0) if dims > 1 else 1, categories
    )


def permutation_new(shape, seed, offset, dtype, device):
    """Return the numbers below a count in random order, as int64."""
    cdef np.ndarray result = new_of(shape, TP_I64)
    cdef tp_counter first = counter_of(seed, offset)
    cdef Py_ssize_t count = np.PyArray_SIZE(result)
    cdef bint done
    with nogil:
        done = distributions.permutation(<int64_t *> np.PyArray_DATA(result), count, first)
    if not done:
        raise MemoryError(f"randperm(): no memory for {count} numbers")
    return result


cdef bint are_words(object value):
    return np.PyArray_CheckExact(value) and type_of(value) == TP_I64 and np.PyArray_ISCARRAY_RO(value)


def uniform_kernel(fallback):
    """Return the kernel of uniform numbers made of words, of float32."""
    def uniform_of_words(words, dtype):
        cdef np.ndarray result
        cdef Py_ssize_t count
        if dtype.name != "float32" or not are_words(words):
            return fallback(words, dtype)
        result = new_like(words, TP_F32)
        count = np.PyArray_SIZE(result)
        kernels.uniform(
            <const int64_t *> np.PyArray_DATA(words), <float *> np.PyArray_DATA(result), count, threads_for(count, 65536)
        )
        return result

    return uniform_of_words


def normal_kernel(fallback):
    """Return the kernel of normal numbers made of pairs of words, of float32."""
    def normal_of_words(radius, angle, dtype):
        cdef np.ndarray result
        cdef Py_ssize_t count
        if dtype.name != "float32" or not (are_words(radius) and are_words(angle) and radius.shape == angle.shape):
            return fallback(radius, angle, dtype)
        result = new_like(radius, TP_F32)
        count = np.PyArray_SIZE(result)
        kernels.normal(
            <const int64_t *> np.PyArray_DATA(radius), <const int64_t *> np.PyArray_DATA(angle),
            <float *> np.PyArray_DATA(result), count, threads_for(count, 16384),
        )
        return result

    return normal_of_words
