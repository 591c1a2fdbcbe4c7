"""Linear algebra at its edges: singular and empty matrices, errors, named tuples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

INF = float("inf")
_random = np.random.default_rng(5)
A = _random.standard_normal((3, 3))
SPD = A @ A.T + np.eye(3)
TALL = _random.standard_normal((4, 2))
SINGULAR = np.stack([np.eye(3), np.arange(9.0).reshape(3, 3)])


def _where_it_is_fine(result: Any, info: Any) -> tuple[Any, Any]:
    """Return what a driver gave, without the matrices it failed at: what stands there is left open."""
    return result.masked_fill((info != 0)[..., None, None], 0), info


OBLONG = [(1, 5), (5, 1), (3, 7), (10, 5), (12, 11), (5, 13)]


BATCHES = [
    ((), (4, 3)), ((3,), (4, 3)), ((3, 1), (3, 4)), ((1,), (0,)), ((), (0, 3)), ((3,), ()), ((3,), (3,)),
    ((3,), None),
]  # fmt: skip


@pytest.mark.parametrize(("of_A", "of_B"), BATCHES)
def test_solve_ex_tells_of_each_matrix_once(of_A: Any, of_B: Any) -> None:
    """The shape of ``info`` is that of A's batch, however often B repeats its matrices."""
    a = tp.eye(2).expand(*of_A, 2, 2)
    b = tp.ones(2) if of_B is None else tp.ones(*of_B, 2, 1)
    info = tp.linalg.solve_ex(a, b).info
    assert (info.shape, info.any().item()) == (of_A, False)
    singular = tp.linalg.solve_ex(a * tp.tensor([[1.0], [0.0]]), b).info
    assert (singular.shape, singular.unique().tolist()) == (of_A, [2])


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 2), (0, 0)])
def test_factors_without_pivoting_of_nothing(shape: tuple[int, ...]) -> None:
    P, L, U = tp.linalg.lu(tp.zeros(*shape), pivot=False)
    k = min(shape[-2:])
    assert (P.shape, L.shape, U.shape) == ((0,), (*shape[:-1], k), (*shape[:-2], k, shape[-1]))
    LU, pivots = tp.linalg.lu_factor(tp.zeros(*shape), pivot=False)
    assert (LU.shape, pivots.shape) == (shape, (*shape[:-2], k))


def test_reflectors_of_nothing_are_quiet(capfd: Any) -> None:
    assert tp.linalg.householder_product(tp.zeros(0, 0), tp.zeros(0)).shape == (0, 0)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("shape", OBLONG)
@pytest.mark.parametrize("name", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("count", [1, 20])
def test_factors_of_oblong_matrices_give_them_back(
    count: int, name: str, shape: tuple[int, int]
) -> None:
    A = tp.tensor(_random.standard_normal((count, *shape)), dtype=getattr(tp, name))
    A[0] = 0  # of whose factors U is zero, and info says where
    P, L, U = tp.linalg.lu(A)
    np.testing.assert_allclose((P @ L @ U).numpy(), A.numpy(), atol=1e-5)
    assert bool((L.abs() <= 1 + 1e-6).all()) or name.startswith("complex")
    assert tp.linalg.lu_factor_ex(A).info.tolist() == [1] + [0] * (count - 1)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "cholesky": lambda linalg, x: linalg.cholesky(x),
    "cholesky_ex": lambda linalg, x: _where_it_is_fine(*linalg.cholesky_ex(x)),
    "cond": lambda linalg, x: linalg.cond(x, 1),
    "det": lambda linalg, x: linalg.det(x),
    "eigvalsh": lambda linalg, x: linalg.eigvalsh(x),
    "inv": lambda linalg, x: linalg.inv(x),
    "inv_ex": lambda linalg, x: _where_it_is_fine(*linalg.inv_ex(x)),
    "lu": lambda linalg, x: tuple(linalg.lu(x)),
    "lu_factor_ex": lambda linalg, x: tuple(linalg.lu_factor_ex(x)),
    "matrix_exp": lambda linalg, x: linalg.matrix_exp(x),
    "matrix_norm": lambda linalg, x: linalg.matrix_norm(x, "nuc"),
    "matrix_power": lambda linalg, x: linalg.matrix_power(x, 3),
    "matrix_rank": lambda linalg, x: linalg.matrix_rank(x),
    "pinv": lambda linalg, x: linalg.pinv(x),
    "slogdet": lambda linalg, x: tuple(linalg.slogdet(x)),
    "solve": lambda linalg, x: linalg.solve(x, x),
    "solve_triangular": lambda linalg, x: linalg.solve_triangular(x, x, upper=True),
    "svdvals": lambda linalg, x: linalg.svdvals(x),
    "vector_norm": lambda linalg, x: linalg.vector_norm(x, 3, dim=-1),
}
INPUTS = {
    "square": A,
    "definite": SPD,
    "tall": TALL,
    "singular": SINGULAR,
    "empty": np.zeros((2, 0, 0)),
    "no batch": np.zeros((0, 3, 3)),
    "vector": np.ones(3),
    "integer": np.eye(2, dtype="int64"),
    "complex": A + 1j * A.T,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("data", INPUTS)
def test_as_torch(agree: Callable[..., None], name: str, data: str) -> None:
    agree(lambda module, x: CALLS[name](module.linalg, x), INPUTS[data])


def test_error_names_the_matrix() -> None:
    with pytest.raises(tp.linalg.LinAlgError, match=r"Batch element 1.*singular") as caught:
        tp.linalg.solve(tp.tensor(SINGULAR), tp.ones(3, 1, dtype=tp.float64))
    assert isinstance(caught.value, RuntimeError)


def test_not_a_number_is_not_positive_definite() -> None:
    with pytest.raises(tp.linalg.LinAlgError, match="not positive-definite"):
        tp.linalg.cholesky(tp.full((2, 2), float("nan")))


def test_singular_value_decomposition_of_infinity() -> None:
    with pytest.raises(tp.linalg.LinAlgError, match="non-finite"):
        tp.linalg.svd(tp.full((2, 2), float("inf")))


def test_info_does_not_raise() -> None:
    result = tp.linalg.inv_ex(tp.tensor(SINGULAR))
    assert result.info.dtype is tp.int32
    assert (result.info != 0).tolist() == [False, True]
    assert result.inverse[0].tolist() == np.eye(3).tolist()


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("eigh", ("eigenvalues", "eigenvectors")),
        ("qr", ("Q", "R")),
        ("svd", ("U", "S", "Vh")),
        ("slogdet", ("sign", "logabsdet")),
        ("lu", ("P", "L", "U")),
        ("lu_factor", ("LU", "pivots")),
        ("cholesky_ex", ("L", "info")),
    ],
)
def test_named_tuples(name: str, fields: tuple[str, ...]) -> None:
    result = getattr(tp.linalg, name)(tp.tensor(SPD))
    assert result._fields == fields
    assert repr(result).startswith(f"tensorplug.return_types.linalg_{name}(\n{fields[0]}=tensor(")


def test_meta_tensors_have_no_errors_to_find() -> None:
    assert tp.linalg.inv(tp.empty(2, 3, 3, device="meta")).shape == (2, 3, 3)
    assert tp.linalg.svd(tp.empty(4, 2, device="meta"), full_matrices=False).U.shape == (4, 2)


def test_namespace_has_the_names_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is the reference of the names")
    modules = {"common_notes", "Tensor", "common_args", "factory_common_args", "torch"}
    for name in ("linalg", "fft"):
        theirs = {n for n in dir(getattr(torch, name)) if not n.startswith("_")} - modules
        assert theirs <= set(dir(getattr(tp, name)))


@pytest.mark.parametrize("p", ["fro", "nuc", 1, -1, float("inf")])
def test_the_condition_of_a_singular_matrix_is_infinite(p: Any) -> None:
    assert tp.linalg.cond(tp.ones(2, 3, 3), p).tolist() == [INF, INF]
    assert tp.linalg.cond(tp.stack([tp.zeros(2, 2), tp.eye(2)]), p).isinf().tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("shape", [(3, 4), (5, 2), (2, 4, 3)])
def test_svd_lowrank_of_a_small_matrix_has_all_its_rank(shape: tuple[int, ...]) -> None:
    matrix = tp.randn(shape, dtype=tp.float64, generator=tp.Generator().manual_seed(0))
    left, values, right = tp.svd_lowrank(matrix)
    assert values.shape[-1] == min(shape[-2:])
    tp.testing.assert_close((left * values.unsqueeze(-2)) @ right.mT, matrix)


def test_qr_in_every_mode() -> None:
    """Mode "complete" makes Q square, and mode "r" leaves it empty."""
    Q, R = tp.linalg.qr(tp.tensor(TALL), "complete")
    assert Q.shape == (4, 4)
    assert R.shape == (4, 2)
    np.testing.assert_allclose((Q @ R).numpy(), TALL, atol=1e-12)
    empty, only = tp.linalg.qr(tp.tensor(TALL), "r")
    assert empty.shape == (0,)
    np.testing.assert_allclose(np.abs(only.numpy()), np.abs(R.numpy()[:2]), atol=1e-12)


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_solve_ex_takes_what_was_a_vector_for_one(shape: tuple[int, ...]) -> None:
    """A vector of length 1 beside a batch of one 1 by 1 matrix is no matrix after it became a column."""
    A, b = tp.full((1, 1, 1), 2.0), tp.full(shape, 4.0)
    assert tp.linalg.solve_ex(A, b).result.tolist() == [[2.0]]


@pytest.mark.parametrize("pivot", [0, 4, -4, 10**7])
def test_pivots_of_symmetric_factors_that_name_no_row_are_refused(pivot):
    LD, pivots = tp.linalg.ldl_factor(tp.eye(3))
    B = tp.ones(3, 1)
    tp.testing.assert_close(tp.linalg.ldl_solve(LD, pivots, B), B)
    with pytest.raises(RuntimeError, match=r"must all satisfy \|pivot\| [<>]= "):
        tp.linalg.ldl_solve(LD, tp.full_like(pivots, pivot), B)


def test_pivots_of_another_shape_are_refused():
    LU, pivots = tp.linalg.lu_factor(tp.eye(3))
    for wrong in (pivots[0], pivots.repeat(2), pivots.expand(2, 3)):
        with pytest.raises(RuntimeError, match=r"up to 3 for each matrix of \[3, 3\]"):
            tp.lu_unpack(LU, wrong)


def test_pivots_that_name_no_row_are_refused():
    LU = tp.eye(3)
    for wrong in (0, 4, -1, 1 << 20):
        with pytest.raises(RuntimeError, match="pivots should be"):
            tp.linalg.lu_solve(LU, tp.tensor([1, wrong, 3], dtype=tp.int32), tp.ones(3, 1))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("n", [31, 32, 70])
def test_equations_in_single_precision(dtype: str, n: int) -> None:
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 2, n, n))
    A = (A + 9 * np.eye(n)).astype(dtype)
    B = B.astype(dtype)
    if A.dtype.kind == "c":
        A, B = A + np.complex64(1j) * B, B * np.complex64(1 + 1j)
    a, b = tp.from_numpy(A), tp.from_numpy(B)
    exact = np.linalg.solve(A.astype("complex128"), B.astype("complex128"))
    assert np.allclose(tp.linalg.solve(a, b).numpy(), exact, 1e-3, 1e-4)
    assert np.allclose(tp.linalg.solve(a, b[:, :, 0]).numpy(), exact[:, :, 0], 1e-3, 1e-4)
    assert np.allclose(tp.linalg.inv(a).numpy(), np.linalg.inv(A.astype("complex128")), 1e-3, 1e-4)
    assert tp.linalg.solve(a, b[:, :, :0]).shape == (2, n, 0)
    small = A / np.float32(9)
    sign, logarithm = np.linalg.slogdet(small.astype("complex128"))
    assert np.allclose(tp.linalg.slogdet(tp.from_numpy(small))[0].numpy(), sign, 1e-3, 1e-4)
    assert np.allclose(tp.linalg.slogdet(tp.from_numpy(small))[1].numpy(), logarithm, 1e-4, 1e-3)
    exact = np.linalg.det(small.astype("complex128"))
    assert np.allclose(tp.linalg.det(tp.from_numpy(small)).numpy() / exact, 1, 1e-3, 1e-3)
    a[1, :, 3] = 0
    assert tp.linalg.solve_ex(a, b).info.tolist() == [0, 4]
    assert tp.linalg.inv_ex(a).info.tolist() == [0, 4]
    assert tp.linalg.det(a)[1] == 0
    assert tp.linalg.slogdet(a)[0][1] == 0
    assert tp.linalg.slogdet(a)[1][1] == -INF


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0, 2), (2, 2), (2, 3)], ids=str)
@pytest.mark.parametrize("p", [None, 2, 1, INF, "fro", "nuc", 0.5, 3, "x"], ids=str)
def test_cond_checks_norms_and_shapes_of_empty_matrices_too(shape, p):
    torch = pytest.importorskip("torch", reason="torch is the reference")
    found = []
    for module in (tp, torch):
        try:
            found.append(list(module.linalg.cond(module.ones(shape), p).shape))
        except RuntimeError:
            found.append("refused")
    assert found[0] == found[1]


@pytest.mark.parametrize("batch", [(4,), (0,), (3, 1), (2, 3)], ids=str)
@pytest.mark.parametrize(
    "solve",
    [
        lambda A, B: tp.linalg.lu_solve(*tp.linalg.lu_factor(A), B),
        lambda A, B: tp.lu_solve(B, *tp.linalg.lu_factor(A)),
        lambda A, B: tp.linalg.solve(A, B),
        lambda A, B: tp.linalg.solve_triangular(A, B, upper=True),
        lambda A, B: tp.cholesky_solve(B, A),
    ],
    ids=["linalg.lu_solve", "lu_solve", "solve", "solve_triangular", "cholesky_solve"],
)
def test_batches_that_do_not_broadcast_are_refused(
    solve: Callable[..., Any], batch: tuple[int, ...]
) -> None:
    A, B = tp.eye(2).repeat(2, 1, 1), tp.ones(*batch, 2, 1)
    if batch in ((3, 1), (2, 3)):
        A = tp.eye(2).repeat(5, 2, 1, 1)
    with pytest.raises(RuntimeError, match="must match"):
        solve(A, B)


def test_older_tolerances_beside_newer_ones_are_refused():
    a = tp.eye(2)
    for call in (
        lambda: tp.linalg.matrix_rank(a, 0.1, atol=0.1),
        lambda: tp.linalg.matrix_rank(a, 0.1, rtol=0.1),
        lambda: tp.linalg.pinv(a, 0.1, atol=0.1),
        lambda: tp.linalg.pinv(a, 0.1, rtol=0.1),
    ):
        with pytest.raises(TypeError, match="older name"):
            call()


@pytest.mark.parametrize(
    ("tau", "other"), [((3, 3), (2, 3, 3)), ((2, 3), (3, 3)), ((3,), (2, 3, 3))]
)
def test_batches_of_ormqr_that_differ_are_refused(tau, other):
    with pytest.raises(RuntimeError, match="batch dimensions"):
        tp.ormqr(tp.ones(2, 3, 3), tp.ones(tau), tp.ones(other))


@pytest.mark.parametrize("dtype", [tp.int64, tp.bool, tp.float16, tp.bfloat16])
def test_dtypes_without_factorizations(dtype):
    for name in ("cholesky", "eigh", "eigvalsh", "det", "svdvals", "lu_factor", "qr", "inv"):
        with pytest.raises(NotImplementedError):
            getattr(tp.linalg, name)(tp.eye(2, dtype=dtype))


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.complex64, tp.complex128], ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (5, 3), (40, 30)], ids=str)
def test_least_squares_of_a_batch(driver: str, dtype: tp.dtype, shape: tuple[int, int]) -> None:
    """Those of each matrix by itself; but for "gels", one of them has less than full rank."""
    tp.manual_seed(0)
    left, right = tp.randn(3, *shape, dtype=dtype), tp.randn(3, shape[0], 2, dtype=dtype)
    if driver != "gels":
        left[1, :, 0] = left[1, :, 1] = left[1, :, 2]
    found = tp.linalg.lstsq(left, right, driver=driver)
    for number in range(3):
        matrix, values = left[number].numpy(), right[number].numpy()
        expected = np.linalg.pinv(matrix, rcond=1e-4) @ values
        np.testing.assert_allclose(found.solution[number].numpy(), expected, 1e-2, 1e-3)
        if driver != "gels":
            rank = np.linalg.matrix_rank(matrix, tol=1e-3)
            assert found.rank[number].item() == rank
    if driver in ("gelsd", "gelss"):
        sizes = np.linalg.svd(left.numpy(), compute_uv=False)
        np.testing.assert_allclose(found.singular_values.numpy(), sizes, 1e-4, 1e-4)
