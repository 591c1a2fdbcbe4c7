"""Special functions, element by element: SciPy's, and orthogonal polynomials by their recurrences."""

import numpy

cimport numpy as np
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from cython cimport floating
from libc.math cimport isinf, sin, trunc
from libc.string cimport memcpy, memset

from .allocator cimport new_like, plain_array
from .pointwise cimport HOLD, evaluate, run_flat, tp_loop
from .types cimport TP_F32, TP_F64, TP_TYPES, descriptors, type_of

np.import_array()

cdef enum:
    CHEBYSHEV_T, CHEBYSHEV_U, CHEBYSHEV_V, CHEBYSHEV_W, HERMITE_H, HERMITE_HE, LAGUERRE_L, LEGENDRE_P

cdef dict NUMBERS = {
    "chebyshev_t": CHEBYSHEV_T,
    "chebyshev_u": CHEBYSHEV_U,
    "chebyshev_v": CHEBYSHEV_V,
    "chebyshev_w": CHEBYSHEV_W,
    "hermite_h": HERMITE_H,
    "hermite_he": HERMITE_HE,
    "laguerre_l": LAGUERRE_L,
    "legendre_p": LEGENDRE_P,
}


cdef floating value_of(floating x, floating degree, int family) noexcept nogil:
    """Return the polynomial of a degree, whose fraction does not count; of none below 0 there is one."""
    cdef floating before = 1, last, following, k
    degree = trunc(degree)
    if not 0 <= degree <= 1e18:
        return 0
    if degree == 0:
        return before
    if family == CHEBYSHEV_U or family == HERMITE_H:
        last = 2 * x
    elif family == CHEBYSHEV_V:
        last = 2 * x - 1
    elif family == CHEBYSHEV_W:
        last = 2 * x + 1
    elif family == LAGUERRE_L:
        last = 1 - x
    else:
        last = x
    for step in range(1, <Py_ssize_t> degree):
        k = step
        if family <= CHEBYSHEV_W:
            following = 2 * x * last - before
        elif family == HERMITE_H:
            following = 2 * (x * last - k * before)
        elif family == HERMITE_HE:
            following = x * last - k * before
        elif family == LAGUERRE_L:
            following = ((2 * k + 1 - x) * last - k * before) / (k + 1)
        else:
            following = ((2 * k + 1) * x * last - k * before) / (k + 1)
        before = last
        last = following
    return last


ctypedef double (*of_one)(double, int) noexcept nogil
ctypedef double (*of_two)(double, double, int) noexcept nogil
ctypedef void (*of_airy)(double, double *, double *, double *, double *) noexcept nogil


# --- loops: the first of the parameters is the function's address, or the family of polynomials -----------------


cdef void map_one(
    floating *sample, char *const *data, const Py_ssize_t *strides, Py_ssize_t count, const double *parameters
) noexcept nogil:
    cdef of_one function = (<of_one *> parameters)[0]
    cdef Py_ssize_t i
    for i in range(count):
        (<floating *> (data[1] + i * strides[1]))[0] = <floating> function(
            (<floating *> (data[0] + i * strides[0]))[0], 0
        )


cdef void map_two(
    floating *sample, char *const *data, const Py_ssize_t *strides, Py_ssize_t count, const double *parameters
) noexcept nogil:
    cdef of_two function = (<of_two *> parameters)[0]
    cdef Py_ssize_t i
    for i in range(count):
        (<floating *> (data[2] + i * strides[2]))[0] = <floating> function(
            (<floating *> (data[0] + i * strides[0]))[0], (<floating *> (data[1] + i * strides[1]))[0], 0
        )


cdef void map_airy(
    floating *sample, char *const *data, const Py_ssize_t *strides, Py_ssize_t count, const double *parameters
) noexcept nogil:
    cdef of_airy function = (<of_airy *> parameters)[0]
    cdef double values[4]
    cdef double value
    cdef Py_ssize_t i
    for i in range(count):
        value = (<floating *> (data[0] + i * strides[0]))[0]
        if value > 200:  # where SciPy has nan, of very large ones
            (<floating *> (data[1] + i * strides[1]))[0] = 0
            continue
        function(value, values, values + 1, values + 2, values + 3)
        (<floating *> (data[1] + i * strides[1]))[0] = <floating> values[0]


cdef void map_polynomials(
    floating *sample, char *const *data, const Py_ssize_t *strides, Py_ssize_t count, const double *parameters
) noexcept nogil:
    cdef int family = <int> parameters[0]
    cdef Py_ssize_t i
    for i in range(count):
        (<floating *> (data[2] + i * strides[2]))[0] = value_of(
            (<floating *> (data[0] + i * strides[0]))[0], (<floating *> (data[1] + i * strides[1]))[0], family
        )


cdef double spherical_j0(double x, int skipped) noexcept nogil:
    return 1.0 if x == 0 else 0.0 if isinf(x) else sin(x) / x


# The loops above are of a type by their first argument, which is none of a loop's.
cdef void one_f32(char *const *data, const Py_ssize_t *strides, Py_ssize_t n, const double *p) noexcept nogil:
    map_one(<float *> NULL, data, strides, n, p)


cdef void one_f64(char *const *data, const Py_ssize_t *strides, Py_ssize_t n, const double *p) noexcept nogil:
    map_one(<double *> NULL, data, strides, n, p)


cdef void two_f32(char *const *data, const Py_ssize_t *strides, Py_ssize_t n, const double *p) noexcept nogil:
    map_two(<float *> NULL, data, strides, n, p)


cdef void two_f64(char *const *data, const Py_ssize_t *strides, Py_ssize_t n, const double *p) noexcept nogil:
    map_two(<double *> NULL, data, strides, n, p)


cdef void airy_f32(char *const *data, const Py_ssize_t *strides, Py_ssize_t n, const double *p) noexcept nogil:
    map_airy(<float *> NULL, data, strides, n, p)


cdef void airy_f64(char *const *data, const Py_ssize_t *strides, Py_ssize_t n, const double *p) noexcept nogil:
    map_airy(<double *> NULL, data, strides, n, p)


cdef void polynomials_f32(char *const *data, const Py_ssize_t *strides, Py_ssize_t n, const double *p) noexcept nogil:
    map_polynomials(<float *> NULL, data, strides, n, p)


cdef void polynomials_f64(char *const *data, const Py_ssize_t *strides, Py_ssize_t n, const double *p) noexcept nogil:
    map_polynomials(<double *> NULL, data, strides, n, p)


cdef enum:
    GRAIN = 256  # elements that are worth a thread


cdef class Function:
    """A function of one or two arrays of one dtype, float32 or float64.

    Parameters
    ----------
    name : str
        That of ``scipy.special.cython_special``, a family of polynomials, or "spherical_j0".
    """

    cdef tp_loop loops[10]
    cdef double parameters[4]
    cdef str name

    def __init__(self, str name):
        memset(self.loops, 0, sizeof(self.loops))
        memset(self.parameters, 0, sizeof(self.parameters))
        self.name = name
        if name in NUMBERS:
            self.loops[TP_F32], self.loops[TP_F64] = polynomials_f32, polynomials_f64
            self.parameters[0] = NUMBERS[name]
        elif name == "spherical_j0":
            self.loops[TP_F32], self.loops[TP_F64] = one_f32, one_f64
            self.hold(<void *> spherical_j0)

    cdef hold(self, void *address):
        memcpy(self.parameters, &address, sizeof(address))

    cdef find(self):
        """Find SciPy's function, on first use: the import takes some ten milliseconds."""
        from scipy.special import cython_special

        found = cython_special.__pyx_capi__
        capsule = found.get(self.name) or found["__pyx_fuse_1" + self.name]  # of real numbers
        signature = PyCapsule_GetName(capsule)
        self.hold(PyCapsule_GetPointer(capsule, signature))
        if self.name == "airy":
            self.loops[TP_F32], self.loops[TP_F64] = airy_f32, airy_f64
        elif signature.startswith(b"double (double, double"):
            self.loops[TP_F32], self.loops[TP_F64] = two_f32, two_f64
        else:
            self.loops[TP_F32], self.loops[TP_F64] = one_f32, one_f64

    def of_one(self, input):
        """Return the function's values."""
        cdef np.ndarray array, result
        cdef char *data[2]
        cdef Py_ssize_t strides[2]
        cdef Py_ssize_t count
        cdef tp_loop loop
        if self.loops[TP_F32] == NULL:
            self.find()
        if np.PyArray_CheckExact(input) and np.PyArray_ISCARRAY_RO(<np.ndarray> input):
            array = <np.ndarray> input
            result = new_like(array, type_of(array))
            data[0], data[1] = <char *> np.PyArray_DATA(array), <char *> np.PyArray_DATA(result)
            strides[0] = strides[1] = np.PyArray_ITEMSIZE(array)
            count = np.PyArray_SIZE(array)
            loop = self.loops[type_of(array)]
            if count < HOLD:
                loop(data, strides, count, self.parameters)
            else:
                with nogil:
                    run_flat(loop, data, strides, 2, count, self.parameters, GRAIN)
            return result
        return evaluate((input,), self.loops, -1, None, self.parameters, GRAIN, None)

    def of_two(self, input, other):
        """Return the function's values at pairs, which broadcast; one may be a number."""
        cdef int number = type_of(input if isinstance(input, numpy.ndarray) else other)
        if self.loops[TP_F32] == NULL:
            self.find()
        if not (np.PyArray_CheckExact(input) and type_of(<np.ndarray> input) == number):
            input = numpy.asarray(input, descriptors[number])
        if not (np.PyArray_CheckExact(other) and type_of(<np.ndarray> other) == number):
            other = numpy.asarray(other, descriptors[number])
        return evaluate((input, other), self.loops, -1, None, self.parameters, GRAIN, None)


def orthogonal_polynomial_kernel():
    """Return the kernel of polynomials of the degrees `n` at `input`."""
    functions = {name: Function(name) for name in NUMBERS}

    def orthogonal_polynomial(input, n, family):
        cdef Function function = functions[family]
        return function.of_two(input, n)

    return orthogonal_polynomial
