"""Loading ONNX models: values, training, names, devices, and what is said of models that do not load."""

import contextlib
import copy
import io
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tensorplug as tp

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper, parser  # noqa: E402


def model(nodes, inputs, outputs, initializers=(), opset=18, **options):
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, *rest) for name, *rest in inputs],
        [helper.make_tensor_value_info(name, *rest) for name, *rest in outputs],
        [numpy_helper.from_array(array, name) for name, array in initializers],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **options)


X = ("x", TensorProto.FLOAT, ["n", 2])
Y = ("y", TensorProto.FLOAT, ["a", "b"])


def linear():
    return model(
        [
            helper.make_node("MatMul", ["x", "layer.weight"], ["h"]),
            helper.make_node("Add", ["h", "layer.bias"], ["y"]),
        ],
        [X],
        [Y],
        [
            ("layer.weight", np.arange(1, 7, dtype=np.float32).reshape(2, 3)),
            ("layer.bias", np.ones(3, np.float32)),
        ],
    )


@pytest.mark.parametrize("how", ["proto", "bytes", "path", "text path", "file"])
def test_sources(how, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(linear().SerializeToString())
    source = {
        "proto": linear,
        "bytes": path.read_bytes,
        "path": lambda: path,
        "text path": lambda: str(path),
        "file": lambda: io.BytesIO(path.read_bytes()),
    }[how]()
    module = tp.onnx.load(source)
    x = tp.tensor([[1.0, 2.0]])
    assert module(x).tolist() == module(x=x).tolist() == [[10.0, 13.0, 16.0]]
    assert module.input_names == ["x"]
    assert module.output_names == ["y"]
    assert module.opset[""] == 18


def test_initializers_are_parameters_under_their_names():
    module = tp.onnx.load(linear())
    assert sorted(module.state_dict()) == ["layer.bias", "layer.weight"]
    assert [p.requires_grad for p in module.parameters()] == [True, True]
    assert not module.training
    other = tp.onnx.load(linear())
    other.load_state_dict({name: value * 2 for name, value in module.state_dict().items()})
    assert other(tp.tensor([[1.0, 2.0]])).tolist() == [[20.0, 26.0, 32.0]]


@pytest.mark.parametrize(
    ("trainable", "names"),
    [
        (False, []),
        (True, ["layer.bias", "layer.weight"]),
        (lambda name: "bias" in name, ["layer.bias"]),
    ],
)
def test_which_are_trainable(trainable, names):
    module = tp.onnx.load(linear(), trainable=trainable)
    assert sorted(name for name, _ in module.named_parameters()) == names
    assert sorted(module.state_dict()) == ["layer.bias", "layer.weight"]


def test_training():
    tp.manual_seed(0)
    module = tp.onnx.load(linear())
    x, target = tp.randn(8, 2), tp.zeros(8, 3)
    optimizer = tp.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for _ in range(30):
        loss = (module(x) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


def test_copies_and_pickles_are_their_own():
    module = tp.onnx.load(linear())
    x = tp.tensor([[1.0, 2.0]])
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        with tp.no_grad():
            for parameter in other.parameters():
                parameter.zero_()
        assert other(x).tolist() == [[0.0, 0.0, 0.0]]
    assert module(x).tolist() == [[10.0, 13.0, 16.0]]


def test_dtype_and_device_follow_the_module():
    module = tp.onnx.load(linear(), device="meta")
    assert module(tp.empty(5, 2, device="meta")).shape == (5, 3)
    assert module(tp.empty(5, 2, device="meta")).device.type == "meta"
    double = tp.onnx.load(linear()).double()
    assert double(tp.ones(1, 2, dtype=tp.float64)).dtype == tp.float64


def test_batch_norm_and_dropout_in_training():
    arrays = {"s": np.ones(3), "b": np.zeros(3), "m": np.zeros(3), "v": np.ones(3)}
    nodes = [
        helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["h"]),
        helper.make_node("Dropout", ["h"], ["y"]),
    ]
    module = tp.onnx.load(
        model(
            nodes,
            [("x", TensorProto.FLOAT, ["n", 3])],
            [Y],
            [(k, v.astype(np.float32)) for k, v in arrays.items()],
            opset=11,
        )
    )
    assert sorted(n for n, _ in module.named_parameters()) == ["b", "s"]
    assert sorted(n for n, _ in module.named_buffers()) == ["m", "v"]
    tp.manual_seed(0)
    x = tp.randn(64, 3) * 2 + 1
    before = module(x)
    assert tp.allclose(before, x / (1 + 1e-5) ** 0.5)
    module.train()
    after = module(x)
    assert 0.3 < (after == 0).float().mean().item() < 0.7
    assert tp.allclose(module.m, 0.1 * x.mean(0))
    module.eval()
    assert not tp.allclose(module(x), before)


def test_shapes_are_computed_on_the_host():
    """What is computed from shapes alone is known on a device without data too."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"]),
        helper.make_node("Mul", ["batch", "two"], ["rows"]),
        helper.make_node("Concat", ["rows", "rest"], ["sizes"], axis=0),
        helper.make_node("Reshape", ["x", "sizes"], ["y"]),
    ]
    constants = [("zero", np.array([0])), ("two", np.array([2])), ("rest", np.array([-1]))]
    module = tp.onnx.load(model(nodes, [("x", TensorProto.FLOAT, ["n", 4])], [Y], constants))
    assert module(tp.empty(3, 4, device="meta")).shape == (6, 2)
    assert list(module.state_dict()) == []


def test_names_that_are_no_attributes():
    names = ["a..b", "", "forward", "training.x", "with space", "x/y:0"]
    nodes, last = [], "x"
    for i, name in enumerate(names):
        if name:
            nodes.append(helper.make_node("Add", [last, name], [f"h{i}"]))
            last = f"h{i}"
    nodes.append(helper.make_node("Identity", [last], ["y"]))
    arrays = [(name, np.ones(2, np.float32)) for name in names if name]
    module = tp.onnx.load(model(nodes, [X], [Y], arrays))
    assert module(tp.zeros(1, 2)).tolist() == [[5.0, 5.0]]
    assert len(list(module.parameters())) == 5


# --- what does not load ---------------------------------------------------------------------------


def test_all_unsupported_operators_are_listed():
    nodes = [
        helper.make_node("StringConcat", ["s", "s"], ["t"]),
        helper.make_node("RegexFullMatch", ["t"], ["u"], pattern="a"),
        helper.make_node("FusedThing", ["x"], ["y"], domain="com.example"),
        helper.make_node("StringConcat", ["s", "s"], ["v"]),
    ]
    proto = model(nodes, [X, ("s", TensorProto.STRING, [1])], [Y], opset=20)
    proto.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(tp.onnx.UnsupportedOperatorError) as caught:
        tp.onnx.load(proto)
    assert {name for name, _ in caught.value.operators} == {
        "StringConcat",
        "RegexFullMatch",
        "com.example.FusedThing",
    }
    assert "StringConcat (2 times): computes with strings" in str(caught.value)
    assert "the domain 'com.example' is not of ONNX" in str(caught.value)


def test_functions_of_the_model_are_taken_apart():
    text = """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
    g (float[N] x) => (float[N] y) { y = own.twice(x) }
    <domain: "own", opset_import: ["" : 18]>
    twice (a) => (b) { b = Add(a, a) }"""
    assert tp.onnx.load(parser.parse_model(text))(tp.tensor([1.0])).tolist() == [2.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[: len(data) // 2], "cut short|no graph|malformed"),
        (lambda data: b"", "it has no graph"),
        (lambda data: b"PK\x03\x04 a zip", "no ONNX model"),
        (lambda data: bytes(range(256)), "no ONNX model"),
    ],
)
def test_damaged_files(change, message):
    with pytest.raises(tp.onnx.ONNXError, match=message):
        tp.onnx.load(change(linear().SerializeToString()))


def test_every_cut_is_an_error_of_the_format():
    data = linear().SerializeToString()
    for length in range(0, len(data), 7):
        with contextlib.suppress(tp.onnx.ONNXError):
            tp.onnx.load(data[:length])


def test_newer_opset():
    proto = linear()
    proto.opset_import[0].version = 999
    with pytest.raises(tp.onnx.ONNXError, match=r"opset 999 .*pip install --upgrade onnx"):
        tp.onnx.load(proto)


def test_malformed_graphs_name_the_node():
    proto = linear()
    proto.graph.node[0].input[1] = "missing"
    with pytest.raises(tp.onnx.ONNXError, match=r"malformed: (.|\n)*missing"):
        tp.onnx.load(proto)


def test_external_data(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(linear(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert tp.onnx.load(path)(tp.tensor([[1.0, 2.0]])).tolist() == [[10.0, 13.0, 16.0]]
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(tp.onnx.ONNXError, match=r"layer.*'weights.bin'.*Put the file there"):
        tp.onnx.load(path)


def test_external_data_stays_in_its_folder(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    path = inner / "model.onnx"
    onnx.save(linear(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (inner / "w.bin").rename(tmp_path / "w.bin")
    proto = onnx.load(path, load_external_data=False)
    for tensor in proto.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../w.bin"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(tp.onnx.ONNXError, match=r"\.\./w\.bin"):
        tp.onnx.load(path)


def test_inputs_are_checked():
    module = tp.onnx.load(linear())
    with pytest.raises(TypeError, match=r"input 'x' is .*int64, the model takes .*float32"):
        module(tp.ones(1, 2, dtype=tp.int64))
    with pytest.raises(ValueError, match=r"input 'x' has the shape \(2,\), the model takes 2"):
        module(tp.ones(2))
    with pytest.raises(TypeError, match="missing inputs: x"):
        module()
    with pytest.raises(TypeError, match="takes 1 inputs"):
        module(tp.ones(1, 2), tp.ones(1))
    with pytest.raises(TypeError, match="'z' is not an input"):
        module(z=tp.ones(1, 2))


def test_errors_while_running_name_the_node():
    with pytest.raises(RuntimeError) as caught:
        tp.onnx.load(linear())(tp.ones(1, 5))
    assert (
        "in ONNX node of op MatMul, output 'h': inputs x: float32[1, 5]"
        in caught.value.__notes__[0]
    )


def test_what_is_no_source():
    with pytest.raises(TypeError, match="load takes a path"):
        tp.onnx.load(3)


# --- the package onnx -----------------------------------------------------------------------------


def run(code, cwd):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, cwd=cwd
    )


def test_without_the_package(tmp_path):
    result = run(
        """
        import sys
        sys.modules["onnx"] = None
        import tensorplug as tp
        print(tp.onnx.supported_operators()[0])
        try:
            tp.onnx.load(b"")
        except ImportError as error:
            print(error)
        """,
        tmp_path,
    )
    assert result.stdout.splitlines()[0] == "Abs", result.stderr
    assert "pip install 'tensorplug[onnx]'" in result.stdout


@pytest.mark.slow
def test_programs_written_for_torch(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "program.py").write_text(
        textwrap.dedent(
            """
            import io, torch, onnxruntime
            model = torch.nn.Linear(2, 3)
            x = torch.ones(4, 2)
            program = torch.onnx.export(
                model, (x,), "model.onnx", dynamo=True, verbose=False, do_constant_folding=True,
                input_names=["x"], dynamic_shapes={"input": {0: torch.export.Dim("n")}},
            )
            session = onnxruntime.InferenceSession("model.onnx")
            [found] = session.run(None, {"x": torch.ones(7, 2).numpy()})
            assert torch.allclose(torch.from_numpy(found), model(torch.ones(7, 2)))
            assert torch.equal(program(x)[0], model(x))
            buffer = io.BytesIO()
            torch.onnx.export(model, x, buffer, training=torch.onnx.TrainingMode.EVAL)
            assert buffer.getvalue()
            try:
                torch.onnx.export(lambda x: torch.lgamma(x), x)
            except torch.onnx.OnnxExporterError as error:
                print("refused:", error)
            """
        )
    )
    command = [sys.executable, "-m", "tensorplug.compat", "program.py"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "ONNX has no such function" in result.stdout, result.stderr


def test_the_package_is_found_from_the_root_of_the_repository(request):
    result = run(
        "import onnx, onnx.helper, tensorplug as tp; print(onnx.__version__, tp.onnx.load)",
        request.config.rootpath,
    )
    assert result.stdout.startswith(onnx.__version__), result.stderr


@pytest.mark.slow
def test_the_package_is_not_imported_before_a_file_is_read(tmp_path):
    result = run(
        "import sys, tensorplug as tp; tp.onnx; tp.onnx.supported_operators(); print('onnx' in sys.modules)",
        tmp_path,
    )
    assert result.stdout.strip() == "False", result.stderr
