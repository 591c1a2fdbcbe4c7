"""Ready-made parametrisations: orthogonal matrices, weights by norm and direction, bounded spectra."""

from __future__ import annotations

from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.ops import cat, eye, geqrf, matrix_exp, zeros_like
from tensorplug.core.ops.linalg.factors import linalg_householder_product
from tensorplug.core.ops.linalg.solvers import linalg_solve
from tensorplug.core.tensor.shapes import existing_dim

from .. import functional as F
from ..module import Module
from . import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def norm_except(v: Any, dim: int | None) -> Any:
    """Return the norms over all dimensions but one, which keep their places; over all for -1 or None."""
    squares = (v * v.conj()).real if v.is_complex() else v * v
    if dim is None or dim == -1:
        return squares.sum().sqrt()
    dim = existing_dim(dim, v.ndim, "norm_except_dim")
    others = tuple([d for d in range(v.ndim) if d != dim])
    return squares.sum(others, keepdim=True).sqrt() if others else squares.sqrt()


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    r"""Parametrise a tensor by its norm and its direction: :math:`w = g v / |v|`.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str
        The tensor.
    dim : int or None
        Along which norms are taken separately; None for one norm altogether.

    Notes
    -----
    Salimans and Kingma, "Weight normalization", 2016. The originals are the norm (``original0``) and
    :math:`v` (``original1``).
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def upgrade(state_dict: Any, prefix: str, *_: Any) -> None:
        # Checkpoints of the older `nn.utils.weight_norm`.
        for old, new in ((f"{name}_g", "original0"), (f"{name}_v", "original1")):
            key = f"{prefix}{old}"
            if key in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.{new}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(upgrade)
    return module


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] "
                f"but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            rows, columns = matrix.shape
            u = matrix.detach().new_empty(rows).normal_(0, 1)
            v = matrix.detach().new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Any) -> Any:
        if self.dim:
            others = [d for d in range(weight.ndim) if d != self.dim]
            weight = weight.permute(self.dim, *others)
        return weight.flatten(1)

    def _iterate(self, matrix: Any, count: int) -> None:
        with no_grad():
            matrix = matrix.detach()
            for _ in range(count):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # Copies, since the next forward pass changes the vectors before this one's backward may run.
        u, v = self._u.clone(), self._v.clone()
        return weight / u.vdot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a tensor by its largest singular value, which power iteration approximates.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str
        The tensor.
    n_power_iterations : int
        Iterations per forward pass in training.
    eps : float
        Norms count as at least this.
    dim : int, optional
        The dimension of the outputs: 0, but 1 for transposed convolutions.

    Notes
    -----
    Miyato et al., "Spectral normalization for generative adversarial networks", 2018.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if _is_transposed(module) else 0
    norm = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, norm)


def _is_transposed(module: Module) -> bool:
    return bool(getattr(module, "transposed", False))


_MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    base: Tensor

    def __init__(self, weight: Tensor, map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = tuple(weight.shape)
        self.map = map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        rows, columns = X.shape[-2:]
        wide = rows < columns
        x: Any = X.mT if wide else X
        rows, columns = x.shape[-2:]
        if self.map == "householder":
            a = x.tril(-1)
            tau = 2.0 / (1.0 + (a * a).sum(-2))
            q = linalg_householder_product(a, tau)
            q = q * x.diagonal(dim1=-2, dim2=-1).detach().sign().unsqueeze(-2)
        else:
            x = x.tril()
            if rows != columns:
                x = cat([x, x.new_zeros(*x.shape[:-2], rows, rows - columns)], -1)
            a = x - x.mH
            if self.map == "matrix_exp":
                q = matrix_exp(a)
            else:
                identity = eye(rows, dtype=a.dtype, device=a.device)
                q = linalg_solve(identity - 0.5 * a, identity + 0.5 * a)
            if rows != columns:
                q = q[..., :columns]
        if self._buffers.get("base") is not None:
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, Q: Tensor) -> Tensor:
        if tuple(Q.shape) != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape "
                f"{tuple(Q.shape)}."
            )
        wide = Q.shape[-2] < Q.shape[-1]
        q: Any = Q.mT if wide else Q
        columns = q.shape[-1]
        if "base" not in self._buffers:
            if self.map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            a, tau = geqrf(q)
            # LAPACK's factors have a sign per column, which the map takes from the diagonal.
            a = a.clone()
            a.diagonal(dim1=-2, dim2=-1).sign_()
            diagonal = a.diagonal(dim1=-2, dim2=-1)
            diagonal[tau == 0] *= -1
            return a.mT if wide else a
        if q.shape[-2] == columns:
            base = _orthogonalised(q)
        else:
            base = _completed(q)
        self.base = base
        # Householder's map takes its signs from the diagonal; the others do not look at it.
        start = zeros_like(Q, requires_grad=False)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def _orthogonalised(q: Any) -> Any:
    """Return the orthogonal factor of a square matrix with a positive diagonal of the other."""
    a, tau = geqrf(q)
    result = linalg_householder_product(a, tau)
    return result * a.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _completed(q: Any) -> Any:
    """Return a square orthogonal matrix that begins with the orthogonalised columns of `q`."""
    rows, columns = q.shape[-2:]
    padded = cat([q, q.new_empty(*q.shape[:-2], rows, rows - columns).normal_(0, 1)], -1)
    return _orthogonalised(padded)


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix orthogonal: its columns, or rows if they are fewer, are orthonormal.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str
        The tensor, at least two-dimensional.
    orthogonal_map : {"matrix_exp", "cayley", "householder"}, optional
        How a free matrix becomes an orthogonal one; by default "matrix_exp", or "householder" for matrices
        that are not square or complex.
    use_trivialization : bool
        Whether the map is taken around the present matrix (Lezcano-Casado 2019).

    Raises
    ------
    ValueError
        If there is no such tensor, it has less than two dimensions, or the map is unknown.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)
