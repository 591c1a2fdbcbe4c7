"""Equations of small matrices: C-contiguous arrays, which are overwritten; and their spectra."""

cimport numpy as np

cdef extern from "c/linalg_small.h":
    enum:
        SMALL "TP_SMALL"  # rows, up to which these are faster than LAPACK

cdef extern from "c/linalg_spectra.h":
    enum:
        SPECTRUM "TP_SPECTRUM"  # rows and columns, up to which spectra of many are

# LU in the place of the matrices; rows that were exchanged, from 1; the first pivot that is zero, or 0.
cpdef small_factor(np.ndarray A, np.ndarray pivots, np.ndarray info)

# Solutions in the place of `B`, by such factors.
cpdef small_solve(np.ndarray A, np.ndarray pivots, np.ndarray B)

# The lower factor in the place of Hermitian matrices; the first minor that is not positive, or 0.
cpdef small_cholesky(np.ndarray A, np.ndarray info)

# Solutions in the place of `B`, by triangular matrices.
cpdef small_triangular(np.ndarray A, np.ndarray B, bint upper, bint unit)

# Whether these are real matrices that the two functions below take.
cdef bint many_small(np.ndarray A) noexcept

# Ascending eigenvalues, and vectors unless None, of symmetric matrices; False for what is left to LAPACK.
cpdef bint small_eigh(np.ndarray A, np.ndarray values, np.ndarray vectors, bint upper)

# Descending singular values, and vectors of both sides unless None; False for what is left to LAPACK.
cpdef bint small_svd(np.ndarray A, np.ndarray U, np.ndarray values, np.ndarray Vh)
