"""The types of elements, for the modules of compiled kernels."""

cimport numpy as np

cdef extern from "c/types.h":
    enum:
        TP_F32, TP_F64, TP_I64, TP_I32, TP_I16, TP_I8, TP_U8, TP_BOOL, TP_F16, TP_BF16, TP_TYPES

# The TP_ number of an array's dtype, or -1.
cdef int type_of(np.ndarray array) noexcept

# The TP_ number of a dtype, or -1.
cdef int number_of(np.dtype descriptor) noexcept

# The dtype objects by TP_ number.
cdef list descriptors
