"""oneDNN's primitives, each made once for a problem and kept; and convolutions by them."""

import numpy

cimport numpy as np
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.string cimport memset

from .layouts cimport ROWS, dense, laid_out, lies_channels_last
from .allocator cimport new_array
from .cpu_features cimport threads_for
from .types cimport TP_BF16, type_of

np.import_array()

cdef enum:
    KEPT = 1024  # operations before the older half is dropped
    SPARE = 8  # calls at a time that keep their memory objects

# Below so many multiplications one thread does the work.
cdef double SERIAL = 1e6
# Below so many an adjoint takes arrays as they lie: a slower kernel is faster than turning them around.
cdef double TINY = 2e4

has_bf16 = tp_dnn_has_bf16()

#: What serves the calls that oneDNN does not, by name of the op: set by kernels/convolution.py.
fallbacks = {}


cdef int all_threads() noexcept:
    return threads_for(1 << 40, 1)


# --- operations ------------------------------------------------------------------------------------

cdef class Operation:
    """A primitive with its reorders, and what calls of it need at a time."""

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
            raise_status(failed, tp_dnn_implementation(self.operation).decode())
        return 0


cdef int raise_status(int status, str what) except -1:
    if status == 1:
        raise MemoryError(f"oneDNN has no memory for {what}")
    raise RuntimeError(f"oneDNN failed in {what}, status {status}")


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
    cdef bint last, kept
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
    kept = sort == TP_CONVOLUTION_INPUT and work(target, weight) < TINY
    describe(&p.arrays[places[0]], image, last or kept)
    describe(&p.arrays[places[1]], weight, kept)
    split_groups(&p.arrays[places[1]], p.groups)
    describe(&p.arrays[places[2]], target, last or kept)
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
    return fallbacks["convolution"](input, weight, bias, stride, padding, dilation, groups)


def convolution_input(gradient, weight, tuple size, tuple stride, tuple padding, tuple dilation, groups):
    """Return the adjoint with respect to the input; channels last where the gradient is."""
    cdef int layout, ignored
    cdef np.ndarray g = dense(gradient, &layout), w = dense(weight, &ignored), x
    x = new_images(g.dtype, np.PyArray_DIM(g, 0), np.PyArray_DIM(w, 1) * <Py_ssize_t> groups, size, layout)
    if convolve(TP_CONVOLUTION_INPUT, x, w, g, None, stride, padding, dilation, groups):
        return x
    return fallbacks["convolution_input"](gradient, weight, size, stride, padding, dilation, groups)


def convolution_weight(input, gradient, tuple kernel, tuple stride, tuple padding, tuple dilation, groups):
    """Return the adjoint with respect to the weight."""
    cdef int layout, other
    cdef np.ndarray x = dense(input, &layout), g = dense(gradient, &other), w
    w = new_images(x.dtype, np.PyArray_DIM(g, 1), np.PyArray_DIM(x, 1) // <Py_ssize_t> groups, kernel, ROWS)
    if convolve(TP_CONVOLUTION_WEIGHT, x, w, g, None, stride, padding, dilation, groups):
        return w
    return fallbacks["convolution_weight"](input, gradient, kernel, stride, padding, dilation, groups)
