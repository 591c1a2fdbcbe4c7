"""What is done to short rows, few classes and small matrices, for which vectors run over the rows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import special

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")

LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
}


def numbers(shape: tuple[int, ...], dtype: Any, strange: bool = False) -> Any:
    found = (np.random.default_rng(len(shape)).standard_normal(shape) * 3).astype(dtype)
    if strange and found.size > 20:
        found.reshape(-1)[[5, 11, 17]] = np.nan, np.inf, -np.inf
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax(dtype: Any, layout: str) -> None:
    for rows, width in itertools.product((1, 15, 16, 127, 129, 300), (1, 2, 3, 10, 15, 16)):
        given = LAYOUTS[layout](numbers((rows, width), dtype, strange=True))
        weights = numbers((rows, width), dtype)
        for name in ("softmax", "log_softmax", "logsumexp"):
            found = []
            for backend in ("cpu_cython", "cpu_numpy"):
                with tp.prefer(backend):
                    x = tp.from_numpy(given.copy(order="K")).requires_grad_()
                    y = getattr(tp, name)(x, 1)
                    w = tp.from_numpy(weights if y.ndim == 2 else weights[:, 0].copy())
                    found.append([y.detach().numpy(), tp.autograd.grad(y, x, w)[0].numpy()])
            for ours, theirs in zip(*found, strict=True):
                np.testing.assert_allclose(ours, theirs, 1e-4, 1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i4", "u1"])
def test_reductions(dtype: str, layout: str) -> None:
    functions = {"sum": np.sum, "amax": np.max, "amin": np.min, "nansum": np.nansum}
    for shape in ((1000, 3), (300, 5, 5), (7, 16, 31), (7, 17, 3), (2, 3, 4, 5), (513, 16)):
        given = LAYOUTS[layout](numbers(shape, dtype, strange=dtype in ("f4", "f8")))
        wide = given.astype("f8" if dtype in ("f4", "f8") else "i8")
        for (name, function), dim in itertools.product(functions.items(), range(len(shape))):
            if name == "nansum" and dtype not in ("f4", "f8"):
                continue
            with np.errstate(invalid="ignore"):
                expected = function(wide, axis=dim)
            found = getattr(tp, name)(tp.from_numpy(given), dim).numpy()
            np.testing.assert_allclose(found, expected, 1e-5, 1e-4)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i8", "i4"])
def test_places_of_extremes(dtype: str) -> None:
    """The first of equal ones, and the first NaN of all."""
    for shape in (
        (1000, 3),
        (300, 5, 5),
        (7, 15, 31),
        (600, 16),
        (257, 3, 15),
        (2, 5000, 3),
        (9, 1, 4),
    ):
        given = np.random.default_rng(0).integers(-4, 4, shape).astype(dtype)
        if dtype[0] == "f":
            given.reshape(-1)[5::11] = np.nan
        for dim, kind in itertools.product(range(len(shape)), ("max", "min")):
            places = getattr(np, f"arg{kind}")(given, axis=dim)
            values = np.take_along_axis(given, np.expand_dims(places, dim), dim).squeeze(dim)
            found = getattr(tp, kind)(tp.from_numpy(given), dim)
            np.testing.assert_array_equal(found.values.numpy(), values)
            np.testing.assert_array_equal(found.indices.numpy(), places)
            alone = getattr(tp, f"arg{kind}")(tp.from_numpy(given), dim)
            np.testing.assert_array_equal(alone.numpy(), places)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses_of_few_classes(reduction: str, weighted: bool) -> None:
    for rows, classes in itertools.product((1, 63, 64, 65, 200), (1, 2, 3, 12, 13)):
        scores = numbers((rows, classes), np.float32)
        target = np.random.default_rng(rows).integers(0, classes, rows)
        target[::7] = -100
        weight = tp.rand(classes) + 0.5 if weighted else None
        found = []
        for backend in ("cpu_cython", "cpu_numpy"):
            with tp.prefer(backend):
                x = tp.from_numpy(scores).requires_grad_()
                loss = tp.nn.functional.cross_entropy(
                    x, tp.from_numpy(target), weight, reduction=reduction
                )
                found.append((loss, tp.autograd.grad(loss.sum(), x)[0]))
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), 1e-4, 1e-5)


def test_products_of_small_matrices() -> None:
    layouts = {
        "C": lambda a: a,
        "T": lambda a: np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2),
        "S": lambda a: np.repeat(a, 2, -1)[..., ::2],
    }
    for m, k, n in itertools.product((1, 3, 5, 17), (1, 2, 10), (1, 3, 16, 17)):
        for one, two in itertools.product(layouts.values(), repeat=2):
            a, b = numbers((4, m, k), np.float32), numbers((4, k, n), np.float32)
            found = tp.bmm(tp.from_numpy(one(a)), tp.from_numpy(two(b))).numpy()
            np.testing.assert_allclose(found, a.astype("f8") @ b.astype("f8"), 1e-4, 1e-4)


@pytest.mark.parametrize("name", ["rand", "randn"])
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.float16, tp.bfloat16])
def test_random_numbers_are_those_of_the_kernels_below(name: str, dtype: Any) -> None:
    found = []
    for backend in ("cpu_cython", "cpu_numpy"):
        with tp.prefer(backend):
            generator = tp.Generator().manual_seed(3)
            found.append(getattr(tp, name)(5001, generator=generator, dtype=dtype).double())
    close = 0.0 if name == "rand" else 1e-5 if dtype.itemsize > 2 else 0.05
    assert (found[0] - found[1]).abs().max().item() <= close


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_digamma(dtype: Any) -> None:
    x = np.concatenate([np.linspace(-30.13, 30, 20001), 10.0 ** np.linspace(-30, 30, 501)]).astype(
        dtype
    )
    with np.errstate(invalid="ignore"):
        expected = special.psi(x.astype(np.float64))
    found = tp.digamma(tp.from_numpy(x)).numpy()
    # SciPy rounds pi x where the fraction of x is exact.
    np.testing.assert_allclose(found, expected, 1e-6 if dtype == np.float32 else 1e-10)
    special_ones = tp.digamma(tp.tensor([0.0, -0.0, -3.0, np.inf, np.nan])).numpy()
    np.testing.assert_array_equal(special_ones, [-np.inf, np.inf, np.nan, np.inf, np.nan])


def on_both(function: Any, *arrays: Any) -> list[list[Any]]:
    """Return what a function gives with its gradients, by the kernels here and by those below."""
    found = []
    for backend in ("cpu_cython", "cpu_numpy"):
        with tp.prefer(backend):
            leaves = [tp.from_numpy(a.copy(order="K")).requires_grad_() for a in arrays]
            y = function(*leaves)
            gradients = tp.autograd.grad(
                y, leaves, tp.arange(y.numel()).reshape(y.shape).to(y.dtype) / 100
            )
            found.append([t.detach().numpy() for t in (y, *gradients)])
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear"])
def test_interpolate(mode: str, dtype: Any) -> None:
    for (images, channels), (size, wanted) in itertools.product(
        ((1, 1), (3, 5), (40, 3), (257, 1)), ((1, 1), (4, 3), (3, 7), (64, 5), (129, 2))
    ):
        x = numbers((images, channels, size), dtype)
        ours, below = on_both(
            lambda x, wanted=wanted: tp.nn.functional.interpolate(x, wanted, mode=mode), x
        )
        for one, other in zip(ours, below, strict=True):
            np.testing.assert_allclose(one, other, 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("positions", [1, 3, 31, 32, 33, 65])
def test_local_response_norm(positions: int, dtype: Any) -> None:
    for images, channels, size in itertools.product((1, 2, 50), (1, 6), (2, 5)):
        x = numbers((images, channels, positions), dtype)
        ours, below = on_both(
            lambda x, size=size: tp.nn.functional.local_response_norm(x, size, 0.5), x
        )
        for one, other in zip(ours, below, strict=True):
            np.testing.assert_allclose(one, other, 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 2.5, 3.0, np.inf])
def test_cdist(p: float, dtype: Any) -> None:
    for batch, (rows, others, length) in itertools.product(
        (1, 2, 63, 65), ((1, 1, 1), (5, 6, 2), (16, 15, 4), (4, 16, 4), (2, 2, 33))
    ):
        a = numbers((batch, rows, length), dtype, strange=True)
        b = numbers((batch, others, length), dtype)
        b[:, 0] = a[:, 0]  # distances of nought
        found = []
        for backend in ("cpu_cython", "cpu_numpy"):
            with tp.prefer(backend):
                mode = "donot_use_mm_for_euclid_dist"
                found.append(tp.cdist(tp.from_numpy(a), tp.from_numpy(b), p, mode).numpy())
        np.testing.assert_allclose(*found, 1e-4, 1e-5)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_running_totals(dtype: Any, name: str) -> None:
    for rows, width in itertools.product((1, 63, 64, 65, 200), (1, 2, 3, 15, 16, 17)):
        given = numbers((rows, width), dtype, strange=dtype is not np.int64)
        exact = np.longdouble if dtype is not np.int64 else dtype
        with np.errstate(invalid="ignore"):
            expected = getattr(np, name)(given.astype(exact), 1).astype(dtype)
        result = getattr(tp, name)(tp.from_numpy(given.copy()), 1).numpy()
        part = 1e-6 if dtype is np.float32 else 1e-13
        np.testing.assert_allclose(result, expected, part, part)
        in_place = tp.from_numpy(given.copy())
        getattr(in_place, f"{name}_")(1)
        np.testing.assert_array_equal(in_place.numpy(), result)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradient_of_cumprod(dtype: Any) -> None:
    for shape in ((7,), (1, 9), (65, 5), (3, 5, 130), (2, 0, 3)):
        x = numbers(shape, dtype)
        x[np.abs(x) < 1] = 0
        for dim in range(len(shape)):
            ours, below = on_both(lambda x, dim=dim: x.cumprod(dim), x)
            for one, other in zip(ours, below, strict=True):
                np.testing.assert_allclose(one, other, 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("upper", [False, True])
def test_triangular_matrices_in_rows_and_columns(upper: bool, columns: int, dtype: str) -> None:
    for n, unit in itertools.product((1, 5, 40), (False, True)):
        A = numbers((2, n, n), "f8") / n + 2 * np.eye(n) + (1j if dtype[0] == "c" else 0) / n
        b = numbers((2, n, columns), "f8")
        half = np.triu(A) if upper else np.tril(A)
        if unit:
            half[:, range(n), range(n)] = 1
        expected = np.linalg.solve(half, b)
        for given in (tp.from_numpy(A.astype(dtype)), tp.from_numpy(A.mT.astype(dtype, "C")).mT):
            x = tp.linalg.solve_triangular(
                given, tp.from_numpy(b.astype(dtype)), upper=upper, unitriangular=unit
            )
            np.testing.assert_allclose(x.numpy(), expected, 1e-3, 1e-4)
            whole = tp.linalg.solve(given, tp.from_numpy(b.astype(dtype)))
            np.testing.assert_allclose(whole.numpy(), np.linalg.solve(A, b), 1e-2, 1e-3)
