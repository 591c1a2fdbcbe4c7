"""The types of elements, for the modules of compiled kernels."""

cimport numpy as np

cdef extern from "c/types.h":
    enum:
        TP_F32, TP_F64, TP_I64, TP_I32, TP_I16, TP_I8, TP_U8, TP_BOOL, TP_F16, TP_BF16, TP_TYPES
        TP_C64, TP_C128, TP_ELEMENTS

# The TP_ number of an array's dtype, or -1: less than TP_TYPES.
cdef int type_of(np.ndarray array) noexcept

# The same, and those of complex numbers: less than TP_ELEMENTS.
cdef int element_of(np.ndarray array) noexcept

# That of a dtype.
cdef int element_number(np.dtype descriptor) noexcept

# The dtype objects by TP_ number.
cdef list descriptors
