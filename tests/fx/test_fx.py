"""Symbolic tracing: the graphs are torch's, and run again to the same values."""

import contextlib
import copy
import io
import math
import operator
import pickle
import re

import pytest
from benchmarks import networks

import tensorplug as tp
import tensorplug.fx.passes.shape_prop
from tensorplug import fx, nn

try:
    import torch
except ImportError:  # what needs it is skipped
    torch = None


def block(lib):
    class Block(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = lib.nn.Conv2d(3, 4, 3, padding=1)
            self.bn = lib.nn.BatchNorm2d(4)
            self.scale = lib.nn.Parameter(lib.ones(4, 1, 1))
            self.register_buffer("shift", lib.ones(1))
            self.layers = lib.nn.Sequential(lib.nn.Linear(4, 4), lib.nn.ReLU())

        def forward(self, x, by: float = 2.0):
            F = lib.nn.functional
            y = F.relu(self.bn(self.conv(x)), inplace=True) * self.scale.exp() + self.shift
            a, b = y.chunk(2, 1)
            y = lib.cat([a, -b], dim=1) / by
            y = lib.flatten(F.adaptive_avg_pool2d(y, (1, 1)), 1)
            y = F.dropout(y, 0.5, self.training)
            y = F.softmax(F.leaky_relu(y), dim=-1)
            return self.layers(y).view(y.size(0), -1)[:, 1:]

    return Block().eval()


def operators(lib):
    def function(x, y):
        z = (x + 1) * y - 2 / x
        z = z @ y.T + abs(z) ** 2
        z = z[0, ..., None] + z[:, 1:].sum(dim=1, keepdim=True)
        return {"a": lib.exp(z), "b": [z.max(), (z > 0, lib.where(z > 0, z, y))]}, z.shape[0]

    return function


def shapes(lib):
    class Shapes(lib.nn.Module):
        def forward(self, x):
            n, c = x.shape
            x = x.reshape(c, n).transpose(0, 1).contiguous()
            return x.masked_fill(x > 0, float("-inf")), lib.zeros_like(x), math.sqrt(x.size(1))

    return Shapes()


def attention(lib):
    class Attention(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = lib.nn.Linear(8, 24)
            self.norm = lib.nn.LayerNorm(8)
            self.blocks = lib.nn.ModuleList([lib.nn.Linear(8, 8) for _ in range(2)])

        def forward(self, x):
            b, t, c = x.size()
            q, k, v = self.qkv(self.norm(x)).split(8, dim=2)
            q, k, v = (part.view(b, t, 2, 4).transpose(1, 2) for part in (q, k, v))
            y = lib.softmax(q @ k.transpose(-2, -1) * (1.0 / 2.0), dim=-1) @ v
            y = y.transpose(1, 2).reshape(b, t, c)
            for block in self.blocks:
                y = y + lib.nn.functional.gelu(block(y))
            return lib.nn.functional.layer_norm(y, (8,)).mean(1)

    return Attention()


def inplace(lib):
    def function(x):
        y = x.clone()
        y.add_(1).mul_(2)
        y += x
        return lib.stack([y, y.relu_()]).unbind(0)[1].to(lib.float64)

    return function


PROGRAMS = {
    "block": (block, [(2, 3, 5, 5)]),
    "operators": (operators, [(3, 3), (3, 3)]),
    "shapes": (shapes, [(2, 3)]),
    "attention": (attention, [(2, 3, 8)]),
    "in place": (inplace, [(4,)]),
}


def inputs_of(sizes):
    tp.manual_seed(0)
    return [tp.rand(size) + 0.5 for size in sizes]


def flat(value):
    if isinstance(value, tp.Tensor):
        return [value.detach().tolist()]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in flat(part)]
    return [value]


def same(a, b):
    assert repr(flat(a)) == repr(flat(b))


def executed(traced):
    """Return the function that the graph's text is."""
    code = traced.graph.python_code("self")
    names = dict(code.globals)
    exec(code.src, names)
    return lambda *args: names["forward"](traced, *args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_traced_runs_again(name):
    make, sizes = PROGRAMS[name]
    program = make(tp)
    traced = fx.symbolic_trace(program)
    traced.graph.lint()
    args = inputs_of(sizes)
    expected = program(*args)
    same(traced(*args), expected)
    same(executed(traced)(*args), expected)
    same(fx.Interpreter(traced).run(*args), expected)
    same(fx.Transformer(traced).transform()(*args), expected)
    same(copy.deepcopy(traced)(*args), expected)
    same(pickle.loads(pickle.dumps(traced))(*args), expected)
    same(fx.symbolic_trace(traced)(*args), expected)


@pytest.mark.skipif(torch is None, reason="torch is the reference")
@pytest.mark.parametrize("name", PROGRAMS)
def test_nodes_are_torchs(name):
    make, _ = PROGRAMS[name]

    def nodes(lib):
        traced = lib.fx.symbolic_trace(make(lib))
        return [
            (
                node.op,
                node.name,
                node.target if isinstance(node.target, str) else node.target.__name__,
                [used.name for used in node.all_input_nodes],
                sorted(user.name for user in node.users),
            )
            for node in traced.graph.nodes
        ]

    assert nodes(tp) == nodes(torch)


@pytest.mark.skipif(torch is None, reason="torch is the reference")
@pytest.mark.parametrize("name", ["block", "attention", "in place"])
def test_text_is_torchs(name):
    make, _ = PROGRAMS[name]
    ours = tp.fx.symbolic_trace(make(tp)).code.replace("tensorplug", "torch")
    theirs = torch.fx.symbolic_trace(make(torch)).code

    def calls(text):
        """Return what each line sets, and of which call, without its arguments."""
        lines = [line.split(";")[0].strip() for line in text.splitlines() if " = " in line]
        heads = [re.split(r"[(\[]", line)[0] for line in lines if not line.startswith("def")]
        return [(head.split(" = ")[0], head.rpartition(".")[2]) for head in heads]

    assert calls(ours) == calls(theirs)


@pytest.mark.parametrize(
    ("network", "given"),
    [
        (lambda: networks.Block(8, 2, True), lambda: tp.rand(2, 3, 8)),
        (lambda: networks.GPT(11, 6, 8, 1, 2), lambda: tp.randint(0, 11, (2, 5))),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), lambda: tp.rand(2, 3, 8)),
    ],
)
def test_networks(network, given):
    made, x = network().eval(), given()
    traced = fx.symbolic_trace(nn.Sequential(made))
    expected = made(x)
    for function in (
        traced,
        executed(traced),
        pickle.loads(pickle.dumps(traced)),
        copy.deepcopy(traced),
    ):
        same(function(x), expected)
    traced(x).sum().backward()
    assert all(p.grad is not None for p in made.parameters())


def test_modules_of_nn_are_leaves():
    made = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Sequential(nn.ReLU(), nn.Flatten()), nn.LSTM(8, 4))
    traced = fx.symbolic_trace(made)
    assert [(n.op, n.target) for n in traced.graph.nodes] == [
        ("placeholder", "input"),
        ("call_module", "0"),
        ("call_module", "1.0"),
        ("call_module", "1.1"),
        ("call_module", "2"),
        ("output", "output"),
    ]
    assert [name for name, _ in traced.named_parameters()] == [
        n for n, _ in made.named_parameters()
    ]
    assert traced.get_submodule("0") is made[0]


def test_a_traced_module_trains():
    module = block(tp)
    traced = fx.symbolic_trace(module)
    traced(tp.rand(2, 3, 4, 4)).sum().backward()
    assert module.scale.grad is not None
    assert module.conv.weight.grad is not None


# --- what cannot be traced ------------------------------------------------------------------------


def branch(x):
    return x if x.sum() > 0 else -x


def loop(x):
    return [row + 1 for row in x]


def number(x):
    return [0] * int(x)


def membership(x):
    return 1 in x


@pytest.mark.parametrize(
    ("function", "error", "line"),
    [
        (branch, "control flow", "return x if x.sum()"),
        (loop, "cannot be iterated", "for row in x"),
        (number, "as an int", "int(x)"),
        (membership, "contains another", "1 in x"),
    ],
)
def test_what_depends_on_values_is_refused_with_its_line(function, error, line):
    with pytest.raises((fx.TraceError, RuntimeError), match=error) as raised:
        fx.symbolic_trace(function)
    assert line in str(raised.value)
    assert function.__name__ in str(raised.value)
    assert nn.Linear(1, 1)(tp.ones(1)).shape == (1,)  # nothing stays patched


def test_collected_arguments_are_refused():
    with pytest.raises(NotImplementedError, match="collects arguments"):
        fx.symbolic_trace(lambda *xs: xs)


# --- functions that are nodes -----------------------------------------------------------------------


def opaque(x, flag=True):
    return x * 2 if x.sum() > 0 and flag else x


fx.wrap("opaque")
fx.wrap("len")


@fx.wrap
def also(x):
    return x if bool(x.any()) else -x


def test_wrapped_functions_are_nodes():
    def function(x):
        return also(opaque(x, flag=True)) + len(x)

    traced = fx.symbolic_trace(function)
    assert [n.name for n in traced.graph.nodes] == ["x", "opaque", "also", "len_1", "add", "output"]
    x = tp.ones(3)
    same(traced(x), function(x))
    assert opaque(x).tolist() == [2.0] * 3
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("opaque")


def test_functions_of_math_are_nodes():
    traced = fx.symbolic_trace(lambda x: x / math.sqrt(x.size(0)))
    assert traced.graph.find_nodes(op="call_function", target=math.sqrt)
    assert traced(tp.ones(4)).tolist() == [0.5] * 4


def test_concrete_arguments(lib):
    def function(x, flag):
        return x + 1 if flag else x - 1

    traced = lib.fx.symbolic_trace(function, concrete_args={"flag": False})
    assert traced(lib.ones(1), False).item() == 0.0


# --- changes of graphs --------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["inserting_before", "inserting_after"])
@pytest.mark.parametrize(
    ("anchor", "before", "after"),
    [
        ("x", ["relu", "sigmoid", "x", "neg", "output"], ["x", "sigmoid", "relu", "neg", "output"]),
        (
            "neg",
            ["x", "relu", "sigmoid", "neg", "output"],
            ["x", "neg", "sigmoid", "relu", "output"],
        ),
        (
            None,
            ["sigmoid", "relu", "x", "neg", "output"],
            ["x", "neg", "output", "relu", "sigmoid"],
        ),
    ],
)
@pytest.mark.parametrize("by_block", [True, False])
def test_where_nodes_are_added(lib, place, anchor, before, after, by_block):
    graph = lib.fx.symbolic_trace(lambda x: lib.neg(x)).graph
    nodes = {node.name: node for node in graph.nodes}
    point = getattr(graph, place)(nodes.get(anchor))
    with point if by_block else contextlib.nullcontext():
        for function in (lib.relu, lib.sigmoid):
            graph.call_function(function, (nodes["x"],))
    assert [node.name for node in graph.nodes] == (before if place.endswith("before") else after)
    graph.call_function(lib.tanh, (nodes["x"],))  # at the end again, but for a place that stays
    assert (next(reversed(graph.nodes)).name == "tanh") == (
        by_block or (anchor is None and place.endswith("after"))
    )


def test_a_graph_can_be_changed(lib):
    traced = lib.fx.symbolic_trace(lambda x: lib.relu(x) + lib.relu(x + 1))
    for node in traced.graph.find_nodes(op="call_function", target=lib.relu):
        with traced.graph.inserting_after(node):
            new = traced.graph.call_function(lib.sigmoid, node.args)
        node.replace_all_uses_with(new)
        traced.graph.erase_node(node)
    traced.graph.lint()
    traced.recompile()
    x = lib.tensor([-1.0, 1.0])
    expected = lib.sigmoid(x) + lib.sigmoid(x + 1)
    assert traced(x).tolist() == expected.tolist()
    used = next(iter(traced.graph.nodes))
    with pytest.raises(RuntimeError, match="users"):
        traced.graph.erase_node(used)


def test_dead_code_is_taken_out(lib):
    def function(x):
        lib.exp(x)
        y = x.clone()
        y.add_(1)
        return x * 2

    traced = lib.fx.symbolic_trace(function)
    assert traced.graph.eliminate_dead_code()
    names = [node.name for node in traced.graph.nodes]
    assert "exp" not in names
    assert {"x", "mul", "output"} <= set(names)


def test_graphs_by_hand(lib):
    graph = lib.fx.Graph()
    x = graph.placeholder("x")
    w = graph.get_attr("weight")
    y = graph.call_module("layer", (x,))
    z = graph.call_function(operator.add, (y, w))
    graph.output((graph.call_method("relu", (z,)), {"z": z}))
    root = {"weight": lib.nn.Parameter(lib.ones(2)), "layer": lib.nn.Identity()}
    made = lib.fx.GraphModule(root, graph)
    result, more = made(lib.tensor([-3.0, 3.0]))
    assert result.tolist() == [0.0, 4.0]
    assert more["z"].tolist() == [-2.0, 4.0]
    assert [name for name, _ in made.named_parameters()] == ["weight"]
    with pytest.raises(RuntimeError, match=r"not provided|nonexistent|referenced"):
        lib.fx.GraphModule({}, graph)


def test_patterns_are_replaced(lib):
    def function(x, w):
        a = lib.relu(x + w) * 2
        return lib.relu(a + w) - x

    traced = lib.fx.symbolic_trace(function)
    found = lib.fx.replace_pattern(
        traced, lambda a, b: lib.relu(a + b), lambda a, b: lib.sigmoid(a) - b
    )
    assert len(found) == 2
    traced.graph.lint()
    x, w = lib.tensor([1.0, -1.0]), lib.tensor([0.5, 0.5])
    expected = lib.sigmoid((lib.sigmoid(x) - w) * 2) - w - x
    assert traced(x, w).tolist() == pytest.approx(expected.tolist())


#: By name: a program, a pattern with several results, what takes its place, and what comes of it.
SEVERAL = {
    "two of one": (
        lambda L: (
            lambda x, y: L.sigmoid(x) + L.relu(x) * y,
            lambda x: (L.sigmoid(x), L.relu(x)),
            lambda x: (L.exp(x), L.abs(x)),
            lambda x, y: L.exp(x) + L.abs(x) * y,
        )
    ),
    "an inner one": (
        lambda L: (
            lambda x, y: (d := x - y, L.sigmoid(d) * d + L.relu(d))[1],
            lambda a, b: (d := a - b, (L.sigmoid(d), L.relu(d), d))[1],
            lambda a, b: (e := L.abs(b), (e, e, L.exp(a)))[1],
            lambda x, y: L.abs(y) * L.exp(x) + L.abs(y),
        )
    ),
    "twice": (
        lambda L: (
            lambda x, y: L.sigmoid(x) + L.relu(x) + L.sigmoid(y) * L.relu(y),
            lambda x: [L.relu(x), L.sigmoid(x)],
            lambda x: [L.exp(x), x],
            lambda x, y: x + L.exp(x) + y * L.exp(y),
        )
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_patterns_with_several_results_are_replaced(lib, name):
    program, pattern, replacement, expected = SEVERAL[name](lib)
    traced = lib.fx.symbolic_trace(program)
    found = lib.fx.replace_pattern(traced, pattern, replacement)
    assert len(found) == (2 if name == "twice" else 1)
    traced.graph.lint()
    x, y = lib.tensor([1.5, -1.0]), lib.tensor([0.5, 0.25])
    assert traced(x, y).tolist() == pytest.approx(expected(x, y).tolist())


def test_patterns_with_several_results_that_have_no_place_stay():
    def program(x):
        y = tp.sigmoid(x)
        return tp.tanh(y + 1) * y  # what one result is made of uses the other

    traced = tp.fx.symbolic_trace(program)
    found = tp.fx.replace_pattern(
        traced, lambda x, y: (tp.sigmoid(x), tp.tanh(y)), lambda x, y: (tp.exp(x), y)
    )
    assert not found
    traced.graph.lint()
    x = tp.tensor([1.5, -1.0])
    assert tp.equal(traced(x), program(x))


def test_modules_that_a_replacement_leaves_unused_go(lib):
    class Step(lib.nn.Module):
        def __init__(self, step):
            super().__init__()
            self.step = step
            self.last = lib.nn.ReLU()

        def forward(self, x):
            return self.last(self.step(x))

    class Other(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.other = lib.nn.Tanh()
            self.last = lib.nn.ReLU()

        def forward(self, x):
            return self.last(self.other(x))

    traced = lib.fx.symbolic_trace(Step(lib.nn.Sigmoid()))
    lib.fx.replace_pattern(traced, Step(lib.nn.Sigmoid()), Other())
    assert [name for name, _ in traced.named_children()] in (["last", "other"], ["other", "last"])
    x = lib.tensor([1.5, -1.0])
    assert traced(x).tolist() == Other()(x).tolist()


def test_transformers_and_interpreters(lib):
    class Swap(lib.fx.Transformer):
        def call_function(self, target, args, kwargs):
            if target is lib.exp:
                return super().call_function(lib.sin, args, kwargs)
            return super().call_function(target, args, kwargs)

    class Count(lib.fx.Interpreter):
        calls = 0

        def run_node(self, n):
            Count.calls += 1
            return super().run_node(n)

    traced = lib.fx.symbolic_trace(lambda x: lib.exp(x).neg())
    x = lib.ones(2)
    assert Swap(traced).transform()(x).tolist() == lib.sin(x).neg().tolist()
    assert Count(traced).run(x).tolist() == lib.exp(x).neg().tolist()
    assert Count.calls == 4


def test_shapes_are_noted(lib):
    if lib is torch:
        from torch.fx.passes import shape_prop
    else:
        shape_prop = fx.passes.shape_prop
    traced = lib.fx.symbolic_trace(block(lib))
    shape_prop.ShapeProp(traced).propagate(lib.ones(2, 3, 5, 5), 2.0)
    found = {
        node.name: tuple(node.meta["tensor_meta"].shape)
        for node in traced.graph.nodes
        if hasattr(node.meta.get("tensor_meta"), "shape")
    }
    assert found["conv"] == (2, 4, 5, 5)
    assert found["flatten"] == (2, 4)
    assert found["output"] == (2, 3)


def test_the_table_and_the_text(lib, capsys):
    traced = lib.fx.symbolic_trace(lambda x: x.exp() + 1)
    assert str(traced.graph).splitlines()[0].startswith("graph(")
    assert "return add" in str(traced.graph)
    if lib is tp:  # torch needs another package
        traced.graph.print_tabular()
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
        assert len(lines) == 6


# --- what others do with it: torchvision's feature extraction ------------------------------------------


def test_a_tracer_of_ones_own_extracts_features(lib):
    class PathTracer(lib.fx.Tracer):
        def __init__(self):
            super().__init__()
            self.paths = {}

        def is_leaf_module(self, m, qualname):
            return isinstance(m, (lib.nn.Conv2d, lib.nn.BatchNorm2d)) or super().is_leaf_module(
                m, qualname
            )

        def call_module(self, m, forward, args, kwargs):
            self.current = self.path_of_module(m)
            return super().call_module(m, forward, args, kwargs)

        def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, *_):
            proxy = super().create_proxy(kind, target, args, kwargs, name, type_expr)
            self.paths[proxy.node] = target if kind == "call_module" else proxy.node.name
            return proxy

    model = block(lib)
    tracer = PathTracer()
    graph = tracer.trace(model)
    module = lib.fx.GraphModule(tracer.root, graph, "Features")
    wanted = [
        node for node in module.graph.nodes if tracer.paths.get(node, node.name) in ("conv", "bn")
    ]
    wanted = [node for node in module.graph.nodes if node.name in ("conv", "flatten")]
    output = next(iter(reversed(module.graph.nodes)))
    module.graph.erase_node(output)
    with module.graph.inserting_after(next(iter(reversed(module.graph.nodes)))):
        module.graph.output({node.name: node for node in wanted})
    module.graph.eliminate_dead_code()
    module.recompile()
    found = module(lib.ones(2, 3, 4, 4))
    assert {name: tuple(value.shape) for name, value in found.items()} == {
        "conv": (2, 4, 4, 4),
        "flatten": (2, 4),
    }
    assert "layers_0" not in [node.name for node in module.graph.nodes]


def test_graph_modules_are_saved_and_loaded():
    traced = fx.symbolic_trace(block(tp))
    file = io.BytesIO()
    tp.save(traced.state_dict(), file)
    file.seek(0)
    other = fx.symbolic_trace(block(tp))
    other.load_state_dict(tp.load(file))
    x = tp.rand(1, 3, 4, 4)
    same(other(x), traced(x))
