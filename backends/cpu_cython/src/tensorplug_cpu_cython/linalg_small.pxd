"""Equations of small matrices: C-contiguous arrays, which are overwritten."""

cimport numpy as np

cdef extern from "c/linalg_small.h":
    enum:
        SMALL "TP_SMALL"  # rows, up to which these are faster than LAPACK

# LU in the place of the matrices; rows that were exchanged, from 1; the first pivot that is zero, or 0.
cpdef small_factor(np.ndarray A, np.ndarray pivots, np.ndarray info)

# Solutions in the place of `B`, by such factors.
cpdef small_solve(np.ndarray A, np.ndarray pivots, np.ndarray B)

# The lower factor in the place of Hermitian matrices; the first minor that is not positive, or 0.
cpdef small_cholesky(np.ndarray A, np.ndarray info)

# Solutions in the place of `B`, by triangular matrices.
cpdef small_triangular(np.ndarray A, np.ndarray B, bint upper, bint unit)
