"""oneDNN's convolutions and matrix products, each primitive made once for a problem and kept."""

import numpy

cimport numpy as np
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.string cimport memset

from .machine cimport TP_BF16, TP_F32, descriptors, new_array, plain_array, threads_for, type_of

np.import_array()

cdef extern from "c/onednn.h":
    enum:
        TP_CONVOLUTION, TP_CONVOLUTION_INPUT, TP_CONVOLUTION_WEIGHT, TP_MATMUL
        TP_DNN_F32, TP_DNN_BF16, TP_DNN_DIMS, TP_DNN_ARRAYS
    ctypedef struct tp_dnn_array:
        int64_t dims
        int64_t shape[6]
        int64_t strides[6]
        int64_t kept
    ctypedef struct tp_dnn_problem:
        int64_t sort, type, threads, groups, spatial, has_bias
        int64_t stride[3]
        int64_t dilation[3]
        int64_t before[3]
        int64_t after[3]
        tp_dnn_array arrays[4]
    ctypedef struct tp_dnn_operation:
        pass
    ctypedef struct tp_dnn_call:
        pass
    int tp_dnn_make(tp_dnn_operation **, const tp_dnn_problem *)
    void tp_dnn_free(tp_dnn_operation *)
    size_t tp_dnn_workspace(const tp_dnn_operation *)
    const char *tp_dnn_implementation(const tp_dnn_operation *)
    tp_dnn_call *tp_dnn_call_new(const tp_dnn_operation *)
    void tp_dnn_call_free(tp_dnn_call *)
    int tp_dnn_run(const tp_dnn_operation *, tp_dnn_call *, void **, void *, int) noexcept nogil
    ctypedef struct tp_sgemm:
        int transposed_a, transposed_b
        int64_t m, n, k, lda, ldb
        const float *bias
    ctypedef struct tp_sgemm_batch:
        int dims
        Py_ssize_t shape[64]
        Py_ssize_t strides_a[64]
        Py_ssize_t strides_b[64]
    int tp_dnn_sgemm(const tp_sgemm *, const float *, const float *, float *, int) noexcept nogil
    int tp_dnn_sgemm_batch(
        const tp_sgemm *, const tp_sgemm_batch *, const float *, const float *, float *, int
    ) noexcept nogil
    bint tp_dnn_has_bf16()

cdef enum:
    KEPT = 1024  # operations before the older half is dropped
    SPARE = 8  # calls at a time that keep their memory objects

# Below so many multiplications the interpreter's lock is kept, or one thread does the work.
cdef double HOLD = 1e5
cdef double SERIAL = 1e6

has_bf16 = tp_dnn_has_bf16()

#: What serves the calls that oneDNN does not, by name of the op: set by families/convolutions.py.
fallbacks = {}


cdef int all_threads() noexcept:
    return threads_for(1 << 40, 1)


# --- operations ------------------------------------------------------------------------------------

cdef class Operation:
    """A primitive with its reorders, and what calls of it need at a time."""

    cdef tp_dnn_operation *operation
    cdef tp_dnn_call *spare[8]
    cdef int spares
    cdef size_t workspace

    def __dealloc__(self):
        cdef int i
        for i in range(self.spares):
            tp_dnn_call_free(self.spare[i])
        tp_dnn_free(self.operation)

    cdef int run(self, void **data, int threads) except -1:
        cdef tp_dnn_call *call
        cdef np.npy_intp size = <np.npy_intp> self.workspace
        cdef np.ndarray workspace = None
        cdef void *memory = NULL
        cdef int failed
        if self.spares:
            self.spares -= 1
            call = self.spare[self.spares]
        else:
            call = tp_dnn_call_new(self.operation)
            if call == NULL:
                raise MemoryError("oneDNN could not make its memory objects")
        if size:
            workspace = new_array(BYTE, 1, &size, NULL)
            memory = np.PyArray_DATA(workspace)
        with nogil:
            failed = tp_dnn_run(self.operation, call, data, memory, threads)
        if self.spares < SPARE:
            self.spare[self.spares] = call
            self.spares += 1
        else:
            tp_dnn_call_free(call)
        if failed:
            raise RuntimeError(f"oneDNN failed in {tp_dnn_implementation(self.operation).decode()}")
        return 0


cdef np.dtype BYTE = numpy.dtype("u1")
cdef dict operations = {}


cdef Operation find(tp_dnn_problem *problem):
    """Return the operation for a problem; None if oneDNN has none that is worth a call."""
    cdef bytes key = PyBytes_FromStringAndSize(<char *> problem, sizeof(tp_dnn_problem))
    cdef Operation operation
    cdef object found = operations.get(key, 0)
    if found is not 0:
        return found
    operation = Operation.__new__(Operation)
    if tp_dnn_make(&operation.operation, problem):
        operation = None
    else:
        operation.workspace = tp_dnn_workspace(operation.operation)
    if len(operations) >= KEPT:
        for old in list(operations)[: KEPT // 2]:
            del operations[old]
    operations[key] = operation
    return operation


def implementations():
    """Return the names of oneDNN's kernels that are in use, None for what was declined."""
    return [
        None if o is None else tp_dnn_implementation((<Operation> o).operation).decode()
        for o in operations.values()
    ]


# --- convolution -----------------------------------------------------------------------------------

cdef enum:
    ROWS, CHANNELS_LAST, OTHER


cdef int layout_of(np.ndarray array) noexcept:
    """Return how the elements of (N, C, *spatial) lie in memory; rows where both are right."""
    cdef int dims = np.PyArray_NDIM(array), i
    cdef Py_ssize_t step = np.PyArray_ITEMSIZE(array)
    if np.PyArray_IS_C_CONTIGUOUS(array):
        return ROWS
    if np.PyArray_DIM(array, 1) != 1:
        if np.PyArray_STRIDE(array, 1) != step:
            return OTHER
        step *= np.PyArray_DIM(array, 1)
    for i in range(dims - 1, 0, -1):
        if i == 1:
            i = 0
        if np.PyArray_DIM(array, i) != 1:
            if np.PyArray_STRIDE(array, i) != step:
                return OTHER
            step *= np.PyArray_DIM(array, i)
    return CHANNELS_LAST


cdef void fill_strides(tp_dnn_array *d, int layout) noexcept:
    """Set the strides, in elements, of a dense layout."""
    cdef int i, dims = <int> d.dims
    cdef int64_t step = 1
    if layout == CHANNELS_LAST:
        d.strides[1] = 1
        step = d.shape[1]
    for i in range(dims - 1, -1, -1):
        if layout == CHANNELS_LAST and i == 1:
            continue
        d.strides[i] = step
        step *= d.shape[i]


cdef np.ndarray dense(object value, int *layout):
    """Return an array that lies in rows, or channels last, and which of the two it is."""
    cdef np.ndarray array = plain_array(value)
    layout[0] = layout_of(array)
    if layout[0] == OTHER:
        array = numpy.ascontiguousarray(array)
        layout[0] = ROWS
    return array


cdef void describe(tp_dnn_array *d, np.ndarray array, int layout) noexcept:
    cdef int i
    d.dims = np.PyArray_NDIM(array)
    for i in range(d.dims):
        d.shape[i] = np.PyArray_DIM(array, i)
    fill_strides(d, layout)
    d.kept = layout == CHANNELS_LAST


cdef void describe_weight(tp_dnn_array *d, np.ndarray array, int64_t groups) noexcept:
    cdef int i, more = groups > 1
    d.dims = np.PyArray_NDIM(array) + more
    if more:
        d.shape[0] = groups
    for i in range(np.PyArray_NDIM(array)):
        d.shape[i + more] = np.PyArray_DIM(array, i)
    if more:
        d.shape[1] //= groups
    fill_strides(d, ROWS)
    d.kept = 0


cdef np.ndarray result_array(np.ndarray like, int dims, const np.npy_intp *shape, int layout):
    cdef np.npy_intp strides[5]
    cdef tp_dnn_array d
    cdef int i
    if layout != CHANNELS_LAST:
        return new_array(like.dtype, dims, shape, NULL)
    d.dims = dims
    for i in range(dims):
        d.shape[i] = shape[i]
    fill_strides(&d, layout)
    for i in range(dims):
        strides[i] = d.strides[i] * np.PyArray_ITEMSIZE(like)
    return new_array(like.dtype, dims, shape, strides)


cdef bint fill_windows(
    tp_dnn_problem *p, np.ndarray size, np.npy_intp *wide, np.npy_intp *kernel, np.npy_intp *where,
    tuple stride, tuple padding, tuple dilation,
):
    """Set how the windows lie; return whether oneDNN can be told so."""
    cdef int i
    cdef int64_t span, after
    for i in range(p.spatial):
        p.stride[i] = stride[i]
        p.dilation[i] = dilation[i]
        p.before[i] = padding[i]
        span = p.dilation[i] * (kernel[i] - 1) + 1
        after = p.before[i]
        if (wide[i] + 2 * p.before[i] - span) // p.stride[i] + 1 != where[i]:
            # Rows behind the last window take no part.
            after = (where[i] - 1) * p.stride[i] + span - wide[i] - p.before[i]
        if after < 0 or p.before[i] >= span + p.stride[i] or after >= span + p.stride[i]:
            return False
        p.after[i] = after
    return True


cdef bint begin(tp_dnn_problem *p, int sort, np.ndarray array, object groups) except -1:
    memset(p, 0, sizeof(tp_dnn_problem))
    p.sort = sort
    p.type = TP_DNN_BF16 if type_of(array) == TP_BF16 else TP_DNN_F32
    p.spatial = np.PyArray_NDIM(array) - 2
    p.groups = groups
    return 1 <= p.spatial <= 3


cdef double work(np.ndarray target, np.ndarray weight) noexcept:
    return <double> np.PyArray_SIZE(target) * np.PyArray_SIZE(weight) / max(1, np.PyArray_DIM(weight, 0))


def convolution(input, weight, bias, tuple stride, tuple padding, tuple dilation, groups):
    """Return the cross-correlation; channels last where the input is."""
    cdef tp_dnn_problem p
    cdef int layout, ignored, i, dims
    cdef np.ndarray x = dense(input, &layout), w = dense(weight, &ignored), y, b
    cdef np.npy_intp shape[5]
    cdef void *data[4]
    cdef Operation operation = None
    if ignored != ROWS:
        w = numpy.ascontiguousarray(w)
    dims = np.PyArray_NDIM(x)
    if begin(&p, TP_CONVOLUTION, x, groups) and np.PyArray_SIZE(x) and np.PyArray_SIZE(w):
        shape[0] = np.PyArray_DIM(x, 0)
        shape[1] = np.PyArray_DIM(w, 0)
        for i in range(2, dims):
            shape[i] = (
                np.PyArray_DIM(x, i) + 2 * <np.npy_intp> padding[i - 2]
                - <np.npy_intp> dilation[i - 2] * (np.PyArray_DIM(w, i) - 1) - 1
            ) // <np.npy_intp> stride[i - 2] + 1
        y = result_array(x, dims, shape, layout)
        if fill_windows(
            &p, x, np.PyArray_DIMS(x) + 2, np.PyArray_DIMS(w) + 2, shape + 2, stride, padding, dilation
        ):
            p.threads = all_threads() if work(y, w) > SERIAL else 1
            describe(&p.arrays[0], x, layout)
            describe_weight(&p.arrays[1], w, p.groups)
            describe(&p.arrays[2], y, layout)
            if bias is not None:
                b = numpy.ascontiguousarray(bias)
                p.has_bias = 1
                describe(&p.arrays[3], b, ROWS)
                p.arrays[3].kept = 1
                data[3] = np.PyArray_DATA(b)
            operation = find(&p)
    if operation is None:
        return fallbacks["convolution"](x.dtype)(input, weight, bias, stride, padding, dilation, groups)
    data[0] = np.PyArray_DATA(x)
    data[1] = np.PyArray_DATA(w)
    data[2] = np.PyArray_DATA(y)
    operation.run(data, <int> p.threads)
    return y


def convolution_input(gradient, weight, size, tuple stride, tuple padding, tuple dilation, groups):
    """Return the adjoint with respect to the input; channels last where the gradient is."""
    cdef tp_dnn_problem p
    cdef int layout, ignored, i, dims
    cdef np.ndarray g = dense(gradient, &layout), w = dense(weight, &ignored), x
    cdef np.npy_intp shape[5]
    cdef void *data[4]
    cdef Operation operation = None
    if ignored != ROWS:
        w = numpy.ascontiguousarray(w)
    dims = np.PyArray_NDIM(g)
    if begin(&p, TP_CONVOLUTION_INPUT, g, groups) and np.PyArray_SIZE(g) and np.PyArray_SIZE(w) and 0 not in size:
        shape[0] = np.PyArray_DIM(g, 0)
        shape[1] = np.PyArray_DIM(w, 1) * p.groups
        for i in range(2, dims):
            shape[i] = size[i - 2]
        x = result_array(g, dims, shape, layout)
        if fill_windows(
            &p, x, shape + 2, np.PyArray_DIMS(w) + 2, np.PyArray_DIMS(g) + 2, stride, padding, dilation
        ):
            p.threads = all_threads() if work(g, w) > SERIAL else 1
            describe(&p.arrays[0], g, layout)
            describe_weight(&p.arrays[1], w, p.groups)
            describe(&p.arrays[2], x, layout)
            operation = find(&p)
    if operation is None:
        return fallbacks["convolution_input"](g.dtype)(gradient, weight, size, stride, padding, dilation, groups)
    data[0] = np.PyArray_DATA(g)
    data[1] = np.PyArray_DATA(w)
    data[2] = np.PyArray_DATA(x)
    operation.run(data, <int> p.threads)
    return x


def convolution_weight(input, gradient, kernel, tuple stride, tuple padding, tuple dilation, groups):
    """Return the adjoint with respect to the weight."""
    cdef tp_dnn_problem p
    cdef int layout, other, i, dims
    cdef np.ndarray x = dense(input, &layout), g = dense(gradient, &other), w
    cdef np.npy_intp shape[5]
    cdef void *data[4]
    cdef Operation operation = None
    dims = np.PyArray_NDIM(x)
    if begin(&p, TP_CONVOLUTION_WEIGHT, x, groups) and np.PyArray_SIZE(x) and np.PyArray_SIZE(g) and 0 not in kernel:
        shape[0] = np.PyArray_DIM(g, 1)
        shape[1] = np.PyArray_DIM(x, 1) // p.groups
        for i in range(2, dims):
            shape[i] = kernel[i - 2]
        w = new_array(x.dtype, dims, shape, NULL)
        if fill_windows(
            &p, x, np.PyArray_DIMS(x) + 2, shape + 2, np.PyArray_DIMS(g) + 2, stride, padding, dilation
        ):
            p.threads = all_threads() if work(g, w) > SERIAL else 1
            describe(&p.arrays[0], x, layout)
            describe(&p.arrays[1], g, other)
            describe_weight(&p.arrays[2], w, p.groups)
            if layout != other:
                p.arrays[0].kept = p.arrays[1].kept = 0
            operation = find(&p)
    if operation is None:
        return fallbacks["convolution_weight"](x.dtype)(input, gradient, kernel, stride, padding, dilation, groups)
    data[0] = np.PyArray_DATA(x)
    data[1] = np.PyArray_DATA(g)
    data[2] = np.PyArray_DATA(w)
    operation.run(data, <int> p.threads)
    return w


# --- matrix products -------------------------------------------------------------------------------

cdef bint lies(np.ndarray array, int *transposed, int64_t *ld) noexcept:
    """Say how the matrices in the last two dimensions lie; False if they have to be copied."""
    cdef int dims = np.PyArray_NDIM(array)
    cdef int64_t rows = np.PyArray_DIM(array, dims - 2), columns = np.PyArray_DIM(array, dims - 1)
    cdef int64_t down = np.PyArray_STRIDE(array, dims - 2) // 4, along = np.PyArray_STRIDE(array, dims - 1) // 4
    if along == 1 or columns == 1:
        transposed[0] = 0
        ld[0] = columns if rows == 1 else down
        if ld[0] >= columns and (columns > 1 or along >= 1):
            return True
    if down == 1 or rows == 1:
        transposed[0] = 1
        ld[0] = rows if columns == 1 else along
        return ld[0] >= rows
    return False


cdef int run_product(tp_sgemm *g, np.ndarray a, np.ndarray b, np.ndarray c) except -1:
    cdef double flops = <double> g.m * g.n * g.k
    cdef int threads = all_threads() if flops > SERIAL else 1, failed
    cdef float *x = <float *> np.PyArray_DATA(a)
    cdef float *y = <float *> np.PyArray_DATA(b)
    cdef float *z = <float *> np.PyArray_DATA(c)
    if flops < HOLD:
        failed = tp_dnn_sgemm(g, x, y, z, threads)
    else:
        with nogil:
            failed = tp_dnn_sgemm(g, x, y, z, threads)
    if failed:
        raise RuntimeError("oneDNN's sgemm failed")
    return 0


cdef np.ndarray product(np.ndarray a, np.ndarray b, bint flip, const float *bias):
    """Return the product of two matrices, the second transposed if `flip`; plus the bias in each row."""
    cdef tp_sgemm g
    cdef np.npy_intp shape[2]
    cdef np.ndarray c
    if not lies(a, &g.transposed_a, &g.lda):
        a = numpy.ascontiguousarray(a)
        lies(a, &g.transposed_a, &g.lda)
    if not lies(b, &g.transposed_b, &g.ldb):
        b = numpy.ascontiguousarray(b)
        lies(b, &g.transposed_b, &g.ldb)
    g.bias = bias
    g.m = shape[0] = np.PyArray_DIM(a, 0)
    g.k = np.PyArray_DIM(a, 1)
    g.n = shape[1] = np.PyArray_DIM(b, 0 if flip else 1)
    if flip:
        g.transposed_b = not g.transposed_b
    if g.k != np.PyArray_DIM(b, 1 if flip else 0):
        raise ValueError(f"matmul: {list((<object> a).shape)} and {list((<object> b).shape)} do not fit")
    c = new_array(<np.dtype> descriptors[TP_F32], 2, shape, NULL)
    if g.m and g.n:
        if g.k:
            run_product(&g, a, b, c)
        else:
            c[...] = 0
    return c


cdef np.ndarray batches(np.ndarray a, np.ndarray b):
    """Return the products of matrices in batches that broadcast."""
    cdef tp_sgemm g
    cdef tp_sgemm_batch s
    cdef np.npy_intp shape[64]
    cdef int left = np.PyArray_NDIM(a) - 2, right = np.PyArray_NDIM(b) - 2, i, j, threads, failed
    cdef int64_t m, n
    cdef double flops
    cdef np.ndarray c
    cdef float *x
    cdef float *y
    cdef float *z
    if not lies(a, &g.transposed_a, &g.lda):
        a = numpy.ascontiguousarray(a)
        lies(a, &g.transposed_a, &g.lda)
    if not lies(b, &g.transposed_b, &g.ldb):
        b = numpy.ascontiguousarray(b)
        lies(b, &g.transposed_b, &g.ldb)
    s.dims = max(left, right)
    for i in range(s.dims):
        s.shape[i] = 1
        s.strides_a[i] = s.strides_b[i] = 0
        j = i - (s.dims - left)
        if j >= 0 and np.PyArray_DIM(a, j) != 1:
            s.shape[i] = np.PyArray_DIM(a, j)
            s.strides_a[i] = np.PyArray_STRIDE(a, j) // 4
        j = i - (s.dims - right)
        if j >= 0 and np.PyArray_DIM(b, j) != 1:
            s.shape[i] = np.PyArray_DIM(b, j)
            s.strides_b[i] = np.PyArray_STRIDE(b, j) // 4
        shape[i] = s.shape[i]
    g.bias = NULL
    g.m = shape[s.dims] = np.PyArray_DIM(a, left)
    g.k = np.PyArray_DIM(a, left + 1)
    g.n = shape[s.dims + 1] = np.PyArray_DIM(b, right + 1)
    c = new_array(<np.dtype> descriptors[TP_F32], s.dims + 2, shape, NULL)
    if not np.PyArray_SIZE(c):
        return c
    if not g.k:
        c[...] = 0
        return c
    x = <float *> np.PyArray_DATA(a)
    y = <float *> np.PyArray_DATA(b)
    z = <float *> np.PyArray_DATA(c)
    flops = <double> np.PyArray_SIZE(c) * g.k
    threads = all_threads() if flops > SERIAL else 1
    with nogil:
        failed = tp_dnn_sgemm_batch(&g, &s, x, y, z, threads)
    if failed:
        raise RuntimeError("oneDNN's sgemm failed")
    return c


cdef np.ndarray rows_of(np.ndarray array):
    """Return (..., k) as a matrix."""
    cdef np.npy_intp last = np.PyArray_DIM(array, np.PyArray_NDIM(array) - 1)
    return array.reshape((np.PyArray_SIZE(array) // last if last else -1, last))


def matmul(input, other):
    """Return the matrix product of two float32 arrays."""
    cdef np.ndarray a = plain_array(input), b = plain_array(other)
    cdef int left = np.PyArray_NDIM(a), right = np.PyArray_NDIM(b)
    if left == 2 and right == 2:
        return product(a, b, False, NULL)
    if right == 1:
        if left == 1:
            return product(a.reshape(1, -1), b.reshape(-1, 1), False, NULL).reshape(())
        if left == 2:
            return product(a, b.reshape(-1, 1), False, NULL).reshape(-1)
        return matmul(a, b.reshape(-1, 1)).reshape((<object> a).shape[:-1])
    if left == 1:
        return matmul(a.reshape(1, -1), b).reshape((<object> b).shape[:-2] + (<object> b).shape[-1:])
    if right == 2 and np.PyArray_IS_C_CONTIGUOUS(a) and np.PyArray_DIM(a, left - 1):
        return product(rows_of(a), b, False, NULL).reshape(
            (<object> a).shape[:-1] + (<object> b).shape[1:]
        )
    return batches(a, b)


def linear(input, weight, bias):
    """Return ``input @ weight.T + bias`` of float32 arrays."""
    cdef np.ndarray a = plain_array(input), b = plain_array(weight), c, c_bias
    cdef int dims = np.PyArray_NDIM(a)
    cdef const float *start = NULL
    if np.PyArray_NDIM(b) != 2 or not dims or not np.PyArray_DIM(b, 1):
        c = plain_array(matmul(a, b if np.PyArray_NDIM(b) == 1 else b.T))
        return c if bias is None else numpy.asarray(c + bias)
    if bias is not None:
        c_bias = numpy.ascontiguousarray(bias)
        if np.PyArray_NDIM(c_bias) != 1 or np.PyArray_DIM(c_bias, 0) != np.PyArray_DIM(b, 0):
            c_bias = numpy.ascontiguousarray(numpy.broadcast_to(c_bias, (np.PyArray_DIM(b, 0),)))
        start = <const float *> np.PyArray_DATA(c_bias)
    if dims == 2:
        return product(a, b, True, start)
    return product(rows_of(a), b, True, start).reshape((<object> a).shape[:-1] + (<object> b).shape[:1])
