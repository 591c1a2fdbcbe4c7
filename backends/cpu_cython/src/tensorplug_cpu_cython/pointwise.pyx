"""Pointwise ops: small contiguous arrays on a short way, all others through a iteration over strides."""

import numpy

cimport numpy as np
from libc.stdint cimport int16_t, int32_t, int64_t
from libc.string cimport memcmp, memcpy, memset

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport (
    TP_BF16, TP_BOOL, TP_C64, TP_C128, TP_ELEMENTS, TP_F16, TP_F32, TP_F64, TP_I8, TP_I16, TP_I32, TP_I64, TP_U8, descriptors,
    element_number, element_of,
)
from .memory_overlap cimport may_share

np.import_array()

cdef extern from "c/strided_iteration.h":
    enum:
        TP_BINARY_OPS, TP_UNARY_OPS, TP_OPERANDS, TP_DIMS
    ctypedef struct tp_pointwise:
        tp_loop binary[1][12]
        tp_loop unary[1][12]
        tp_loop choose[12]
        tp_loop cast[12][12]
    ctypedef struct tp_op_facts:
        const char *name
        int grain
    ctypedef struct tp_iteration:
        int dims, operands, copies
        Py_ssize_t shape[64]
        Py_ssize_t strides[4][64]
        Py_ssize_t itemsize[4]
        int axis[64]
    const tp_op_facts tp_binary_ops[1]
    const tp_op_facts tp_unary_ops[1]
    void tp_iteration_sort(tp_iteration *) noexcept nogil
    void tp_iteration_lay_out(tp_iteration *, int, Py_ssize_t) noexcept nogil
    void tp_iteration_merge(tp_iteration *) noexcept nogil
    void tp_iteration_run(const tp_iteration *, char *const *, tp_loop, const double *, int) noexcept nogil
    const tp_pointwise *TP_CHOOSE(tp_pointwise, int)

cdef extern from *:
    """
    #define tp_pointwise_links_at(level) TP_CHOOSE(tp_pointwise_links, level)
    #define tp_pointwise_kernels(level) TP_CHOOSE(tp_pointwise_table, level)
    #define TP_READABLE (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED)
    #define tp_flat(array) ((PyArray_FLAGS(array) & TP_READABLE) == TP_READABLE)
    #define TP_ZEROS(type)                                                            \
        do {                                                                          \
            for (Py_ssize_t start = 0; start < n && !found; start += 4096) {          \
                const Py_ssize_t end = n - start < 4096 ? n : start + 4096;           \
                for (Py_ssize_t i = start; i < end; i++) found |= !((type *)data)[i]; \
            }                                                                         \
        } while (0)
    static int tp_has_zero(const char *data, int size, Py_ssize_t n) {
        int found = 0;
        if (size == 8) TP_ZEROS(const int64_t);
        else if (size == 4) TP_ZEROS(const int32_t);
        else if (size == 2) TP_ZEROS(const int16_t);
        else TP_ZEROS(const int8_t);
        return found;
    }
    """
    const tp_pointwise *tp_pointwise_kernels(int)
    const tp_links *tp_pointwise_links_at(int)
    bint tp_has_zero(const char *, int, Py_ssize_t) nogil
    bint tp_flat(np.ndarray)

cdef const tp_pointwise *kernels = tp_pointwise_kernels(simd_level)

_BINARY = {tp_binary_ops[i].name.decode(): i for i in range(TP_BINARY_OPS)}
_UNARY = {tp_unary_ops[i].name.decode(): i for i in range(TP_UNARY_OPS)}
_COMPARISONS = frozenset(["eq", "ne", "lt", "le", "gt", "ge"])


cdef tp_loop *loops_of(str sort, str name) except NULL:
    """Return the loops of an op by type."""
    cdef int number
    if sort == "unary":
        number = _UNARY[name]
        return (<tp_loop *> &kernels.unary[0][0]) + number * <int> TP_ELEMENTS
    number = _BINARY[name]
    return (<tp_loop *> &kernels.binary[0][0]) + number * <int> TP_ELEMENTS


cdef void run_flat(
    tp_loop loop, char *const *data, const Py_ssize_t *strides, int operands, Py_ssize_t count,
    const double *parameters, Py_ssize_t grain,
) noexcept nogil:
    cdef tp_iteration iteration
    cdef int k
    cdef int threads = threads_for(count, grain)
    if threads == 1:
        loop(data, strides, count, parameters)
        return
    iteration.dims = 1
    iteration.copies = False
    iteration.operands = operands
    iteration.shape[0] = count
    for k in range(operands):
        iteration.strides[k][0] = strides[k]
    tp_iteration_run(&iteration, data, loop, parameters, threads)


cdef void run_dense(
    tp_loop loop, char *const *data, const Py_ssize_t *strides, int operands, Py_ssize_t count,
    const double *parameters, Py_ssize_t grain,
) noexcept:
    """Run a loop over dense arrays, without the interpreter's lock where that takes long."""
    if count < HOLD:
        loop(data, strides, count, parameters)
    else:
        with nogil:
            run_flat(loop, data, strides, operands, count, parameters, grain)


cdef inline bint alike(const np.npy_intp *a, const np.npy_intp *b, int dims) noexcept:
    # NumPy has NULL for the shape of an array without dimensions, which memcmp must not be given.
    return not dims or not memcmp(a, b, dims * sizeof(np.npy_intp))


cdef inline bint of_one_shape(np.ndarray array, np.ndarray other) noexcept:
    cdef int dims = np.PyArray_NDIM(array)
    return dims == np.PyArray_NDIM(other) and alike(np.PyArray_DIMS(array), np.PyArray_DIMS(other), dims)


cdef bint takes(out, np.ndarray like, int number) noexcept:
    """Return whether `out` is a dense array of the shape of `like` and of a type, to be written to."""
    return (
        np.PyArray_CheckExact(out) and element_of(<np.ndarray> out) == number and tp_flat(<np.ndarray> out)
        and np.PyArray_ISBEHAVED(<np.ndarray> out) and of_one_shape(<np.ndarray> out, like)
    )


cdef np.ndarray mapped(
    np.ndarray array, np.ndarray like, tp_loop loop, int target, object out, const double *parameters,
    Py_ssize_t grain,
):
    """Run a loop over a dense array, or a number, into a new one of the shape of `like`, or into `out`.

    Return None for what has to go another way.
    """
    cdef char *data[2]
    cdef Py_ssize_t strides[2]
    cdef np.ndarray result
    if loop == NULL or not tp_flat(array) or (np.PyArray_NDIM(array) and not of_one_shape(array, like)):
        return None
    if out is None:
        result = new_array(<np.dtype> descriptors[target], np.PyArray_NDIM(like), np.PyArray_DIMS(like), NULL)
    elif takes(out, like, target) and not overlaps(array, <np.ndarray> out):
        result = <np.ndarray> out
    else:
        return None
    data[0] = <char *> np.PyArray_DATA(array)
    data[1] = <char *> np.PyArray_DATA(result)
    strides[0] = np.PyArray_ITEMSIZE(array) if np.PyArray_NDIM(array) else 0
    strides[1] = np.PyArray_ITEMSIZE(result)
    run_dense(loop, data, strides, 2, np.PyArray_SIZE(result), parameters, grain)
    return result


cdef bint fill_shape(tp_iteration *iteration, np.ndarray array) noexcept:
    """Widen the iteration's shape, whose dims are set, to that of an array that is broadcast."""
    cdef int dims = np.PyArray_NDIM(array), i
    cdef Py_ssize_t size
    for i in range(dims):
        size = np.PyArray_DIM(array, i)
        if size != 1:
            if iteration.shape[iteration.dims - dims + i] not in (1, size):
                return False
            iteration.shape[iteration.dims - dims + i] = size
    return True


cdef void fill_strides(tp_iteration *iteration, int k, np.ndarray array) noexcept:
    cdef int dims = np.PyArray_NDIM(array), i, lead = iteration.dims - dims
    iteration.itemsize[k] = np.PyArray_ITEMSIZE(array)
    for i in range(lead):
        iteration.strides[k][i] = 0
    for i in range(dims):
        iteration.strides[k][lead + i] = 0 if np.PyArray_DIM(array, i) == 1 else np.PyArray_STRIDE(array, i)


cdef bint overlaps(np.ndarray array, np.ndarray out) noexcept:
    """Return whether writing into `out` may change what is still to be read of `array`."""
    if (
        np.PyArray_DATA(array) == np.PyArray_DATA(out)
        and of_one_shape(array, out)
        and alike(np.PyArray_STRIDES(array), np.PyArray_STRIDES(out), np.PyArray_NDIM(array))
        and np.PyArray_ITEMSIZE(array) == np.PyArray_ITEMSIZE(out)
    ):
        return False
    return may_share(array, out)


cdef object iterate_over(
    tuple inputs, tp_loop loop, np.dtype descriptor, object out, const double *parameters, Py_ssize_t grain,
):
    """Run a loop over arrays that broadcast against each other; return the result, or fill `out`."""
    cdef tp_iteration iteration
    cdef char *data[4]
    cdef np.npy_intp shape[64]
    cdef np.npy_intp strides[64]
    cdef np.ndarray array, result
    cdef int count = <int> len(inputs), dims = 0, k, i
    cdef Py_ssize_t total = 1
    for k in range(count):
        array = <np.ndarray> inputs[k]
        dims = max(dims, np.PyArray_NDIM(array))
        data[k] = <char *> np.PyArray_DATA(array)
    if out is not None:
        result = <np.ndarray> out
        dims = max(dims, np.PyArray_NDIM(result))
    iteration.dims = dims
    for i in range(dims):
        iteration.shape[i] = 1
    if out is not None:
        fill_shape(&iteration, result)
    for k in range(count):
        if not fill_shape(&iteration, <np.ndarray> inputs[k]):
            raise ValueError(
                "shapes do not broadcast: " + ", ".join([str(list(value.shape)) for value in inputs])
            )
    for i in range(dims):
        shape[i] = iteration.shape[i]
        total *= iteration.shape[i]
    for k in range(count):
        fill_strides(&iteration, k, <np.ndarray> inputs[k])
    iteration.operands = count
    if out is None:
        tp_iteration_sort(&iteration)
        tp_iteration_lay_out(&iteration, count, descriptor.itemsize)
        for i in range(dims):
            strides[iteration.axis[i]] = iteration.strides[count][i]
        result = new_array(descriptor, dims, shape, strides)
        iteration.operands = count + 1
    else:
        if np.PyArray_NDIM(result) != dims or not alike(np.PyArray_DIMS(result), shape, dims):
            raise ValueError(f"out has shape {list(out.shape)}, the result {[shape[i] for i in range(dims)]}")
        fill_strides(&iteration, count, result)
        iteration.operands = count + 1
        tp_iteration_sort(&iteration)
    if not total:
        return result
    data[count] = <char *> np.PyArray_DATA(result)
    iteration.copies = count == 1 and loop == clone_loops[element_of(<np.ndarray> inputs[0])]
    tp_iteration_merge(&iteration)
    if total < HOLD:
        tp_iteration_run(&iteration, data, loop, parameters, 1)
    else:
        with nogil:
            tp_iteration_run(&iteration, data, loop, parameters, threads_for(total, grain))
    return result


cdef object evaluate(
    tuple values, tp_loop *loops, int output, object out, const double *parameters, Py_ssize_t grain,
    object fallback, int first=0,
):
    """Run an op over any arrays of one dtype from the `first` on; see the .pxd."""
    cdef tuple inputs = tuple([plain_array(value) for value in values])
    cdef int number = element_of(<np.ndarray> inputs[first]), k
    cdef np.dtype descriptor
    cdef bint served = number >= 0 and loops[number] != NULL
    for k in range(first + 1, len(inputs)):
        served = served and element_of(<np.ndarray> inputs[k]) == number
    if served:
        descriptor = <np.dtype> descriptors[number if output < 0 else output]
        if out is None:
            return iterate_over(inputs, loops[number], descriptor, None, parameters, grain)
        if out.dtype == descriptor and np.PyArray_ISBEHAVED(out):
            for value in inputs:
                if overlaps(<np.ndarray> value, <np.ndarray> out):
                    break
            else:
                return iterate_over(inputs, loops[number], descriptor, out, parameters, grain)
        out[...] = iterate_over(inputs, loops[number], descriptor, None, parameters, grain)
        return out
    if fallback is None:
        raise TypeError(f"no compiled kernel for arrays of {', '.join([str(a.dtype) for a in inputs])}")
    return fallback(*inputs) if out is None else fallback(*inputs, out=out)


cdef class Binary:
    """A pointwise op of two arrays."""

    cdef tp_loop loops[12]
    cdef int output
    cdef Py_ssize_t grain
    cdef object fallback
    cdef double parameters[4]

    def __init__(self, str name, fallback=None, tuple parameters=()):
        cdef int number = _BINARY[name], i
        for i in range(TP_ELEMENTS):
            self.loops[i] = loops_of("binary", name)[i]
        self.output = TP_BOOL if name in _COMPARISONS else -1
        self.grain = tp_binary_ops[number].grain
        self.fallback = fallback
        for i in range(len(parameters)):
            self.parameters[i] = parameters[i]

    def call(self, input, other, out=None):
        """Return the op's result, or write it into `out`."""
        cdef np.ndarray a, b, like, result
        cdef int number, target
        cdef bint fits
        cdef char *data[3]
        cdef Py_ssize_t strides[3]
        if np.PyArray_CheckExact(input) and np.PyArray_CheckExact(other):
            a = <np.ndarray> input
            b = <np.ndarray> other
            number = element_of(a)
            if (
                number >= 0 and number == element_of(b) and self.loops[number] != NULL
                and tp_flat(a) and tp_flat(b)
            ):
                strides[0] = strides[1] = np.PyArray_ITEMSIZE(a)
                like = a
                result = None
                target = number if self.output < 0 else self.output
                fits = True
                if of_one_shape(a, b):
                    pass
                elif not np.PyArray_NDIM(b):
                    strides[1] = 0
                elif not np.PyArray_NDIM(a):
                    strides[0] = 0
                    like = b
                else:
                    fits = False
                if fits and out is None:
                    result = new_array(
                        <np.dtype> descriptors[target], np.PyArray_NDIM(like), np.PyArray_DIMS(like), NULL
                    )
                elif (
                    fits and takes(out, like, target)
                    and not overlaps(a, <np.ndarray> out) and not overlaps(b, <np.ndarray> out)
                ):
                    result = <np.ndarray> out
                if result is not None:
                    strides[2] = np.PyArray_ITEMSIZE(result)
                    data[0] = <char *> np.PyArray_DATA(a)
                    data[1] = <char *> np.PyArray_DATA(b)
                    data[2] = <char *> np.PyArray_DATA(result)
                    run_dense(
                        self.loops[number], data, strides, 3, np.PyArray_SIZE(result), self.parameters,
                        self.grain,
                    )
                    return result
        return evaluate((input, other), self.loops, self.output, out, self.parameters, self.grain, self.fallback)

    def loop(self, int number):
        """Return the address of the loop of a type, 0 for none, the result's type, numbers and grain."""
        return (
            <size_t> self.loops[number], number if self.output < 0 else self.output,
            tuple([self.parameters[i] for i in range(4)]), self.grain,
        )


cdef class Unary:
    """A pointwise op of one array, with up to four numbers."""

    cdef tp_loop loops[12]
    cdef Py_ssize_t grain
    cdef object fallback
    cdef double parameters[4]

    def __init__(self, str name, fallback=None, tuple parameters=()):
        cdef int number = _UNARY[name], i
        for i in range(TP_ELEMENTS):
            self.loops[i] = loops_of("unary", name)[i]
        self.grain = tp_unary_ops[number].grain
        self.fallback = fallback
        for i in range(len(parameters)):
            self.parameters[i] = parameters[i]

    def call(self, input, out=None):
        """Return the op's result, or write it into `out`."""
        cdef np.ndarray a, result
        cdef int number
        if np.PyArray_CheckExact(input):
            a = <np.ndarray> input
            number = element_of(a)
            if number >= 0:
                result = mapped(a, a, self.loops[number], number, out, self.parameters, self.grain)
                if result is not None:
                    return result
        return evaluate((input,), self.loops, -1, out, self.parameters, self.grain, self.fallback)

    def loop(self, int number):
        """Return the address of the loop of a type, 0 for none, the result's type, numbers and grain."""
        return (
            <size_t> self.loops[number], number, tuple([self.parameters[i] for i in range(4)]), self.grain,
        )


cdef class Division(Binary):
    """An op of integers, no divisor of which may be zero."""

    def call(self, input, other, out=None):
        """Return the op's result, or write it into `out`; raise RuntimeError for a divisor of zero."""
        cdef np.ndarray divisor = plain_array(other)
        cdef int size = np.PyArray_ITEMSIZE(divisor)
        if tp_flat(divisor) and element_of(divisor) >= 0:
            if tp_has_zero(<char *> np.PyArray_DATA(divisor), size, np.PyArray_SIZE(divisor)) and input.size:
                raise RuntimeError("ZeroDivisionError")
        elif input.size and not divisor.all():
            raise RuntimeError("ZeroDivisionError")
        return Binary.call(self, input, divisor, out)


cdef tuple loop_types(tp_loop *loops):
    return tuple([number for number in range(TP_ELEMENTS) if loops[number] != NULL])


cdef dict links_of(const tp_links *table):
    """Return the links of a table by the addresses of their loops; see the .pxd."""
    cdef dict found = {}
    cdef const tp_linked *linked = &table.of[0]
    while linked.loop != NULL:
        found[<size_t> linked.loop] = (<size_t> linked.first, <size_t> linked.second, linked.itemsize)
        linked += 1
    return found


def links():
    """Return the links of this module's loops, for pointwise_chains."""
    return links_of(tp_pointwise_links_at(simd_level))


def types_of(str sort, str name):
    """Return the TP_ numbers of the types that an op has loops for."""
    return loop_types(loops_of(sort, name))


def names(str sort):
    """Return the names of the ops that there are loops for."""
    return list(_UNARY if sort == "unary" else _BINARY)


cdef tp_loop choose_loops[12]
cdef int _i
for _i in range(TP_ELEMENTS):
    choose_loops[_i] = kernels.choose[_i]
cdef tp_loop *clone_loops = loops_of("unary", "clone")
cdef double none[4]
memset(none, 0, sizeof(none))


def choose(condition, input, other):
    """Return `input` where the condition is true, else `other`."""
    return evaluate((condition, input, other), choose_loops, -1, None, none, 16384, numpy.where, 1)


def choosing_loop(int number):
    """Return the address of the loop that chooses between arrays of a type, 0 for none."""
    return <size_t> choose_loops[number]


def casting_loop(int number, int target):
    """Return the address of the loop from one type to another, 0 for none."""
    return <size_t> (clone_loops[number] if number == target else kernels.cast[number][target])


def cast(input, np.dtype to):
    """Return a C-contiguous copy, or one in the order of the input's memory, of another dtype."""
    cdef np.ndarray array = plain_array(input), result
    cdef int number = element_of(array), target = element_number(to)
    cdef tp_loop loop = NULL
    if number >= 0 and target >= 0:
        loop = clone_loops[number] if number == target else kernels.cast[number][target]
    if loop == NULL:
        return (input.real if input.dtype.kind == "c" and to.kind != "c" else input).astype(to)
    result = mapped(array, array, loop, target, None, none, 16384)
    return iterate_over((array,), loop, to, None, none, 16384) if result is None else result


def clone(input):
    """Return a C-contiguous copy."""
    if element_of(plain_array(input)) < 0:
        return numpy.array(input, order="C", copy=True)
    return copy(input, input)


def copy(input, src, out=None):
    """Return `src` broadcast to the shape of `input` and converted to its dtype, or write it into `out`."""
    cdef np.ndarray array = plain_array(src), result
    cdef np.ndarray like = plain_array(input)
    cdef int number = element_of(array), target = element_of(like)
    cdef tp_loop loop = NULL
    if number >= 0 and target >= 0:
        loop = clone_loops[number] if number == target else kernels.cast[number][target]
    result = mapped(array, like, loop, target, out, none, 16384)
    if result is not None:
        return result
    if out is None:
        if loop == NULL:
            return numpy.array(numpy.broadcast_to(src, (<object> like).shape), dtype=like.dtype, copy=True)
        result = new_array(<np.dtype> descriptors[target], np.PyArray_NDIM(like), np.PyArray_DIMS(like), NULL)
        return iterate_over((broadcast(array, result),), loop, result.dtype, result, none, 16384)
    if loop == NULL or element_of(out) != target or not np.PyArray_ISBEHAVED(out) or overlaps(array, out):
        out[...] = src
        return out
    return iterate_over((broadcast(array, out),), loop, (<np.ndarray> out).dtype, out, none, 16384)


cdef np.ndarray broadcast(np.ndarray array, np.ndarray like):
    """Return a view of `array` in the shape of `like`, unless a iteration finds that by itself."""
    if np.PyArray_NDIM(array) <= np.PyArray_NDIM(like):
        return array
    return numpy.broadcast_to(array, (<object> like).shape)


cdef bint set_small(char *element, int type_number, int value) noexcept:
    """Set an element to a number that all whole numbers' types hold; return whether it is of one."""
    if type_number == TP_I64:
        (<int64_t *> element)[0] = value
    elif type_number == TP_I32:
        (<int32_t *> element)[0] = value
    elif type_number == TP_I16:
        (<int16_t *> element)[0] = value
    elif type_number == TP_I8 or type_number == TP_U8:
        element[0] = <char> value
    elif type_number == TP_BOOL:
        element[0] = value != 0
    else:
        return False
    return True


def fill_new(tuple shape, value, np.dtype descriptor):
    """Return a new array whose elements are all `value`."""
    cdef np.npy_intp sizes[64]
    cdef np.ndarray result, number
    cdef int i, type_number
    cdef float single
    cdef char element[16]
    cdef char *data[2]
    cdef Py_ssize_t strides[2]
    for i in range(len(shape)):
        sizes[i] = shape[i]
    result = new_array(descriptor, <int> len(shape), sizes, NULL)
    type_number = element_of(result)
    if type_number < 0:
        result.fill(value)
        return result
    memset(element, 0, sizeof(element))
    if type_number == TP_F32 and isinstance(value, (float, int)):
        (<float *> element)[0] = <float> <double> value
    elif type_number == TP_F64 and isinstance(value, (float, int)):
        (<double *> element)[0] = value
    elif (
        (type_number == TP_F16 or type_number == TP_BF16) and type(value) is float
        and <double> <float> <double> value == <double> value  # else it would be rounded twice
    ):
        single = <float> <double> value
        data[0], data[1], strides[0], strides[1] = <char *> &single, element, 4, 2
        kernels.cast[TP_F32][type_number](data, strides, 1, none)
    elif type_number == TP_C64 and type(value) is complex:
        (<float *> element)[0] = <float> <double> value.real
        (<float *> element)[1] = <float> <double> value.imag
    elif type_number == TP_C128 and type(value) is complex:
        (<double *> element)[0] = value.real
        (<double *> element)[1] = value.imag
    elif isinstance(value, int) and 0 <= value < 128 and set_small(element, type_number, value):
        pass
    elif value or not isinstance(value, (int, bool)):
        number = numpy.full((), value, descriptor)
        memcpy(element, np.PyArray_DATA(number), np.PyArray_ITEMSIZE(number))
    data[0] = element
    data[1] = <char *> np.PyArray_DATA(result)
    strides[0] = 0
    strides[1] = np.PyArray_ITEMSIZE(result)
    run_dense(clone_loops[type_number], data, strides, 2, np.PyArray_SIZE(result), none, 65536)
    return result
