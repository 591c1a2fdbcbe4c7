"""Special functions, element by element: loops of our own, and SciPy's functions where there is none."""

import numpy

cimport numpy as np
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from cython cimport floating
from libc.math cimport cos, exp, fabs, fma, sin, sqrt
from libc.string cimport memcpy, memset

from .allocator cimport new_like, plain_array
from .cpu_features cimport simd_level
from .pointwise cimport HOLD, evaluate, run_flat, tp_loop
from .types cimport TP_F32, TP_F64, TP_TYPES, descriptors, type_of

np.import_array()

cdef extern from "c/special_functions.h":
    enum:
        TP_SPECIAL_FUNCTIONS
    ctypedef struct tp_special_function:
        const char *name
        int asks
        tp_loop loops[10]
    ctypedef struct tp_specials:
        tp_special_function of[1]

cdef extern from *:
    """
    #define tp_specials_at(level) TP_CHOOSE(tp_special_table, level)
    """
    const tp_specials *tp_specials_at(int)

cdef const tp_specials *kernels = tp_specials_at(simd_level)

_NUMBERS = {kernels.of[i].name.decode(): i for i in range(TP_SPECIAL_FUNCTIONS)}
_POLYNOMIALS = (
    "chebyshev_t", "chebyshev_u", "chebyshev_v", "chebyshev_w", "hermite_h", "hermite_he", "laguerre_l", "legendre_p"
)


ctypedef double (*of_one)(double, int) noexcept nogil
ctypedef double (*of_two)(double, double, int) noexcept nogil
ctypedef void (*of_airy)(double, double *, double *, double *, double *) noexcept nogil


# --- loops of SciPy's functions: the first of the parameters is the address ------------------------------------


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


cdef enum:
    FAR = 10  # where as many terms as these are exact in double, while SciPy's function takes microseconds
    TERMS = 22

cdef double _terms[TERMS]  # u of DLMF 9.7.2
_terms[0] = 1.0
for _k in range(1, TERMS):
    _terms[_k] = _terms[_k - 1] * ((6 * _k - 5) * (6 * _k - 3) * (6 * _k - 1)) / (216 * _k * (2 * _k - 1))


cdef double far_airy(double x) noexcept nogil:
    """Return Airy's function, at least ten away from zero, by its expansions (DLMF 9.7.5 and 9.7.9)."""
    cdef double size = fabs(x), root = sqrt(size), product = size * root, zeta = product * (2.0 / 3.0)
    # What zeta lacks by rounding: the angles of large numbers, and their exponents, would be off by many units.
    cdef double rest = fma(size, root, -product) + size * (fma(-root, root, size) / (2.0 * root))
    cdef double lacks = fma(product, 2.0 / 3.0, -zeta) + product * 3.7007434154171886e-17 + rest * (2.0 / 3.0)
    cdef double square = (1.0 if x > 0 else -1.0) / (zeta * zeta), even = 0.0, odd = 0.0, sine, cosine
    cdef int k = TERMS
    while k:
        k -= 2
        even = even * square + _terms[k]
        odd = odd * square + _terms[k + 1]
    odd /= zeta
    if x > 0:
        return exp(-zeta) * (1.0 - lacks) * 0.28209479177387814 / sqrt(root) * (even - odd)
    sine, cosine = sin(zeta) + lacks * cos(zeta), cos(zeta) - lacks * sin(zeta)
    return ((cosine + sine) * even + (sine - cosine) * odd) * 0.3989422804014327 / sqrt(root)


cdef void airy_f64(
    char *const *data, const Py_ssize_t *strides, Py_ssize_t count, const double *parameters
) noexcept nogil:
    cdef of_airy function = (<of_airy *> parameters)[0]
    cdef double values[4]
    cdef double value
    cdef Py_ssize_t i
    for i in range(count):
        value = (<double *> (data[0] + i * strides[0]))[0]
        if value > 200:  # where SciPy has nan, of very large ones
            (<double *> (data[1] + i * strides[1]))[0] = 0
            continue
        if value > FAR or -1e6 < value < -FAR:  # below, the angle is known no better than to some 1e-7
            (<double *> (data[1] + i * strides[1]))[0] = far_airy(value)
            continue
        function(value, values, values + 1, values + 2, values + 3)
        (<double *> (data[1] + i * strides[1]))[0] = values[0]


# The loops above are of a type by their first argument, which is none of a loop's.
cdef void one_f32(char *const *data, const Py_ssize_t *strides, Py_ssize_t n, const double *p) noexcept nogil:
    map_one(<float *> NULL, data, strides, n, p)


cdef void one_f64(char *const *data, const Py_ssize_t *strides, Py_ssize_t n, const double *p) noexcept nogil:
    map_one(<double *> NULL, data, strides, n, p)


cdef void two_f32(char *const *data, const Py_ssize_t *strides, Py_ssize_t n, const double *p) noexcept nogil:
    map_two(<float *> NULL, data, strides, n, p)


cdef void two_f64(char *const *data, const Py_ssize_t *strides, Py_ssize_t n, const double *p) noexcept nogil:
    map_two(<double *> NULL, data, strides, n, p)


cdef enum:
    GRAIN = 256  # elements that are worth a thread


cdef class Function:
    """A function of one or two arrays of one dtype, float32 or float64.

    Parameters
    ----------
    name : str
        That of a loop, or of ``scipy.special.cython_special``.
    """

    cdef tp_loop loops[12]
    cdef double parameters[4]
    cdef str name
    cdef bint asks

    def __init__(self, str name):
        cdef int number = _NUMBERS.get(name, -1), k
        memset(self.loops, 0, sizeof(self.loops))
        memset(self.parameters, 0, sizeof(self.parameters))
        self.name = name
        self.asks = number >= 0 and kernels.of[number].asks
        if number >= 0:
            for k in range(TP_TYPES):
                self.loops[k] = kernels.of[number].loops[k]

    cdef find(self):
        """Find SciPy's function, on first use: the import takes some ten milliseconds."""
        from scipy.special import cython_special

        cdef tp_loop f32 = one_f32, f64 = one_f64
        cdef void *address
        found = cython_special.__pyx_capi__
        capsule = found.get(self.name) or found["__pyx_fuse_1" + self.name]  # of real numbers
        signature = PyCapsule_GetName(capsule)
        address = PyCapsule_GetPointer(capsule, signature)
        memcpy(self.parameters, &address, sizeof(address))
        if self.name == "airy":
            f64 = airy_f64
        elif signature.startswith(b"double (double, double"):
            f32, f64 = two_f32, two_f64
        if self.loops[TP_F32] == NULL:
            self.loops[TP_F32] = f32
        if self.loops[TP_F64] == NULL:
            self.loops[TP_F64] = f64
        self.asks = False

    def of_one(self, input):
        """Return the function's values."""
        cdef np.ndarray array, result
        cdef char *data[2]
        cdef Py_ssize_t strides[2]
        cdef Py_ssize_t count
        cdef tp_loop loop
        array = plain_array(input)
        if self.loops[type_of(array)] == NULL:
            self.find()
        if np.PyArray_ISCARRAY_RO(array):
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
        return evaluate((array,), self.loops, -1, None, self.parameters, GRAIN, None)

    def of_two(self, input, other):
        """Return the function's values at pairs, which broadcast; one may be a number."""
        cdef int number = type_of(input if isinstance(input, numpy.ndarray) else other)
        if self.asks or self.loops[number] == NULL:
            self.find()
        if not (np.PyArray_CheckExact(input) and type_of(<np.ndarray> input) == number):
            input = numpy.asarray(input, descriptors[number])
        if not (np.PyArray_CheckExact(other) and type_of(<np.ndarray> other) == number):
            other = numpy.asarray(other, descriptors[number])
        return evaluate((input, other), self.loops, -1, None, self.parameters, GRAIN, None)


def orthogonal_polynomial_kernel():
    """Return the kernel of polynomials of the degrees `n` at `input`."""
    functions = {name: Function(name) for name in _POLYNOMIALS}

    def orthogonal_polynomial(input, n, family):
        cdef Function function = functions[family]
        return function.of_two(input, n)

    return orthogonal_polynomial
