"""Matrices with far more rows than columns, for the modules of their factors."""

cimport numpy as np

# Whether this is one real matrix that blocks of rows serve, beside which `more` columns stand.
cdef bint is_very_tall(A, int more) noexcept

# U, S and V^H, or None, S and None, by `svd` of R; None for what is left to LAPACK.
cdef tuple very_tall_singular(A, svd, bint vectors)

# Q and R, with LAPACK's signs; None for what is left to LAPACK.
cdef tuple very_tall_factors(A)
