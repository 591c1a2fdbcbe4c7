"""Matrix products and linear layers by oneDNN."""

import numpy

cimport numpy as np
from libc.stdint cimport int64_t
from libc.string cimport memset

from . import matmul_products, onednn, pointwise

from .allocator cimport new_array, plain_array
from .cpu_features cimport simd_level, threads_for
from .types cimport TP_BF16, TP_F32, descriptors, type_of
from .onednn cimport (
    TP_DNN_BF16,
    TP_DNN_F32,
    TP_MATMUL,
    Operation,
    find,
    raise_status,
    tp_dnn_array,
    tp_dnn_problem,
)

np.import_array()

cdef extern from "c/onednn.h":
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

cdef extern from "c/matmul_few_rows.h":
    ctypedef struct tp_few_rows:
        const float *a
        const float *b
        const float *bias
        float *result
        Py_ssize_t rows, columns, inner, lda, ldb
    ctypedef void (*tp_few_rows_function)(const tp_few_rows *, int) noexcept nogil

cdef extern from *:
    """
    #define tp_few_rows_of(level) TP_CHOOSE(tp_few_rows_table, level)
    """
    const tp_few_rows_function *tp_few_rows_of(int)

cdef tp_few_rows_function few_rows = tp_few_rows_of(simd_level)[0]

# Below so many multiplications the interpreter's lock is kept, or one thread does the work.
cdef double HOLD = 1e5
cdef double SERIAL = 1e6
# The general product is slow with a matrix that lies transposed, as the weights of a layer do. From so many
# multiplications, rows and columns on a primitive is worth making, which takes about 1 ms.
cdef double LARGE = 1e8
cdef enum:
    MANY = 32
    LONG = 512
    # With a vector, oneDNN takes up to twice as long as BLAS for many rows of few elements.
    ROWS = 256
    COLUMNS = 64
    # From so many elements on a product over a single one is an elementwise product, and a row by a column a sum.
    SINGLE = 4096
    # For a product by a matrix that lies transposed oneDNN packs all of the matrix, which is more work than the product
    # of few rows. For so many, from what length and how many elements of the matrix on, compiled loops read it as it lies.
    FEWEST = 4, FEWEST_LONG = 64, FEWEST_OF = 2048, FEW = 12, FEW_LONG = 128, FEW_OF = 49152
    # For more rows the transposed of a product by the matrix as it lies is made, from what length on: for up to 16 rows,
    # and for more.
    TURNED_MOST = 32, TURNED_LONG = 256, TURNED_LONGER = 768
    TURNED_COLUMNS = 64
    PART = 16

cdef object multiply = pointwise.Binary("mul").call
cdef object add = pointwise.Binary("add").call


cdef int all_threads() noexcept:
    return threads_for(1 << 40, 1)


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
        raise_status(failed, "sgemm")
    return 0


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


cdef object primitive_product(np.ndarray a, np.ndarray b, np.ndarray bias=None):
    """Return the product of matrices, or batches of as many, plus the bias (1, n) in each row.

    None if oneDNN has no kernel for it. bfloat16 is summed in float32.
    """
    cdef tp_dnn_problem p
    cdef np.npy_intp shape[3]
    cdef void *data[4]
    cdef int dims = np.PyArray_NDIM(a), i
    cdef np.ndarray c
    cdef Operation operation
    memset(&p, 0, sizeof(p))
    p.sort = TP_MATMUL
    p.type = TP_DNN_BF16 if type_of(a) == TP_BF16 else TP_DNN_F32
    if not describe_matrices(&p.arrays[0], a):
        a = numpy.ascontiguousarray(a)
        describe_matrices(&p.arrays[0], a)
    if not describe_matrices(&p.arrays[1], b):
        b = numpy.ascontiguousarray(b)
        describe_matrices(&p.arrays[1], b)
    for i in range(dims - 1):
        shape[i] = np.PyArray_DIM(a, i)
    shape[dims - 1] = np.PyArray_DIM(b, dims - 1)
    c = new_array(<np.dtype> descriptors[type_of(a)], dims, shape, NULL)
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
    operation.run(data, <int> p.threads)
    return c


cdef void turn(const float *source, const float *bias, float *result, Py_ssize_t m, Py_ssize_t n) noexcept nogil:
    """Write the transposed of (n, m) to (m, n), and add the bias to each row."""
    cdef Py_ssize_t i, j, begin = 0, end
    while begin < n:  # by parts, so that what is read stays in the first cache
        end = min(begin + PART, n)
        for i in range(m):
            for j in range(begin, end):
                result[i * n + j] = source[j * m + i] + (bias[j] if bias != NULL else 0)
        begin = end


cdef bint has_few_rows(const tp_sgemm *g) noexcept:
    """Return whether :func:`run_few_rows` is faster."""
    cdef int64_t elements = g.n * g.k
    if not g.transposed_b or g.transposed_a or g.m < 2:
        return False
    if g.m <= FEWEST and g.k >= FEWEST_LONG and elements >= FEWEST_OF:
        return True
    return g.m <= FEW and g.k >= FEW_LONG and elements >= FEW_OF


cdef int run_few_rows(tp_sgemm *g, np.ndarray a, np.ndarray b, np.ndarray c) except -1:
    cdef double flops = <double> g.m * g.n * g.k
    cdef int threads = all_threads() if flops > SERIAL else 1
    cdef tp_few_rows o
    o.a, o.b, o.bias = <float *> np.PyArray_DATA(a), <float *> np.PyArray_DATA(b), g.bias
    o.result = <float *> np.PyArray_DATA(c)
    o.rows, o.columns, o.inner, o.lda, o.ldb = g.m, g.n, g.k, g.lda, g.ldb
    if flops < HOLD:
        few_rows(&o, threads)
    else:
        with nogil:
            few_rows(&o, threads)
    return 0


cdef bint is_turned(const tp_sgemm *g) noexcept:
    """Return whether :func:`run_turned` is faster."""
    if not g.transposed_b or g.transposed_a or g.n < TURNED_COLUMNS or not FEW < g.m <= TURNED_MOST:
        return False
    return g.k >= (TURNED_LONG if g.m <= 16 else TURNED_LONGER)


cdef int run_turned(tp_sgemm *g, np.ndarray a, np.ndarray b, np.ndarray c) except -1:
    """Compute a product by a transposed matrix as the transposed of one by the matrix as it lies."""
    cdef tp_sgemm turned
    cdef np.npy_intp size = g.m * g.n
    cdef np.ndarray space = new_array(<np.dtype> descriptors[TP_F32], 1, &size, NULL)
    turned.transposed_a, turned.transposed_b = 0, 1
    turned.m, turned.n, turned.k, turned.lda, turned.ldb = g.n, g.m, g.k, g.ldb, g.lda
    turned.bias = NULL
    run_product(&turned, b, a, space)
    with nogil:
        turn(<float *> np.PyArray_DATA(space), g.bias, <float *> np.PyArray_DATA(c), g.m, g.n)
    return 0


cdef np.ndarray product(np.ndarray a, np.ndarray b, bint flip, np.ndarray bias, np.ndarray out=None):
    """Return the product of two matrices, the second transposed if `flip`; plus the bias in each row.

    It is written into `out`, a contiguous array, where that is given.
    """
    cdef tp_sgemm g
    cdef np.npy_intp shape[2]
    if not lies(a, &g.transposed_a, &g.lda):
        a = numpy.ascontiguousarray(a)
        lies(a, &g.transposed_a, &g.lda)
    if not lies(b, &g.transposed_b, &g.ldb):
        b = numpy.ascontiguousarray(b)
        lies(b, &g.transposed_b, &g.ldb)
    g.bias = NULL if bias is None else <const float *> np.PyArray_DATA(bias)
    g.m = shape[0] = np.PyArray_DIM(a, 0)
    g.k = np.PyArray_DIM(a, 1)
    g.n = shape[1] = np.PyArray_DIM(b, 0 if flip else 1)
    if flip:
        g.transposed_b = not g.transposed_b
    if g.k != np.PyArray_DIM(b, 1 if flip else 0):
        raise ValueError(f"matmul: {list((<object> a).shape)} and {list((<object> b).shape)} do not fit")
    if out is None:
        if g.transposed_b != g.transposed_a and g.m >= MANY and g.k >= LONG and <double> g.m * g.n * g.k >= LARGE:
            found = primitive_product(a, b.T if flip else b, None if bias is None else bias.reshape(1, -1))
            if found is not None:
                return found
        out = new_array(<np.dtype> descriptors[TP_F32], 2, shape, NULL)
    if g.m and g.n:
        if not g.k:
            out[...] = 0 if bias is None else bias
        elif has_few_rows(&g):
            run_few_rows(&g, a, b, out)
        elif is_turned(&g):
            run_turned(&g, a, b, out)
        else:
            run_product(&g, a, b, out)
    return out


def product_into(np.ndarray a, np.ndarray b, np.ndarray out, np.ndarray bias=None):
    """Write the product of two matrices, plus a contiguous bias in each row, into a contiguous one; all float32."""
    product(a, b, False, bias, out)


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
        raise_status(failed, "sgemm")
    return c


cdef np.ndarray rows_of(np.ndarray array):
    """Return (..., k) as a matrix."""
    cdef np.npy_intp last = np.PyArray_DIM(array, np.PyArray_NDIM(array) - 1)
    return array.reshape((np.PyArray_SIZE(array) // last if last else -1, last))


cdef np.ndarray shaped(np.ndarray array, int dims, np.npy_intp first):
    """Return a vector as a matrix of one column, or such a matrix as a vector."""
    cdef np.npy_intp shape[2]
    cdef np.PyArray_Dims wanted
    shape[0], shape[1] = first, 1
    wanted.ptr, wanted.len = shape, dims
    return np.PyArray_Newshape(array, &wanted, np.NPY_CORDER)


cdef np.ndarray narrow(np.ndarray a, np.ndarray b):
    """Return the product of two matrices if the second is a column that BLAS takes fast, or both are vectors.

    The general product goes through a long row, or many short ones, several times more slowly. None if neither.
    """
    cdef np.npy_intp rows = np.PyArray_DIM(a, 0), inner = np.PyArray_DIM(a, 1)
    if np.PyArray_DIM(b, 1) != 1 or np.PyArray_DIM(b, 0) != inner:
        return None
    if rows == 1 and inner >= SINGLE:
        return numpy.asarray(a[0].dot(b[:, 0])).reshape(1, 1)
    if rows >= ROWS and 1 < inner <= COLUMNS:
        return shaped(matmul_products.floats(a, b[:, 0], None), 2, rows)
    return None


def matmul(input, other):
    """Return the matrix product of two float32 arrays."""
    cdef np.ndarray a = plain_array(input), b = plain_array(other)
    cdef int left = np.PyArray_NDIM(a), right = np.PyArray_NDIM(b)
    cdef np.ndarray found
    if left >= 2 and right >= 2 and np.PyArray_DIM(a, left - 1) == 1 and np.PyArray_DIM(b, right - 2) == 1:
        if np.PyArray_SIZE(a) >= SINGLE or np.PyArray_SIZE(b) >= SINGLE:
            return multiply(a, b)
    if left == 2 and right == 2:
        found = narrow(a, b)
        return product(a, b, False, None) if found is None else found
    if right == 1:
        if left == 1:
            return numpy.asarray(a.dot(b))
        if left == 2:
            if np.PyArray_DIM(a, 1) <= COLUMNS and np.PyArray_DIM(a, 0) >= ROWS:
                return matmul_products.floats(a, b, None)
            b = shaped(b, 2, np.PyArray_DIM(b, 0))
            return shaped(product(a, b, False, None), 1, np.PyArray_DIM(a, 0))
        return matmul(a, b.reshape(-1, 1)).reshape((<object> a).shape[:-1])
    if left == 1:
        return matmul(a.reshape(1, -1), b).reshape((<object> b).shape[:-2] + (<object> b).shape[-1:])
    if right == 2 and np.PyArray_IS_C_CONTIGUOUS(a) and np.PyArray_DIM(a, left - 1):
        return product(rows_of(a), b, False, None).reshape(
            (<object> a).shape[:-1] + (<object> b).shape[1:]
        )
    if left == 3 and right == 3 and np.PyArray_DIM(a, 0) == 1 and np.PyArray_DIM(b, 0) == 1:
        return matmul(a[0], b[0])[numpy.newaxis]
    found = matmul_products.batches(a, b)
    return batches(a, b) if found is None else found


cdef np.ndarray bias_row(bias, np.npy_intp count):
    """Return a bias as a contiguous vector of `count` elements."""
    cdef np.ndarray row = numpy.ascontiguousarray(bias)
    if np.PyArray_NDIM(row) != 1 or np.PyArray_DIM(row, 0) != count:
        row = numpy.ascontiguousarray(numpy.broadcast_to(row, (count,)))
    return row


def linear(input, weight, bias):
    """Return ``input @ weight.T + bias`` of float32 arrays."""
    cdef np.ndarray a = plain_array(input), b = plain_array(weight), c, row = None
    cdef int dims = np.PyArray_NDIM(a)
    if np.PyArray_NDIM(b) != 2 or not dims or not np.PyArray_DIM(b, 1):
        c = plain_array(matmul(a, b if np.PyArray_NDIM(b) == 1 else b.T))
        return c if bias is None else numpy.asarray(c + bias)
    if bias is not None:
        row = bias_row(bias, np.PyArray_DIM(b, 0))
    if dims == 1 and np.PyArray_DIM(b, 0) >= ROWS and np.PyArray_DIM(b, 1) <= COLUMNS:
        c = matmul_products.floats(b, a, None)
        return c if row is None else add(c, row, c)
    if dims == 2:
        return product(a, b, True, row)
    return product(rows_of(a), b, True, row).reshape((<object> a).shape[:-1] + (<object> b).shape[:1])


# --- bfloat16 --------------------------------------------------------------------------------------


def half_matmul(input, other):
    """Return the matrix product of two bfloat16 arrays, summed in float32."""
    cdef np.ndarray a = plain_array(input), b = plain_array(other), wide
    cdef int left = np.PyArray_NDIM(a), right = np.PyArray_NDIM(b)
    found = None
    if onednn.has_bf16 and np.PyArray_SIZE(a) and np.PyArray_SIZE(b):
        if right == 2 and left == 2:
            found = primitive_product(a, b)
        elif right == 2 and left > 2 and np.PyArray_IS_C_CONTIGUOUS(a):
            found = primitive_product(rows_of(a), b)
            if found is not None:
                found = found.reshape((<object> a).shape[: left - 1] + (<object> b).shape[1:])
        elif right == 3 and left == 3 and np.PyArray_DIM(a, 0) == np.PyArray_DIM(b, 0):
            found = primitive_product(a, b)
    if found is None:
        wide = plain_array(matmul(
            pointwise.cast(a, descriptors[TP_F32]), pointwise.cast(b, descriptors[TP_F32])
        ))
        found = pointwise.cast(wide, descriptors[TP_BF16])
    return found


def half_linear(input, weight, bias):
    """Return ``input @ weight.T + bias`` of bfloat16 arrays, summed in float32."""
    cdef np.ndarray a = plain_array(input), b = plain_array(weight), row = None
    cdef int dims = np.PyArray_NDIM(a)
    found = None
    if onednn.has_bf16 and np.PyArray_NDIM(b) == 2 and np.PyArray_SIZE(a) and np.PyArray_SIZE(b) and dims:
        if bias is not None:
            # A view by broadcasting would do, but for its stride of 0, which oneDNN does not take.
            row = bias_row(bias, np.PyArray_DIM(b, 0)).reshape(1, -1)
        found = primitive_product(a if dims == 2 else rows_of(a), b.T, row)
        if found is not None and dims != 2:
            found = found.reshape((<object> a).shape[: dims - 1] + (<object> b).shape[:1])
    if found is None:
        wide = [None if x is None else pointwise.cast(x, descriptors[TP_F32]) for x in (a, b, bias)]
        found = pointwise.cast(linear(*wide), descriptors[TP_BF16])
    return found
