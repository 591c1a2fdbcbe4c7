"""A few eigenpairs of large symmetric matrices (Knyazev 2001; Duersch, Shao, Yang and Gu 2018)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from operator import index
from typing import Any

from tensorplug.autograd import Function, no_grad
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import finfo, float32, float64
from tensorplug.core.errors import check_flag
from tensorplug.core.ops import cat, eye, randn, stack, where, zeros
from tensorplug.core.ops.linalg.namespace import eigh, solve
from tensorplug.core.ops.rules import check_tensor
from tensorplug.core.tensor.layout import strided

__all__ = ["lobpcg"]

_MOST_STEPS = 1000
_METHODS = ("basic", "ortho")


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,  # noqa: N803
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[Any], None] | None = None,
    ortho_iparams: dict[str, int] | None = None,  # noqa: ARG001
    ortho_fparams: dict[str, float] | None = None,  # noqa: ARG001
    ortho_bparams: dict[str, bool] | None = None,  # noqa: ARG001
) -> tuple[Tensor, Tensor]:
    r"""Return the largest or smallest eigenvalues, and eigenvectors, of :math:`A x = \lambda B x`.

    Parameters
    ----------
    A : Tensor
        Symmetric, ``(*, m, m)``, of float32 or float64; sparse ones are only multiplied with.
    k : int, optional
        How many; by default as many as `X` has columns, or one.
    B : Tensor, optional
        Symmetric and positive definite, ``(*, m, m)``; by default the identity.
    X : Tensor, optional
        ``(*, m, n)`` with `n` of `k` or more: what to start from; by default random numbers.
    n : int, optional
        How many columns of random numbers; by default `k`.
    iK : Tensor, optional
        A preconditioner, ``(*, m, m)``, near to the inverse of A.
    niter : int, optional
        The most iterations, 1000 by default; -1 for any number.
    tol : float, optional
        How large residuals may be beside the norms of A, B and X; by default the root of the dtype's eps.
    largest : bool, optional
        Whether the largest are looked for, the default, or the smallest.
    method : {"ortho", "basic"}, optional
        Accepted as torch has it; bases are orthonormal in both.
    tracker : callable, optional
        Called with the state after each iteration: ``E``, ``X``, ``R``, ``ivars["istep"]``,
        ``ivars["converged_count"]``, ``tvars["rerr"]``; ``bvars["force_stop"] = True`` ends it.
    ortho_iparams, ortho_fparams, ortho_bparams : dict, optional
        Accepted as torch has them: the bases here need no settings.

    Returns
    -------
    E, X : Tensor
        ``(*, k)``, the largest (smallest) first, and ``(*, m, k)`` with :math:`X^T B X = I`.

    Raises
    ------
    ValueError
        If A has less than three rows for each column of X, or `k` or `method` does not fit.

    Notes
    -----
    Each iteration takes the best of what X, its preconditioned residual and the last step span. Gradients
    are of dense A and B, taken as symmetric; those of eigenvectors need eigenvalues that differ.

    Examples
    --------
    >>> import tensorplug as tp
    >>> E, X = tp.lobpcg(tp.diag(tp.arange(1.0, 10.0)), k=2, largest=False)
    >>> tp.allclose(E, tp.tensor([1.0, 2.0]), atol=1e-3)
    True
    """
    k, n, niter = [None if given is None else index(given) for given in (k, n, niter)]
    check_flag(True if largest is None else largest, "lobpcg", "largest")
    _check(A, B, X, iK)
    if X is not None:
        n = X.shape[-1]
    elif n is None:
        n = 1 if k is None else k
    if k is None:
        k = 1 if X is None else n
    if not 0 < k <= n:
        raise ValueError(f"lobpcg(): expected 1 <= k <= {n} columns of X, got k={k}")
    if A.shape[-1] < 3 * n:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={A.shape[-1]}) is smaller than "
            f"3 x the number of requested eigenpairs (={n})"
        )
    if method is not None and method not in _METHODS:
        raise ValueError(f"lobpcg(): method must be one of {_METHODS}, got {method!r}")
    if A.requires_grad or (B is not None and B.requires_grad):
        if A.layout is not strided or (B is not None and B.layout is not strided):
            raise RuntimeError("lobpcg(): gradients are of dense matrices only; give A.to_dense()")
        A = (A + A.mT) / 2
        B = None if B is None else (B + B.mT) / 2
    tol = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    niter = _MOST_STEPS if niter is None else niter
    options = (n, iK, math.inf if niter < 0 else niter, tol, largest is not False, tracker)
    E, V = _Pairs.apply(A, B, X, k, options)
    return E, V


def _check(A: Any, B: Any, X: Any, preconditioner: Any) -> None:
    """Raise if sizes or dtypes do not fit each other."""
    check_tensor(A, "lobpcg", "A")
    if A.dtype not in (float32, float64):
        raise RuntimeError(f"lobpcg(): expected A of float32 or float64, got {A.dtype.name}")
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"lobpcg(): A must be square matrices, got {list(A.shape)}")
    for name, matrix in (("B", B), ("iK", preconditioner), ("X", X)):
        if matrix is None:
            continue
        check_tensor(matrix, "lobpcg", name)
        wanted = A.shape if name != "X" else (*A.shape[:-1], *matrix.shape[-1:])
        if matrix.shape != wanted or matrix.dtype is not A.dtype:
            raise RuntimeError(
                f"lobpcg(): expected {name} of shape {list(wanted)} and of {A.dtype.name} as A is, got "
                f"{list(matrix.shape)} of {matrix.dtype.name}"
            )


class _Pairs(Function):
    """Eigenpairs, whose gradients are those of the equations that they solve."""

    @staticmethod
    def forward(ctx: Any, A: Any, B: Any, X: Any, k: int, options: tuple[Any, ...]) -> Any:
        batch = A.shape[:-2]
        n, preconditioner, *others = options

        def of(matrix: Any, place: tuple[int, ...]) -> Any:
            return None if matrix is None else matrix[place] if place else matrix

        pairs = []
        for place in itertools.product(*map(range, batch)):
            start = of(X, place)
            if start is None:
                start = randn((A.shape[-1], n), dtype=A.dtype, device=A.device)
            found = _Iteration(
                of(A, place), of(B, place), of(preconditioner, place), start, k, *others
            )
            pairs.append(found.run())
        values = stack([E[:k] for E, _ in pairs]).reshape((*batch, k))
        vectors = stack([V[:, :k] for _, V in pairs]).reshape((*batch, A.shape[-1], k))
        ctx.save_for_backward(*(A, B) if A.layout is strided else (None, None), values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        r"""Return gradients: with :math:`r_i = (dA - E_i dB) x_i`, dE is :math:`x_i^T r_i`.

        dx is :math:`-G_i r_i - x_i (x_i^T dB x_i) / 2`, where G solves with A - E_i B beside x_i.
        """
        A, B, E, X = ctx.saved_tensors
        g_E, g_X = gradients
        m, k = X.shape[-2:]
        own = eye(m, dtype=A.dtype, device=A.device) if B is None else B
        BX = X if B is None else B @ X
        columns = X.mT.unsqueeze(-1)  # (*, k, m, 1)
        shifted = A.unsqueeze(-3) - E[..., None, None] * own.unsqueeze(-3)
        border = BX.mT.unsqueeze(-1)
        corner = zeros((*border.shape[:-2], 1, 1), dtype=A.dtype, device=A.device)
        bordered = cat([cat([shifted, border], -1), cat([border.mT, corner], -1)], -2)
        given = cat([g_X.mT.unsqueeze(-1), corner], -2)
        U = solve(bordered, given).narrow(-2, 0, m).squeeze(-1).mT  # (*, m, k)
        weighted = X * g_E.unsqueeze(-2)
        g_A = (weighted - U) @ X.mT
        g_B = None
        if B is not None:
            share = (g_X.mT.unsqueeze(-2) @ columns).reshape((*g_X.shape[:-2], 1, k)) / 2
            g_B = ((U - weighted) * E.unsqueeze(-2) - X * share) @ X.mT
            g_B = (g_B + g_B.mT) / 2
        return (g_A + g_A.mT) / 2, g_B, None, None, None


class _Iteration:
    """The state of an iteration, which a tracker looks at; names are torch's."""

    def __init__(
        self,
        A: Any,
        B: Any,
        preconditioner: Any,
        X: Any,
        k: int,
        niter: float,
        tol: float,
        largest: bool,
        tracker: Any,
    ) -> None:
        self.A, self.B, self.iK, self.X = A, B, preconditioner, X
        self.k, self.niter, self.tol, self.largest, self.tracker = k, niter, tol, largest, tracker
        self.n = X.shape[-1]
        self.E: Any = None
        self.R: Any = None
        self.ivars: dict[str, int] = {"istep": 0, "converged_count": 0}
        self.tvars: dict[str, Any] = {}
        self.bvars: dict[str, bool] = {"force_stop": False}

    def run(self) -> tuple[Any, Any]:
        """Return all values and vectors that are followed."""
        with no_grad():
            X = self._orthonormal(self.X)
            if X.shape[-1] < self.n:  # columns that depend on each other
                more = randn((X.shape[-2], self.n - X.shape[-1]), dtype=X.dtype, device=X.device)
                X = cat([X, self._beside(more, X)], -1)
            self.A_norm = self.A.matmul(X).norm() / X.norm()
            self.B_norm = self._by_B(X).norm() / X.norm()
            self.E, turn = self._best(X)
            self.X = X @ turn
            P = None
            while not self._is_done():
                P = self._step(P)
                self.ivars["istep"] += 1
            return self.E, self.X

    def _by_B(self, U: Any) -> Any:
        return U if self.B is None else self.B.matmul(U)

    def _is_done(self) -> bool:
        """Look at the residuals; return whether enough are small."""
        X, E = self.X, self.E
        self.R = self.A.matmul(X) - self._by_B(X) * E
        size = X.norm(dim=0) * (self.A_norm + E.abs() * self.B_norm)
        error = self.R.norm(dim=0) / where(size == 0, 1.0, size)
        self.tvars["rerr"] = error
        count = int((error < self.tol).cumprod(0).sum())
        self.ivars["converged_count"] = count
        if self.tracker is not None:
            self.tracker(self)
        stop = self.bvars["force_stop"] or not bool(error.isfinite().all())
        return stop or count >= self.k or self.ivars["istep"] >= self.niter

    def _step(self, P: Any) -> Any:
        """Take the best of what X, the residual and the last step span; return the next step."""
        X = self.X
        W = self.R.narrow(1, self.ivars["converged_count"], self.n - self.ivars["converged_count"])
        W = self._beside(W if self.iK is None else self.iK.matmul(W), X)
        parts = [X, W]
        if P is not None:
            parts.append(self._beside(P, cat([X, W], -1)))
        S = cat(parts, -1)
        self.E, turn = self._best(S)
        self.X = S @ turn
        rest = S.shape[-1] - self.n
        return S.narrow(1, self.n, rest) @ turn.narrow(0, self.n, rest)

    def _best(self, S: Any) -> tuple[Any, Any]:
        """Return the n best values in the space of orthonormal columns, and their coordinates."""
        product = S.mT @ self.A.matmul(S)
        E, Z = eigh((product + product.mT) / 2)
        if self.largest:
            E, Z = E.flip(0), Z.flip(1)
        return E[: self.n], Z[:, : self.n]

    def _beside(self, U: Any, Q: Any) -> Any:
        """Return orthonormal columns that span what U adds to those of Q."""
        for _ in range(2):
            U = self._orthonormal(U - Q @ (Q.mT @ self._by_B(U)))
        return U

    def _orthonormal(self, U: Any) -> Any:
        """Return columns with Q^T B Q = I that span those of U, but for what is rounding."""
        for _ in range(2):
            gram = U.mT @ self._by_B(U)
            scale = gram.diagonal().clamp(min=0).sqrt()
            scale = where(scale == 0, 0.0, 1 / scale)
            E, Z = eigh(gram * scale.unsqueeze(1) * scale)
            rounding = finfo(U.dtype).eps * max(U.shape[0], 10)
            kept = rounding < E
            E, Z = E[kept], Z[:, kept]
            U = U @ (scale.unsqueeze(1) * Z / E.sqrt())
        return U
