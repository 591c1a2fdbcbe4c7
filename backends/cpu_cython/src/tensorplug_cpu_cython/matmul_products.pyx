"""Products that BLAS has no fast form of: of integers, of matrices of few columns with a vector, of small matrices."""

cimport numpy as np

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_I32, TP_I64, descriptors, type_of

np.import_array()

cdef extern from "c/matmul_products.h":
    ctypedef struct tp_product:
        const void *a
        const void *b
        void *result
        Py_ssize_t rows, inner, columns, lda, ldb
    enum:
        TP_SMALL
    ctypedef struct tp_batch:
        const void *a
        const void *b
        void *result
        Py_ssize_t count, rows, inner, columns, a_down, a_along, b_down, b_along, b_span
        int dims
        Py_ssize_t shape[64]
        Py_ssize_t a_strides[64]
        Py_ssize_t b_strides[64]
    ctypedef void (*tp_product_function)(const tp_product *, int) noexcept nogil
    ctypedef struct tp_products:
        Py_ssize_t columns[10]
        void (*small[10])(const tp_batch *, int) noexcept nogil
        tp_product_function vector[10]
        tp_product_function matrix[10]

cdef extern from *:
    """
    #define tp_products_of(level) TP_CHOOSE(tp_product_table, level)
    """
    const tp_products *tp_products_of(int)

cdef const tp_products *kernels = tp_products_of(simd_level)

cdef enum:
    GRAIN = 65536, HOLD = 16384  # multiplications
    # A matrix of so few columns and so many rows is multiplied with a vector faster than by BLAS.
    LEAST_COLUMNS = 3, MOST_COLUMNS = 10, MANY_ROWS = 256
    # Longer integers are multiplied faster as parts in float64, if there are many.
    MANY_I64 = 65536, LONG_I64 = 32, MANY_I32 = 134217728


cdef struct matrix:
    void *data
    Py_ssize_t rows, columns
    Py_ssize_t down, along  # from one element to the next, in elements


cdef matrix described(np.ndarray array, bint column) noexcept:
    """Describe a matrix or a vector, which is a column or a row."""
    cdef Py_ssize_t item = np.PyArray_ITEMSIZE(array)
    cdef matrix m
    m.data = np.PyArray_DATA(array)
    m.rows = m.columns = m.down = m.along = 1
    if np.PyArray_NDIM(array) == 2:
        m.rows, m.down = np.PyArray_DIM(array, 0), np.PyArray_STRIDE(array, 0) // item
        m.columns, m.along = np.PyArray_DIM(array, 1), np.PyArray_STRIDE(array, 1) // item
    elif column:
        m.rows, m.down = np.PyArray_DIM(array, 0), np.PyArray_STRIDE(array, 0) // item
    else:
        m.columns, m.along = np.PyArray_DIM(array, 0), np.PyArray_STRIDE(array, 0) // item
    return m


cdef matrix transposed(matrix m) noexcept:
    cdef matrix t
    t.data, t.rows, t.columns, t.down, t.along = m.data, m.columns, m.rows, m.along, m.down
    return t


cdef np.ndarray run(tp_product_function function, matrix a, matrix b, int number, int dims, const np.npy_intp *shape):
    """Return the product of matrices whose rows are contiguous, or of one with a contiguous vector."""
    cdef np.ndarray result = new_array(<np.dtype> descriptors[number], dims, shape, NULL)
    cdef double count = <double> a.rows * a.columns * b.columns
    cdef tp_product o
    o.a, o.b, o.result = a.data, b.data, np.PyArray_DATA(result)
    o.rows, o.inner, o.columns, o.lda, o.ldb = a.rows, a.columns, b.columns, a.down, b.down
    if count < HOLD:
        function(&o, 1)
    else:
        with nogil:
            function(&o, threads_for(<Py_ssize_t> min(count, 1e15), GRAIN))
    return result


cdef np.ndarray few_columns(np.ndarray x, np.ndarray y):
    """Return the product of a float matrix of few columns with a vector, or None for what BLAS does as fast."""
    cdef np.npy_intp shape[2]
    cdef matrix a, b
    if not LEAST_COLUMNS <= np.PyArray_DIM(x, 1) <= MOST_COLUMNS or np.PyArray_DIM(x, 0) < MANY_ROWS:
        return None
    a, b = described(x, False), described(y, True)
    if a.columns != b.rows or a.along != 1 or b.down != 1:
        return None
    shape[0] = a.rows
    return run(kernels.vector[type_of(x)], a, b, type_of(x), 1, shape)


cdef Py_ssize_t batch_strides(const tp_batch *o, np.ndarray array, Py_ssize_t *strides) noexcept:
    """Fill in the strides of a batch; return how many elements its matrices span, 0 if some lie backwards."""
    cdef int dims = np.PyArray_NDIM(array), lead = o.dims - (dims - 2), i
    cdef Py_ssize_t item = np.PyArray_ITEMSIZE(array), span = 1, stride
    cdef bint forwards = True
    for i in range(o.dims):
        strides[i] = 0 if i < lead or np.PyArray_DIM(array, i - lead) == 1 else np.PyArray_STRIDE(array, i - lead) // item
    for i in range(dims):
        stride = np.PyArray_STRIDE(array, i) // item
        span += (np.PyArray_DIM(array, i) - 1) * stride
        forwards &= stride >= 0
    return span if forwards else 0


def batches(input, other):
    """Return the products of small matrices in batches that broadcast; None for what is left to others."""
    cdef np.ndarray x = plain_array(input), y = plain_array(other), result
    cdef int left = np.PyArray_NDIM(x) - 2, right = np.PyArray_NDIM(y) - 2, number = type_of(x), i
    cdef Py_ssize_t item = np.PyArray_ITEMSIZE(x)
    cdef np.npy_intp shape[64]
    cdef np.npy_intp across
    cdef double work
    cdef tp_batch o
    if left < 0 or right < 0 or number < 0:
        return None
    o.rows, o.inner, o.columns = np.PyArray_DIM(x, left), np.PyArray_DIM(x, left + 1), np.PyArray_DIM(y, right + 1)
    if (
        not 0 < o.rows <= TP_SMALL or not 0 < o.inner <= TP_SMALL or not 0 < o.columns <= kernels.columns[number]
        or o.inner != np.PyArray_DIM(y, right) or type_of(y) != number
    ):
        return None
    o.dims = max(left, right)
    o.count = 1
    for i in range(o.dims):
        shape[i] = 1 if i < o.dims - left else np.PyArray_DIM(x, i - (o.dims - left))
        across = 1 if i < o.dims - right else np.PyArray_DIM(y, i - (o.dims - right))
        if shape[i] == 1:
            shape[i] = across
        elif across not in (1, shape[i]):
            return None  # which says so
        o.shape[i] = shape[i]
        o.count *= shape[i]
    batch_strides(&o, x, o.a_strides)
    o.b_span = batch_strides(&o, y, o.b_strides)
    o.a_down, o.a_along = np.PyArray_STRIDE(x, left) // item, np.PyArray_STRIDE(x, left + 1) // item
    o.b_down, o.b_along = np.PyArray_STRIDE(y, right) // item, np.PyArray_STRIDE(y, right + 1) // item
    shape[o.dims], shape[o.dims + 1] = o.rows, o.columns
    result = new_array(<np.dtype> descriptors[number], o.dims + 2, shape, NULL)
    o.a, o.b, o.result = np.PyArray_DATA(x), np.PyArray_DATA(y), np.PyArray_DATA(result)
    work = <double> o.count * o.rows * o.inner * o.columns
    if work < HOLD:
        kernels.small[number](&o, 1)
    else:
        with nogil:
            kernels.small[number](&o, threads_for(<Py_ssize_t> min(work, 1e15), GRAIN))
    return result


def floats(input, other, fallback):
    """Return the product of floating-point arrays; of large ones of more than two dimensions by `fallback`."""
    cdef np.ndarray x = plain_array(input), y = plain_array(other), found = None
    cdef int left = np.PyArray_NDIM(x), right = np.PyArray_NDIM(y)
    if left > 2 or right > 2:
        found = batches(x, y)
        return fallback(x, y) if found is None else found
    if left == 2 and right == 1:
        found = few_columns(x, y)
    return np.PyArray_MatrixProduct(x, y) if found is None else found


def integers(input, other):
    """Return the product of vectors or matrices of integers, or None for what is left to others."""
    cdef np.ndarray x = plain_array(input), y = plain_array(other)
    cdef int left = np.PyArray_NDIM(x), right = np.PyArray_NDIM(y), number = type_of(x), dims = 0
    cdef np.npy_intp shape[2]
    cdef double count
    cdef matrix a, b
    if not (1 <= left <= 2 and 1 <= right <= 2):
        return None
    a, b = described(x, False), described(y, True)
    if a.columns != b.rows or not a.columns:
        return None
    if left == 2:
        shape[dims] = a.rows
        dims += 1
    if right == 2:
        shape[dims] = b.columns
        dims += 1
    if b.columns == 1 and b.down == 1:
        if a.along == 1:
            return run(kernels.vector[number], a, b, number, dims, shape)
        if a.down == 1:
            return run(kernels.matrix[number], transposed(b), transposed(a), number, dims, shape)
    elif a.rows == 1 and a.along == 1 and b.down == 1:
        return run(kernels.vector[number], transposed(b), transposed(a), number, dims, shape)
    if a.along != 1 or b.along != 1:
        return None
    count = <double> a.rows * a.columns * b.columns
    if a.rows > 1 and (
        number == TP_I64 and a.columns > LONG_I64 and count > MANY_I64 or number == TP_I32 and count > MANY_I32
    ):
        return None
    return run(kernels.matrix[number], a, b, number, dims, shape)
