"""LAPACK over stacks: factors and solutions against NumPy's, over dtypes, batches and layouts."""

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.errors import LinAlgError

DTYPES = ("float32", "float64", "complex64", "complex128")
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": lambda a: np.ascontiguousarray(np.swapaxes(a, -1, -2)).swapaxes(-1, -2),
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "batch last": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0),
}
PLACES = (
    ((), "rows"),
    ((), "columns"),
    ((3,), "every second"),
    ((2, 3), "batch last"),
    ((0,), "rows"),
)
LA = tp.linalg


def numbers(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    found = random.standard_normal(shape)
    if dtype.startswith("complex"):
        found = found + 1j * random.standard_normal(shape)
    return found.astype(dtype)


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def close(found, expected, tolerance):
    found = found.resolve_conj().numpy()
    assert found.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(found, expected, tolerance, tolerance * scale)


@pytest.mark.parametrize(("batch", "layout"), PLACES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_square(dtype, batch, layout):
    tolerance = 2e-3 if dtype in ("float32", "complex64") else 1e-9
    for n in (1, 5, 40):
        some = numbers((*batch, n, n), dtype)
        wide = "complex128" if dtype.startswith("complex") else "float64"
        positive = (some @ adjoint(some) + n * np.eye(n)).astype(dtype)
        exact, right = positive.astype(wide), numbers((*batch, n, 3), dtype, 1)
        A, B = (tp.from_numpy(LAYOUTS[layout](one)) for one in (positive, right))
        L, info = LA.cholesky_ex(A)
        close(L, np.linalg.cholesky(exact), tolerance)
        assert not info.numpy().any()
        close(LA.solve(A, B), np.linalg.solve(exact, right.astype(wide)), tolerance)
        close(LA.inv(A), np.linalg.inv(exact), tolerance)
        close(LA.slogdet(A)[1], np.linalg.slogdet(exact)[1], tolerance)
        general = tp.from_numpy(LAYOUTS[layout](some))
        close(LA.det(general), np.linalg.det(some.astype(wide)), tolerance)
        P, lower, upper = LA.lu(general)
        close(P @ lower @ upper, some, tolerance)
        LU, pivots = LA.lu_factor(A)
        for adjointly in (False, True):
            found = LA.lu_solve(LU, pivots, B, adjoint=adjointly)
            close((adjoint(A.numpy()) if adjointly else A) @ found, right, tolerance)
        LD, order = LA.ldl_factor(A, hermitian=True)
        close(A @ LA.ldl_solve(LD, order, B, hermitian=True), right, 10 * tolerance)
        for half in "LU":
            values, vectors = LA.eigh(A, UPLO=half)
            close(vectors * values.unsqueeze(-2) @ vectors.mH, positive, tolerance)
            close(values, np.linalg.eigvalsh(exact), tolerance)
            close(LA.eigvalsh(A, UPLO=half), np.linalg.eigvalsh(exact), tolerance)
        for upper in (False, True):
            half = np.triu(positive) if upper else np.tril(positive)
            found = LA.solve_triangular(
                tp.from_numpy(LAYOUTS[layout](half)), B, upper=upper, unitriangular=False
            )
            close(tp.from_numpy(half) @ found, right, tolerance)


@pytest.mark.parametrize(("batch", "layout"), PLACES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rectangular(dtype, batch, layout):
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-10
    for m, n in ((5, 3), (3, 5), (1, 6), (6, 1), (0, 3), (3, 0)):
        some = numbers((*batch, m, n), dtype)
        A, k = tp.from_numpy(LAYOUTS[layout](some)), min(m, n)
        for mode in ("reduced", "complete"):
            Q, R = LA.qr(A, mode)
            close(Q @ R, some, tolerance)
            size = Q.shape[-1]
            close(Q.mH @ Q, np.broadcast_to(np.eye(size), (*batch, size, size)), tolerance)
            assert not np.tril(R.numpy(), -1).any()
        close(LA.qr(A, "r")[1], LA.qr(A).R.numpy(), tolerance)
        if m >= n:
            close(LA.householder_product(*tp.geqrf(A)), LA.qr(A).Q.numpy(), tolerance)
        for full in (False, True):
            U, S, V = LA.svd(A, full_matrices=full)
            close(U[..., :k] * S.unsqueeze(-2) @ V[..., :k, :], some, tolerance)
            for unit in (U.mH @ U, V @ V.mH):
                close(unit, np.broadcast_to(np.eye(unit.shape[-1]), unit.shape), tolerance)
            close(LA.svdvals(A), S.numpy(), tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_cannot_be_factored_is_told(dtype):
    middle = np.eye(3, dtype=dtype)
    middle[1, 1] = -1
    stack = np.stack([np.eye(3, dtype=dtype), middle, np.zeros((3, 3), dtype)])
    assert LA.cholesky_ex(tp.from_numpy(stack)).info.tolist() == [0, 2, 1]
    assert LA.inv_ex(tp.from_numpy(stack)).info.tolist() == [0, 0, 1]
    # The column of zeros is the first one, not that of the transposed matrix.
    zeros = np.array([[0, 1], [0, 1]], dtype)
    assert LA.inv_ex(tp.from_numpy(zeros)).info.item() == 1
    assert LA.det(tp.from_numpy(zeros)).item() == 0
    nothing = tp.from_numpy(np.full((2, 3, 3), np.nan, dtype))
    for name in ("cholesky", "eigh", "eigvalsh", "svd", "svdvals"):
        with pytest.raises(LinAlgError):
            getattr(LA, name)(nothing)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_unpacking_with_any_number_of_pivots(batch, dtype):
    draw = np.random.default_rng(0)
    for m, n in ((5, 3), (3, 5), (4, 4)):
        some = tp.from_numpy(numbers((*batch, m, n), dtype))
        for count in range(1, m + 1):
            pivots = tp.from_numpy(draw.integers(1, m + 1, (*batch, count)).astype(np.int32))
            found = tp.lu_unpack(some, pivots)
            with tp.prefer("cpu_numpy"):
                expected = tp.lu_unpack(some, pivots)
            for one, other in zip(found, expected, strict=True):
                assert one.equal(other)
