"""Resampling, distances, losses and bags: values and gradients against those of the kernels below."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

pytest.importorskip("tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built")

F = tp.nn.functional
Case = tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]


def resampled() -> Iterator[tuple[str, Case]]:
    sizes = {1: (7,), 2: (5, 7), 3: (2, 5, 4)}
    modes = [("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2)]
    for (mode, count), align, scale in itertools.product(modes, (False, True), (2.0, 0.6, 1.0)):
        options = {"scale_factor": scale, "mode": mode, "align_corners": align}
        yield f"{mode} {align} {scale}", (_with(F.interpolate, options), ((2, 3, *sizes[count]),))
    for mode, count, scale in itertools.product(
        ("nearest", "nearest-exact", "area"), (1, 2, 3), (2.0, 0.7, 1.0)
    ):
        options = {"scale_factor": scale, "mode": mode}
        yield f"{mode} {count} {scale}", (_with(F.interpolate, options), ((2, 3, *sizes[count]),))
    for mode, size in itertools.product(("bilinear", "bicubic"), ((2, 3), (9, 3), (1, 1))):
        options = {"size": size, "mode": mode, "antialias": True}
        yield f"{mode} antialias {size}", (_with(F.interpolate, options), ((2, 2, 8, 7),))


def sampled() -> Iterator[tuple[str, Case]]:
    for dims in (2, 3):
        for mode, padding, align in itertools.product(
            ("bilinear", "nearest", "bicubic")[: 5 - dims],
            ("zeros", "border", "reflection"),
            (False, True),
        ):
            options = {"mode": mode, "padding_mode": padding, "align_corners": align}
            shapes = ((2, 3, *(5, 7, 4)[:dims]), (2, 40, *(5, 2)[: dims - 1], dims))
            yield f"sample {dims} {mode} {padding} {align}", (_with(F.grid_sample, options), shapes)


def distances() -> Iterator[tuple[str, Case]]:
    for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, math.inf):
        options = {"p": p, "compute_mode": "donot_use_mm_for_euclid_dist"}
        yield f"cdist {p}", (_with(tp.cdist, options), ((2, 1, 3, 4), (5, 70, 4)))
        yield f"pdist {p}", (_with(F.pdist, {"p": p}), ((70, 3),))
        yield f"pdist of one {p}", (_with(F.pdist, {"p": p}), ((1, 8),))


def losses() -> Iterator[tuple[str, Case]]:
    classes = tp.arange(6) % 5
    labels = tp.tensor(
        [[0, 3, -1, 2, 1], [1, 1, 0, -1, 0], [-1] * 5, [4, 3, 2, 1, 0], [2, -1, 0, 0, 0]]
    )
    targets = tp.tensor([[1, 2, 2], [3, 3, 3], [1, 2, 3], [2, 1, 2]])
    weight = tp.tensor([0.5, 1.0, 2.0, 1.0, 0.1], dtype=tp.float64)
    for reduction in ("mean", "sum", "none"):
        more = {"reduction": reduction}
        for p in (1, 2):
            yield (
                f"multi_margin {p} {reduction}",
                (
                    lambda x, p=p, more=more: F.multi_margin_loss(
                        x, classes, p, 0.7, weight.to(x.dtype), **more
                    ),
                    ((6, 5),),
                ),
            )
        yield (
            f"multilabel_margin {reduction}",
            (lambda x, more=more: F.multilabel_margin_loss(x, labels, **more), ((5, 5),)),
        )
        for infinite in (False, True):
            options = {"zero_infinity": infinite, **more}
            yield (
                f"ctc {infinite} {reduction}",
                (
                    lambda x, options=options: F.ctc_loss(
                        x.log_softmax(2), targets, [7, 5, 3, 0], [3, 3, 1, 0], **options
                    ),
                    ((7, 4, 5),),
                ),
            )
        for bound in (0.5, 2.0, math.inf):
            shapes = ((3, 40), (3, 40))
            yield (
                f"smooth_l1 {bound} {reduction}",
                (_with(F.smooth_l1_loss, {"beta": bound, **more}), shapes),
            )
            yield (
                f"huber {bound} {reduction}",
                (_with(F.huber_loss, {"delta": bound, **more}), shapes),
            )


def bags_and_norms() -> Iterator[tuple[str, Case]]:
    at, rows = tp.tensor([0, 5, 2, 2, 1, 0, 3]), tp.tensor([[0, 1, 2], [3, 2, 2]])
    for mode, padding in itertools.product(("sum", "mean", "max"), (None, 2)):
        options = {"mode": mode, "padding_idx": padding}
        for last, starts in ((False, [0, 3, 3, 5]), (True, [0, 2, 6])):
            more = {"include_last_offset": last, **options}
            offsets = tp.tensor(starts)
            yield (
                f"bag {mode} {padding} {last}",
                (lambda w, o=offsets, more=more: F.embedding_bag(at, w, o, **more), ((6, 5),)),
            )
        yield (
            f"bag {mode} {padding} rows",
            (lambda w, options=options: F.embedding_bag(rows, w, **options), ((6, 5),)),
        )
    for frequency in (False, True):
        yield (
            f"bag factors {frequency}",
            (
                lambda w, f, frequency=frequency: F.embedding_bag(
                    at,
                    w,
                    tp.tensor([0, 4]),
                    mode="sum",
                    per_sample_weights=f,
                    scale_grad_by_freq=frequency,
                ),
                ((6, 5), (7,)),
            ),
        )
    yield "prelu", (F.prelu, ((3, 4, 5), (4,)))
    yield "prelu of one", (F.prelu, ((3, 4, 5), (1,)))
    for rows_, columns in ((70, 5), (3, 16), (33, 1)):
        shapes = ((rows_, columns), (columns,), (columns,))
        yield (
            f"layer_norm {columns}",
            (lambda x, w, b: F.layer_norm(x, w.shape, w, b), shapes),
        )
        yield f"layer_norm alone {columns}", (lambda x: F.layer_norm(x, x.shape[1:]), shapes[:1])
    for size, shape in ((5, (2, 7, 70)), (2, (1, 4, 3, 3)), (9, (3, 2, 5)), (1, (2, 3, 4))):
        options = {"size": size, "alpha": 0.5, "k": 2.0}
        yield f"local_response {size}", (_with(F.local_response_norm, options), (shape,))
    for name, factor, shape in (
        ("pixel_shuffle", 2, (2, 8, 3, 5)),
        ("pixel_unshuffle", 3, (2, 6, 9)),
        ("channel_shuffle", 3, (2, 6, 2, 5)),
    ):
        yield name, (lambda x, name=name, factor=factor: getattr(F, name)(x, factor), (shape,))
    for groups in (1, 2, 6):
        yield (
            f"group_norm {groups}",
            (
                lambda x, w, b, groups=groups: F.group_norm(x, groups, w, b),
                ((11, 6, 2), (6,), (6,)),
            ),
        )


def _with(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    return lambda *tensors: function(*tensors, **options)


CASES = dict(itertools.chain(resampled(), sampled(), distances(), losses(), bags_and_norms()))


def values_and_gradients(call: Callable[..., Any], arrays: list[Any], strided: bool) -> list[Any]:
    """Return the result and the gradients of all arguments."""
    leaves = [tp.from_numpy(array.copy()).requires_grad_() for array in arrays]
    given = leaves
    if strided:  # the same numbers in another order of memory
        given = [
            t.transpose(0, -1).contiguous().transpose(0, -1)
            if t.ndim > 1
            else t.repeat_interleave(2)[::2]
            for t in leaves
        ]
    result = call(*given)
    weight = tp.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).reshape(result.shape)
    grads = tp.autograd.grad(result, leaves, weight, allow_unused=True)
    return [
        result.detach(),
        *[tp.zeros_like(x) if g is None else g for g, x in zip(grads, leaves, strict=True)],
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_as_below(name: str, dtype: Any) -> None:
    call, shapes = CASES[name]
    rng = np.random.default_rng(len(name))
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    rough = 2e-4 if dtype is np.float32 else 1e-10
    with tp.prefer("cpu_numpy"):
        below = values_and_gradients(call, arrays, False)
    for strided in (False, True):
        ours = values_and_gradients(call, arrays, strided)
        for a, b in zip(ours, below, strict=True):
            assert a.dtype is b.dtype
            np.testing.assert_allclose(a.numpy(), b.numpy(), rough, rough)


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_number_stays_so(name: str) -> None:
    call, shapes = CASES[name]
    rng = np.random.default_rng(len(name))
    arrays = [rng.standard_normal(shape) for shape in shapes]
    arrays[0].reshape(-1)[[0, 3]] = np.nan, np.inf
    tensors = [tp.from_numpy(array) for array in arrays]
    ours = call(*tensors)
    with tp.prefer("cpu_numpy"):
        below = call(*tensors)
    np.testing.assert_allclose(ours.numpy(), below.numpy(), 1e-10, 1e-10)


def test_second_derivatives() -> None:
    x = tp.randn(3, 2, dtype=tp.float64, requires_grad=True)
    image = tp.randn(1, 1, 3, 3, dtype=tp.float64, requires_grad=True)
    grid = (tp.rand(1, 2, 2, 2, dtype=tp.float64) * 0.2 + 0.1).requires_grad_()
    assert tp.autograd.gradgradcheck(lambda x: F.pdist(x, 3.0), (x,))
    assert tp.autograd.gradgradcheck(
        lambda *t: F.grid_sample(*t, align_corners=False), (image, grid)
    )
    assert tp.autograd.gradgradcheck(
        lambda t: F.interpolate(t, 5, mode="bicubic").square(), (image,)
    )


def test_what_does_not_exist_is_refused() -> None:
    x = tp.zeros(2, 3)
    with pytest.raises(RuntimeError, match="out of range of 3 classes"):
        F.multi_margin_loss(x, tp.tensor([0, 3]))
    with pytest.raises(RuntimeError, match="out of range of 3 classes"):
        F.multilabel_margin_loss(x, tp.tensor([[0, 3, -1], [0, 1, 2]]))
    with pytest.raises(RuntimeError, match="index out of range in self: 2"):
        F.embedding_bag(tp.tensor([[0, 2]]), x)
    with pytest.raises(IndexError, match="index out of range in self: 2"):
        F.embedding(tp.tensor([0, 2]), x, max_norm=1.0)
    with pytest.raises(RuntimeError, match="label 5 is out of range of 3 classes"):
        F.ctc_loss(tp.zeros(4, 1, 3), tp.tensor([[1, 5]]), [4], [2])


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, math.inf])
def test_norms_of_rows_are_bounded(norm_type: float) -> None:
    given = np.random.default_rng(0).standard_normal((5, 4))
    found = []
    for name in ("cpu_cython", "cpu_numpy"):
        for lay_out in (lambda t: t, lambda t: t.T.contiguous().T):
            table = lay_out(tp.from_numpy(given.copy()))
            with tp.prefer(name):
                F.embedding(tp.tensor([0, 3, 3]), table, max_norm=0.5, norm_type=norm_type)
            found.append(table.numpy())
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], 1e-12)
    assert (found[0][[1, 2, 4]] == given[[1, 2, 4]]).all()
