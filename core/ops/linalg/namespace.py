"""The public names of ``tp.linalg``."""

from __future__ import annotations

from ...errors import LinAlgError
from ..matmul.products import matmul
from .factors import (
    linalg_cholesky as cholesky,
    linalg_cholesky_ex as cholesky_ex,
    linalg_householder_product as householder_product,
    linalg_qr as qr,
)
from .functions import (
    linalg_cross as cross,
    linalg_det as det,
    linalg_diagonal as diagonal,
    linalg_multi_dot as multi_dot,
    linalg_slogdet as slogdet,
    linalg_vander as vander,
    linalg_vecdot as vecdot,
    matrix_exp,
    matrix_power,
)
from .lu import (
    linalg_ldl_factor as ldl_factor,
    linalg_ldl_factor_ex as ldl_factor_ex,
    linalg_lu as lu,
    linalg_lu_factor as lu_factor,
    linalg_lu_factor_ex as lu_factor_ex,
)
from .norms import (
    linalg_cond as cond,
    linalg_matrix_norm as matrix_norm,
    linalg_norm as norm,
    linalg_vector_norm as vector_norm,
)
from .solvers import (
    linalg_inv as inv,
    linalg_inv_ex as inv_ex,
    linalg_lstsq as lstsq,
    linalg_solve as solve,
    linalg_solve_ex as solve_ex,
    linalg_tensorinv as tensorinv,
    linalg_tensorsolve as tensorsolve,
)
from .spectra import (
    linalg_eig as eig,
    linalg_eigh as eigh,
    linalg_eigvals as eigvals,
    linalg_eigvalsh as eigvalsh,
    linalg_matrix_rank as matrix_rank,
    linalg_pinv as pinv,
    linalg_svd as svd,
    linalg_svdvals as svdvals,
)
from .triangular import (
    linalg_ldl_solve as ldl_solve,
    linalg_lu_solve as lu_solve,
    linalg_solve_triangular as solve_triangular,
)

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]
