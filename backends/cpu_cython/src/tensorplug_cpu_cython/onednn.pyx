"""oneDNN's convolutions: each primitive is made once for a problem, and kept."""

import numpy

cimport numpy as np
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.string cimport memset

from .layouts cimport ROWS, dense, laid_out, lies_channels_last
from . import pointwise, products

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
    bint tp_dnn_has_bf16()

cdef enum:
    KEPT = 1024  # operations before the older half is dropped
    SPARE = 8  # calls at a time that keep their memory objects

# Below so many multiplications one thread does the work.
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

cdef void describe(tp_dnn_array *d, np.ndarray array, bint kept) noexcept:
    cdef int i
    d.dims = np.PyArray_NDIM(array)
    for i in range(d.dims):
        d.shape[i] = np.PyArray_DIM(array, i)
        d.strides[i] = np.PyArray_STRIDE(array, i) // np.PyArray_ITEMSIZE(array)
    d.kept = kept


cdef void split_groups(tp_dnn_array *d, int64_t groups) noexcept:
    """Make of a weight's first dimension one of groups, and one within a group."""
    cdef int i
    if groups == 1:
        return
    for i in range(<int> d.dims, 0, -1):
        d.shape[i] = d.shape[i - 1]
        d.strides[i] = d.strides[i - 1]
    d.dims += 1
    d.shape[0] = groups
    d.shape[1] //= groups
    d.strides[0] = d.strides[1] * d.shape[1]


cdef bint fill_windows(
    tp_dnn_problem *p, np.ndarray image, np.ndarray weight, np.ndarray target, tuple stride, tuple padding,
    tuple dilation,
):
    """Set how the windows lie; return whether oneDNN can be told so."""
    cdef int i
    cdef int64_t span, after, wide, where
    for i in range(p.spatial):
        wide, where = np.PyArray_DIM(image, i + 2), np.PyArray_DIM(target, i + 2)
        p.stride[i] = stride[i]
        p.dilation[i] = dilation[i]
        p.before[i] = padding[i]
        span = p.dilation[i] * (np.PyArray_DIM(weight, i + 2) - 1) + 1
        after = p.before[i]
        if (wide + 2 * p.before[i] - span) // p.stride[i] + 1 != where:
            # Rows behind the last window take no part.
            after = (where - 1) * p.stride[i] + span - wide - p.before[i]
        if after < 0 or p.before[i] >= span + p.stride[i] or after >= span + p.stride[i]:
            return False
        p.after[i] = after
    return True


cdef bint convolve(
    int sort, np.ndarray image, np.ndarray weight, np.ndarray target, object bias, tuple stride, tuple padding,
    tuple dilation, object groups,
) except -1:
    """Compute one of the three arrays from the others, and say whether oneDNN does that.

    Images and targets are dense: what lies channels last stays so inside oneDNN, what lies in rows does not.
    """
    cdef tp_dnn_problem p
    cdef np.ndarray b
    cdef void *data[4]
    cdef int places[3]  # of image, weight and target among the primitive's arrays; the result is the last
    cdef bint last
    cdef Operation operation
    memset(&p, 0, sizeof(tp_dnn_problem))
    p.sort = sort
    p.type = TP_DNN_BF16 if type_of(image) == TP_BF16 else TP_DNN_F32
    p.spatial = np.PyArray_NDIM(image) - 2
    p.groups = groups
    if not (
        1 <= p.spatial <= 3 and np.PyArray_SIZE(image) and np.PyArray_SIZE(weight) and np.PyArray_SIZE(target)
        and fill_windows(&p, image, weight, target, stride, padding, dilation)
    ):
        return False
    p.threads = all_threads() if work(target, weight) > SERIAL else 1
    if sort == TP_CONVOLUTION:
        places[0], places[1], places[2] = 0, 1, 2
    elif sort == TP_CONVOLUTION_INPUT:
        places[0], places[1], places[2] = 2, 1, 0
    else:
        places[0], places[1], places[2] = 0, 2, 1
    # Where only one lies channels last, or none does, oneDNN is left free to choose.
    last = (
        not (np.PyArray_IS_C_CONTIGUOUS(image) and np.PyArray_IS_C_CONTIGUOUS(target))
        and lies_channels_last(image) and lies_channels_last(target)
    )
    describe(&p.arrays[places[0]], image, last)
    describe(&p.arrays[places[1]], weight, False)
    split_groups(&p.arrays[places[1]], p.groups)
    describe(&p.arrays[places[2]], target, last)
    data[places[0]] = np.PyArray_DATA(image)
    data[places[1]] = np.PyArray_DATA(weight)
    data[places[2]] = np.PyArray_DATA(target)
    if bias is not None:
        b = numpy.ascontiguousarray(bias)
        p.has_bias = 1
        describe(&p.arrays[3], b, True)
        data[3] = np.PyArray_DATA(b)
    operation = find(&p)
    if operation is None:
        return False
    operation.run(data, <int> p.threads)
    return True


cdef double work(np.ndarray target, np.ndarray weight) noexcept:
    return <double> np.PyArray_SIZE(target) * np.PyArray_SIZE(weight) / max(1, np.PyArray_DIM(weight, 0))


cdef np.ndarray new_images(np.dtype descriptor, Py_ssize_t first, Py_ssize_t second, tuple spatial, int layout):
    """Return a new array (first, second, *spatial)."""
    cdef np.npy_intp shape[64]
    cdef int i, count = <int> len(spatial)
    shape[0], shape[1] = first, second
    for i in range(count):
        shape[i + 2] = spatial[i]
    return laid_out(descriptor, count + 2, shape, layout)


cdef tuple positions(np.ndarray image, np.ndarray weight, tuple stride, tuple padding, tuple dilation):
    """Return how many windows there are along each dimension."""
    cdef int i
    cdef Py_ssize_t span
    cdef list found = []
    for i in range(np.PyArray_NDIM(image) - 2):
        span = <Py_ssize_t> dilation[i] * (np.PyArray_DIM(weight, i + 2) - 1) + 1
        found.append(
            (np.PyArray_DIM(image, i + 2) + 2 * <Py_ssize_t> padding[i] - span) // <Py_ssize_t> stride[i] + 1
        )
    return tuple(found)


def convolution(input, weight, bias, tuple stride, tuple padding, tuple dilation, groups):
    """Return the cross-correlation; channels last where the input is."""
    cdef int layout, ignored
    cdef np.ndarray x = dense(input, &layout), w = dense(weight, &ignored), y
    cdef tuple where = positions(x, w, stride, padding, dilation)
    y = new_images(x.dtype, np.PyArray_DIM(x, 0), np.PyArray_DIM(w, 0), where, layout)
    if convolve(TP_CONVOLUTION, x, w, y, bias, stride, padding, dilation, groups):
        return y
    return fallbacks["convolution"](x.dtype)(input, weight, bias, stride, padding, dilation, groups)


def convolution_input(gradient, weight, tuple size, tuple stride, tuple padding, tuple dilation, groups):
    """Return the adjoint with respect to the input; channels last where the gradient is."""
    cdef int layout, ignored
    cdef np.ndarray g = dense(gradient, &layout), w = dense(weight, &ignored), x
    x = new_images(g.dtype, np.PyArray_DIM(g, 0), np.PyArray_DIM(w, 1) * <Py_ssize_t> groups, size, layout)
    if convolve(TP_CONVOLUTION_INPUT, x, w, g, None, stride, padding, dilation, groups):
        return x
    return fallbacks["convolution_input"](g.dtype)(gradient, weight, size, stride, padding, dilation, groups)


def convolution_weight(input, gradient, tuple kernel, tuple stride, tuple padding, tuple dilation, groups):
    """Return the adjoint with respect to the weight."""
    cdef int layout, other
    cdef np.ndarray x = dense(input, &layout), g = dense(gradient, &other), w
    w = new_images(x.dtype, np.PyArray_DIM(g, 1), np.PyArray_DIM(x, 1) // <Py_ssize_t> groups, kernel, ROWS)
    if convolve(TP_CONVOLUTION_WEIGHT, x, w, g, None, stride, padding, dilation, groups):
        return w
    return fallbacks["convolution_weight"](x.dtype)(input, gradient, kernel, stride, padding, dilation, groups)


# --- bfloat16 --------------------------------------------------------------------------------------


cdef bint describe_matrices(tp_dnn_array *d, np.ndarray array) noexcept:
    """Describe a matrix, or a batch of them; return whether oneDNN takes the strides."""
    cdef int i, dims = np.PyArray_NDIM(array)
    cdef Py_ssize_t item = np.PyArray_ITEMSIZE(array), stride
    d.dims = dims
    d.kept = 1
    for i in range(dims):
        stride = np.PyArray_STRIDE(array, i)
        if stride <= 0 or stride % item:
            return False
        d.shape[i] = np.PyArray_DIM(array, i)
        d.strides[i] = stride // item
    return d.strides[dims - 1] == 1 or d.strides[dims - 2] == 1


cdef object half_product(np.ndarray a, np.ndarray b, np.ndarray bias=None):
    """Return the product of bfloat16 matrices, plus the bias in each row, summed in float32.

    None if oneDNN has no kernel for it.
    """
    cdef tp_dnn_problem p
    cdef np.npy_intp shape[3]
    cdef void *data[4]
    cdef int dims = np.PyArray_NDIM(a), i
    cdef np.ndarray c
    cdef Operation operation
    memset(&p, 0, sizeof(p))
    p.sort = TP_MATMUL
    p.type = TP_DNN_BF16
    if not describe_matrices(&p.arrays[0], a):
        a = numpy.ascontiguousarray(a)
        describe_matrices(&p.arrays[0], a)
    if not describe_matrices(&p.arrays[1], b):
        b = numpy.ascontiguousarray(b)
        describe_matrices(&p.arrays[1], b)
    for i in range(dims - 1):
        shape[i] = np.PyArray_DIM(a, i)
    shape[dims - 1] = np.PyArray_DIM(b, dims - 1)
    c = new_array(<np.dtype> descriptors[TP_BF16], dims, shape, NULL)
    if not np.PyArray_SIZE(c):
        return c
    describe_matrices(&p.arrays[2], c)
    if bias is not None:
        p.has_bias = 1
        describe_matrices(&p.arrays[3], bias)
        data[3] = np.PyArray_DATA(bias)
    p.threads = all_threads() if <double> np.PyArray_SIZE(c) * np.PyArray_DIM(a, dims - 1) > SERIAL else 1
    operation = find(&p)
    if operation is None:
        return None
    data[0] = np.PyArray_DATA(a)
    data[1] = np.PyArray_DATA(b)
    data[2] = np.PyArray_DATA(c)
    operation.run(data, p.threads)
    return c


cdef np.ndarray a_rows(np.ndarray array):
    """Return (..., k) as a matrix."""
    return array.reshape((-1, np.PyArray_DIM(array, np.PyArray_NDIM(array) - 1)))


def half_matmul(input, other):
    """Return the matrix product of two bfloat16 arrays, summed in float32."""
    cdef np.ndarray a = plain_array(input), b = plain_array(other), wide
    cdef int left = np.PyArray_NDIM(a), right = np.PyArray_NDIM(b)
    found = None
    if has_bf16 and np.PyArray_SIZE(a) and np.PyArray_SIZE(b):
        if right == 2 and left == 2:
            found = half_product(a, b)
        elif right == 2 and left > 2 and np.PyArray_IS_C_CONTIGUOUS(a):
            found = half_product(a_rows(a), b)
            if found is not None:
                found = found.reshape((<object> a).shape[: left - 1] + (<object> b).shape[1:])
        elif right == 3 and left == 3 and np.PyArray_DIM(a, 0) == np.PyArray_DIM(b, 0):
            found = half_product(a, b)
    if found is None:
        wide = plain_array(products.matmul(
            pointwise.cast(a, descriptors[TP_F32]), pointwise.cast(b, descriptors[TP_F32])
        ))
        found = pointwise.cast(wide, descriptors[TP_BF16])
    return found


def half_linear(input, weight, bias):
    """Return ``input @ weight.T + bias`` of bfloat16 arrays, summed in float32."""
    cdef np.ndarray a = plain_array(input), b = plain_array(weight), row = None
    cdef int dims = np.PyArray_NDIM(a)
    found = None
    if has_bf16 and np.PyArray_NDIM(b) == 2 and np.PyArray_SIZE(a) and np.PyArray_SIZE(b) and dims:
        if bias is not None:
            row = numpy.ascontiguousarray(numpy.broadcast_to(bias, (1, np.PyArray_DIM(b, 0))))
        found = half_product(a if dims == 2 else a_rows(a), b.T, row)
        if found is not None and dims != 2:
            found = found.reshape((<object> a).shape[: dims - 1] + (<object> b).shape[:1])
    if found is None:
        wide = [None if x is None else pointwise.cast(x, descriptors[TP_F32]) for x in (a, b, bias)]
        found = pointwise.cast(products.linear(*wide), descriptors[TP_BF16])
    return found
