"""The public names of ``tp.linalg``."""

from __future__ import annotations

from ..errors import LinAlgError
from .linalg_factors import (
    linalg_cholesky as cholesky,
)
from .linalg_factors import (
    linalg_cholesky_ex as cholesky_ex,
)
from .linalg_factors import (
    linalg_householder_product as householder_product,
)
from .linalg_factors import (
    linalg_ldl_factor as ldl_factor,
)
from .linalg_factors import (
    linalg_ldl_factor_ex as ldl_factor_ex,
)
from .linalg_factors import (
    linalg_lu as lu,
)
from .linalg_factors import (
    linalg_lu_factor as lu_factor,
)
from .linalg_factors import (
    linalg_lu_factor_ex as lu_factor_ex,
)
from .linalg_factors import (
    linalg_qr as qr,
)
from .linalg_functions import (
    linalg_cross as cross,
)
from .linalg_functions import (
    linalg_det as det,
)
from .linalg_functions import (
    linalg_diagonal as diagonal,
)
from .linalg_functions import (
    linalg_multi_dot as multi_dot,
)
from .linalg_functions import (
    linalg_slogdet as slogdet,
)
from .linalg_functions import (
    linalg_vander as vander,
)
from .linalg_functions import (
    linalg_vecdot as vecdot,
)
from .linalg_functions import (
    matrix_exp,
    matrix_power,
)
from .linalg_norms import (
    linalg_cond as cond,
)
from .linalg_norms import (
    linalg_matrix_norm as matrix_norm,
)
from .linalg_norms import (
    linalg_norm as norm,
)
from .linalg_norms import (
    linalg_vector_norm as vector_norm,
)
from .linalg_solvers import (
    linalg_inv as inv,
)
from .linalg_solvers import (
    linalg_inv_ex as inv_ex,
)
from .linalg_solvers import (
    linalg_ldl_solve as ldl_solve,
)
from .linalg_solvers import (
    linalg_lstsq as lstsq,
)
from .linalg_solvers import (
    linalg_lu_solve as lu_solve,
)
from .linalg_solvers import (
    linalg_solve as solve,
)
from .linalg_solvers import (
    linalg_solve_ex as solve_ex,
)
from .linalg_solvers import (
    linalg_solve_triangular as solve_triangular,
)
from .linalg_solvers import (
    linalg_tensorinv as tensorinv,
)
from .linalg_solvers import (
    linalg_tensorsolve as tensorsolve,
)
from .linalg_spectra import (
    linalg_eig as eig,
)
from .linalg_spectra import (
    linalg_eigh as eigh,
)
from .linalg_spectra import (
    linalg_eigvals as eigvals,
)
from .linalg_spectra import (
    linalg_eigvalsh as eigvalsh,
)
from .linalg_spectra import (
    linalg_matrix_rank as matrix_rank,
)
from .linalg_spectra import (
    linalg_pinv as pinv,
)
from .linalg_spectra import (
    linalg_svd as svd,
)
from .linalg_spectra import (
    linalg_svdvals as svdvals,
)
from .products import matmul

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
