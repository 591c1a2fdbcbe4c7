"""Normalisation of rows, of channels by given statistics, and of vectors to unit length."""

cimport numpy as np

from . import pointwise

from .layouts cimport CHANNELS_LAST, dense, laid_out, layout_of
from .allocator cimport new_array, new_like, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BF16, TP_F16, TP_F32, TP_F64, descriptors, type_of

np.import_array()

cdef extern from "c/normalization_layer.h":
    ctypedef struct tp_norm_rows:
        Py_ssize_t rows, length, repeat, weights, pieces
        int centred, threads
        double eps
        double *workspace
    ctypedef struct tp_norm_channels:
        Py_ssize_t samples, channels, positions, pieces
        int channels_last, threads
        double eps
        double *workspace
    ctypedef struct tp_norm_kernels:
        void (*rows[2])(
            const tp_norm_rows *, const void *, const void *, const void *, void *) noexcept nogil
        void (*row_statistics[2])(const tp_norm_rows *, const void *, void *, void *) noexcept nogil
        void (*rows_gradient[2])(
            const tp_norm_rows *, const void *, const void *, const void *, void *, void *, void *
        ) noexcept nogil
        void (*channels[2])(
            const tp_norm_channels *, const void *, const void *, const void *, const void *, const void *, void *
        ) noexcept nogil
        void (*channels_backward[2])(
            const tp_norm_channels *, const void *, const void *, const void *, const void *, const void *, void *,
            void *, void *) noexcept nogil
        void (*unit[2])(
            const void *, void *, double, Py_ssize_t, Py_ssize_t, Py_ssize_t, int) noexcept nogil
        void (*unit_backward[2])(
            const void *, const void *, void *, double, Py_ssize_t, Py_ssize_t, Py_ssize_t, int) noexcept nogil

cdef extern from *:
    """
    #define tp_norm_kernels_of(level) TP_CHOOSE(tp_norm_table, level)
    """
    const tp_norm_kernels *tp_norm_kernels_of(int)

cdef const tp_norm_kernels *kernels = tp_norm_kernels_of(simd_level)

cdef enum:
    GRAIN = 16384, HOLD = 2048, PIECES = 16, PIECE = 131072

ctypedef fused number:
    float
    double

cdef np.dtype DOUBLE = descriptors[1]


cdef np.ndarray contiguous(object value):
    cdef np.ndarray array = plain_array(value)
    return array if np.PyArray_IS_C_CONTIGUOUS(array) else pointwise.clone(array)


cdef bint is_half(np.ndarray array) noexcept:
    cdef int number = type_of(array)
    return number == TP_F16 or number == TP_BF16


def through_float32(function, arrays, *rest):
    """Return what a kernel makes of half-precision arrays, computed in float32."""
    half = arrays[0].dtype
    wide = descriptors[TP_F32]
    results = function(*[pointwise.cast(array, wide) for array in arrays], *rest)
    if isinstance(results, tuple):
        return tuple([pointwise.cast(result, half) for result in results])
    return pointwise.cast(results, half)


cdef inline void *data(np.ndarray array) noexcept nogil:
    return NULL if array is None else np.PyArray_DATA(array)


cdef np.ndarray room(Py_ssize_t doubles):
    cdef np.npy_intp size = doubles
    return new_array(DOUBLE, 1, &size, NULL)


cdef Py_ssize_t pieces_of(Py_ssize_t total, Py_ssize_t rows) noexcept:
    """Return into how many parts to divide rows whose sums are wanted, whatever the number of threads is.

    The sums of a piece take as much room as eight rows.
    """
    cdef Py_ssize_t pieces = total // PIECE
    if pieces > PIECES:
        pieces = PIECES
    if pieces > rows // 2:
        pieces = rows // 2
    return pieces if pieces > 1 else 1


# --- rows ------------------------------------------------------------------------------------------


cdef tp_norm_rows described(
    np.ndarray x, np.ndarray weight, Py_ssize_t length, Py_ssize_t repeat, double eps, bint centred
):
    cdef tp_norm_rows s
    cdef Py_ssize_t total = np.PyArray_SIZE(x)
    s.rows, s.length, s.repeat, s.eps, s.centred = total // length, length, repeat, eps, centred
    s.weights = 0 if weight is None else np.PyArray_SIZE(weight)
    s.threads = threads_for(total, GRAIN)
    # Without weights nothing is summed over rows: the parts are for the threads.
    s.pieces = (s.rows + 31) // 32 if weight is None else pieces_of(total, s.rows)
    s.workspace = NULL
    return s


cdef check(np.ndarray x, np.ndarray weight, np.ndarray bias, Py_ssize_t length, Py_ssize_t repeat):
    """Refuse weights that rows do not consist of: the kernels would read behind them."""
    cdef Py_ssize_t count = np.PyArray_SIZE(weight)
    if np.PyArray_SIZE(x) and (
        length % repeat or not count or (count * repeat) % length
        or (bias is not None and np.PyArray_SIZE(bias) != count)
    ):
        raise RuntimeError(
            f"affine_row_norm(): {count} weights, each for {repeat} elements, do not fit runs of {length} elements"
        )


cdef np.ndarray forward(
    np.ndarray x, np.ndarray weight, np.ndarray bias, Py_ssize_t length, Py_ssize_t repeat, double eps, bint centred
):
    cdef np.ndarray y = new_like(x, type_of(x))
    cdef tp_norm_rows s
    cdef int wide = type_of(x) != TP_F32
    if np.PyArray_SIZE(x):
        s = described(x, weight, length, repeat, eps, centred)
        if np.PyArray_SIZE(x) < HOLD:
            kernels.rows[wide](&s, data(x), data(weight), data(bias), data(y))
        else:
            with nogil:
                kernels.rows[wide](&s, data(x), data(weight), data(bias), data(y))
    return y


def row_statistics(input, tuple shape, double eps):
    """Return the means of rows of elements and the reciprocals of their deviations, of a shape."""
    cdef np.ndarray x = contiguous(input), mean, rstd
    cdef tp_norm_rows s
    cdef np.npy_intp sizes[64]
    cdef int i, wide = type_of(x) != TP_F32
    if is_half(x):
        return through_float32(row_statistics, (x,), shape, eps)
    for i in range(len(shape)):
        sizes[i] = shape[i]
    mean = new_array(<np.dtype> descriptors[type_of(x)], <int> len(shape), sizes, NULL)
    s = described(x, None, np.PyArray_SIZE(x) // np.PyArray_SIZE(mean), 1, eps, True)
    rstd = new_like(mean, type_of(x))
    with nogil:
        kernels.row_statistics[wide](&s, data(x), data(mean), data(rstd))
    return mean, rstd


def row_norm(input, Py_ssize_t length, double eps, bint centred):
    """Return each `length` elements without their mean, divided by their root mean square."""
    cdef np.ndarray x = contiguous(input)
    if is_half(x):
        return through_float32(row_norm, (x,), length, eps, centred)
    return forward(x, None, None, length, 1, eps, centred)


def row_norm_backward(g, input, Py_ssize_t length, double eps, bint centred):
    """Return the gradient of :func:`row_norm`."""
    cdef np.ndarray x = contiguous(input), p = contiguous(g), result
    cdef tp_norm_rows s
    cdef int wide = type_of(x) != TP_F32
    if is_half(x):
        return through_float32(row_norm_backward, (p, x), length, eps, centred)
    result = new_like(x, type_of(x))
    if np.PyArray_SIZE(x):
        s = described(x, None, length, 1, eps, centred)
        with nogil:
            kernels.rows_gradient[wide](&s, data(p), data(x), NULL, data(result), NULL, NULL)
    return result


def affine_row_norm(inputs, Py_ssize_t length, Py_ssize_t repeat, double eps, bint centred):
    """Return what :func:`row_norm` does times weights, plus biases; each counts for `repeat` elements."""
    cdef np.ndarray x = contiguous(inputs[0]), weight = contiguous(inputs[1]), bias = None
    if is_half(x):
        return through_float32(
            lambda *wide: affine_row_norm(wide, length, repeat, eps, centred), inputs
        )
    if len(inputs) > 2:
        bias = contiguous(inputs[2])
    check(x, weight, bias, length, repeat)
    return forward(x, weight, bias, length, repeat, eps, centred)


def affine_row_norm_backward(
    g, input, weight, Py_ssize_t length, Py_ssize_t repeat, double eps, bint centred
):
    """Return the gradients of the input, the weights and the biases."""
    cdef np.ndarray x = contiguous(input), p = contiguous(g), w = contiguous(weight), result, g_w, g_b, workspace
    cdef tp_norm_rows s
    cdef int wide = type_of(x) != TP_F32
    if is_half(x):
        return through_float32(affine_row_norm_backward, (p, x, w), length, repeat, eps, centred)
    check(x, w, None, length, repeat)
    result, g_w, g_b = new_like(x, type_of(x)), new_like(w, type_of(x)), new_like(w, type_of(x))
    if not np.PyArray_SIZE(x):
        g_w[...] = 0
        g_b[...] = 0
        return result, g_w, g_b
    s = described(x, w, length, repeat, eps, centred)
    workspace = room(4 * s.pieces * s.weights)
    s.workspace = <double *> np.PyArray_DATA(workspace)
    with nogil:
        kernels.rows_gradient[wide](
            &s, data(p), data(x), data(w), data(result), data(g_w), data(g_b)
        )
    return result, g_w, g_b


# --- channels --------------------------------------------------------------------------------------


cdef np.ndarray prepared(tp_norm_channels *s, np.ndarray x, int layout, double eps):
    """Say how images lie; return the array that holds the workspace."""
    cdef Py_ssize_t total = np.PyArray_SIZE(x)
    cdef np.ndarray workspace
    s.samples, s.channels = np.PyArray_DIM(x, 0), np.PyArray_DIM(x, 1)
    s.positions = total // (s.samples * s.channels)
    # Rows of single elements are rows of channels as well, and those are longer.
    s.channels_last = layout == CHANNELS_LAST or s.positions == 1
    s.threads = threads_for(total, GRAIN)
    s.pieces = pieces_of(total, s.samples * s.positions)
    s.eps = eps
    workspace = room(4 * (s.pieces + 1) * s.channels)
    s.workspace = <double *> np.PyArray_DATA(workspace)
    return workspace


cdef np.ndarray laid_like(np.ndarray x, int layout):
    return laid_out(<np.dtype> descriptors[type_of(x)], np.PyArray_NDIM(x), np.PyArray_DIMS(x), layout)


def channel_norm(inputs, double eps):
    """Return images less a mean, divided by the root of a variance, perhaps times a weight plus a bias."""
    cdef int layout
    cdef np.ndarray x = plain_array(inputs[0]), mean, variance, weight = None, bias = None, y, workspace
    cdef tp_norm_channels s
    cdef int wide = type_of(x) != TP_F32
    if is_half(x):
        return through_float32(lambda *wide: channel_norm(wide, eps), inputs)
    x = dense(x, &layout)
    mean, variance = contiguous(inputs[1]), contiguous(inputs[2])
    if len(inputs) > 3:
        weight, bias = contiguous(inputs[3]), contiguous(inputs[4])
    y = laid_like(x, layout)
    if np.PyArray_SIZE(x):
        workspace = prepared(&s, x, layout, eps)
        with nogil:
            kernels.channels[wide](
                &s, data(x), data(mean), data(variance), data(weight), data(bias), data(y)
            )
    return y


def channel_norm_backward(g, input, mean, variance, weight, double eps):
    """Return the gradients of the images, the weight and the bias of :func:`channel_norm`."""
    cdef int layout
    cdef np.ndarray x = plain_array(input), p = plain_array(g), m, v, w, g_x, g_w, g_b, workspace
    cdef tp_norm_channels s
    cdef int wide = type_of(x) != TP_F32
    if is_half(x):
        return through_float32(channel_norm_backward, (p, x, mean, variance, weight), eps)
    x = dense(x, &layout)
    if layout_of(p) != layout:
        g_x = laid_like(x, layout)
        pointwise.copy(g_x, p, g_x)
        p = g_x
    m, v, w = contiguous(mean), contiguous(variance), contiguous(weight)
    g_x, g_w, g_b = laid_like(x, layout), new_like(w, type_of(x)), new_like(w, type_of(x))
    if not np.PyArray_SIZE(x):
        g_w[...] = 0
        g_b[...] = 0
        return g_x, g_w, g_b
    workspace = prepared(&s, x, layout, eps)
    with nogil:
        kernels.channels_backward[wide](
            &s, data(p), data(x), data(m), data(v), data(w), data(g_x), data(g_w), data(g_b)
        )
    return g_x, g_w, g_b


cdef void move(
    number *running_mean, number *running_var, const number *mean, const number *rstd, Py_ssize_t count,
    double momentum, double eps, double unbiased,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef double variance
    for i in range(count):
        variance = (1 / (<double> rstd[i] * rstd[i]) - eps) * unbiased
        running_mean[i] = <number> (running_mean[i] * (1 - momentum) + mean[i] * momentum)
        running_var[i] = <number> (running_var[i] * (1 - momentum) + variance * momentum)


def update_statistics(running_mean, running_var, mean, rstd, double momentum, double eps, double unbiased):
    """Move running statistics, in place, towards those of a batch."""
    cdef np.ndarray to_mean = running_mean, to_var = running_var, m = contiguous(mean), r = contiguous(rstd)
    cdef Py_ssize_t count = np.PyArray_SIZE(m)
    cdef int type = type_of(m)
    if type > TP_F64 or not np.PyArray_ISCARRAY(to_mean) or not np.PyArray_ISCARRAY(to_var):
        variance = (1.0 / (r * r) - eps) * unbiased
        running_mean[...] = running_mean * (1 - momentum) + m * momentum
        running_var[...] = running_var * (1 - momentum) + variance * momentum
    elif type == TP_F32:
        move(
            <float *> data(to_mean), <float *> data(to_var), <const float *> data(m), <const float *> data(r),
            count, momentum, eps, unbiased,
        )
    else:
        move(
            <double *> data(to_mean), <double *> data(to_var), <const double *> data(m), <const double *> data(r),
            count, momentum, eps, unbiased,
        )


# --- unit vectors ----------------------------------------------------------------------------------


cdef void split(np.ndarray x, int dim, Py_ssize_t *before, Py_ssize_t *n, Py_ssize_t *after) noexcept:
    cdef int i
    before[0] = n[0] = after[0] = 1
    for i in range(np.PyArray_NDIM(x)):
        if i < dim:
            before[0] *= np.PyArray_DIM(x, i)
        elif i == dim:
            n[0] = np.PyArray_DIM(x, i)
        else:
            after[0] *= np.PyArray_DIM(x, i)


def unit_vectors(input, int dim, double eps):
    """Return vectors along `dim` divided by their length, which counts as at least `eps`."""
    cdef np.ndarray x = contiguous(input), y
    cdef Py_ssize_t before, n, after
    cdef int wide = type_of(x) != TP_F32
    if is_half(x):
        return through_float32(unit_vectors, (x,), dim, eps)
    y = new_like(x, type_of(x))
    split(x, dim, &before, &n, &after)
    with nogil:
        kernels.unit[wide](
            data(x), data(y), eps, before, n, after, threads_for(before * n * after, GRAIN)
        )
    return y


def unit_vectors_gradient(g, input, int dim, double eps):
    """Return the gradient of :func:`unit_vectors`."""
    cdef np.ndarray x = contiguous(input), p = contiguous(g), result
    cdef Py_ssize_t before, n, after
    cdef int wide = type_of(x) != TP_F32
    if is_half(x):
        return through_float32(unit_vectors_gradient, (p, x), dim, eps)
    result = new_like(x, type_of(x))
    split(x, dim, &before, &n, &after)
    with nogil:
        kernels.unit_backward[wide](
            data(p), data(x), data(result), eps, before, n, after, threads_for(before * n * after, GRAIN)
        )
    return result
