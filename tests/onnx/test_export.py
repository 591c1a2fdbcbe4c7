"""Exporting: every op's samples and whole models, checked, run by onnxruntime, loaded again."""

import os

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.graph import Uncapturable

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import op_samples  # noqa: E402

nn, F = tp.nn, tp.nn.functional
SHARES = 24


@pytest.mark.parametrize("dtype", [tp.float32, tp.complex64], ids=str)
@pytest.mark.parametrize("share", range(SHARES if os.environ.get("TENSORPLUG_FUZZ") else 1))
def test_samples_of_ops(share, dtype):
    counted = {}
    records = [r for r in op_samples.RECORDS if dtype in r.dtypes or not dtype.is_complex]
    for record in records[share::SHARES]:
        own = dtype if dtype in record.dtypes else record.dtypes[0]
        counted[record.op] = op_samples.check(record, own)
    failed = {op: reasons["failed"] for op, (found, reasons) in counted.items() if found["failed"]}
    assert failed == {}
    assert sum(found["equal"] > 0 for found, _ in counted.values()) >= 0.6 * len(counted)


@pytest.mark.parametrize("share", range(SHARES if os.environ.get("TENSORPLUG_FUZZ") else 1))
def test_samples_of_ops_on_turned_tensors(share):
    counted = {}
    for record in op_samples.RECORDS[share + 5 :: SHARES]:
        dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
        plain, turned = (op_samples.check(record, dtype, t) for t in (False, True))
        counted[record.op] = plain[0]["equal"], turned[0]["equal"], turned[1].get("failed")
    assert {op: why for op, (_, _, why) in counted.items() if why} == {}
    assert {op: n for op, n in counted.items() if n[1] < n[0]} == {}


class Block(nn.Module):
    """A layer of a GPT with its embeddings and head."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.position = nn.Embedding(64, 32)
        self.norm = nn.LayerNorm(32)
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)
        self.head = nn.Linear(32, 50)

    def forward(self, tokens):
        n, t = tokens.shape
        h = self.embedding(tokens) + self.position(tp.arange(t))
        q, k, v = self.qkv(self.norm(h)).view(n, t, 3, 4, 8).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(F.gelu(h + self.out(a.transpose(1, 2).reshape(n, t, 32))))


def convolutions():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=2), nn.SiLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(16, 5),
    )  # fmt: skip


def images():
    return nn.Sequential(
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1, padding=1),
        nn.InstanceNorm2d(4), nn.GroupNorm(2, 4), nn.PReLU(4),
    )  # fmt: skip


def encoder():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


def written_by_masks(x):
    y = x * 2
    y[x > 0.5] = 3.0
    y[x.sum(-1) > 0] = x[0, 0]
    y[x[:, 0, 0] < -9] = 1.0  # nowhere
    return y.index_put([x < -0.5], tp.tensor(1.5), accumulate=True)


#: Model, arguments, and the sizes that vary.
MODELS = {
    "convolutions": lambda: (convolutions(), [tp.randn(2, 3, 16, 16)], [{0: "n", 2: "h", 3: "w"}]),
    "gpt": lambda: (Block(), [tp.randint(0, 50, (2, 7))], [{0: "n", 1: "t"}]),
    "encoder": lambda: (encoder(), [tp.randn(2, 5, 16)], [{0: "n", 1: "t"}]),
    "lstm": lambda: (
        nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True), [tp.randn(2, 5, 4)], [{0: "n"}],
    ),
    "gru": lambda: (nn.GRU(4, 6), [tp.randn(5, 2, 4)], [{1: "n"}]),
    "images": lambda: (images(), [tp.randn(1, 3, 6, 6)], [{0: "n"}]),
    "attention": lambda: (
        nn.MultiheadAttention(8, 2, batch_first=True),
        [tp.randn(2, 3, 8), tp.randn(2, 4, 8), tp.randn(2, 4, 8)],
        [{0: "n"}, {0: "n"}, {0: "n"}],
    ),
    "joined": lambda: (
        lambda x, y: tp.cat([x, y])[1:].flatten(),
        [tp.randn(3, 2), tp.randn(4, 2)],
        [{0: "a"}, {0: "b"}],
    ),
    "sizes as numbers": lambda: (
        lambda x: x.mean(0) + x.sum() / x.shape[0], [tp.randn(3, 2)], [{0: "a"}],
    ),
    "there and back": lambda: (
        lambda x: x.view(-1, x.shape[-1]).softmax(0).reshape(x.shape),
        [tp.randn(3, 4, 2)],
        [{0: "a", 1: "b"}],
    ),
    "mask": lambda: (
        lambda x: x.masked_fill(tp.ones(x.shape[0], x.shape[0], dtype=tp.bool).triu(1), -1.0),
        [tp.randn(3, 3)],
        [{0: "a", 1: "a"}],
    ),
    "written by a mask": lambda: (written_by_masks, [tp.randn(3, 4, 2)], [{0: "a", 1: "b"}]),
    "spread by a mask": lambda: (
        lambda x, y: x.masked_scatter(x > 0, y), [tp.randn(3, 4), tp.randn(99)], [{0: "a"}, {}],
    ),
    "writes": lambda: (
        lambda x: x.clone().mul_(2).add_(1).relu_(), [tp.randn(3, 2)], [{0: "n"}],
    ),
}  # fmt: skip


def resized(tensor, dims, sizes):
    for dim, name in dims.items():
        size = sizes.setdefault(name, 11 + 2 * len(sizes))
        tensor = tensor.index_select(dim, tp.arange(size) % tensor.shape[dim])
    return tensor


@pytest.mark.parametrize("constants", [0, 1, 2, 3])
def test_inputs_keep_their_names_where_an_op_is_taken_apart(constants):
    given = [tp.randn(3) for _ in range(constants)]

    def program(x, y):
        picked = tp.index_select(x.sum(), 0, tp.tensor([0]))  # refused whole, of a single number
        return sum((each * y for each in given), picked)

    args = tp.randn(3), tp.randn(3)
    proto = tp.onnx.export(program, args, input_names=["x", "y"])
    assert [entry.name for entry in proto.graph.input] == ["x", "y"]
    op_samples.compare(op_samples.run(proto, args), [program(*args)])


@pytest.mark.slow
@pytest.mark.parametrize("varying", [False, True], ids=["fixed", "varying"])
@pytest.mark.parametrize("name", MODELS)
def test_models(name, varying, tmp_path):
    tp.manual_seed(0)
    model, args, dims = MODELS[name]()
    if isinstance(model, nn.Module):
        model.eval()
    path = tmp_path / "model.onnx"
    tp.onnx.export(model, tuple(args), path, dynamic_shapes=tuple(dims) if varying else None)
    proto = onnx.load(path)
    onnx.checker.check_model(proto, full_check=True)
    sizes = {}
    calls = [args]
    if varying:
        calls.append([resized(x, each, sizes) for x, each in zip(args, dims, strict=True)])
    module = tp.onnx.load(path)
    for each in calls:
        expected = list(op_samples.cases.tensors_in(model(*each)))
        op_samples.compare(op_samples.run(proto, each), expected)
        again = list(op_samples.cases.tensors_in(module(*each)))
        op_samples.compare([t.detach().numpy() for t in again], expected)
    if isinstance(model, nn.Module):
        own, there = dict(model.named_parameters()), dict(module.named_parameters())
        assert there.keys() <= own.keys()
        assert all(tp.equal(there[key], own[key]) for key in there)


#: Calls in place: of ops that are written as they are, and of such that are taken apart.
IN_PLACE = {
    "relu6": lambda x: F.relu6(x, inplace=True),
    "elu": lambda x: F.elu(x, inplace=True),
    "rrelu": lambda x: F.rrelu(x, inplace=True),
    "threshold": lambda x: F.threshold(x, 0.1, 0.5, inplace=True),
    "dropout": lambda x: F.dropout(x, training=False, inplace=True),
    "lerp": lambda x: x.lerp_(x * 2, 0.3),
    "addcmul": lambda x: x.addcmul_(x, x),
    "masked_fill": lambda x: x.masked_fill_(x > 0, 1.0),
    "tril": lambda x: x.tril_(),
    "index_fill": lambda x: x.index_fill_(0, tp.tensor([1]), 3.0),
    "copy": lambda x: x.copy_(tp.ones(4)),
    "clamp": lambda x: x.clamp_(-1, 1),
}


@pytest.mark.parametrize("varying", [False, True], ids=["fixed", "varying"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_calls_in_place(name, varying):
    def program(x):
        return IN_PLACE[name](x.clone()) + 1

    x, y = tp.linspace(-2, 2, 12).reshape(3, 4), tp.linspace(-3, 3, 28).reshape(7, 4)
    proto = tp.onnx.export(program, x, dynamic_shapes=({0: "n"},) if varying else None)
    given = y if varying else x
    op_samples.compare(op_samples.run(proto, [given]), [program(given)])


@pytest.mark.parametrize("varying", [False, True], ids=["fixed", "varying"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2), (0, 2, 1)])
@pytest.mark.parametrize("make", [tp.zeros_like, tp.ones_like, lambda x: tp.full_like(x, 2.5)])
def test_like_tensors_in_any_order_of_memory(make, order, varying):
    def program(x):
        turned = x.exp().permute(order)
        return tp.cat([make(turned), turned, make(x.permute(order).contiguous())])

    x, y = tp.randn(3, 4, 2), tp.randn(7, 4, 2)
    proto = tp.onnx.export(program, x, dynamic_shapes=({0: "n"},) if varying else None)
    given = y if varying else x
    op_samples.compare(op_samples.run(proto, [given]), [program(given)])


def test_names_and_sizes():
    model = nn.Linear(2, 3)
    proto = tp.onnx.export(
        model,
        tp.ones(4, 2),
        input_names=["pixels"],
        output_names=["scores"],
        dynamic_axes={"pixels": {0: "batch"}, "scores": {0: "batch"}},
        opset_version=20,
    )
    [given], [made] = proto.graph.input, proto.graph.output
    assert (given.name, made.name) == ("pixels", "scores")
    assert given.type.tensor_type.shape.dim[0].dim_param == "batch"
    assert made.type.tensor_type.shape.dim[0].dim_param == "batch"
    assert made.type.tensor_type.shape.dim[1].dim_value == 3
    assert proto.opset_import[0].version == 20
    assert {tensor.name for tensor in proto.graph.initializer} == {"weight", "bias"}


@pytest.mark.parametrize(
    "shapes", [({0: "n"},), {"input": {0: "n"}}, (["n", None],), ({0: type("n", (), {})},)]
)
def test_spellings_of_sizes(shapes):
    proto = tp.onnx.export(nn.Linear(2, 3), (tp.ones(4, 2),), dynamic_shapes=shapes)
    assert [d.dim_param for d in proto.graph.input[0].type.tensor_type.shape.dim] == ["n", ""]


def test_modules_are_exported_as_in_evaluation_and_left_as_they_were():
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(2))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    proto = tp.onnx.export(model, tp.ones(4, 2))
    assert [node.op_type for node in proto.graph.node] == ["BatchNormalization"]
    assert model.training
    assert all(module.training for module in model.modules())
    assert all(tp.equal(value, before[name]) for name, value in model.state_dict().items())


def test_all_that_cannot_be_said_is_listed():
    with pytest.raises(tp.onnx.UnsupportedOperatorError) as caught:
        tp.onnx.export(lambda x: x.lgamma() + tp.linalg.svdvals(x), tp.ones(2, 2))
    assert {name for name, _ in caught.value.operators} == {"lgamma", "linalg_svd"}
    assert "test_export.py" in str(caught.value)
    assert "ONNX has no such function" in str(caught.value)


def test_programs_that_read_data():
    with pytest.raises(Uncapturable, match=r"item|reads data"):
        tp.onnx.export(lambda x: x * x.sum().item(), tp.ones(2))


def test_ops_that_depend_on_a_size():
    def program(x):
        return x.relu() if x.shape[0] > 4 else x.tanh()

    with pytest.raises(tp.onnx.ONNXError, match="calls other ops as sizes vary"):
        tp.onnx.export(program, tp.ones(3), dynamic_shapes=({0: "n"},))


def test_wrong_arguments():
    model, x = nn.Linear(2, 3), tp.ones(4, 2)
    with pytest.raises(ValueError, match="opset_version is 9; it can be 18 to"):
        tp.onnx.export(model, x, opset_version=9)
    with pytest.raises(ValueError, match="3 input_names for 1 inputs"):
        tp.onnx.export(model, x, input_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="dynamic_shapes names 'z'; the inputs are input"):
        tp.onnx.export(model, x, dynamic_shapes={"z": {0: "n"}})
    with pytest.raises(ValueError, match="has 2 dimensions, none is 5"):
        tp.onnx.export(model, x, dynamic_shapes=({5: "n"},))
    with pytest.raises(tp.onnx.ONNXError, match="changes 'x' in place"):
        tp.onnx.export(lambda x: x.add_(1), tp.ones(2))


def test_large_weights_go_into_a_file_of_their_own(tmp_path, monkeypatch):
    from tensorplug.onnx import exporting

    model, x = nn.Linear(64, 64), tp.randn(2, 64)
    expected = model(x)
    for name, options in (("asked", {"external_data": True}), ("needed", {})):
        if name == "needed":
            monkeypatch.setattr(exporting, "LIMIT", 10_000)
        path = tmp_path / f"{name}.onnx"
        tp.onnx.export(model, x, path, **options)
        assert (tmp_path / f"{name}.onnx.data").stat().st_size >= 64 * 64 * 4
        assert path.stat().st_size < 5000
        assert tp.allclose(tp.onnx.load(path)(x), expected, atol=1e-6)


def test_a_loaded_model_is_exported_again():
    model, x = convolutions().eval(), tp.randn(2, 3, 16, 16)
    first = tp.onnx.load(tp.onnx.export(model, x))
    again = tp.onnx.load(tp.onnx.export(first, x))
    np.testing.assert_allclose(again(x).detach().numpy(), model(x).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize(
    "made",
    [
        lambda x: tp.empty(3, 2),
        lambda x: tp.empty(x.shape),
        lambda x: tp.empty_strided((3, 2), (1, 3)),
        lambda x: tp.empty_like(x),
        lambda x: x.new_empty(3, 2),
        lambda x: x.new_empty_strided((3, 2), (1, 3)),
    ],
)
def test_memory_that_is_written_by_rows(made):
    import onnxruntime

    class Rows(tp.nn.Module):
        def forward(self, x):
            rows = made(x)
            for number in range(3):
                rows[number] = x[number] * number
            return rows * 2

    x = tp.rand(3, 2)
    proto = tp.onnx.export(Rows(), (x,))
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert np.array_equal(found, Rows()(x).numpy())
    assert tp.equal(tp.onnx.load(proto)(x), Rows()(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.binary_cross_entropy(x.sigmoid(), x.sigmoid()),
        lambda x: F.gaussian_nll_loss(x, x + 1, x.abs()),
        lambda x: F.embedding_bag(
            x.sigmoid().round().long(), tp.arange(6.0).view(3, 2), mode="sum"
        ),
        lambda x: tp.cov(x, aweights=x[0].abs()),
        lambda x: tp.quantile(x, x[0].sigmoid(), dim=1),
        lambda x: tp.nanquantile(x, 0.3, dim=1),
    ],
    ids=[
        "binary_cross_entropy",
        "gaussian_nll_loss",
        "embedding_bag",
        "cov",
        "quantile",
        "nanquantile",
    ],
)
def test_what_is_read_to_be_refused_alone_is_left_out(function):
    model = tp.onnx.export(function, (tp.randn(4, 3),), dynamic_shapes=({0: "rows"},))
    x = tp.randn(6, 3)
    (found,) = op_samples.run(model, [x])
    assert np.allclose(found, function(x).numpy(), 1e-4, 1e-5)
