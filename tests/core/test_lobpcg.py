"""A few eigenpairs, beside those of SciPy's dense solver, and their gradients."""

import numpy as np
import pytest
import scipy.linalg

import tensorplug as tp

M = 30


def matrices(count=1, dtype=tp.float64):
    """Return symmetric matrices A and positive definite B, as arrays."""
    rng = np.random.default_rng(count)
    made = rng.standard_normal((2, count, M, M))
    made = made @ made.swapaxes(-1, -2) / M + np.eye(M) * np.array([0.1, 1.0])[:, None, None, None]
    return [tp.from_numpy(some).to(dtype) for some in made]


def expected(A, B, k, largest):
    A, B = A.double().numpy(), None if B is None else B.double().numpy()
    values = scipy.linalg.eigh(A, B, eigvals_only=True)
    return tp.from_numpy((values[::-1] if largest else values)[:k].copy())


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64], ids=str)
@pytest.mark.parametrize("largest", [None, True, False])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("generalized", [False, True])
def test_pairs(dtype, largest, k, generalized):
    (A,), (B,) = matrices(dtype=dtype)
    B = B if generalized else None
    tp.manual_seed(0)
    E, X = tp.lobpcg(A, k, B=B, largest=largest)
    assert (E.shape, X.shape, E.dtype, X.dtype) == ((k,), (M, k), dtype, dtype)
    near = 1e-4 if dtype is tp.float32 else 1e-10
    tp.testing.assert_close(
        E.double(), expected(A, B, k, largest is not False), rtol=near, atol=near
    )
    BX = X if B is None else B @ X
    tp.testing.assert_close(X.mT @ BX, tp.eye(k, dtype=dtype), rtol=0, atol=near)
    bound = tp.finfo(dtype).eps ** 0.5
    assert (A @ X - BX * E).norm() < 10 * bound * (A.norm() + 0.0)


def test_batches_and_columns_to_start_from():
    A, _ = matrices(6)
    A = A.reshape(2, 3, M, M)
    E, X = tp.lobpcg(A, 2, X=tp.randn(2, 3, M, 4, dtype=tp.float64))
    assert (E.shape, X.shape) == ((2, 3, 2), (2, 3, M, 2))
    for i in range(2):
        for j in range(3):
            tp.testing.assert_close(E[i, j], expected(A[i, j], None, 2, True))


def test_columns_that_depend_on_each_other():
    (A,), _ = matrices()
    E, X = tp.lobpcg(A, X=tp.ones(M, 3, dtype=tp.float64), largest=False)
    tp.testing.assert_close(E, expected(A, None, 3, False))
    assert X.shape == (M, 3)


def test_a_sparse_matrix_and_a_preconditioner():
    m = 300
    line = tp.arange(1.0, m + 1, dtype=tp.float64)
    A = tp.diag(line) + tp.diag(tp.full((m - 1,), 0.3, dtype=tp.float64), 1)
    A = (A + A.mT) / 2
    steps = []

    def counted(state):
        steps[-1] = state.ivars["istep"]

    for iK in (None, tp.diag(1 / line)):
        steps.append(0)
        tp.manual_seed(0)
        E, _ = tp.lobpcg(A.to_sparse(), 2, iK=iK, largest=False, n=4, tracker=counted)
        tp.testing.assert_close(E, expected(A, None, 2, False))
    assert steps[1] < steps[0] / 2


def test_trackers_end_it_and_niter_bounds_it():
    (A,), _ = matrices()
    seen = []

    def tracker(state):
        seen.append((state.ivars["istep"], state.ivars["converged_count"]))
        assert state.tvars["rerr"].shape == (2,)
        state.bvars["force_stop"] = len(seen) == 3

    tp.lobpcg(A, 2, tracker=tracker, tol=0.0)
    assert [step for step, _ in seen] == [0, 1, 2]
    seen.clear()
    tp.lobpcg(A, 2, niter=1, tracker=lambda state: seen.append(state.ivars["istep"]))
    assert seen == [0, 1]


def test_gradients_of_first_and_second_order():
    rng = np.random.default_rng(0)
    A, B = (tp.from_numpy(rng.standard_normal((9, 9))) for _ in range(2))
    A = (A @ A.mT + tp.diag(tp.arange(9.0).double())).requires_grad_()
    B = (B @ B.mT + 9 * tp.eye(9)).requires_grad_()
    start = tp.from_numpy(rng.standard_normal((9, 2)))

    def pairs(A, B=None):
        E, X = tp.lobpcg(A, 2, B=B, X=start, tol=1e-13, niter=200)
        return E, X * X  # of which the sign is any

    assert tp.autograd.gradcheck(pairs, (A,))
    assert tp.autograd.gradcheck(pairs, (A, B))
    assert tp.autograd.gradgradcheck(pairs, (A, B))


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"A": tp.ones(3, 4)}, RuntimeError, "must be square"),
        ({"A": tp.ones(9)}, RuntimeError, "must be square"),
        ({"A": tp.ones(9, 9, dtype=tp.int64)}, RuntimeError, "float32 or float64"),
        ({"A": None}, TypeError, "must be Tensor"),
        ({"k": 4}, ValueError, "smaller than 3 x"),
        ({"n": 4}, ValueError, "smaller than 3 x"),
        ({"k": 2, "n": 1}, ValueError, "expected 1 <= k <= 1"),
        ({"k": -1}, ValueError, "expected 1 <= k"),
        ({"k": 0}, ValueError, "expected 1 <= k"),
        ({"k": 1.5}, TypeError, "float"),
        ({"niter": "many"}, TypeError, "str"),
        ({"largest": 1}, TypeError, "must be bool"),
        ({"method": "fast"}, ValueError, "'fast'"),
        ({"B": tp.eye(8)}, RuntimeError, r"B of shape \[9, 9\]"),
        ({"X": tp.ones(8, 1)}, RuntimeError, r"X of shape \[9, 1\]"),
        ({"iK": tp.eye(9, dtype=tp.float64)}, RuntimeError, "iK of shape"),
        ({"A": tp.eye(9).to_sparse().requires_grad_()}, RuntimeError, "dense matrices only"),
    ],
)
def test_what_does_not_fit(change, error, told):
    with pytest.raises(error, match=told):
        tp.lobpcg(**{"A": tp.eye(9), **change})
