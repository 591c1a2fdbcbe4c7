"""More of the kernel suite: normalisation with weights, gradients of reductions, and selection by rank."""

from collections.abc import Callable, Iterator
from typing import Any

from .kernel_work import (
    Work,
    double,
    flat,
    functional,
    images,
    learned,
    normal,
    positive,
    rows,
    square,
    truths,
    whole,
)


def row(n: int) -> tuple[int, ...]:
    """Return the shape of a weight for :func:`rows`."""
    return rows(n)[1:]


def channels(n: int) -> tuple[int, ...]:
    """Return the shape of a weight for :func:`images`."""
    return images(n)[1:2]


def trained(function: Callable[..., Any], learns: int) -> Callable[..., Any]:
    """Return forward and backward of a function of the library and tensors, of which the first ones learn."""

    def run(lib: Any, *tensors: Any) -> Any:
        leaves = [t.detach().requires_grad_() for t in tensors[:learns]]
        result = function(lib, *leaves, *tensors[learns:])
        result.backward(result.detach())
        # Every gradient counts in the comparison.
        return lib.cat(
            [leaf.grad.reshape(-1) for leaf in leaves[1:]] + [leaves[0].grad.reshape(-1)[:100]]
        )

    return run


def norms() -> Iterator[Work]:
    """Yield normalisation with weights, in training and in evaluation."""

    def layer_norm(lib: Any, x: Any, weight: Any, bias: Any) -> Any:
        return functional(lib).layer_norm(x, (x.shape[1],), weight, bias)

    def rms_norm(lib: Any, x: Any, weight: Any) -> Any:
        return functional(lib).rms_norm(x, (x.shape[1],), weight)

    def group_norm(lib: Any, x: Any, weight: Any, bias: Any) -> Any:
        return functional(lib).group_norm(x, 2, weight, bias)

    def instance_norm(lib: Any, x: Any, weight: Any, bias: Any) -> Any:
        return functional(lib).instance_norm(x, weight=weight, bias=bias)

    def batch_norm(lib: Any, x: Any, weight: Any, bias: Any, mean: Any, variance: Any) -> Any:
        return functional(lib).batch_norm(x, mean, variance, weight, bias, training=True)

    def evaluated(lib: Any, x: Any, weight: Any, bias: Any, mean: Any, variance: Any) -> Any:
        return functional(lib).batch_norm(x, mean, variance, weight, bias)

    affine, statistics = (normal, positive, normal), (normal, positive)
    for name, function, shape, weight, values in (
        ("rms_norm weight", rms_norm, rows, row, affine[:2]),
        ("layer_norm affine", layer_norm, rows, row, affine),
        ("group_norm affine", group_norm, images, channels, affine),
        ("instance_norm affine", instance_norm, images, channels, affine),
        ("batch_norm running", batch_norm, images, channels, affine + statistics),
        ("batch_norm eval", evaluated, images, channels, affine + statistics),
    ):
        count = len(values) - 1
        options: dict[str, Any] = {"values": values, "others": (weight,) * count}
        if name != "layer_norm affine":  # that one is among the layers
            yield Work(name, shape, function, 2, 1, 1e-3, **options)
        learns = min(count, 2) + 1
        yield Work(f"{name} fw+bw", shape, trained(function, learns), 5, 1, 1e-2, **options)


def reduced_gradients() -> Iterator[Work]:
    """Yield reductions and scans with their derivatives."""
    yield learned("normalize", lambda lib, x: functional(lib).normalize(x), rows, 5)
    yield learned("std rows", lambda lib, x: x.std(1), square, 4)
    yield learned("logsumexp rows", lambda lib, x: x.logsumexp(1), square, 4)
    yield learned("max rows", lambda lib, x: x.max(1).values, square, 3)
    yield learned("sum rows", lambda lib, x: x.sum(1), square, 2)
    yield learned("mean", lambda lib, x: x.mean(), flat, 2)
    yield learned("cumsum rows", lambda lib, x: x.cumsum(1), square, 4)


def selections() -> Iterator[Work]:
    """Yield counts, sums and extremes of other sorts, and selection by rank."""
    yield Work("any rows", square, lambda lib, x: x.any(1), 1)
    yield Work("count_nonzero", flat, lambda lib, x: lib.count_nonzero(x), 1)
    yield Work("nansum", flat, lambda lib, x: x.nansum(), 1, tolerance=1)
    yield Work("nansum rows", square, lambda lib, x: x.nansum(1), 1, tolerance=1e-2)
    yield Work("nanmean", flat, lambda lib, x: x.nanmean(), 1)
    yield Work("aminmax", flat, lambda lib, x: x.aminmax().max, 1)
    yield Work("min columns", square, lambda lib, x: x.min(0).values, 1)
    yield Work("std_mean rows", square, lambda lib, x: lib.std_mean(x, 1)[0], 1, tolerance=1e-3)
    yield Work("logsumexp columns", square, lambda lib, x: x.logsumexp(0), 1)
    yield Work("median", flat, lambda lib, x: x.median(), 1)
    yield Work("median rows", square, lambda lib, x: x.median(1).values, 1)
    yield Work("kthvalue rows", square, lambda lib, x: x.kthvalue(3, 1).values, 1)
    yield Work("quantile rows", square, lambda lib, x: x.quantile(0.3, 1), 1)
    yield Work("nanmedian rows", square, lambda lib, x: x.nanmedian(1).values, 1)
    yield Work("median columns", square, lambda lib, x: x.median(0).values, 1)
    yield Work("kthvalue int64", square, lambda lib, x: x.kthvalue(3, 1).values, 2, values=whole)
    yield Work("nanquantile rows", square, lambda lib, x: x.nanquantile(0.3, 1), 1)
    yield Work("mode rows", square, lambda lib, x: x.mode(1).values, 2, values=whole)
    yield Work("msort", square, lambda lib, x: x.msort(), 2)
    yield Work("sort int64 rows", square, lambda lib, x: x.sort(1).values, 6, values=whole)
    yield Work("sort float64 rows", square, lambda lib, x: x.sort(1).values, 6, values=double)
    yield Work("topk int64 rows", square, lambda lib, x: x.topk(5, 1).values, 2, values=whole)
    yield Work("unique", flat, lambda lib, x: lib.unique(x), 4, values=whole)
    yield Work("count_nonzero rows", square, lambda lib, x: lib.count_nonzero(x, dim=1), 1)
    yield Work("sum bool rows", square, lambda lib, x: x.sum(1), 0.25, values=truths)
    yield Work("nanmean rows", square, lambda lib, x: x.nanmean(1), 1)
    yield Work("aminmax rows", square, lambda lib, x: x.aminmax(dim=1).max, 1)
    yield Work("argmax int64", flat, lambda lib, x: x.argmax(), 2, values=whole)


def searches() -> Iterator[Work]:
    """Yield what finds places in sorted numbers, and counts of values."""

    def bounds(lib: Any, x: Any) -> Any:
        return lib.arange(100, dtype=x.dtype, device=x.device) * 0.04 - 2

    yield Work("searchsorted", flat, lambda lib, x: lib.searchsorted(bounds(lib, x), x), 3)
    yield Work("bucketize", flat, lambda lib, x: lib.bucketize(x, bounds(lib, x)), 3)
    yield Work("histc", flat, lambda lib, x: lib.histc(x, 50, -3, 3), 1)
    yield Work("bincount", flat, lambda lib, x: lib.bincount(x), 2, values=whole)
    yield Work("diff", flat, lambda lib, x: lib.diff(x), 2)
    yield Work("isin", flat, lambda lib, x: lib.isin(x, x[:10]), 2.25, values=whole)
