"""Layers given inputs with a size of 0, or sizes of 1, do as torch's: the result's shape, or an error."""

import itertools

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference of these tests")

#: By name, the sizes of an input, and a call.
CALLS = {
    **{
        f"{kind}Pad{n}d": (
            (2, 3, *(4, 5, 6)[:n]),
            lambda L, x, name=f"{kind}Pad{n}d": getattr(L.nn, name)(1)(x),
        )
        for kind, n in itertools.product(
            ("Reflection", "Replication", "Circular", "Zero"), (1, 2, 3)
        )
    },
    **{
        f"{name}{n}d": (
            (2, 4, *(4, 5, 6)[:n]),
            lambda L, x, name=f"{name}{n}d", options=options: getattr(L.nn, name)(*options)(x),
        )
        for (name, options), n in itertools.product(
            {
                "MaxPool": (2,),
                "AvgPool": (2,),
                "LPPool": (2, 2),
                "AdaptiveAvgPool": (2,),
                "AdaptiveMaxPool": (2,),
                "BatchNorm": (4,),
                "InstanceNorm": (4,),
                "Conv": (4, 2, 2),
                "ConvTranspose": (4, 2, 2),
            }.items(),
            (1, 2, 3),
        )
    },
    "GroupNorm": ((2, 4, 5), lambda L, x: L.nn.GroupNorm(2, 4)(x)),
    "GroupNorm of channels": ((2, 4), lambda L, x: L.nn.GroupNorm(4, 4)(x)),
    "LayerNorm": ((2, 4, 5), lambda L, x: L.nn.LayerNorm(x.shape[1:])(x)),
    "LocalResponseNorm": ((2, 4, 5), lambda L, x: L.nn.LocalResponseNorm(2)(x)),
    "Unfold": ((2, 4, 5, 6), lambda L, x: L.nn.Unfold(2)(x)),
    "Fold": ((2, 8, 9), lambda L, x: L.nn.Fold((4, 4), 2)(x)),
    "PixelShuffle": ((2, 4, 5, 6), lambda L, x: L.nn.PixelShuffle(2)(x)),
    "Upsample": ((2, 4, 5, 6), lambda L, x: L.nn.Upsample(scale_factor=2)(x)),
    "Linear": ((2, 4), lambda L, x: L.nn.Linear(4, 3)(x)),
    "Bilinear": ((2, 4), lambda L, x: L.nn.Bilinear(4, 4, 3)(x, x)),
    "Softmax": ((2, 4), lambda L, x: L.nn.Softmax(1)(x)),
    "GLU": ((2, 4), lambda L, x: L.nn.GLU(1)(x)),
    "LSTM": ((3, 2, 4), lambda L, x: L.nn.LSTM(4, 3)(x)[0]),
    "TransformerEncoderLayer": ((3, 2, 4), lambda L, x: L.nn.TransformerEncoderLayer(4, 2, 8)(x)),
    "weight of no filters": (
        (2, 4, 5, 6),
        lambda L, x: L.nn.functional.conv2d(x, L.ones(0, 4, 2, 2)),
    ),
    "kernel of no size": (
        (2, 4, 5, 6),
        lambda L, x: L.nn.functional.conv2d(x, L.ones(3, 4, 0, 2)),
    ),
}

#: Refused here, where torch takes fewer channels than there are statistics, or fails later.
OTHERS = {
    ("AdaptiveAvgPool3d", (0, 4, 5, 6)),
    *[(f"AdaptiveMaxPool{n}d", (0, *(4, 5, 6)[:n])) for n in (1, 2, 3)],
    *[(f"BatchNorm{n}d", (2, 0, *(4, 5, 6)[:n])) for n in (1, 2, 3)],
    ("kernel of no size", (0, 4, 5, 6)),
}


def outcome(L, call, shape):
    try:
        return tuple(call(L, L.ones(shape)).shape)
    except (RuntimeError, ValueError, IndexError, AssertionError) as error:
        return type(error).__name__


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_as_torch(name):
    shape, call = CALLS[name]
    emptied = [(*shape[:n], 0, *shape[n + 1 :]) for n in range(len(shape))]
    for size in (shape, *emptied, shape[1:], (0, *shape[2:]), (1, shape[1], *[1] * len(shape[2:]))):
        if (name, size) not in OTHERS:
            assert outcome(tp, call, size) == outcome(torch, call, size), size
