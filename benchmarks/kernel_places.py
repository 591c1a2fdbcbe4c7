"""More of the kernel suite: ops that index, sort, scan, drop, and losses of classes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .kernel_work import Work, flat, functional, normal, rows, square

ROWS, FEATURES = 1000, 64


def row_places(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return as many places along the first dimension as there are elements."""
    return generator.integers(0, shape[0], shape)


def places(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return one place along the first dimension for each row."""
    return generator.integers(0, shape[0], shape[0])


def labels(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return one class for each row."""
    return generator.integers(0, shape[1], shape[0])


def table(generator: np.random.Generator, _: tuple[int, ...]) -> np.ndarray:
    return generator.standard_normal((ROWS, FEATURES), dtype=np.float32)


def words(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers of rows of the table, so many that as many elements are read."""
    return generator.integers(0, ROWS, max(shape[0] // FEATURES, 1))


def ten_classes(n: int) -> tuple[int, ...]:
    return (n // 10, 10)


def learned(name: str, function: Any, shape: Any, passes: float, values: Any) -> Work:
    """Return forward and backward of a function of one float tensor and others."""

    def run(lib: Any, x: Any, *others: Any) -> Any:
        leaf = x.detach().requires_grad_()
        result = function(lib, leaf, *others)
        result.backward(result.detach())
        return leaf.grad

    return Work(f"{name} fw+bw", shape, run, passes, len(values), 1e-3, values)


def losses() -> Iterator[Work]:
    """Yield losses of classes."""

    def cross_entropy(lib: Any, x: Any, target: Any) -> Any:
        return functional(lib).cross_entropy(x, target)

    def nll_loss(lib: Any, x: Any, target: Any) -> Any:
        return functional(lib).nll_loss(x, target)

    given = (normal, labels)
    yield Work("cross_entropy", rows, cross_entropy, 1, 2, values=given)
    yield Work("cross_entropy of 10", ten_classes, cross_entropy, 1, 2, values=given)
    yield Work("nll_loss", rows, nll_loss, 0.01, 2, values=given)
    yield learned("cross_entropy", cross_entropy, rows, 3, given)
    yield learned("cross_entropy of 10", cross_entropy, ten_classes, 3, given)
    yield learned("nll_loss", nll_loss, rows, 1, given)


def indexing() -> Iterator[Work]:
    """Yield ops that read from and write to the places that an index tells."""
    whole, some, pair = (normal, row_places), (normal, places), 2
    for name, shape, dim in (("", flat, 0), (" rows", square, 1), (" columns", square, 0)):

        def gather(_: Any, x: Any, i: Any, dim: int = dim) -> Any:
            return x.gather(dim, i)

        def scatter(_: Any, x: Any, i: Any, dim: int = dim) -> Any:
            return x.scatter_add(dim, i, x)

        def written(_: Any, x: Any, i: Any, dim: int = dim) -> Any:
            return x.scatter(dim, i, 1.0)

        yield Work("gather" + name, shape, gather, 4, pair, values=whole)
        yield Work("scatter" + name, shape, written, 4, pair, values=whole)
        yield Work("scatter_add" + name, shape, scatter, 5, pair, 1e-2, whole)
        yield learned("gather" + name, lambda lib, x, i, g=gather: g(lib, x, i), shape, 8, whole)
    yield Work(
        "scatter_reduce", square, lambda lib, x, i: x.scatter_reduce(1, i, x, "amax"), 5, pair,
        values=whole,
    )  # fmt: skip
    yield Work("index rows", square, lambda lib, x, i: x[i], 2, pair, values=some)
    yield Work("index columns", square, lambda lib, x, i: x[:, i], 2, pair, values=some)
    yield Work("index", flat, lambda lib, x, i: x[i], 4, pair, values=some)
    yield Work("index pairs", square, lambda lib, x, i: x[i, i], 0.01, pair, values=some)
    yield Work("index_select", square, lambda lib, x, i: x.index_select(0, i), 2, pair, values=some)
    yield Work(
        "index_add", square, lambda lib, x, i: x.index_add(0, i, x), 4, pair, 1e-2, values=some
    )
    yield Work(
        "index_copy", square, lambda lib, x, i: x.index_copy(0, i, x[i]), 5, pair, values=some
    )

    def put(_: Any, x: Any, i: Any) -> Any:
        return x.index_put((i,), x, accumulate=True)

    yield Work("index_put", flat, put, 5, pair, 1e-2, values=some)
    yield learned("index rows", lambda lib, x, i: x[i], square, 5, some)
    yield learned("slice", lambda lib, x: x[:, 1:], square, 5, (normal,))

    def embedding(lib: Any, weight: Any, i: Any) -> Any:
        return functional(lib).embedding(i, weight)

    yield Work("embedding", flat, embedding, 2, pair, values=(table, words))
    yield learned("embedding", embedding, flat, 4, (table, words))


def ordering() -> Iterator[Work]:
    """Yield sorting and selection."""
    yield Work("sort", flat, lambda lib, x: x.sort(stable=True).values, 4)
    yield Work("sort rows", square, lambda lib, x: x.sort(1).values, 4)
    yield Work("sort columns", square, lambda lib, x: x.sort(0).values, 4)
    yield Work("argsort rows", square, lambda lib, x: x.argsort(dim=1, stable=True), 3)
    yield Work("topk", flat, lambda lib, x: x.topk(10).values, 1)
    yield Work("topk rows", square, lambda lib, x: x.topk(5, 1).values, 1)
    yield Work("topk half", square, lambda lib, x: x.topk(x.shape[1] // 2, 1).values, 2)


def scans() -> Iterator[Work]:
    """Yield running products, extremes and log-sum-exps."""
    for name, dim in (("rows", 1), ("columns", 0)):
        for op in ("cumprod", "logcumsumexp"):
            yield Work(
                f"{op} {name}",
                square,
                lambda lib, x, op=op, dim=dim: getattr(x, op)(dim),
                2,
                1,
                1e-3,
            )
        for op in ("cummax", "cummin"):
            yield Work(
                f"{op} {name}", square, lambda lib, x, op=op, dim=dim: getattr(x, op)(dim).values, 4
            )
    yield Work("var_mean rows", square, lambda lib, x: lib.var_mean(x, 1)[0], 1, tolerance=1e-3)
    yield learned("var rows", lambda lib, x: x.var(1), square, 5, (normal,))
    yield learned("norm", lambda lib, x: x.norm(), flat, 4, (normal,))


def random_numbers() -> Iterator[Work]:
    """Yield dropout; the sizes alone can be compared."""

    def dropout(lib: Any, x: Any) -> Any:
        return functional(lib).dropout(x, 0.3) * 0

    def learned_dropout(lib: Any, x: Any) -> Any:
        leaf = x.detach().requires_grad_()
        functional(lib).dropout(leaf, 0.3).backward(x)
        return leaf.grad * 0

    yield Work("dropout", flat, dropout, 4)
    yield Work("dropout fw+bw", flat, learned_dropout, 8)
