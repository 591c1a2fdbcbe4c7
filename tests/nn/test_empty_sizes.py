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
    **{
        f"FractionalMaxPool{n}d to {size}": (
            (2, 3, *(4, 5, 6)[:n]),
            lambda L, x, n=n, size=size: getattr(L.nn, f"FractionalMaxPool{n}d")(2, size)(x),
        )
        for n, size in ((2, 2), (3, 2), (2, (0, 2)), (3, (2, 0, 2)))
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


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("batch", "outputs"), list(itertools.product((0, 2), (0, 4))))
def test_gradients_of_convolutions_of_nothing(n, transposed, batch, outputs):
    """As torch's, where it gives any; without input channels see docs/deviations.md."""
    inputs, found = 4, {}
    for L in (tp, torch):
        call = getattr(L.nn.functional, f"conv{'_transpose' if transposed else ''}{n}d")
        x = L.ones(batch, inputs, *(4, 5, 6)[:n], requires_grad=True)
        channels = (inputs, outputs) if transposed else (outputs, inputs)
        weight = L.ones(*channels, *[2] * n, requires_grad=True)
        bias = L.ones(outputs, requires_grad=True)
        try:
            call(x, weight, bias).sum().backward()
            found[L] = [(tuple(t.grad.shape), t.grad.tolist()) for t in (x, weight, bias)]
        except (RuntimeError, IndexError):
            found[L] = RuntimeError
    assert found[torch] in (RuntimeError, found[tp])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("batch", [0, 2])
def test_convolutions_without_channels_are_their_bias(n, batch):
    x = tp.ones(batch, 0, *(4, 5, 6)[:n], requires_grad=True)
    weight = tp.ones(3, 0, *[2] * n, requires_grad=True)
    bias = tp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    result = getattr(tp.nn.functional, f"conv{n}d")(x, weight, bias)
    assert result.shape == (batch, 3, *(3, 4, 5)[:n])
    assert (result == bias.reshape(3, *[1] * n)).all()
    result.sum().backward()
    assert x.grad.shape == x.shape
    assert weight.grad.shape == weight.shape
    assert bias.grad.tolist() == [result[:, 0].numel()] * 3


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("length", "kernel", "stride", "padding"), [(1, 2, 1, 1), (2, 3, 1, 2), (2, 2, 2, 2)]
)
def test_transposed_convolutions_may_leave_nothing(rank, length, kernel, stride, padding):
    x = tp.rand(2, 4, *[length] * rank, requires_grad=True)
    weight = tp.rand(4, 3, *[kernel] * rank, requires_grad=True)
    bias = tp.rand(3, requires_grad=True)
    function = getattr(tp.nn.functional, f"conv_transpose{rank}d")
    result = function(x, weight, bias, stride=stride, padding=padding)
    assert result.shape == (2, 3, *[0] * rank)
    result.sum().backward()
    for tensor in (x, weight, bias):
        assert tensor.grad.shape == tensor.shape
        assert not tensor.grad.any()
    with pytest.raises(RuntimeError, match="too small"):
        function(x, weight, bias, stride=stride, padding=padding + 1)
