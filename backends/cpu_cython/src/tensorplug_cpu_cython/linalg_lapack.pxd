"""What the modules that call LAPACK share."""

cimport numpy as np

ctypedef void (*call5)(void *, void *, void *, void *, void *) noexcept nogil
ctypedef void (*call6)(void *, void *, void *, void *, void *, void *) noexcept nogil
ctypedef void (*call7)(void *, void *, void *, void *, void *, void *, void *) noexcept nogil
ctypedef void (*call8)(void *, void *, void *, void *, void *, void *, void *, void *) noexcept nogil
ctypedef void (*call9)(void *, void *, void *, void *, void *, void *, void *, void *, void *) noexcept nogil
ctypedef void (*call11)(
    void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *
) noexcept nogil
ctypedef void (*call13)(
    void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *
) noexcept nogil
ctypedef void (*call14)(
    void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *
) noexcept nogil
ctypedef void (*call15)(
    void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
    void *,
) noexcept nogil

cdef struct matrices:
    # A batch of matrices.
    char *data
    int rows, columns
    Py_ssize_t count, bytes

# The address of a routine for a dtype, which has another name for complex ones.
cdef void *routine(str name, str letter) except NULL

cdef matrices matrices_of(np.ndarray array)
cdef np.ndarray contiguous(object value)
cdef np.ndarray copied(object value)

# New arrays: with matrices of another size, one number or as many as `length` for each matrix, without elements.
cdef np.ndarray empty_like(np.ndarray array, int rows, int columns)
cdef np.ndarray zeros_like(np.ndarray array, int rows, int columns)
cdef np.ndarray per_matrix(np.ndarray array, int type_number, Py_ssize_t length=*)
cdef np.ndarray none_of(np.ndarray array)

# Which row comes to stand in each place, after LAPACK's exchanges.
cdef void exchange_rows(int *order, int rows, const int *others, Py_ssize_t exchanges) noexcept nogil
cdef np.ndarray order_of(np.ndarray pivots, int rows)

# Whether two arrays agree in batch but some last dimensions, and whether matrices have more rows than columns.
cdef bint same_batch(np.ndarray one, int one_dims, np.ndarray other, int other_dims)
cdef bint is_tall(np.ndarray array)
cdef int last_size(np.ndarray array)

# The transpose of a matrix in C order, and zeros right of the diagonal.
cdef void transpose_into(const void *source, void *target, int rows, int columns, int itemsize) noexcept nogil
cdef void clear_above(char *matrix, int n, int itemsize) noexcept nogil

cdef void *room(Py_ssize_t bytes) except NULL
cdef bint is_nan(const char *number, bint single) noexcept
