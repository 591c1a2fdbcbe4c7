"""How graphs are printed, and what a Transformer keeps of their nodes: the same in both libraries."""

import operator
import typing

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference")

FUNCTIONS = {
    "a builtin": lambda lib: (getattr, ("foo",), {}),
    "another builtin": lambda lib: (len, (), {}),
    "an operator": lambda lib: (operator.add, (["x", {"k": 1.5}],), {}),
    "an operator with an underscore": lambda lib: (operator.and_, (True,), {}),
    "an op": lambda lib: (lib.relu, (), {}),
    "a function of nn": lambda lib: (lib.nn.functional.relu, (), {"inplace": True}),
    "a method": lambda lib: (lib.Tensor.add, (slice(None, 1, None),), {}),
    "an overload": lambda lib: (lib.ops.aten.add.Tensor, ("text", None), {}),
}
TYPES = {
    "none": lambda lib: None,
    "a builtin": lambda lib: int,
    "a tensor": lambda lib: lib.Tensor,
    "of typing": lambda lib: typing.List[float],  # noqa: UP006
    "an optional one": lambda lib: typing.Optional[int],  # noqa: UP045
    "a generic": lambda lib: list[int],
    "any": lambda lib: typing.Any,
    "text": lambda lib: "Later",
}


def printed(lib, function, kind):
    graph = lib.fx.Graph()
    target, args, kwargs = FUNCTIONS[function](lib)
    annotation = TYPES[kind](lib)
    x = graph.placeholder("x", type_expr=annotation)
    y = graph.placeholder("y", default_value=3)
    node = graph.call_function(target, (x, *args), kwargs, type_expr=annotation)
    graph.output((graph.call_method("neg", (node, y)), [x]))
    lines = [line.format_node() for line in graph.nodes]
    return [line.replace("tensorplug.", "torch.") for line in (*str(graph).splitlines(), *lines)]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", TYPES)
def test_lines(function, kind):
    assert printed(tp, function, kind) == printed(torch, function, kind)


class Sum(tp.nn.Module):
    def forward(self, a, b):
        return (a + b).relu()


def test_a_transformer_keeps_stack_traces():
    tracer = tp.fx.Tracer()
    tracer.record_stack_traces = True
    module = tp.fx.GraphModule(tracer.root, tracer.trace(Sum()))
    made = tp.fx.Transformer(module).transform()
    calls = [node for node in made.graph.nodes if node.op.startswith("call")]
    assert [node.op for node in calls] == ["call_function", "call_method"]
    for node in calls:
        assert __file__ in node.stack_trace


def test_a_method_is_named_in_the_text():
    graph = tp.fx.Graph()
    graph.output(graph.call_function(tp.Tensor.add, (graph.placeholder("x"), 2)))
    module = tp.fx.GraphModule({}, graph)
    assert "tensorplug.Tensor.add(x, 2)" in module.code
    assert module(tp.ones(2)).tolist() == [3.0, 3.0]
