"""Operands of different floating-point dtypes: the result's dtype, and what is refused, is as in torch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tensorplug as tp

torch: Any = pytest.importorskip("torch", reason="torch is the reference of these tests")

Call = Callable[..., Any]

#: What is called, and the shapes of its tensors.
LOSSES: dict[str, tuple[Call, list[tuple[int, ...]]]] = {
    "binary_cross_entropy": (
        lambda f, x, y, w: f.binary_cross_entropy(x, y, w),
        [(2, 3), (2, 3), (3,)],
    ),
    "binary_cross_entropy_with_logits": (
        lambda f, x, y, w, p: f.binary_cross_entropy_with_logits(x, y, w, pos_weight=p),
        [(2, 3), (2, 3), (3,), (3,)],
    ),
    **{
        name: (lambda f, x, y, name=name: getattr(f, name)(x, y), [(2, 3), (2, 3)])
        for name in (
            "mse_loss",
            "l1_loss",
            "smooth_l1_loss",
            "huber_loss",
            "poisson_nll_loss",
            "soft_margin_loss",
            "hinge_embedding_loss",
            "multilabel_soft_margin_loss",
            "pairwise_distance",
        )
    },
    "kl_div": (lambda f, x, y: f.kl_div(x, y, reduction="sum"), [(2, 3), (2, 3)]),
    "margin_ranking_loss": (
        lambda f, x, y, z: f.margin_ranking_loss(x, y, z),
        [(2,), (2,), (2,)],
    ),
    "cosine_embedding_loss": (
        lambda f, x, y, z: f.cosine_embedding_loss(x, y, z),
        [(2, 3), (2, 3), (2,)],
    ),
    "triplet_margin_loss": (
        lambda f, x, y, z: f.triplet_margin_loss(x, y, z),
        [(2, 3), (2, 3), (2, 3)],
    ),
}
LAYERS: dict[str, tuple[Call, list[tuple[int, ...]]]] = {
    "linear": (lambda f, x, w, b: f.linear(x, w, b), [(2, 3), (4, 3), (4,)]),
    "linear of a vector": (lambda f, x, w, b: f.linear(x, w, b), [(3,), (4, 3), (4,)]),
    "bilinear": (
        lambda f, x, y, w, b: f.bilinear(x, y, w, b),
        [(2, 3), (2, 3), (4, 3, 3), (4,)],
    ),
    "layer_norm": (lambda f, x, w, b: f.layer_norm(x, (3,), w, b), [(2, 3), (3,), (3,)]),
    "layer_norm without bias": (lambda f, x, w: f.layer_norm(x, (3,), w), [(2, 3), (3,)]),
    "group_norm": (lambda f, x, w, b: f.group_norm(x, 2, w, b), [(2, 4), (4,), (4,)]),
    "instance_norm": (
        lambda f, x, w, b: f.instance_norm(x, weight=w, bias=b),
        [(2, 4, 3), (4,), (4,)],
    ),
    "batch_norm": (
        lambda f, x, m, v, w, b: f.batch_norm(x, m, v, w, b),
        [(2, 4), (4,), (4,), (4,), (4,)],
    ),
    "batch_norm of statistics": (lambda f, x, m, v: f.batch_norm(x, m, v), [(2, 4), (4,), (4,)]),
    "batch_norm in training": (
        lambda f, x, m, v, w, b: f.batch_norm(x, m, v, w, b, training=True),
        [(2, 4), (4,), (4,), (4,), (4,)],
    ),
}
PRODUCTS: dict[str, tuple[Call, list[tuple[int, ...]]]] = {
    "cross": (lambda t, x, y: t.cross(x, y, dim=0), [(3, 2), (3, 2)]),
    "linalg.cross": (lambda t, x, y: t.linalg.cross(x, y), [(2, 3), (2, 3)]),
    "linalg.vecdot": (lambda t, x, y: t.linalg.vecdot(x, y), [(2, 3), (2, 3)]),
    "ormqr": (lambda t, x, y, z: t.ormqr(x, y, z), [(2, 2), (2,), (2, 2)]),
    "addmm": (lambda t, x, y, z: t.addmm(x, y, z), [(2, 2), (2, 2), (2, 2)]),
    "addmv": (lambda t, x, y, z: t.addmv(x, y, z), [(2,), (2, 2), (2,)]),
    "baddbmm": (lambda t, x, y, z: t.baddbmm(x, y, z), [(1, 2, 2), (1, 2, 2), (1, 2, 2)]),
    "dist": (lambda t, x, y: t.dist(x, y), [(2, 2), (2, 2)]),
}
PAIRS = [
    ("float32", "float64"),
    ("float64", "float32"),
    ("float32", "float16"),
    ("float16", "float32"),
    ("bfloat16", "float32"),
    ("float16", "bfloat16"),
]
#: Losses that come to the wider dtype here, see docs/deviations.md.
WIDER = {"binary_cross_entropy_with_logits", "huber_loss", "soft_margin_loss"}


def outcome(module: Any, space: Any, call: Call, shapes: list[Any], dtypes: tuple[str, ...]) -> str:
    """Return the dtype of a result, or that the call was refused."""
    tensors = [
        module.full(shape, 0.5, dtype=getattr(module, dtype))
        for shape, dtype in zip(shapes, dtypes, strict=True)
    ]
    try:
        found = call(space, *tensors)
    except RuntimeError:
        return "refused"
    return str(found.dtype).rpartition(".")[2]


def mixtures(count: int) -> Iterator[tuple[str, ...]]:
    """Yield all ways to give `count` tensors one dtype or the other of a pair, but for one of all."""
    for pair in PAIRS:
        for chosen in itertools.product(pair, repeat=count):
            if len(set(chosen)) == 2:
                yield chosen


def differences(call: Call, shapes: list[Any], space: Callable[[Any], Any]) -> dict[Any, Any]:
    """Return where the two libraries do not agree."""
    found = {}
    for dtypes in dict.fromkeys(mixtures(len(shapes))):
        ours, theirs = (
            outcome(module, space(module), call, shapes, dtypes) for module in (tp, torch)
        )
        if ours != theirs:
            found[dtypes] = ours, theirs
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str) -> None:
    found = differences(*LOSSES[name], lambda module: module.nn.functional)
    if name in WIDER:
        for dtypes, (ours, theirs) in found.items():
            assert ours in ("float32", "float64"), dtypes
            assert theirs != "refused", dtypes
    else:
        assert not found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    assert not differences(*LAYERS[name], lambda module: module.nn.functional)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    assert not differences(*PRODUCTS[name], lambda module: module)


def test_half_precision_beside_a_wider_operand_is_not_rounded() -> None:
    x, y = tp.full((4,), 0.1, dtype=tp.float16), tp.full((4,), 1 / 3)
    expected = ((x.float() - y) ** 2).mean()
    tp.testing.assert_close(tp.nn.functional.mse_loss(x, y), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers_refuse_other_dtypes(kind: str) -> None:
    layer = getattr(tp.nn, kind)(2, 3)
    with pytest.raises(ValueError, match="does not match weight dtype"):
        layer(tp.ones(1, 2, 2, dtype=tp.float64))
