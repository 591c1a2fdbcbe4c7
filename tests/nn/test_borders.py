"""What torch's modules do with batches of nothing, and with images of bytes."""

import itertools

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op

torch = pytest.importorskip("torch", reason="torch says what is to come")


def outcome(m, make, shapes, options):
    """Return shapes, gradients' shapes and the parameters' gradients' sums, or the type of error."""
    m.manual_seed(0)
    layer = make(m)
    inputs = [m.zeros(shape, requires_grad=True) for shape in shapes]
    try:
        results = layer(*inputs, **options)
    except (RuntimeError, ValueError, IndexError) as error:
        return type(error).__name__
    first = results[0] if isinstance(results, tuple) else results
    first.sum().backward()
    return (
        tuple(first.shape),
        [None if x.grad is None else tuple(x.grad.shape) for x in inputs],
        [None if p.grad is None else float(p.grad.abs().sum()) for p in layer.parameters()],
    )


SEQUENCES = {
    "attention": lambda m, first: m.nn.MultiheadAttention(8, 2, batch_first=first),
    "encoder": lambda m, first: m.nn.TransformerEncoderLayer(8, 2, 16, batch_first=first),
    "decoder": lambda m, first: m.nn.TransformerDecoderLayer(8, 2, 16, batch_first=first),
    "transformer": lambda m, first: m.nn.Transformer(8, 2, 1, 1, 16, batch_first=first),
    "rnn": lambda m, first: m.nn.RNN(8, 4, 2, batch_first=first),
    "lstm": lambda m, first: m.nn.LSTM(8, 4, batch_first=first, bidirectional=True),
    "gru": lambda m, first: m.nn.GRU(8, 4, batch_first=first),
}
COUNTS = {"attention": 3, "decoder": 2, "transformer": 2}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize(("name", "first"), list(itertools.product(SEQUENCES, [False, True])))
def test_sequences_of_an_empty_batch(name, first):
    shapes = [(0, 5, 8) if first else (5, 0, 8)] * COUNTS.get(name, 1)
    found = [outcome(m, lambda m: SEQUENCES[name](m, first), shapes, {}) for m in (torch, tp)]
    assert found[0] == found[1]


IMAGES = {
    "BatchNorm": lambda m, d: getattr(m.nn, f"BatchNorm{d}d")(3),
    "BatchNorm without affine": lambda m, d: getattr(m.nn, f"BatchNorm{d}d")(3, affine=False),
    "InstanceNorm": lambda m, d: getattr(m.nn, f"InstanceNorm{d}d")(3),
    "AdaptiveMaxPool": lambda m, d: getattr(m.nn, f"AdaptiveMaxPool{d}d")(2),
    "AdaptiveAvgPool": lambda m, d: getattr(m.nn, f"AdaptiveAvgPool{d}d")(2),
    "MaxPool": lambda m, d: getattr(m.nn, f"MaxPool{d}d")(2),
    "AvgPool": lambda m, d: getattr(m.nn, f"AvgPool{d}d")(2),
    "Conv": lambda m, d: getattr(m.nn, f"Conv{d}d")(3, 2, 2),
    "ConvTranspose": lambda m, d: getattr(m.nn, f"ConvTranspose{d}d")(3, 2, 2),
    "ReflectionPad": lambda m, d: getattr(m.nn, f"ReflectionPad{d}d")(1),
    "ReplicationPad": lambda m, d: getattr(m.nn, f"ReplicationPad{d}d")(1),
    "GroupNorm": lambda m, d: m.nn.GroupNorm(3, 3),
}


@pytest.mark.parametrize(("name", "count"), list(itertools.product(IMAGES, [1, 2, 3])))
def test_images_of_an_empty_batch(name, count):
    shape = (0, 3, *[6] * count)
    found = [outcome(m, lambda m: IMAGES[name](m, count), [shape], {}) for m in (torch, tp)]
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["BatchNorm", "InstanceNorm"])
def test_norms_of_no_positions(name):
    found = [outcome(m, lambda m: IMAGES[name](m, 2), [(2, 3, 4, 0)], {}) for m in (torch, tp)]
    assert found[0] == found[1]


def test_an_empty_batch_leaves_the_running_statistics():
    layer = tp.nn.BatchNorm2d(3)
    layer.running_mean.fill_(2.0)
    layer(tp.zeros(0, 3, 2, 2))
    assert layer.running_mean.tolist() == [2, 2, 2]
    assert layer.num_batches_tracked == 1
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        layer(tp.zeros(1, 3, 1, 1))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_unpooling_an_empty_batch(count):
    pool = getattr(tp.nn, f"MaxPool{count}d")(2, return_indices=True)
    x = tp.zeros(0, 3, *[6] * count, requires_grad=True)
    back = getattr(tp.nn, f"MaxUnpool{count}d")(2)(*pool(x))
    back.sum().backward()
    assert back.shape == x.shape == x.grad.shape


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("batch", [0, 2])
def test_a_grid_has_a_gradient_in_every_mode(mode, batch):
    found = []
    for m in (torch, tp):
        x = m.arange(batch * 48.0).reshape(batch, 3, 4, 4).requires_grad_()
        grid = m.linspace(-1, 1, batch * 8).reshape(batch, 2, 2, 2).requires_grad_()
        m.nn.functional.grid_sample(x, grid, mode=mode, align_corners=False).sum().backward()
        found.append((x.grad.tolist(), grid.grad.tolist()))
    tp.testing.assert_close(tp.tensor(found[1][1]), tp.tensor(found[0][1]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("classes", [0, 4])
@pytest.mark.parametrize("batch", [0, 3])
def test_cross_entropy_of_nothing(reduction, classes, batch):
    found = []
    for m in (torch, tp):
        scores = m.zeros(batch, classes, requires_grad=True)
        chances = m.zeros(batch, classes)
        loss = m.nn.functional.cross_entropy(scores, chances, reduction=reduction)
        loss.sum().backward()
        found.append((loss.tolist(), scores.grad.tolist()))
    assert str(found[0]).replace("-0.0", "0.0") == str(found[1]).replace("-0.0", "0.0")


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(3, 5), (8, 9), (16, 2), (20, 20)])
def test_images_of_bytes(mode, antialias, align_corners, size):
    """Torch computes with weights of 16 bits, and rounds between the two dimensions."""
    generator = torch.Generator().manual_seed(size[0])
    image = torch.randint(256, (2, 3, 9, 11), dtype=torch.uint8, generator=generator)
    options = {"mode": mode, "antialias": antialias, "align_corners": align_corners}
    expected = torch.nn.functional.interpolate(image, size, **options)
    found = tp.nn.functional.interpolate(tp.tensor(image.numpy()), size, **options)
    assert found.dtype is tp.uint8
    apart = (torch.tensor(found.tolist()) - expected.int()).abs()
    assert apart.max() <= 2
    assert (apart > 1).sum() <= 3


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("stride", "padding", "groups"), [(1, 0, 1), (2, 1, 2), (2, 0, 1)])
def test_gradients_of_convolutions_as_functions(count, stride, padding, groups):
    tp.manual_seed(0)
    options = {"stride": stride, "padding": padding, "groups": groups}
    x = tp.randn(2, 4, *[6] * count, dtype=tp.float64, requires_grad=True)
    weight = tp.randn(6, 4 // groups, *[3] * count, dtype=tp.float64, requires_grad=True)
    y = getattr(tp.nn.functional, f"conv{count}d")(x, weight, **options)
    g = tp.randn(y.shape, dtype=tp.float64)
    expected = tp.autograd.grad(y, (x, weight), g)
    of_input = getattr(tp.nn.grad, f"conv{count}d_input")
    of_weight = getattr(tp.nn.grad, f"conv{count}d_weight")
    tp.testing.assert_close(of_input(x.shape, weight.detach(), g, **options), expected[0])
    tp.testing.assert_close(of_weight(x.detach(), weight.shape, g, **options), expected[1])


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize(("size", "error"), [(0, ValueError), (-1, ValueError), (2.5, TypeError)])
def test_sizes_of_inputs_of_recurrent_layers(name, size, error):
    for m in (torch, tp):
        with pytest.raises(error, match="input_size"):
            getattr(m.nn, name)(size, 2)


def test_parameters_of_a_plain_dict_come_in_the_order_of_their_names():
    found = []
    for m in (torch, tp):
        members = m.nn.ParameterDict({"b": m.ones(1), "a": m.ones(1)})
        members["0"] = m.ones(1)
        members.update({"z": m.ones(1), "y": m.ones(1)})
        members.update([("d", m.ones(1)), ("c", m.ones(1))])
        found.append((list(members), list(members.copy())))
    assert found[0] == found[1]


def test_windows_zero_apart_are_refused():
    """By the op itself, too: its callers check what they are given, others may not."""
    with pytest.raises(RuntimeError, match=r"stride.*(greater than zero|1 or more)"):
        get_op("im2col").call(tp.ones(1, 1, 4, 4), (2, 2), (1, 1), (0, 0), (0, 0))
