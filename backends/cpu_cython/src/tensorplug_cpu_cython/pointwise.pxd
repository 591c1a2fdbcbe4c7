"""What modules with more pointwise ops share: running a loop over arrays."""

ctypedef void (*tp_loop)(char *const *, const Py_ssize_t *, Py_ssize_t, const double *) noexcept nogil

cdef extern from "c/pointwise_chains.h":
    ctypedef void (*tp_link_code)() noexcept nogil
    ctypedef struct tp_linked:
        tp_loop loop
        tp_link_code first, second
        int itemsize
    ctypedef struct tp_links:
        tp_linked of[1]

# The links of a table by the addresses of their loops: with the value at hand as first argument and (0: none) as the
# second one, and the size of an element.
cdef dict links_of(const tp_links *table)

# Below so many elements the interpreter's lock is kept: to give it up costs more than it helps.
cdef enum:
    HOLD = 8192

# Run a loop over dense arrays, the last of which is the result.
cdef void run_flat(
    tp_loop loop, char *const *data, const Py_ssize_t *strides, int operands, Py_ssize_t count,
    const double *parameters, Py_ssize_t grain,
) noexcept nogil

# Run an op over any arrays of one dtype from the `first` on; `output` is a type, or -1 for the same.
cdef object evaluate(
    tuple values, tp_loop *loops, int output, object out, const double *parameters, Py_ssize_t grain,
    object fallback, int first=*,
)
