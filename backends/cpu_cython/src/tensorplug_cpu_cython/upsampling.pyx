"""Images resampled to another size, and the gradient."""

cimport numpy as np
from libc.limits cimport INT_MAX
from libc.math cimport copysign, fabs, floor
from libc.stdint cimport int32_t
from libc.string cimport memset

from . import pointwise

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_F64, TP_I32, TP_U8, descriptors, type_of

np.import_array()

cdef extern from "c/upsampling.h":
    ctypedef struct tp_upsampling:
        Py_ssize_t planes
        Py_ssize_t size[3]
        Py_ssize_t where[3]
        Py_ssize_t taps[3]
        const int32_t *at[3]
        const void *weight[3]
        int bits[3]
        int threads
    ctypedef struct tp_upsamplings:
        int (*forward[2])(const tp_upsampling *, const void *, void *) noexcept nogil
        int (*backward[2])(const tp_upsampling *, const void *, void *) noexcept nogil
        int (*bytes)(const tp_upsampling *, const void *, void *) noexcept nogil

cdef extern from *:
    """
    #define tp_upsamplings_of(level) TP_CHOOSE(tp_upsampling_table, level)
    """
    const tp_upsamplings *tp_upsamplings_of(int)

cdef const tp_upsamplings *kernels = tp_upsamplings_of(simd_level)

cdef enum:
    NEAREST, NEAREST_EXACT, LINEAR, CUBIC
    GRAIN = 16384

cdef dict MODES = {
    "nearest": NEAREST, "nearest-exact": NEAREST_EXACT, "linear": LINEAR, "bilinear": LINEAR, "trilinear": LINEAR,
    "bicubic": CUBIC,
}


# --- what elements are made of ------------------------------------------------------------------------------------


cdef double keys(double x, double a) noexcept nogil:
    """Return Keys' cubic convolution kernel at a distance (Keys 1981)."""
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0


cdef void nearest(Py_ssize_t length, Py_ssize_t wanted, double scale, bint exact, int32_t *at) noexcept nogil:
    """Find which element each one of the result is, in single precision as torch does."""
    cdef float step = <float> (1 / scale) if scale else <float> length / <float> wanted
    cdef double half = 0.5 if exact else 0.0, place
    cdef Py_ssize_t i
    for i in range(wanted):
        if wanted == length:
            at[i] = <int32_t> i
        elif wanted == 2 * length and not exact:
            at[i] = <int32_t> (i >> 1)
        else:
            place = floor(<double> <float> ((i + half) * step))
            at[i] = <int32_t> (place if place < length - 1 else length - 1)


cdef void smooth(
    Py_ssize_t length, Py_ssize_t wanted, double step, bint cubic, bint align, int32_t *at, double *weight
) noexcept nogil:
    """Find the two or four neighbours of each element of the result, and their weights."""
    cdef Py_ssize_t i, k, first, place
    cdef double index, rest
    for i in range(wanted):
        index = step * i if align else step * (i + 0.5) - 0.5
        if not cubic:
            index = index if index > 0 else 0
            first = <Py_ssize_t> index
            first = first if first < length - 1 else length - 1
            rest = index - first
            rest = 0 if rest < 0 else 1 if rest > 1 else rest
            at[i] = <int32_t> first
            at[wanted + i] = <int32_t> (first + 1 if first < length - 1 else length - 1)
            weight[i], weight[wanted + i] = 1 - rest, rest
            continue
        first = <Py_ssize_t> floor(index)
        rest = index - first
        rest = 0 if rest < 0 else 1 if rest > 1 else rest
        for k in range(4):
            place = first + k - 1
            place = 0 if place < 0 else length - 1 if place > length - 1 else place
            at[k * wanted + i] = <int32_t> place
            weight[k * wanted + i] = keys(fabs(rest - (k - 1)), -0.75)


cdef Py_ssize_t reach(
    Py_ssize_t i, Py_ssize_t length, double step, bint cubic, Py_ssize_t *low
) noexcept nogil:
    """Return how many elements, from `low` on, a filter as wide as the step covers."""
    cdef double wide = (2.0 if cubic else 1.0) * (step if step > 1 else 1.0), centre = step * (i + 0.5)
    cdef Py_ssize_t high = <Py_ssize_t> (centre + wide + 0.5)
    low[0] = <Py_ssize_t> (centre - wide + 0.5)
    low[0] = low[0] if low[0] > 0 else 0
    high = high if high < length else length
    return high - low[0]


cdef void antialiased(
    Py_ssize_t length, Py_ssize_t wanted, double step, bint cubic, Py_ssize_t most, int32_t *at, double *weight
) noexcept nogil:
    """Find the taps of such a filter (Pillow's way, as in torch)."""
    cdef double inverse = 1 / step if step >= 1 else 1, x, total
    cdef Py_ssize_t i, k, low = 0, count
    for i in range(wanted):
        count = reach(i, length, step, cubic, &low)
        total = 0
        for k in range(most):
            at[k * wanted + i] = <int32_t> (low + k if k < count else 0)
            weight[k * wanted + i] = 0
            if k < count:
                x = fabs((low + k - step * (i + 0.5) + 0.5) * inverse)
                weight[k * wanted + i] = keys(x, -0.5) if cubic else (1 - x if x < 1 else 0)
                total += weight[k * wanted + i]
        for k in range(count):
            weight[k * wanted + i] /= total if total else 1


cdef void merged(Py_ssize_t wanted, Py_ssize_t most, const int32_t *at, double *weight) noexcept nogil:
    """Give the first tap of an element the weights of all that it has, which its others lose."""
    cdef Py_ssize_t i, k, before
    for i in range(wanted):
        for k in range(1, most):
            for before in range(k):
                if at[before * wanted + i] == at[k * wanted + i]:
                    weight[before * wanted + i] += weight[k * wanted + i]
                    weight[k * wanted + i] = 0
                    break


cdef int in_16_bits(Py_ssize_t count, const double *weight, int32_t *rounded) noexcept nogil:
    """Round weights to multiples of the least power of 2 for which int16 holds all; return its bits, as torch has it."""
    cdef double largest = weight[0]
    cdef int bits = 0
    cdef Py_ssize_t i
    for i in range(count):
        largest = weight[i] if weight[i] > largest else largest
    while bits < 22 and <int> (0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    for i in range(count):
        rounded[i] = <int32_t> (weight[i] * (1 << bits) + copysign(0.5, weight[i]))
    return bits


cdef list found_taps(
    tp_upsampling *s, int d, int number, double scale, int mode, bint align, bint antialias
):
    """Describe a dimension; return the arrays that hold what is described."""
    cdef Py_ssize_t length = s.size[d], wanted = s.where[d], most = 1, i, low = 0, count
    cdef double step
    cdef np.ndarray at, weights, rounded
    cdef np.npy_intp shape[2]
    if align:
        step = <double> (length - 1) / (wanted - 1) if wanted > 1 else 0.0
    else:
        step = 1 / scale if scale else <double> length / wanted
    if mode == LINEAR or mode == CUBIC:
        most = 2 if mode == LINEAR else 4
        if antialias:
            most = 1
            for i in range(wanted):
                count = reach(i, length, step, mode == CUBIC, &low)
                most = count if count > most else most
    shape[0], shape[1] = most, wanted
    at = new_array(descriptors[TP_I32], 2, shape, NULL)
    weights = new_array(descriptors[TP_F64], 2, shape, NULL)
    if mode == NEAREST or mode == NEAREST_EXACT:
        nearest(length, wanted, scale, mode == NEAREST_EXACT, <int32_t *> np.PyArray_DATA(at))
        for i in range(wanted):
            (<double *> np.PyArray_DATA(weights))[i] = 1
    elif antialias:
        antialiased(
            length, wanted, step, mode == CUBIC, most, <int32_t *> np.PyArray_DATA(at),
            <double *> np.PyArray_DATA(weights),
        )
    else:
        smooth(
            length, wanted, step, mode == CUBIC, align, <int32_t *> np.PyArray_DATA(at),
            <double *> np.PyArray_DATA(weights),
        )
    s.bits[d] = 0
    if number == TP_U8:
        rounded = new_array(descriptors[TP_I32], 2, shape, NULL)
        merged(wanted, most, <const int32_t *> np.PyArray_DATA(at), <double *> np.PyArray_DATA(weights))
        s.bits[d] = in_16_bits(
            most * wanted, <const double *> np.PyArray_DATA(weights), <int32_t *> np.PyArray_DATA(rounded)
        )
        weights = rounded
    elif number != TP_F64:
        weights = pointwise.cast(weights, descriptors[number])
    s.taps[d] = most
    s.at[d] = <const int32_t *> np.PyArray_DATA(at)
    s.weight[d] = np.PyArray_DATA(weights)
    return [at, weights]


# --- kernels ------------------------------------------------------------------------------------------------------


cdef list described(
    tp_upsampling *s, tuple shape, tuple size, tuple scale_factor, int number, mode, bint align, bint antialias
):
    """Describe a call for images of some shape, and the sizes of its result; return what must be kept."""
    cdef int count = <int> len(shape) - 2, d, way = MODES[mode]
    cdef double scale
    cdef list kept = []
    s.planes = shape[0] * shape[1]
    for d in range(3):
        s.size[d] = s.where[d] = 1
    for d in range(count):
        s.size[3 - count + d], s.where[3 - count + d] = shape[2 + d], size[d]
    for d in range(3):
        if s.size[d] > INT_MAX or s.where[d] > INT_MAX:
            raise RuntimeError(f"interpolate(): sizes above {INT_MAX} are not supported, got {shape[2:]} to {size}")
        scale = 0 if scale_factor is None or d < 3 - count else scale_factor[d - 3 + count]
        if d < 3 - count:
            kept += found_taps(s, d, number, 0, NEAREST, False, False)
        else:
            kept += found_taps(s, d, number, scale, way, align, antialias)
    s.threads = threads_for(s.planes * s.where[0] * s.where[1] * s.where[2], GRAIN)
    return kept


cdef np.ndarray contiguous(object value):
    cdef np.ndarray array = plain_array(value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef np.ndarray new_images(np.ndarray like, tuple leading, tuple sizes):
    cdef np.npy_intp shape[5]
    cdef int d
    for d in range(2):
        shape[d] = leading[d]
    for d in range(<int> len(sizes)):
        shape[2 + d] = sizes[d]
    return new_array(descriptors[type_of(like)], <int> len(sizes) + 2, shape, NULL)


def interpolate(input, tuple size, scale_factor, mode, bint align_corners, bint antialias):
    """Return images (N, C, *spatial) resampled to `size`, by given scales or those of the sizes.

    Of bytes the first of three dimensions takes the nearest.
    """
    cdef np.ndarray x = contiguous(input), result = new_images(x, input.shape[:2], size)
    cdef tp_upsampling s
    cdef int number = type_of(x), done
    kept = described(&s, input.shape, size, scale_factor, number, mode, align_corners, antialias)
    with nogil:
        if number == TP_U8:
            done = kernels.bytes(&s, np.PyArray_DATA(x), np.PyArray_DATA(result))
        else:
            done = kernels.forward[number == TP_F64](&s, np.PyArray_DATA(x), np.PyArray_DATA(result))
    if not done:
        raise MemoryError()
    return result


def interpolate_backward(grad_output, tuple input_size, scale_factor, mode, bint align_corners, bint antialias):
    """Return the gradient of images of shape `input_size`."""
    cdef np.ndarray g = contiguous(grad_output), result = new_images(g, input_size[:2], input_size[2:])
    cdef tp_upsampling s
    cdef int number = type_of(g), done
    kept = described(
        &s, input_size, grad_output.shape[2:], scale_factor, number, mode, align_corners, antialias
    )
    with nogil:
        memset(np.PyArray_DATA(result), 0, np.PyArray_NBYTES(result))
        done = kernels.backward[number == TP_F64](&s, np.PyArray_DATA(g), np.PyArray_DATA(result))
    if not done:
        raise MemoryError()
    return result
