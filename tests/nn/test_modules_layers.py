"""Modules: state, representation, outputs and all gradients as torch's, with the same parameters."""

import math

import pytest

import tensorplug as tp
from tensorplug import nn


def randn(*shape, grad=True):
    import torch

    return torch.randn(*shape, dtype=torch.float64, requires_grad=grad)


def index(*shape, count):
    import torch

    return torch.randint(0, count, shape)


ACTIVATIONS = [
    ("ReLU", {}), ("ReLU", {"inplace": False}), ("ReLU6", {}), ("LeakyReLU", {"negative_slope": 0.2}),
    ("PReLU", {}), ("PReLU", {"num_parameters": 3, "init": 0.4}), ("RReLU", {"lower": 0.2, "upper": 0.2}),
    ("ELU", {"alpha": 0.5}), ("CELU", {"alpha": 1.0}), ("SELU", {}), ("GELU", {}),
    ("GELU", {"approximate": "tanh"}), ("SiLU", {}), ("Mish", {}), ("Hardswish", {}), ("Hardtanh", {}),
    ("Hardtanh", {"min_val": -0.3, "max_val": 0.8}), ("Sigmoid", {}), ("LogSigmoid", {}), ("Tanh", {}),
    ("Tanhshrink", {}), ("Softsign", {}), ("Softplus", {"beta": 2.0}), ("Softshrink", {"lambd": 0.2}),
    ("Hardshrink", {}), ("Threshold", {"threshold": 0.1, "value": 2.0}), ("GLU", {"dim": 0}),
    ("Softmax", {"dim": 1}), ("LogSoftmax", {"dim": 0}), ("Softmin", {"dim": -1}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), ACTIVATIONS)
def test_activation(compare, name, options):
    compare.module(name, options, randn(2, 3, 4))


def test_softmax_over_channels(compare):
    compare.module("Softmax2d", {}, randn(2, 3, 4, 5))
    compare.module("Softmax2d", {}, randn(3, 4, 5))


@pytest.mark.parametrize("name", ["ReLU", "ReLU6", "LeakyReLU", "ELU", "SiLU", "Hardtanh", "CELU"])
def test_in_place_activation_is_shown(compare, name):
    compare.module(name, {"inplace": True}, randn(2, 3, grad=False))


SIZES = {1: (8,), 2: (6, 7), 3: (5, 4, 5)}
CONVOLUTIONS = [
    {},
    {"stride": 2, "padding": 1, "bias": False},
    {"dilation": 2, "groups": 2, "padding": "same"},
    {"padding": "valid"},
    {"padding": 1, "padding_mode": "reflect"},
    {"padding": 2, "padding_mode": "replicate"},
    {"padding": 1, "padding_mode": "circular"},
    {"padding": "same", "padding_mode": "circular"},
]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("options", CONVOLUTIONS)
def test_convolution(compare, count, options):
    for leading in ((2, 4), (4,)):
        compare.module(f"Conv{count}d", ((4, 6, 3), options), randn(*leading, *SIZES[count]))


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2, "bias": False}]
)
def test_transposed_convolution(compare, count, options):
    input = randn(2, 4, *SIZES[count])
    ours = compare.module(f"ConvTranspose{count}d", ((4, 6, 3), options), input)
    if options.get("stride"):
        size = [2 * s for s in SIZES[count]]
        x = tp.randn(2, 4, *SIZES[count], dtype=tp.float64)
        assert list(ours(x, output_size=size).shape[2:]) == size
        with pytest.raises(ValueError, match="output size"):
            ours(x, output_size=[100] * count)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": None, "eps": 1e-3}, {"affine": False}, {"track_running_stats": False},
     {"bias": False}],
)  # fmt: skip
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(compare, count, options, training):
    shape = (3, 4, *SIZES[count])
    ours = compare.module(f"BatchNorm{count}d", ((4,), options), randn(*shape), training=training)
    ours(tp.randn(*shape, dtype=tp.float64))
    if count == 1:
        compare.module("BatchNorm1d", ((4,), options), randn(3, 4), training=training)


def test_running_statistics_follow_every_batch(compare):
    import torch

    for momentum in (0.3, None):
        ours = nn.BatchNorm1d(2, momentum=momentum).double()
        theirs = torch.nn.BatchNorm1d(2, momentum=momentum).double()
        for _ in range(3):
            batch = torch.randn(5, 2, dtype=torch.float64)
            theirs(batch)
            ours(tp.tensor(batch.tolist(), dtype=tp.float64))
        for a, b in zip(ours.buffers(), theirs.buffers(), strict=True):
            assert a.tolist() == pytest.approx(b.tolist(), rel=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"affine": True}, {"track_running_stats": True, "eps": 0.1}]
)
@pytest.mark.parametrize("training", [True, False])
def test_instance_norm(compare, count, options, training):
    for leading in ((2, 4), (4,)):
        input = randn(*leading, *SIZES[count])
        compare.module(f"InstanceNorm{count}d", ((4,), options), input, training=training)


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        ("LayerNorm", (4,), {}),
        ("LayerNorm", ([6, 4],), {"eps": 1e-3, "bias": False}),
        ("LayerNorm", (4,), {"elementwise_affine": False}),
        ("RMSNorm", (4,), {}),
        ("RMSNorm", ([6, 4],), {"eps": 1e-3, "elementwise_affine": False}),
        ("GroupNorm", (3, 6), {}),
        ("GroupNorm", (2, 6), {"affine": False, "eps": 0.1}),
        ("LocalResponseNorm", (2,), {"alpha": 0.1}),
        ("Linear", (4, 5), {}),
        ("Linear", (4, 5), {"bias": False}),
        ("Identity", (), {}),
        ("Flatten", (), {}),
        ("Unflatten", (1, (2, 3)), {}),
        ("Dropout", (0.0,), {}),
        ("MaxPool1d", (2,), {"stride": 1, "padding": 1, "ceil_mode": True}),
        ("AvgPool1d", (2,), {"padding": 1, "count_include_pad": False}),
        ("LPPool1d", (2, 2), {}),
        ("AdaptiveAvgPool1d", (3,), {}),
        ("AdaptiveMaxPool1d", (3,), {}),
        ("ConstantPad1d", ((1, 2), 0.5), {}),
        ("ZeroPad1d", (1,), {}),
        ("ReflectionPad1d", (2,), {}),
        ("ReplicationPad1d", ((0, 3),), {}),
        ("CircularPad1d", (1,), {}),
        ("ChannelShuffle", (3,), {}),
        ("Upsample", (5,), {}),
        ("Upsample", (), {"scale_factor": 1.5, "mode": "linear", "align_corners": True}),
    ],
)
def test_on_three_dimensions(compare, name, args, options):
    compare.module(name, (args, options), randn(2, 6, 4))


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        ("MaxPool2d", (2,), {"dilation": 2}),
        ("MaxPool2d", ((3, 2),), {"return_indices": True}),
        ("AvgPool2d", (2,), {"divisor_override": 3}),
        ("LPPool2d", (2, (2, 1)), {"ceil_mode": True}),
        ("AdaptiveAvgPool2d", ((3, None),), {}),
        ("AdaptiveMaxPool2d", (3,), {"return_indices": True}),
        ("ConstantPad2d", ((1, 0, 2, 1), 0.5), {}),
        ("ZeroPad2d", (1,), {}),
        ("ReflectionPad2d", (2,), {}),
        ("ReplicationPad2d", (2,), {}),
        ("CircularPad2d", ((1, 2, 1, 0),), {}),
        ("PixelShuffle", (2,), {}),
        ("PixelUnshuffle", (2,), {}),
        ("UpsamplingNearest2d", (), {"scale_factor": 2}),
        ("UpsamplingBilinear2d", ((3, 7),), {}),
        ("Unfold", (2,), {"padding": 1}),
    ],
)
def test_on_four_dimensions(compare, name, args, options):
    input = randn(2, 8, 6, 6, grad=False).abs().requires_grad_()  # norms ask for positive numbers
    compare.module(name, (args, options), input)


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        ("MaxPool3d", (2,), {}),
        ("AvgPool3d", (2,), {}),
        ("LPPool3d", (2, 2), {}),
        ("AdaptiveAvgPool3d", (2,), {}),
        ("AdaptiveMaxPool3d", ((3, 2, 1),), {}),
        ("ConstantPad3d", (1, 0.5), {}),
        ("ZeroPad3d", (1,), {}),
        ("ReflectionPad3d", (1,), {}),
        ("ReplicationPad3d", (2,), {}),
        ("CircularPad3d", (1,), {}),
    ],
)
def test_on_five_dimensions(compare, name, args, options):
    compare.module(name, (args, options), randn(2, 2, 4, 5, 4))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_unpooling(compare, count):
    import torch

    pool = getattr(torch.nn, f"MaxPool{count}d")(2, return_indices=True)
    values, places = pool(torch.randn(2, 3, *(6, 4, 8)[:count], dtype=torch.float64))
    compare.module(f"MaxUnpool{count}d", ((2,), {}), values.requires_grad_(), places)


def test_response_norm_under_its_old_name():
    input = tp.rand(2, 5, 3, 3)
    ours, other = nn.CrossMapLRN2d(3), nn.LocalResponseNorm(3)
    assert ours(input).tolist() == other(input).tolist()


def test_fold(compare):
    compare.module("Fold", (((5, 6), 2), {"stride": 1}), randn(2, 12, 20))


@pytest.mark.parametrize(
    "options",
    [{}, {"padding_idx": 2}, {"padding_idx": -1, "scale_grad_by_freq": True}, {"sparse": False}],
)
def test_embedding(compare, options):
    ours = compare.module("Embedding", ((6, 4), options), index(3, 5, count=6))
    if "padding_idx" in options:
        fresh = nn.Embedding(6, 4, **options)
        assert fresh.weight[options["padding_idx"]].tolist() == [0.0] * 4
    assert ours.weight.grad is not None


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(compare, mode):
    import torch

    compare.module("EmbeddingBag", ((6, 4), {"mode": mode}), index(3, 5, count=6))
    offsets = torch.tensor([0, 2, 2, 7])
    compare.module(
        "EmbeddingBag", ((6, 4), {"mode": mode, "padding_idx": 1}), index(9, count=6), offsets
    )


def test_pretrained_embeddings():
    table = tp.arange(6.0).reshape(3, 2)
    frozen = nn.Embedding.from_pretrained(table)
    assert not frozen.weight.requires_grad
    assert frozen(tp.tensor([2])).tolist() == [[4.0, 5.0]]
    bag = nn.EmbeddingBag.from_pretrained(table, freeze=False, mode="sum")
    assert bag.weight.requires_grad
    assert bag(tp.tensor([[0, 1]])).tolist() == [[2.0, 4.0]]


PAIRS = [
    ("L1Loss", {}), ("MSELoss", {}), ("MSELoss", {"size_average": False}), ("SmoothL1Loss", {"beta": 0.5}),
    ("HuberLoss", {"delta": 0.5}), ("KLDivLoss", {"reduction": "batchmean"}), ("PoissonNLLLoss", {}),
    ("PoissonNLLLoss", {"log_input": False, "full": True, "eps": 1e-3}), ("HingeEmbeddingLoss", {}),
    ("SoftMarginLoss", {}), ("MultiLabelSoftMarginLoss", {}), ("BCEWithLogitsLoss", {}),
    ("BCELoss", {"reduction": "none"}), ("CrossEntropyLoss", {"label_smoothing": 0.2}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), PAIRS)
def test_losses_of_pairs(compare, name, options):
    import torch

    input = torch.rand(4, 3, dtype=torch.float64) * 0.8 + 0.1
    target = torch.rand(4, 3, dtype=torch.float64)
    compare.module(name, options, input.requires_grad_(), target)


def test_losses_of_classes(compare):
    import torch

    weight = torch.rand(5, dtype=torch.float64)
    for name in ("CrossEntropyLoss", "NLLLoss"):
        compare.module(name, {"weight": weight, "ignore_index": 1}, randn(6, 5), index(6, count=5))
        compare.module(name, {"reduction": "sum"}, randn(2, 5, 3), index(2, 3, count=5))
    compare.module("MultiMarginLoss", {"p": 2, "weight": weight}, randn(6, 5), index(6, count=5))
    target = torch.tensor([[3, 0, -1, 1], [0, 1, 2, 3]])
    compare.module("MultiLabelMarginLoss", {}, randn(2, 4), target)
    positive = {"pos_weight": torch.rand(3, dtype=torch.float64), "reduction": "sum"}
    compare.module(
        "BCEWithLogitsLoss", positive, randn(4, 3), torch.rand(4, 3, dtype=torch.float64)
    )


def test_losses_of_three(compare):
    import torch

    sign = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    compare.module("MarginRankingLoss", {"margin": 0.2}, randn(4), randn(4), sign)
    compare.module("CosineEmbeddingLoss", {"margin": 0.2}, randn(4, 3), randn(4, 3), sign)
    compare.module("TripletMarginLoss", {"p": 1.0}, randn(4, 3), randn(4, 3), randn(4, 3))
    compare.module("TripletMarginWithDistanceLoss", {}, randn(4, 3), randn(4, 3), randn(4, 3))
    var = torch.rand(4, 3, dtype=torch.float64)
    compare.module("GaussianNLLLoss", {"full": True}, randn(4, 3), randn(4, 3), var)
    compare.module("CosineSimilarity", {"dim": 0}, randn(4, 3), randn(4, 3))
    compare.module("PairwiseDistance", {"p": 3.0, "keepdim": True}, randn(4, 3), randn(4, 3))


@pytest.mark.parametrize(
    ("name", "args", "weight", "bias"),
    [
        ("Linear", (16, 400), 0.25, 0.25),
        ("Conv2d", (4, 400, 2), 0.25, 0.25),
        ("ConvTranspose1d", (100, 8, 2), 0.25, 0.25),
        ("LSTM", (16, 100), 0.1, 0.1),
        ("MultiheadAttention", (64, 2), math.sqrt(6 / 256), 0.0),
    ],
)
def test_initial_distribution(name, args, weight, bias):
    tp.manual_seed(0)
    module = getattr(nn, name)(*args)
    values = next(p for p in module.parameters() if p.ndim > 1).detach().flatten()
    assert values.abs().max().item() == pytest.approx(weight, rel=0.02)
    assert values.std().item() == pytest.approx(weight / math.sqrt(3), rel=0.05)
    given = next((p for n, p in module.named_parameters() if "bias" in n), None)
    if given is not None:
        assert given.abs().max().item() == pytest.approx(bias, rel=0.1, abs=1e-12)


def test_embedding_is_normal_at_first():
    tp.manual_seed(0)
    assert nn.Embedding(500, 20).weight.std().item() == pytest.approx(1.0, rel=0.05)


def test_dropout_modules_work_in_training_only():
    tp.manual_seed(0)
    for name in ("Dropout", "Dropout1d", "AlphaDropout", "FeatureAlphaDropout"):
        module = getattr(nn, name)(0.5)
        input = tp.ones(6, 5, 4)
        assert (module(input) != input).any()
        assert module.eval()(input) is input
    assert nn.Dropout2d(0.5)(tp.ones(6, 5, 4, 4)).shape == (6, 5, 4, 4)
    assert nn.Dropout3d(0.5)(tp.ones(6, 5, 2, 2, 2)).shape == (6, 5, 2, 2, 2)


def test_old_checkpoints_of_batch_norm_lack_the_count():
    module = nn.BatchNorm1d(2)
    state = module.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    module.load_state_dict(state)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: nn.Conv2d(3, 4, 2, groups=2), ValueError),
        (lambda: nn.Conv2d(4, 3, 2, groups=2), ValueError),
        (lambda: nn.Conv2d(4, 4, 2, groups=0), ValueError),
        (lambda: nn.Conv2d(4, 4, 2, padding="x"), ValueError),
        (lambda: nn.Conv2d(4, 4, 2, stride=2, padding="same"), ValueError),
        (lambda: nn.Conv2d(4, 4, 2, padding_mode="x"), ValueError),
        (lambda: nn.ConvTranspose2d(4, 4, 2, padding_mode="reflect"), ValueError),
        (lambda: nn.BatchNorm2d(3)(tp.ones(2, 3)), ValueError),
        (lambda: nn.BatchNorm1d(3)(tp.ones(1, 3)), ValueError),
        (lambda: nn.InstanceNorm1d(3, affine=True)(tp.ones(1, 4, 5)), ValueError),
        (lambda: nn.GroupNorm(2, 3), ValueError),
        (lambda: nn.LayerNorm(3)(tp.ones(2, 4)), RuntimeError),
        (lambda: nn.Dropout(1.5), ValueError),
        (lambda: nn.Embedding(3, 2, padding_idx=3), AssertionError),
        (lambda: nn.Embedding(3, 2, _weight=tp.ones(2, 2)), AssertionError),
        (lambda: nn.Softmax2d()(tp.ones(2, 3)), ValueError),
        (lambda: nn.Hardtanh(1.0, 0.0), AssertionError),
        (lambda: nn.Hardtanh(1.0, 1.0), AssertionError),
        (lambda: nn.TripletMarginLoss(margin=0.0), ValueError),
        (lambda: nn.MultiMarginLoss(p=3), ValueError),
        (lambda: nn.CircularPad1d(1)(tp.ones(3)), ValueError),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_instance_norm_of_other_channels(dims, batched, affine):
    layer = getattr(tp.nn, f"InstanceNorm{dims}d")(4, affine=affine)
    x = tp.rand([3] * batched + [2] * (dims + 1))
    if affine:
        with pytest.raises(ValueError, match=f"expected input's size at dim={int(batched)}"):
            layer(x)
    else:
        with pytest.warns(UserWarning, match="which is not used because affine=False"):
            assert layer(x).shape == x.shape
