"""The named tuples of linear algebra, under the names of ``torch.return_types``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..results import return_type

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor


@return_type
class linalg_cholesky_ex(NamedTuple):
    """What ``linalg.cholesky_ex`` returns."""

    L: Tensor
    info: Tensor


@return_type
class linalg_eig(NamedTuple):
    """What ``linalg.eig`` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@return_type
class linalg_eigh(NamedTuple):
    """What ``linalg.eigh`` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@return_type
class linalg_inv_ex(NamedTuple):
    """What ``linalg.inv_ex`` returns."""

    inverse: Tensor
    info: Tensor


@return_type
class linalg_ldl_factor(NamedTuple):
    """What ``linalg.ldl_factor`` returns."""

    LD: Tensor
    pivots: Tensor


@return_type
class linalg_ldl_factor_ex(NamedTuple):
    """What ``linalg.ldl_factor_ex`` returns."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


@return_type
class linalg_lstsq(NamedTuple):
    """What ``linalg.lstsq`` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@return_type
class linalg_lu(NamedTuple):
    """What ``linalg.lu`` returns."""

    P: Tensor
    L: Tensor
    U: Tensor


@return_type
class linalg_lu_factor(NamedTuple):
    """What ``linalg.lu_factor`` returns."""

    LU: Tensor
    pivots: Tensor


@return_type
class linalg_lu_factor_ex(NamedTuple):
    """What ``linalg.lu_factor_ex`` returns."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


@return_type
class linalg_qr(NamedTuple):
    """What ``linalg.qr`` returns."""

    Q: Tensor
    R: Tensor


@return_type
class linalg_slogdet(NamedTuple):
    """What ``linalg.slogdet`` returns."""

    sign: Tensor
    logabsdet: Tensor


@return_type
class linalg_solve_ex(NamedTuple):
    """What ``linalg.solve_ex`` returns."""

    result: Tensor
    info: Tensor


@return_type
class linalg_svd(NamedTuple):
    """What ``linalg.svd`` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@return_type
class geqrf(NamedTuple):
    """What ``geqrf`` returns."""

    a: Tensor
    tau: Tensor


@return_type
class lu_unpack(NamedTuple):
    """What ``lu_unpack`` returns."""

    P: Tensor
    L: Tensor
    U: Tensor


@return_type
class qr(NamedTuple):
    """What ``qr`` returns."""

    Q: Tensor
    R: Tensor


@return_type
class slogdet(NamedTuple):
    """What ``slogdet`` returns."""

    sign: Tensor
    logabsdet: Tensor


@return_type
class svd(NamedTuple):
    """What ``svd`` returns."""

    U: Tensor
    S: Tensor
    V: Tensor


@return_type
class triangular_solve(NamedTuple):
    """What ``triangular_solve`` returns."""

    solution: Tensor
    cloned_coefficient: Tensor
