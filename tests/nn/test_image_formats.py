"""Ops that keep the memory format of images: strides as torch's, values and gradients those of row by row."""

import itertools

import pytest

import tensorplug as tp
from tensorplug.core.dispatch import op_registry

tp.nn  # noqa: B018  # its ops

#: Calls by the op's name, each of an image with four channels.
CALLS = {
    "alpha_dropout": [lambda f, x: f.alpha_dropout(x, 0.5, True)],
    "constant_pad_nd": [],  # by pad
    "channel_shuffle": [lambda f, x: f.channel_shuffle(x, 2)],
    "dropout": [lambda f, x: f.dropout(x, 0.5), lambda f, x: f.dropout(x, 0.5, False)],
    "dropout1d": [],
    "dropout2d": [lambda f, x: f.dropout2d(x, 0.5)],
    "dropout3d": [lambda f, x: f.dropout3d(x, 0.5)],
    "feature_alpha_dropout": [lambda f, x: f.feature_alpha_dropout(x, 0.5, True)],
    "group_norm": [lambda f, x: f.group_norm(x, 2)],
    "interpolate": [
        lambda f, x: f.interpolate(x, scale_factor=2),
        lambda f, x: f.interpolate(x, scale_factor=2, mode="nearest-exact"),
        lambda f, x: f.interpolate(x, scale_factor=2, mode="bilinear"),
        lambda f, x: f.interpolate(x, size=(3, 5), mode="bicubic"),
        lambda f, x: f.interpolate(x, scale_factor=2, mode="trilinear"),
    ],
    "local_response_norm": [lambda f, x: f.local_response_norm(x, 2)],
    "max_unpool2d": [
        lambda f, x: f.max_unpool2d(x, x.flatten(2).argsort(dim=2, stable=True).view(x.shape), 2)
    ],
    "pad": [
        lambda f, x: f.pad(x, (1, 2, 0, 1), value=3.0),
        lambda f, x: f.pad(x, (-1, 1)),
        lambda f, x: f.pad(x, (1,) * (2 * x.ndim - 4), mode="reflect"),
        lambda f, x: f.pad(x, (1,) * (2 * x.ndim - 4), mode="replicate"),
    ],
    "pixel_shuffle": [lambda f, x: f.pixel_shuffle(x, 2)],
    "pixel_unshuffle": [lambda f, x: f.pixel_unshuffle(x, 2)],
    "rms_norm": [lambda f, x: f.rms_norm(x, x.shape[-1:])],
}


def test_there_is_a_call_of_every_such_op():
    assert {op.name for op in op_registry.all_ops() if op.keeps_format} == set(CALLS)


def image(lib, shape, order, dtype):
    """Return an image: of whole numbers, whose sums are exact."""
    count = tp.Size(shape).numel()
    rows = (lib.arange(count) % 7 + 1).to(getattr(lib, dtype)).reshape(shape)
    if order == "rows":
        return rows
    last = rows.contiguous(
        memory_format=lib.channels_last if len(shape) == 4 else lib.channels_last_3d
    )
    return last if order == "last" else last[..., : shape[3] - 2]


def steps(tensor):
    return [s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1]


CASES = [
    pytest.param(call, shape, id=f"{name}{number}-{len(shape)}d")
    for name, calls in CALLS.items()
    for (number, call), shape in itertools.product(
        enumerate(calls), ((2, 4, 4, 6), (2, 4, 4, 6, 4), (1, 4, 4, 6))
    )
    if not (
        name in ("pixel_shuffle", "pixel_unshuffle", "dropout2d", "max_unpool2d")
        and len(shape) == 5
    )
    and not (name == "dropout3d" and len(shape) == 4)
    and not (name == "interpolate" and number in (2, 3) and len(shape) == 5)
    and not (name == "interpolate" and number == 4 and len(shape) == 4)
]


@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize(("call", "shape"), CASES)
def test_format_is_kept(call, shape, recorded):
    found = []
    for order in ("rows", "last", "last"):  # the third is of a call that was cached
        x = image(tp, shape, order, "float64").requires_grad_(recorded)
        tp.manual_seed(3)
        result = call(tp.nn.functional, x)
        gradient = tp.autograd.grad((result * result).sum(), x)[0] if recorded else x
        found.append((result.detach(), gradient.detach()))
    rows, *others = found
    last = tp.channels_last if len(shape) == 4 else tp.channels_last_3d
    assert rows[0].is_contiguous()
    for result, gradient in others:
        assert result.is_contiguous(memory_format=last)
        tp.testing.assert_close(result, rows[0], rtol=1e-12, atol=1e-12)
        tp.testing.assert_close(gradient, rows[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("order", ["rows", "last", "gaps"])
@pytest.mark.parametrize(("call", "shape"), CASES)
def test_strides_are_torch_s(call, shape, order):
    torch = pytest.importorskip("torch", reason="torch is the reference of this test")
    if order == "gaps" and len(shape) == 5:
        order = "last"
    results = []
    for lib in (tp, torch):
        x = image(lib, shape, order, "float32")
        results.append(call(lib.nn.functional, x))
    assert steps(results[0]) == steps(results[1])


def layer_calls(lib, x):
    """Return calls of layers that follow the memory format of their images, by name."""
    F = lib.nn.functional
    count = x.ndim - 2
    weight = lib.ones(5, 4, *[3] * count)
    of_rank = {
        "conv": lambda f: f(x, weight, padding=1),
        "conv_transpose": lambda f: f(x, weight.transpose(0, 1), padding=1),
        "max_pool": lambda f: f(x, 2),
    }
    if count == 2:  # torch's in three dimensions are row by row
        of_rank |= {
            "avg_pool": lambda f: f(x, 2),
            "adaptive_avg_pool": lambda f: f(x, 3),
            "adaptive_max_pool": lambda f: f(x, 3),
            "lp_pool": lambda f: f(x, 2, 2),
        }
    calls = {
        f"{name}{count}d": lambda call=call, name=name: call(getattr(F, f"{name}{count}d"))
        for name, call in of_rank.items()
    }
    numbers = lib.ones(4)
    calls["batch_norm"] = lambda: F.batch_norm(x, None, None, training=True)
    calls["batch_norm of running statistics"] = lambda: F.batch_norm(x, numbers, numbers)
    return calls


@pytest.mark.parametrize("shape", [(2, 4, 4, 6), (2, 4, 4, 6, 4)], ids=["4d", "5d"])
@pytest.mark.parametrize("dim", range(4))
def test_layers_take_images_with_gaps_as_torch_does(shape, dim):
    """A slice of images that lie channels last is still taken for such."""
    torch = pytest.importorskip("torch", reason="torch is the reference of this test")
    wide = tuple([2 * n if d == dim else n for d, n in enumerate(shape)])
    places = (slice(None),) * dim + (slice(None, None, 2),)
    ours, theirs = [
        layer_calls(lib, image(lib, wide, "last", "float32")[places]) for lib in (tp, torch)
    ]
    for name, call in ours.items():
        result, expected = call(), theirs[name]()
        assert steps(result) == steps(expected), name
        rows = layer_calls(tp, image(tp, wide, "last", "float32")[places].contiguous())[name]()
        tp.testing.assert_close(result, rows, msg=name)


def test_by_name_and_into_out():
    x = image(tp, (2, 4, 4, 6), "last", "float32")
    F = tp.nn.functional
    assert F.pad(input=x, pad=(1, 1)).is_contiguous(memory_format=tp.channels_last)
    assert tp.vmap(lambda image: F.pad(image, (1, 1)))(x[None]).shape == (1, 2, 4, 4, 8)


def test_of_no_elements_every_format_fits():
    x = tp.empty(0, 4, 4, 6)
    assert x.is_contiguous()
    assert x.is_contiguous(memory_format=tp.channels_last)
