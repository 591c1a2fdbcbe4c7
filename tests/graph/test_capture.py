"""Capture: the graph does what the program did, on other data, and writes where the program wrote."""

import copy
import pickle

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.graph import Uncapturable, capture, find, replace_pattern
from tensorplug.graph.passes import merge_common


def equal(a, b):
    a, b = (tp.utils._pytree.tree_leaves(tree) for tree in (a, b))
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert x.dtype is y.dtype
        assert x.shape == y.shape
        assert np.array_equal(x.detach().numpy(), y.detach().numpy(), equal_nan=True)


def replays(function, *shapes, state=()):
    """Capture on one set of arguments; compare on another, what is returned and what is written."""
    tp.manual_seed(0)
    first, second = ([tp.randn(*shape) for shape in shapes] for _ in range(2))
    graph = capture(function, *first)
    graph.check()
    twin = copy.deepcopy(second)
    equal(graph(*second), function(*twin))
    equal(second, twin)
    loaded = pickle.loads(pickle.dumps(graph))
    assert str(loaded) == str(graph)
    equal(loaded(*copy.deepcopy(twin)), function(*twin))
    return graph


def writes_through_views(x, y):
    a = x[0]
    a.add_(1)
    b = x.t().contiguous()
    b[0, 1] = 5
    c = b.view(-1)
    c.mul_(2)
    p, q = b.chunk(2)
    p.zero_()
    return b.relu_(), {"sum": q + y, "c": c.detach(), "a": a}


def writes_to_what_views_show(x):
    rows = x.unbind(0)
    diagonal = x.diagonal()
    x.mul_(3)
    diagonal.fill_(7)
    x[1:, 0] += rows[0][:1]
    return rows, diagonal * 2, x.T


def out_arguments(x, y):
    z = tp.empty(2, 3)
    tp.add(x, y, out=z)
    tp.exp(y, out=z[1])
    return z


def dtypes(x):
    counts = (x > 0).to(tp.int64)
    counts += 2
    half = x.to(tp.float16)
    half += x  # is converted back
    mask = x.clone()
    mask[x < 0] = -1.0
    return counts, half, mask, counts.float().cumsum(0)


def indexed_writes(x):
    x = x.clone()
    x[tp.tensor([0, 2])] += 1
    x.index_add_(0, tp.tensor([1]), tp.ones(1, 3))
    x[:, 1].clamp_(min=0)
    return x.sort(dim=1), x.max(dim=0).values


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (writes_through_views, [(2, 3), (2,)]),
        (writes_to_what_views_show, [(3, 3)]),
        (out_arguments, [(2, 3), (3,)]),
        (dtypes, [(4, 3)]),
        (indexed_writes, [(3, 3)]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_replays(function, shapes):
    replays(function, *shapes)


def test_a_planted_fault_is_found(monkeypatch):
    from tensorplug.graph import Recorder

    monkeypatch.setattr(Recorder, "_write", lambda self, target, value: None)
    with pytest.raises(AssertionError):
        replays(writes_through_views, (2, 3), (2,))


def test_buffers_are_written_back():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
    twin = copy.deepcopy(module)
    graph = capture(copy.deepcopy(module), tp.randn(2, 3, 6, 6))
    graph.state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    x = tp.randn(2, 3, 6, 6)
    equal(graph(x), twin(x))
    equal(dict(module.named_buffers()), dict(twin.named_buffers()))
    assert [target.name for target, _ in graph.writes] == [
        "1.num_batches_tracked",
        "1.running_mean",
        "1.running_var",
    ]


def test_gradients_flow_through_a_graph():
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

    def loss(x):
        y = module[1](module[0](x))
        with tp.no_grad():
            scale = y.abs().max()
        return (module[2](y / scale) - x.detach().sum()).square().sum()

    x = tp.randn(5, 3, requires_grad=True)
    graph = capture(loss, x)
    wanted = tp.autograd.grad(loss(x), [x, *module.parameters()])
    equal(tp.autograd.grad(graph(x), [x, *module.parameters()]), wanted)


def test_random_streams():
    graph = capture(lambda x: (nn.functional.dropout(x), x + tp.randn(3)), tp.ones(3))
    for seed in (1, 2):
        tp.manual_seed(seed)
        made = graph(tp.ones(3))
        tp.manual_seed(seed)
        equal(made, (nn.functional.dropout(tp.ones(3)), tp.ones(3) + tp.randn(3)))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x * 2 if x.sum() > 0 else x, "reads data"),
        (lambda x: x + x.max().item(), "reads data"),
        (lambda x: x * len(x.tolist()), "reads data"),
        (lambda x: tp.from_numpy(x.numpy()), "reads data"),
        (lambda x: x[x > 0], "depends on data"),
        (lambda x: x.nonzero().shape[0], "depends on data"),
        (lambda x: tp.equal(x, x), "depends on data"),
    ],
)
def test_what_depends_on_data_is_refused(function, reason):
    with pytest.raises(Uncapturable, match=reason) as caught:
        capture(function, tp.ones(3))
    assert __file__ in caught.value.source


def test_meta():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.Flatten(), nn.Linear(36, 2))
    graph = capture(copy.deepcopy(module).to("meta"), tp.empty(2, 3, 5, 5, device="meta"))
    real = capture(module, tp.ones(2, 3, 5, 5))
    assert str(graph).replace("@meta", "") == str(real)


def test_level_takes_ops_apart():
    def function(x):
        return nn.functional.softplus(x).var(dim=1)

    def primitives(op, args, kwargs):
        return False

    x = tp.randn(3, 4)
    graph = capture(function, x, level=primitives)
    assert all(node.op.kind == "primitive" for node in graph.nodes)
    tp.testing.assert_close(graph(x), function(x))
    again = capture(capture(function, x), x, level=primitives)
    assert [node.name for node in again] == [node.name for node in graph]


def test_patterns():
    def pattern(x, w):
        return (x @ w).relu()

    graph = capture(
        lambda x, w: ((x @ w).relu() @ w).relu() + (x @ w), tp.randn(3, 3), tp.randn(3, 3)
    )
    examples = tp.empty(2, 2, device="meta"), tp.empty(2, 2, device="meta")
    assert len(find(graph, capture(pattern, *examples))) == 2
    args = tp.randn(3, 3), tp.randn(3, 3)
    before = graph(*args)
    kept = graph.copy()
    replace_pattern(graph, pattern, lambda x, w: tp.clamp(tp.matmul(x, w), min=0), *examples)
    graph.check()
    assert [node.name for node in graph] == ["matmul", "clamp", "matmul", "clamp", "matmul", "add"]
    equal(graph(*args), before)
    equal(kept(*args), before)


def test_an_intermediate_that_is_used_elsewhere_stays():
    def function(x):
        y = tp.exp(x)
        return tp.log(y), y

    graph = capture(function, tp.ones(2))
    assert not replace_pattern(graph, lambda x: tp.log(tp.exp(x)), lambda x: x * 1, tp.ones(2))


def test_unused_nodes_go():
    graph = capture(lambda x: (x.exp(), x.log() + 1)[1], tp.ones(2))
    assert graph.remove_unused() == 1
    assert [node.name for node in graph] == ["log", "add"]
    with pytest.raises(ValueError, match="is used"):
        graph.erase(graph.nodes[0])


def test_values_take_the_places_of_others():
    def function(x):
        a, b = (x.exp() + 1).split(1), (x.exp() + 1).split(1)
        y = (x.exp() + 1) * a[0] - b[1]
        x.add_(b[0])
        return [y, (y, {"b": b[1] * 1})]

    graph = capture(function, tp.ones(2))
    exps = [node for node in graph if node.op.name == "exp"]
    graph.replace_all({node.output: exps[0].output for node in exps[1:]})
    assert graph.remove_unused() == 2
    merged = capture(function, tp.ones(2))
    assert merge_common(merged) == 5  # of three sums two, and both splits, follow from the first
    for one in (graph, merged):
        one.check()
        x, y = tp.tensor([0.5, 2.0]), tp.tensor([0.5, 2.0])
        equal(one(x), function(y))
        equal(x, y)
    graph.replace_all({})
    names = [graph.name("same") for _ in range(3)]
    assert names == ["same", "same_1", "same_2"]
    assert graph.copy().name("same") == "same_3"


def test_functions_with_derivatives_of_their_own_are_refused():
    class Twice(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    with pytest.raises(Uncapturable, match="is no op"):
        capture(Twice.apply, tp.ones(2, requires_grad=True))
    assert len(capture(Twice.apply, tp.ones(2))) == 1


def test_drawings():
    import xml.etree.ElementTree as ET

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh())

        def forward(self, x, names):
            return self.layers(x) < names, tp.topk(x, 2), x * 2

    graph = capture(Both(), tp.randn(5, 3), tp.ones(5, 4))
    drawn = ET.fromstring(graph.svg())
    assert graph._repr_svg_() == graph.svg()
    space = "{http://www.w3.org/2000/svg}"
    boxes = [
        [float(rect.get(name)) for name in ("x", "y", "width", "height")]
        for rect in drawn.iter(f"{space}rect")
    ]
    assert len(boxes) == len(graph.inputs) + len(graph.nodes) + 1
    left, top, width, height = map(float, drawn.get("viewBox").split())
    for number, (x, y, w, h) in enumerate(boxes):
        assert left - 1 <= x < x + w <= left + width + 1
        assert top <= y < y + h <= top + height
        for a, b, c, d in boxes[:number]:
            assert x >= a + c or a >= x + w or y >= b + d or b >= y + h, "boxes overlap"
    lines = list(drawn.iter(f"{space}path"))
    assert len(lines) >= len(graph.nodes)
    for line in lines:  # downwards, as values go
        numbers = line.get("d").replace("M", "").replace("C", "").replace(",", " ").split()
        assert float(numbers[1]) < float(numbers[-1])
    assert "linear" in graph.svg()
    assert "return" in graph.svg()


def test_programs_may_ask_whether_they_are_exported():
    from tensorplug.compat.compiling import is_exporting

    seen = []

    def program(x):
        seen.append(is_exporting())
        return x * 2

    capture(program, tp.ones(2))
    tp.compile(program)(tp.ones(2))
    assert seen == [True, False]
    assert not is_exporting()


def test_modules_that_fx_traced_are_captured():
    traced = tp.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    x = tp.randn(4, 2)
    assert [node.name for node in capture(traced, x)] == ["linear", "relu"]
    compiled = tp.compile(traced)
    for _ in range(3):
        assert tp.equal(compiled(x), traced(x))
    assert compiled.explain().calls == 2
