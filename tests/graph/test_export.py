"""Exported programs: the same results without the module, in a process that does not have its code."""

import contextlib
import copy
import inspect
import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.export import Dim, export, load, save
from tensorplug.graph import Uncapturable


def equal(a, b):
    a, b = (tp.utils._pytree.tree_leaves(tree) for tree in (a, b))
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert x.dtype is y.dtype
        assert np.array_equal(x.detach().numpy(), y.detach().numpy(), equal_nan=True)


def travelled(program):
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    return load(file)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.register_buffer("scale", tp.tensor(0.5))

    def forward(self, tokens, mask=None, factor: float = float("inf")):
        x = self.layer(self.embed(tokens))
        if mask is not None:
            x = x.masked_fill(mask[..., None], -factor)
        rows = x.reshape(tokens.shape[0] * tokens.shape[1], 8)
        return {"rows": rows * self.scale, "last": (x[:, -1], x.max(dim=1).values)}


def test_round_trip():
    module = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding="same"), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 2)
    )
    program = travelled(export(module.eval(), (tp.ones(1, 3, 4, 4),)))
    x = tp.randn(1, 3, 4, 4)
    equal(program.module()(x), module(x))
    assert program.signature.parameters == [name for name, _ in module.named_parameters()]
    assert list(program.module().state_dict()) != []
    equal(program.state_dict["1.running_var"], module[1].running_var)


def test_sizes_and_structures():
    module = Attention().eval()
    batch, length = Dim("batch"), Dim("length", max=64)
    tokens = tp.randint(0, 11, (2, 5))
    mask = tp.zeros(2, 5, dtype=tp.bool)
    shapes = {"tokens": (batch, length), "mask": {0: batch, 1: length}}
    program = export(module, (tokens,), {"mask": mask}, dynamic_shapes=shapes)
    loaded = travelled(program)
    assert str(loaded.graph) == str(program.graph)
    for size in ((2, 5), (1, 7), (6, 3)):
        tokens = tp.randint(0, 11, size)
        mask = tp.rand(size) > 0.5
        made = loaded.module()(tokens, mask=mask)
        equal(made, module(tokens, mask=mask))
        assert list(made) == ["rows", "last"]
    assert "8*batch*length" not in str(program.graph)
    assert "batch*length" in str(program.graph)


def test_sizes_among_results():
    class Sized(nn.Module):
        def forward(self, x, y):
            rows = len(x)
            return (
                x * 2,
                x.shape,
                {"one": rows * len(y) + 1, "all": [x.numel(), "a", 2.5, True, rows]},
            )

    shapes = ({0: Dim("a")}, {0: Dim("b")})
    program = travelled(export(Sized(), (tp.ones(3, 2), tp.ones(4)), dynamic_shapes=shapes))
    for rows, others in ((3, 4), (5, 2), (1, 1)):
        given = tp.ones(rows, 2), tp.ones(others)
        assert program.module()(*given)[1:] == Sized()(*given)[1:]


def test_bad_arguments():
    module = Attention().eval()
    batch = Dim("batch", min=2, max=4)
    program = export(
        module, (tp.zeros(3, 5, dtype=tp.int64),), dynamic_shapes=({0: batch},)
    ).module()
    for args, error in (
        ((tp.zeros(3, 6, dtype=tp.int64),), ValueError),
        ((tp.zeros(3, 5),), ValueError),
        ((tp.zeros(5, 5, dtype=tp.int64),), ValueError),
        ((), TypeError),
        ((3,), TypeError),
    ):
        with pytest.raises(error):
            program(*args)


def test_training_goes_on():
    tp.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.3), nn.Linear(4, 1))
    twin = copy.deepcopy(module)
    before = copy.deepcopy(module.state_dict())
    program = travelled(export(module, (tp.ones(5, 3),))).module()
    equal(dict(module.state_dict()), dict(before))
    optimizers = [tp.optim.SGD(m.parameters(), lr=0.1) for m in (program, twin)]
    for step in range(3):
        x = tp.randn(5, 3)
        for each, optimizer in zip((program, twin), optimizers, strict=True):
            tp.manual_seed(step)
            optimizer.zero_grad()
            each(x).square().sum().backward()
            optimizer.step()
    equal(dict(program.state_dict()), dict(twin.state_dict()))


def test_compiled():
    module = nn.Sequential(nn.Linear(3, 4), nn.GELU())
    program = tp.compile(export(module, (tp.ones(5, 3),), dynamic_shapes=({0: Dim("n")},)).module())
    with tp.no_grad():
        for size in (5, 5, 2, 2):
            x = tp.randn(size, 3)
            equal(program(x), module(x))


def test_refused():
    class Reads(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    class Sizes(nn.Module):
        def forward(self, x):
            return x if len(x) > 3 else -x

    with pytest.raises(Uncapturable, match="reads data"):
        export(Reads(), (tp.ones(2),))
    with pytest.raises(ValueError, match="something else for other sizes of n"):
        export(Sizes(), (tp.ones(3),), dynamic_shapes=({0: Dim("n")},))


def test_without_the_code(tmp_path):
    module = Attention().eval()
    tokens = tp.randint(0, 11, (2, 5))
    save(export(module, (tokens,)), tmp_path / "program.zip")
    tp.save({"tokens": tokens, "rows": module(tokens)["rows"]}, tmp_path / "data.pt")
    program = (
        "import sys, tensorplug as tp\n"
        f"data = tp.load({str(tmp_path / 'data.pt')!r})\n"
        f"rows = tp.export.load({str(tmp_path / 'program.zip')!r}).module()(data['tokens'])['rows']\n"
        "assert tp.equal(rows, data['rows'])\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_damaged_files(tmp_path):
    file = io.BytesIO()
    save(export(nn.Linear(2, 1), (tp.ones(1, 2),)), file)
    whole = file.getvalue()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        text = archive.read("program.json").decode()
        state = archive.read("state.safetensors")
    rng = np.random.default_rng(0)
    cases = [whole[: int(cut)] for cut in rng.integers(0, len(whole) - 1, 20)]
    changes = {
        '"linear"': ['"nothing"'],
        '"format": 1': ['"format": 2'],
        '"value": 0': ['"value": 99', '"value": 3'],
        '"float32"': ['"float33"'],
        '"weight"': ['"height"'],
    }
    for old, new in [(old, new) for old, others in changes.items() for new in others]:
        changed = io.BytesIO()
        with zipfile.ZipFile(changed, "w") as archive:
            archive.writestr("program.json", text.replace(old, new))
            archive.writestr("state.safetensors", state)
        cases.append(changed.getvalue())
    for case in cases:
        with pytest.raises(ValueError, match="load"):
            load(io.BytesIO(case))


class Weighted(nn.Module):
    """Takes tensors alike, so that a wrong order shows in numbers alone."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(tp.tensor([1.0, 2.0]))

    def forward(self, second, first, *others, third, **more):
        result = self.weight + second - 2 * first + 3 * third["b"] - 5 * third["a"]
        for number, item in enumerate([*others, *[more[name] for name in sorted(more)]]):
            result = result * (number + 2) + item
        return result


@pytest.mark.parametrize("positional", range(4))
@pytest.mark.parametrize("dynamic", [False, True])
def test_arguments_keep_their_order(positional, dynamic):
    module = Weighted()
    names = ["second", "first", "extra", "zero"]

    def arguments(seed):
        tp.manual_seed(seed)
        values = [tp.randn(2) for _ in names]
        args = tuple(values[:positional])
        third = {"b": tp.randn(2), "a": tp.randn(2)}
        if positional == 3:  # the one that is left is by name
            return args, {"zero": values[3], "third": third}
        return args, dict(zip(names[positional:], values[positional:], strict=True)) | {
            "third": third
        }

    for order in (list, reversed):
        args, kwargs = arguments(0)
        shapes = None
        if dynamic:
            module.weight = nn.Parameter(tp.ones(1))
            bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
            shapes = {
                name: tp.utils._pytree.tree_map(lambda leaf: {0: Dim("size")}, value)
                for name, value in bound.items()
            }
        program = export(module, args, dict(order([*kwargs.items()])), dynamic_shapes=shapes)
        for run in (program.module(), travelled(program).module()):
            for other in (list, reversed):
                args, kwargs = arguments(1)
                given = dict(other([*kwargs.items()]))
                given["third"] = dict(other([*given["third"].items()]))
                equal(run(*args, **given), module(*args, **kwargs))


def test_one_tensor_for_several_arguments():
    module = Weighted()
    x = tp.randn(2)
    program = export(module, (x, module.weight), {"third": {"a": x, "b": x}})
    for run in (program.module(), travelled(program).module()):
        given = [tp.randn(2) for _ in range(4)]
        options = {"third": {"a": given[2], "b": given[3]}}
        equal(run(*given[:2], **options), module(*given[:2], **options))


@pytest.mark.parametrize("named", [(), ("offs",), ("x", "offs")])
def test_custom_ops_that_read_data_within(named):
    """What such an op reads is its own affair where it says what shapes come out, by name or place."""
    with contextlib.ExitStack() as stack:
        scope = tp.library.Library("exported_ops", "FRAGMENT")
        stack.callback(scope._destroy)
        scope.define("rows(Tensor x, Tensor offs) -> Tensor")

        def rows(x, offs):
            return tp.cat([x[:end].sum(0, keepdim=True) for end in offs.tolist()])

        scope.impl("rows", rows, "CompositeExplicitAutograd")
        tp.library.register_fake(
            "exported_ops::rows", lambda x, offs: x.new_empty(len(offs), *x.shape[1:]), lib=scope
        )

        class Module(nn.Module):
            def forward(self, x, offs):
                given = {"x": x, "offs": offs}
                args = [value for name, value in given.items() if name not in named]
                kwargs = {name: given[name] for name in named}
                return tp.ops.exported_ops.rows(*args, **kwargs) * 2

        module = Module()
        program = travelled(export(module, (tp.ones(4, 2), tp.tensor([1, 3])))).module()
        for ends in ([1, 3], [4, 0]):
            given = tp.randn(4, 2), tp.tensor(ends)
            equal(program(*given), module(*given))
