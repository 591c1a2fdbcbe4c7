"""Padding, resampling, sampling along a grid, blocks: values and gradients against torch's."""

import itertools

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F


def randn(*shape, grad=True):
    import torch

    return torch.randn(*shape, dtype=torch.float64, requires_grad=grad)


@pytest.mark.parametrize("value", [None, 0.0, 2.5])
@pytest.mark.parametrize(
    "pad", [(), (1, 2), (-1, 2), (1, 2, 0, 1), (-1, -1, 2, -2), (0, 0, 1, 0, 2, 1)]
)
def test_constant_padding(compare, pad, value):
    compare.functional("pad", randn(4, 3, 5), pad, "constant", value)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("shape", "pad"),
    [((2, 5), (1, 2)), ((2, 3, 5), (4, 0)), ((2, 3, 5), (2, 1, 1, 2)), ((2, 2, 4, 5), (2, 1, 1, 2)),
     ((1, 2, 3, 4, 5), (1, 1, 2, 0, 0, 2))],
)  # fmt: skip
def test_other_padding(compare, mode, shape, pad):
    compare.functional("pad", randn(*shape), pad, mode)


def test_padding_with_a_negative_zero():
    padded = F.pad(tp.ones(1), (1, 1), value=-0.0)
    assert tp.signbit(padded).tolist() == [True, False, True]


def test_padding_of_other_dtypes(compare):
    import torch

    for dtype in (torch.int64, torch.bool, torch.complex128):
        input = torch.tensor([[0, 1], [1, 1]]).to(dtype)
        compare.functional("pad", input, (1, 0, 0, 2))
        compare.functional("pad", input, (1, 0), value=1)


SIZES = {1: (5,), 2: (4, 5), 3: (3, 4, 2)}
MODES = [
    (1, "nearest"), (2, "nearest"), (3, "nearest"), (1, "nearest-exact"), (2, "nearest-exact"),
    (3, "nearest-exact"), (1, "linear"), (2, "bilinear"), (3, "trilinear"), (2, "bicubic"),
    (1, "area"), (2, "area"), (3, "area"),
]  # fmt: skip


@pytest.mark.parametrize(("count", "mode"), MODES)
@pytest.mark.parametrize("align", [None, True, False])
def test_interpolate(compare, count, mode, align):
    if align is not None and ("nearest" in mode or mode == "area"):
        pytest.skip("these modes have no corners to align")
    input = randn(2, 3, *SIZES[count])
    for size in ((7, 3, 5)[:count], 1, 8):
        compare.functional("interpolate", input, size, mode=mode, align_corners=align)
    for factor, recompute in itertools.product((2, 0.6, 1.7), (None, True)):
        compare.functional(
            "interpolate", input, scale_factor=factor, mode=mode, align_corners=align,
            recompute_scale_factor=recompute,
        )  # fmt: skip


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("size", [(3, 4), (2, 9), (12, 5)])
def test_antialias(compare, mode, align, size):
    compare.functional(
        "interpolate", randn(1, 2, 9, 10), size, mode=mode, align_corners=align, antialias=True
    )


def test_nearest_of_integers():
    input = tp.tensor([[[1, 2, 3]]])
    assert F.interpolate(input, 6).tolist() == [[[1, 1, 2, 2, 3, 3]]]


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("count", [2, 3])
def test_grid_sample(compare, mode, padding, align, count):
    if mode == "bicubic" and count == 3:
        pytest.skip("bicubic is for images")
    import torch

    grid = (
        torch.rand(2, *(3, 4, 2)[:count], count, dtype=torch.float64) * 3 - 1.5
    ).requires_grad_()
    compare.functional("grid_sample", randn(2, 3, *SIZES[count]), grid, mode, padding, align)


@pytest.mark.parametrize("align", [True, False])
def test_affine_grid(compare, align):
    compare.functional("affine_grid", randn(2, 2, 3), (2, 3, 4, 5), align)
    compare.functional("affine_grid", randn(2, 3, 4), (2, 3, 4, 5, 2), align)
    compare.functional("affine_grid", randn(1, 2, 3), (1, 3, 1, 4), align)


@pytest.mark.parametrize("shape", [(8, 2, 3), (2, 8, 2, 3), (2, 2, 8, 2, 3)])
def test_pixel_shuffle(compare, shape):
    compare.functional("pixel_shuffle", randn(*shape), 2)
    compare.functional("pixel_unshuffle", randn(*shape[:-2], 4, 6), 2)


def test_channel_shuffle(compare):
    compare.functional("channel_shuffle", randn(2, 6, 3), 3)
    compare.functional("channel_shuffle", randn(2, 6, 3, 2), 2)


@pytest.mark.parametrize(
    ("kernel", "dilation", "padding", "stride"),
    [(2, 1, 0, 1), ((2, 3), 1, 1, 2), (2, 2, (1, 0), 1)],
)
def test_unfold_and_fold(compare, kernel, dilation, padding, stride):
    options = kernel, dilation, padding, stride
    blocks = compare.functional("unfold", randn(2, 3, 5, 6), *options)
    compare.functional("unfold", randn(3, 5, 6), *options)
    compare.functional("fold", randn(*blocks.shape), (5, 6), *options)
    compare.functional("fold", randn(*blocks.shape[1:]), (5, 6), *options)


@pytest.mark.parametrize("count", [2, 3])
def test_fractional_max_pool(compare, count):
    import torch

    samples = torch.rand(2, 3, count, dtype=torch.float64)
    name = f"fractional_max_pool{count}d"
    size = (9, 8, 7)[:count]
    compare.functional(
        name, randn(2, 3, *size), 2, (4, 5, 3)[:count], return_indices=True, _random_samples=samples
    )
    compare.functional(
        name, randn(2, 3, *size), 3, output_ratio=(0.5,) * count, _random_samples=samples
    )
    assert getattr(F, name)(tp.randn(3, *size), 2, 1).shape == (3, *[1] * count)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.pad(x, (1, 2, 1, 0), "reflect"),
        lambda x: F.interpolate(x, (5, 3), mode="bicubic"),
        lambda x: F.unfold(x, 2, padding=1),
        lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    ],
)
def test_second_derivative(function):
    tp.manual_seed(0)
    input = tp.randn(1, 2, 4, 4, dtype=tp.float64).requires_grad_()
    assert tp.autograd.gradcheck(function, (input,))
    assert tp.autograd.gradgradcheck(function, (input,))


def test_known_values():
    row = tp.tensor([[1.0, 2.0, 3.0]])
    assert F.pad(row, (2, 1), "reflect").tolist() == [[3.0, 2.0, 1.0, 2.0, 3.0, 2.0]]
    assert F.pad(row, (2, 1), "replicate").tolist() == [[1.0, 1.0, 1.0, 2.0, 3.0, 3.0]]
    assert F.pad(row, (2, 1), "circular").tolist() == [[2.0, 3.0, 1.0, 2.0, 3.0, 1.0]]
    assert F.pad(row, (1, -1), value=9.0).tolist() == [[9.0, 1.0, 2.0]]
    line = F.interpolate(tp.tensor([[[0.0, 1.0]]]), 3, mode="linear", align_corners=True)
    assert line.tolist() == [[[0.0, 0.5, 1.0]]]
    identity = F.affine_grid(tp.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 2, 3), False)
    image = tp.arange(6.0).reshape(1, 1, 2, 3)
    assert F.grid_sample(image, identity, align_corners=False).flatten().tolist() == pytest.approx(
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], abs=1e-6
    )


X = tp.ones(1, 1, 3, 3)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.pad(X, (1,)), RuntimeError),
        (lambda: F.pad(X, (1,) * 10), RuntimeError),
        (lambda: F.pad(X, (1, 1), "x"), NotImplementedError),
        (lambda: F.pad(X, (3, 0, 0, 0), "reflect"), RuntimeError),
        (lambda: F.pad(X, (4, 0, 0, 0), "circular"), RuntimeError),
        (lambda: F.pad(X, (1, 1), "reflect"), NotImplementedError),
        (lambda: F.pad(X, (1, 1, 1, 1), "reflect", 1.0), RuntimeError),
        (lambda: F.pad(X, (-4, 0)), RuntimeError),
        (lambda: F.interpolate(X), ValueError),
        (lambda: F.interpolate(X, 2, 2), ValueError),
        (lambda: F.interpolate(X, (1, 2, 3)), ValueError),
        (lambda: F.interpolate(X, 2, mode="linear"), NotImplementedError),
        (lambda: F.interpolate(X, 2, align_corners=True), ValueError),
        (lambda: F.interpolate(X, 2, antialias=True), ValueError),
        (lambda: F.interpolate(X, 0), RuntimeError),
        (lambda: F.interpolate(X, 2.5), TypeError),
        (lambda: F.grid_sample(X, tp.ones(1, 2, 2, 2), "x"), ValueError),
        (lambda: F.grid_sample(X, tp.ones(1, 2, 2, 2), padding_mode="x"), ValueError),
        (lambda: F.grid_sample(X, tp.ones(1, 2, 2, 3)), RuntimeError),
        (lambda: F.grid_sample(X, tp.ones(2, 2, 2, 2)), RuntimeError),
        (lambda: F.affine_grid(tp.ones(1, 3, 3), (1, 1, 2, 2)), ValueError),
        (lambda: F.pixel_shuffle(X, 2), RuntimeError),
        (lambda: F.pixel_unshuffle(X, 2), RuntimeError),
        (lambda: F.channel_shuffle(X, 2), RuntimeError),
        (lambda: F.unfold(X, 4), RuntimeError),
        (lambda: F.fold(tp.ones(1, 4, 5), 3, 2), RuntimeError),
        (lambda: F.fold(tp.ones(1, 5, 4), 3, 2), RuntimeError),
        (lambda: F.fractional_max_pool2d(X, 2), ValueError),
        (lambda: F.fractional_max_pool2d(X, 2, 3), RuntimeError),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("size", [(32, 32), (50, 61), (20, 31), (3, 70)])
def test_bytes_are_resampled_as_torch_does(mode, antialias, size):
    torch = pytest.importorskip("torch")
    x = torch.randint(0, 256, (2, 3, 40, 50), dtype=torch.uint8)
    options = {"size": size, "mode": mode, "antialias": antialias}
    expected = torch.nn.functional.interpolate(x, **options)
    assert F.interpolate(tp.tensor(x.numpy()), **options).tolist() == expected.tolist()


@pytest.mark.parametrize("mode", ["replicate", "reflect"])
@pytest.mark.parametrize("before", range(-5, 6))
@pytest.mark.parametrize("after", range(-5, 6))
def test_ends_may_take_away_all_that_there_is(before, after, mode):
    torch = pytest.importorskip("torch", reason="torch has the answers")
    values = [[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]
    try:
        expected = torch.nn.functional.pad(torch.tensor(values), (before, after), mode)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            tp.nn.functional.pad(tp.tensor(values), (before, after), mode)
        return
    x = tp.tensor(values, requires_grad=True)
    found = tp.nn.functional.pad(x, (before, after), mode)
    assert found.tolist() == expected.tolist()
    found.sum().backward()
    assert x.grad.sum().item() == found.numel()
