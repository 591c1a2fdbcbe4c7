"""Derivatives of factorizations, through what each determines: symmetric inputs, no phases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorplug as tp
from tensorplug.autograd import gradcheck, gradgradcheck
from tensorplug.core.ops.linalg import namespace as linalg

DTYPES = [tp.float64, tp.complex128]


def matrix(*shape: int, dtype: Any, seed: int = 0) -> Any:
    generator = tp.Generator()
    generator.manual_seed(seed)
    return tp.randn(*shape, dtype=dtype, generator=generator).requires_grad_()


def hermitian(A: Any) -> Any:
    return A + A.mH


def definite(A: Any) -> Any:
    return A @ A.mH + tp.eye(A.shape[-1], dtype=A.dtype)


def _eigenvectors(A: Any) -> Any:
    w, V = linalg.eigh(hermitian(A))
    return w, V.abs(), (V * w.exp().to(V.dtype).unsqueeze(-2)) @ V.mH


def _general(A: Any) -> Any:
    w, V = linalg.eig(A)
    return w.abs().sum(-1), (w * w).sum(-1), (w.abs().unsqueeze(-2) * V.abs()).sum((-2, -1))


def _singular(full: bool) -> Callable[[Any], Any]:
    def function(A: Any) -> Any:
        U, S, Vh = linalg.svd(A, full_matrices=full)
        k = S.shape[-1]
        U, Vh = U[..., :k], Vh[..., :k, :]
        return S, U.abs(), Vh.abs(), (U * S.exp().to(U.dtype).unsqueeze(-2)) @ Vh

    return function


EVERY_WAY: Any = {
    "check_forward_ad": True,
    "check_batched_grad": True,
    "check_batched_forward_grad": True,
}

SQUARE: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda A: linalg.cholesky(definite(A)),
    "cholesky upper": lambda A: linalg.cholesky(definite(A), upper=True),
    "eigvalsh": lambda A: linalg.eigvalsh(hermitian(A)),
    "eigvalsh of the upper triangle": lambda A: linalg.eigvalsh(hermitian(A), "U"),
    "eigh": _eigenvectors,
    "eig": _general,
    "eigvals": lambda A: linalg.eigvals(A).abs().sum(-1),
    "pinv": lambda A: linalg.pinv(hermitian(A), hermitian=True),
    "cond": lambda A: linalg.cond(A, 1),
    "logdet": lambda A: tp.logdet(definite(A)),
    "lu_solve": lambda A: linalg.lu_solve(*linalg.lu_factor(A), A, adjoint=True),
}

RECTANGULAR: dict[str, Callable[[Any], Any]] = {
    "svd": _singular(False),
    "svd with full matrices": _singular(True),
    "svdvals": linalg.svdvals,
    "pinv": linalg.pinv,
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SQUARE)
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_square(name: str, dtype: Any, batch: tuple[int, ...]) -> None:
    A = matrix(*batch, 3, 3, dtype=dtype)
    assert gradcheck(SQUARE[name], (A,), **EVERY_WAY)
    if not batch:
        assert gradgradcheck(SQUARE[name], (A,), atol=1e-4, check_fwd_over_rev=True)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", RECTANGULAR)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)], ids=str)
def test_rectangular(name: str, dtype: Any, shape: tuple[int, ...]) -> None:
    A = matrix(*shape, dtype=dtype)
    assert gradcheck(RECTANGULAR[name], (A,), **EVERY_WAY)
    assert gradgradcheck(RECTANGULAR[name], (A,), atol=1e-4, check_fwd_over_rev=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)], ids=str)
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(dtype: Any, shape: tuple[int, int], driver: str) -> None:
    A = matrix(*shape, dtype=dtype)
    B = matrix(shape[0], 2, dtype=dtype, seed=1)
    assert gradcheck(lambda a, b: linalg.lstsq(a, b, driver=driver).solution, (A, B))
    if shape[0] > shape[1] and driver != "gelsy":
        assert gradcheck(lambda a, b: linalg.lstsq(a, b, driver=driver).residuals, (A, B))
        assert gradgradcheck(lambda a, b: linalg.lstsq(a, b, driver=driver).residuals, (A, B))


def test_qr_says_where_it_has_no_derivative() -> None:
    A = matrix(4, 2, dtype=tp.float64)
    with pytest.raises(RuntimeError, match="mode='complete'"):
        linalg.qr(A, "complete").Q.sum().backward()
    with pytest.raises(RuntimeError, match="mode='r'"):
        linalg.qr(A, "r").R.sum().backward()


def test_determinant_of_singular_matrices() -> None:
    """The gradient is the cofactors, which exist without an inverse."""
    A = tp.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=tp.float64, requires_grad=True)
    linalg.det(A).backward()
    tp.testing.assert_close(A.grad, tp.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=tp.float64))


def test_equal_values_leave_the_gradient_of_values_finite() -> None:
    """Only vectors have none where values coincide."""
    A = tp.eye(3, dtype=tp.float64).requires_grad_()
    (linalg.svdvals(A).sum() + linalg.eigvalsh(A).sum()).backward()
    tp.testing.assert_close(A.grad, 2 * tp.eye(3, dtype=tp.float64))


def test_second_derivative_where_the_first_is_zero() -> None:
    """What is masked must not depend on the gradient: that of a distance is zero at its end."""

    def polar(A: Any) -> Any:
        U, _, Vh = linalg.svd(A, full_matrices=False)
        return U @ Vh

    start = tp.tensor([[2.0, 0.5], [0.3, 1.0]], dtype=tp.float64)
    goal = polar(start)
    found = tp.autograd.functional.hessian(lambda A: ((polar(A) - goal) ** 2).sum(), start)
    step = 1e-6
    slopes = []
    for n in range(4):
        moved = start.flatten().clone()
        moved[n] += step
        point = moved.reshape(2, 2).requires_grad_()
        slopes.append(tp.autograd.grad(((polar(point) - goal) ** 2).sum(), point)[0] / step)
    tp.testing.assert_close(found.reshape(4, 2, 2), tp.stack(slopes), rtol=1e-4, atol=1e-5)


def test_norm_at_zero() -> None:
    x = tp.zeros(3, requires_grad=True)
    linalg.vector_norm(x).backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


#: Losses of vectors' phases, which are left to chance, and of what they leave as it is.
PHASES: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "eigh": (lambda A: linalg.eigh(hermitian(A))[1].sum(), False),
    "eigh, sizes": (lambda A: linalg.eigh(hermitian(A))[1].abs().sum(), True),
    "eigh, values": (lambda A: linalg.eigh(hermitian(A))[0].sum(), True),
    "eig": (lambda A: linalg.eig(A)[1].sum(), False),
    "eig of real matrices": (lambda A: linalg.eig(A.real)[1].sum(), False),
    "eig, sizes": (lambda A: linalg.eig(A)[1].abs().sum(), True),
    "eig of real matrices, values": (lambda A: linalg.eig(A.real)[0].sum(), True),
    "svd": (lambda A: sum(x.sum() for x in linalg.svd(A, full_matrices=False)), False),
    "svd, left": (lambda A: linalg.svd(A)[0].sum(), False),
    "svd, right": (lambda A: linalg.svd(A)[2].sum(), False),
    "svd, sizes": (lambda A: linalg.svd(A)[0].abs().sum(), True),
    "svd, product": (lambda A: tp.matmul(*linalg.svd(A)[::2]).sum(), True),
}


@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize("name", PHASES)
def test_losses_that_depend_on_phases_are_refused(name: str, batch: tuple[int, ...]) -> None:
    """Each time, also in second derivatives and in batches; real vectors have signs, of which all go."""
    loss, known = PHASES[name]

    def gradient(A: Any, **options: Any) -> Any:
        return tp.autograd.grad(loss(A).abs().sum(), A, **options)[0]

    A = matrix(*batch, 3, 3, dtype=tp.complex128)
    ways: list[Callable[[], Any]] = [
        lambda: gradient(A),
        lambda: gradient(A),
        lambda: gradient(A, create_graph=True),
        lambda: tp.func.grad(lambda A: loss(A).abs().sum())(A.detach()),
    ]
    if not batch:
        ways.append(lambda: tp.vmap(tp.func.grad(lambda A: loss(A).abs()))(A.detach()[None]))
    for way in ways:
        if known:
            assert way().isfinite().all()
        else:
            with pytest.raises(
                RuntimeError, match=r"up to multiplication by e\^\{i phi\}.*ill-defined"
            ):
                way()
    if name.startswith(("eigh", "svd")):
        assert gradient(matrix(*batch, 3, 3, dtype=tp.float64)).isfinite().all()


# --- large systems, whose factors the backward pass takes again -----------------------------------

LARGE_SYSTEMS = [
    (dtype, left, width)
    for dtype in ("float64", "complex128")
    for left in (True, False)
    for width in (None, 1, 5)
    if left or width is not None
]  # fmt: skip


def _large_system(dtype: str, left: bool, width: int | None) -> tuple[Any, Any, Any]:
    n, dtype_ = 130, getattr(tp, dtype)
    generator = tp.Generator().manual_seed(3)
    A = tp.randn(n, n, dtype=dtype_, generator=generator) + 12 * tp.eye(n, dtype=dtype_)
    shape = (n,) if width is None else (n, width) if left else (width, n)
    return A, tp.randn(shape, dtype=dtype_, generator=generator), left


def _solutions(A: Any, B: Any, left: bool) -> Any:
    return tp.linalg.solve(A, B, left=left)


def _by_inverse(A: Any, B: Any, left: bool) -> Any:
    return tp.linalg.inv(A) @ B if left else B @ tp.linalg.inv(A)


def _first_and_second(solve: Any, A: Any, B: Any, left: bool) -> list[Any]:
    """Return the gradients of a plain pass, of a recorded one, and of those gradients."""
    A, B = A.clone().requires_grad_(), B.clone().requires_grad_()
    plain = tp.autograd.grad((solve(A, B, left).abs() ** 3).sum(), [A, B])
    recorded = tp.autograd.grad((solve(A, B, left).abs() ** 3).sum(), [A, B], create_graph=True)
    second = tp.autograd.grad(sum((g.abs() ** 2).sum() for g in recorded), [A, B])
    return [*plain, *recorded, *second]


@pytest.mark.parametrize(("dtype", "left", "width"), LARGE_SYSTEMS)
def test_gradients_of_large_systems_are_those_of_the_inverse(
    dtype: str, left: bool, width: int | None
) -> None:
    system = _large_system(dtype, left, width)
    found, expected = (_first_and_second(solve, *system) for solve in (_solutions, _by_inverse))
    for one, other in zip(found, expected, strict=True):
        tp.testing.assert_close(one, other, rtol=1e-9, atol=1e-9 * float(other.abs().max()))


@pytest.mark.parametrize(("dtype", "left", "width"), LARGE_SYSTEMS)
def test_tangents_of_large_systems_reach_their_gradients(
    dtype: str, left: bool, width: int | None
) -> None:
    """In forward mode over a plain pass, the factors stand for the matrix at one point alone."""
    A, B, left = _large_system(dtype, left, width)
    direction = _large_system(dtype, left, width)[0].mT
    found = []
    for solve in (_solutions, _by_inverse):
        with tp.autograd.forward_ad.dual_level():
            dual = tp.autograd.forward_ad.make_dual(A.clone().requires_grad_(), direction)
            X = solve(dual, B, left)
            (gradient,) = tp.autograd.grad((X.abs() ** 3).sum(), [dual])
            found.append([tp.autograd.forward_ad.unpack_dual(t).tangent for t in (X, gradient)])
    for one, other in zip(*found, strict=True):
        tp.testing.assert_close(one, other, rtol=1e-9, atol=1e-9 * float(other.abs().max()))


def test_backward_of_a_large_system_factorizes_nothing() -> None:
    A, B, left = _large_system("float64", True, 2)
    A.requires_grad_()
    X = _solutions(A, B, left)
    with tp.autograd.profiler.profile() as profile:
        X.sum().backward()
    called = {event.name for event in profile.function_events}
    assert any(name.endswith("linalg_lu_solve") for name in called), called
    assert not any("factor" in name or "solve_ex" in name or "solve_lu" in name for name in called)
