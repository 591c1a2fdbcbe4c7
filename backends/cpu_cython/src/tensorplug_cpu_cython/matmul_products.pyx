"""Products that BLAS has no fast form of: of integers, and of matrices of few columns with a vector."""

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
    ctypedef void (*tp_product_function)(const tp_product *, int) noexcept nogil
    ctypedef struct tp_products:
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


def floats(input, other, fallback):
    """Return the product of floating-point arrays; of those of more than two dimensions by `fallback`."""
    cdef np.ndarray x = plain_array(input), y = plain_array(other), found = None
    cdef int left = np.PyArray_NDIM(x), right = np.PyArray_NDIM(y)
    if left > 2 or right > 2:
        return fallback(x, y)
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
