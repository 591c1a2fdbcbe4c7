"""Every module: outputs, all gradients, state dict and text are torch's, with the same weights in float64.

One case each, or a few; the files beside this one go through the options.
"""

import pytest

import tensorplug as tp
from tensorplug import nn

torch = pytest.importorskip("torch", reason="values are compared with torch's")


def real(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def unit(*shape):
    return torch.rand(*shape, dtype=torch.float64).mul(0.8).add(0.1).requires_grad_()


def classes(*shape, n=4):
    return torch.randint(0, n, shape)


def signs(*shape):
    return (torch.randint(0, 2, shape) * 2 - 1).double()


ONE, TWO, THREE = (2, 4, 7), (2, 4, 7, 6), (2, 4, 6, 5, 6)
BY_DIMENSION = {"1d": ONE, "2d": TWO, "3d": THREE}


def spatial(name, *options, **named):
    """Return the cases of a module that exists for one to three dimensions."""
    return {
        name + ending: ((options, named), lambda shape=shape: [real(*shape)])
        for ending, shape in BY_DIMENSION.items()
        if hasattr(nn, name + ending)
    }


def plain(*names):
    return {name: (((), {}), lambda: [real(3, 4)]) for name in names}


def loss(name, *inputs, **named):
    return {name: (((), named), lambda: [make() for make in inputs])}


def matrix():
    return real(3, 4)


# The options by position and by name, and what makes the inputs.
CASES = {
    **plain(
        "CELU", "ELU", "GELU", "Hardshrink", "Hardswish", "Hardtanh", "LeakyReLU",
        "LogSigmoid", "Mish", "PReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus",
        "Softshrink", "Softsign", "Tanh", "Tanhshrink", "GLU", "Identity", "Flatten",
    ),
    "Threshold": (((0.1, -2.0), {}), lambda: [matrix()]),
    "LogSoftmax": (((), {"dim": 1}), lambda: [matrix()]),
    "Softmax": (((), {"dim": 1}), lambda: [matrix()]),
    "Softmin": (((), {"dim": 1}), lambda: [matrix()]),
    "Softmax2d": (((), {}), lambda: [real(*TWO)]),
    "Unflatten": (((1, (2, 2)), {}), lambda: [matrix()]),
    "Linear": (((4, 3), {}), lambda: [matrix()]),
    "Bilinear": (((4, 5, 3), {}), lambda: [real(2, 4), real(2, 5)]),
    "Embedding": (((4, 3), {"padding_idx": 1}), lambda: [classes(2, 5)]),
    "EmbeddingBag": (((4, 3), {"mode": "mean"}), lambda: [classes(2, 5)]),
    "CosineSimilarity": (((), {}), lambda: [matrix(), matrix()]),
    "PairwiseDistance": (((), {}), lambda: [matrix(), matrix()]),
    **spatial("Conv", 4, 6, 3, padding=1),
    **spatial("ConvTranspose", 4, 6, 3, stride=2),
    **spatial("MaxPool", 2),
    **spatial("AvgPool", 2),
    **spatial("LPPool", 2, 2),
    **spatial("AdaptiveAvgPool", 3),
    **spatial("AdaptiveMaxPool", 3),
    **spatial("BatchNorm", 4),
    **spatial("InstanceNorm", 4, affine=True),
    **spatial("ZeroPad", 1),
    **spatial("ConstantPad", 1, 0.5),
    **spatial("ReflectionPad", 1),
    **spatial("ReplicationPad", 1),
    **spatial("CircularPad", 1),
    "FractionalMaxPool2d": (
        ((2,), {"output_size": 3, "_random_samples": torch.rand(2, 4, 2).double()}),
        lambda: [real(*TWO)],
    ),
    "FractionalMaxPool3d": (
        ((2,), {"output_size": 3, "_random_samples": torch.rand(2, 4, 3).double()}),
        lambda: [real(*THREE)],
    ),
    "MaxUnpool1d": (((2,), {}), lambda: [real(1, 1, 2), torch.tensor([[[1, 2]]])]),
    "MaxUnpool2d": (((2,), {}), lambda: [real(1, 1, 1, 2), torch.tensor([[[[1, 6]]]])]),
    "MaxUnpool3d": (((2,), {}), lambda: [real(1, 1, 1, 1, 2), torch.tensor([[[[[1, 6]]]]])]),
    "GroupNorm": (((2, 4), {}), lambda: [real(*TWO)]),
    "LayerNorm": ((((4,),), {}), lambda: [matrix()]),
    "RMSNorm": ((((4,),), {}), lambda: [matrix()]),
    "LocalResponseNorm": (((2,), {}), lambda: [real(*TWO)]),
    "ChannelShuffle": (((2,), {}), lambda: [real(*TWO)]),
    "PixelShuffle": (((2,), {}), lambda: [real(*TWO)]),
    "PixelUnshuffle": (((2,), {}), lambda: [real(1, 1, 4, 6)]),
    "Upsample": (((), {"scale_factor": 2, "mode": "nearest"}), lambda: [real(*TWO)]),
    "UpsamplingBilinear2d": (((), {"scale_factor": 2}), lambda: [real(*TWO)]),
    "UpsamplingNearest2d": (((), {"scale_factor": 2}), lambda: [real(*TWO)]),
    "Fold": ((((4, 4), 2), {"stride": 2}), lambda: [real(2, 8, 4)]),
    "Unfold": (((2,), {}), lambda: [real(*TWO)]),
    "RNN": (((4, 5, 2), {"bidirectional": True}), lambda: [real(3, 2, 4)]),
    "LSTM": (((4, 5, 2), {"proj_size": 3}), lambda: [real(3, 2, 4)]),
    "GRU": (((4, 5), {"batch_first": True}), lambda: [real(3, 2, 4)]),
    "RNNCell": (((4, 5), {}), lambda: [matrix()]),
    "LSTMCell": (((4, 5), {}), lambda: [matrix()]),
    "GRUCell": (((4, 5), {}), lambda: [matrix()]),
    "MultiheadAttention": (((4, 2), {}), lambda: [real(3, 2, 4) for _ in range(3)]),
    "Transformer": (
        ((4, 2, 1, 1, 8), {"dropout": 0.0}),
        lambda: [real(3, 2, 4), real(2, 2, 4)],
    ),
    "TransformerEncoderLayer": (((4, 2, 8), {"dropout": 0.0}), lambda: [real(3, 2, 4)]),
    "TransformerDecoderLayer": (
        ((4, 2, 8), {"dropout": 0.0}),
        lambda: [real(3, 2, 4), real(2, 2, 4)],
    ),
    **loss("L1Loss", matrix, matrix),
    **loss("MSELoss", matrix, matrix),
    **loss("SmoothL1Loss", matrix, matrix),
    **loss("HuberLoss", matrix, matrix),
    **loss("KLDivLoss", matrix, lambda: unit(3, 4), reduction="batchmean"),
    **loss("BCELoss", lambda: unit(3, 4), lambda: unit(3, 4)),
    **loss("BCEWithLogitsLoss", matrix, lambda: unit(3, 4)),
    **loss("CrossEntropyLoss", matrix, lambda: classes(3)),
    **loss("NLLLoss", matrix, lambda: classes(3)),
    **loss("NLLLoss2d", lambda: real(2, 4, 3, 3), lambda: classes(2, 3, 3)),
    **loss("PoissonNLLLoss", matrix, lambda: unit(3, 4)),
    **loss("GaussianNLLLoss", matrix, matrix, lambda: unit(3, 4)),
    **loss("SoftMarginLoss", matrix, lambda: signs(3, 4)),
    **loss("HingeEmbeddingLoss", matrix, lambda: signs(3, 4)),
    **loss("MarginRankingLoss", lambda: real(3), lambda: real(3), lambda: signs(3)),
    **loss("CosineEmbeddingLoss", matrix, matrix, lambda: signs(3)),
    **loss("TripletMarginLoss", matrix, matrix, matrix),
    **loss("TripletMarginWithDistanceLoss", matrix, matrix, matrix),
    **loss("MultiMarginLoss", matrix, lambda: classes(3)),
    **loss("MultiLabelMarginLoss", matrix, lambda: torch.tensor([[0, 1, -1, 0]] * 3)),
    **loss("MultiLabelSoftMarginLoss", matrix, lambda: unit(3, 4).detach().round()),
    "CTCLoss": (
        ((), {}),
        lambda: [
            real(6, 2, 4).log_softmax(-1).detach(),  # the gradient: test_functional_loss.py
            classes(2, 2, n=3) + 1,
            torch.tensor([6, 5]),
            torch.tensor([2, 1]),
        ],
    ),
    "AdaptiveLogSoftmaxWithLoss": (((4, 6, [2, 4]), {}), lambda: [matrix(), classes(3, n=6)]),
    # Random: in evaluation, where they pass on what they get.
    **{
        name: (((0.5,), {}), lambda: [real(2, 4, 3, 3, 3)])
        for name in ("AlphaDropout", "Dropout", "Dropout3d", "FeatureAlphaDropout")
    },
    "Dropout1d": (((0.5,), {}), lambda: [real(*ONE)]),
    "Dropout2d": (((0.5,), {}), lambda: [real(*TWO)]),
    "RReLU": (((), {}), lambda: [matrix()]),
}  # fmt: skip

ELSEWHERE = {
    "Module": "the base class: test_module.py",
    "Sequential": "test_containers.py",
    "ModuleList": "test_containers.py",
    "ModuleDict": "test_containers.py",
    "ParameterList": "test_containers.py",
    "ParameterDict": "test_containers.py",
    "CrossMapLRN2d": "torch's window never lets go of the first channel: below",
    "DataParallel": "test_leftovers.py",
    "SyncBatchNorm": "refuses the CPU in torch: test_attributes_of_subclasses.py",
    "RNNBase": "the base of RNN, LSTM and GRU",
    "RNNCellBase": "the base of the cells",
    "TransformerEncoder": "takes a layer: test_modules_sequences.py",
    "TransformerDecoder": "takes a layer: test_modules_sequences.py",
    **{
        name: "takes its shape from the first input: test_modules_parametrized.py"
        for name in nn.__all__
        if name.startswith("Lazy")
    },
}


@pytest.mark.parametrize("name", CASES)
def test_module(compare, name):
    random = "Dropout" in name or name == "RReLU"
    options, inputs = CASES[name]
    compare.module(name, options, *inputs(), training=not random)


def test_cross_map_lrn_is_local_response_norm():
    x = tp.randn(2, 6, 3, 3, dtype=tp.float64)
    assert tp.allclose(nn.CrossMapLRN2d(3)(x), nn.LocalResponseNorm(3)(x))


def test_hardsigmoid(compare):
    # torch's gradient is a sixth of single precision.
    compare.module("Hardsigmoid", ((), {}), matrix(), rtol=1e-7)


@pytest.mark.parametrize("name", ["BatchNorm1d", "InstanceNorm2d", "MultiheadAttention"])
def test_module_in_evaluation(compare, name):
    options, inputs = CASES[name]
    compare.module(name, options, *inputs(), training=False)


def test_every_module_is_compared():
    modules = [
        name
        for name in nn.__all__
        if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), nn.Module)
    ]
    found = [*CASES, *ELSEWHERE, "Hardsigmoid"]
    assert [name for name in modules if name not in found] == []
    assert [name for name in found if name not in modules] == []
