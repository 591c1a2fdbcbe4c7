"""Symbolic tracing: constants, writes, checks and modules of traced programs, beside torch's."""

import copy
import dataclasses
import functools
import operator

import pytest

import tensorplug as tp
from tensorplug import fx

OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift",
    "rshift", "lt", "le", "gt", "ge", "eq", "ne",
)  # fmt: skip
WRITTEN = (
    "iadd",
    "isub",
    "imul",
    "ifloordiv",
    "imod",
    "ipow",
    "iand",
    "ior",
    "ixor",
    "ilshift",
    "irshift",
)


@pytest.mark.parametrize("order", ["constant first", "constant last"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_constants_and_arguments(lib, name, order):
    apply = getattr(operator, name)
    constant = lib.tensor([[1, 2], [3, 4]])

    def function(x):
        return apply(constant, x) if order == "constant first" else apply(x, constant)

    x = lib.tensor([[2, 1], [1, 3]])
    traced = lib.fx.symbolic_trace(function)
    assert [node.op for node in traced.graph.nodes].count("get_attr") == 1
    assert lib.equal(traced(x), function(x))


@pytest.mark.parametrize("name", WRITTEN)
def test_constants_are_written_to_in_each_run(lib, name):
    """Through the tensor itself, so that other names of it see what is written."""
    apply = getattr(operator, name)
    constant = lib.tensor([[5, 2], [3, 4]])

    def function(x):
        return apply(constant, x)

    x = lib.tensor([[2, 1], [1, 3]])
    expected = getattr(operator, name)(constant.clone(), x)
    traced = lib.fx.symbolic_trace(function)
    traced.graph.eliminate_dead_code()
    assert lib.equal(traced(x), expected)
    assert lib.equal(constant, expected)


METHODS = {
    "clone": lambda lib, x: lib.clone(x),
    "detach": lambda lib, x: lib.detach(x),
    "fill_": lambda lib, x: lib.fill_(lib.clone(x), 2.0),
    "log_": lambda lib, x: lib.log_(lib.clone(x)),
    "add_": lambda lib, x: lib.ones(2, 2).add_(x),
    "copy_": lambda lib, x: lib.ones(2, 2).copy_(x),
    "take": lambda lib, x: lib.take(x, lib.tensor([0, 3])),
    "dot": lambda lib, x: lib.dot(x[0], lib.ones(2)),
    "outer": lambda lib, x: lib.outer(lib.ones(2), x[0]),
    "logical_and": lambda lib, x: lib.logical_and(lib.ones(2, 2), x),
    "isnan": lambda lib, x: lib.isnan(x),
    "trace": lambda lib, x: lib.trace(x),
    "det": lambda lib, x: lib.det(x),
}


@pytest.mark.parametrize("name", METHODS)
def test_functions_of_arguments_are_nodes(lib, name):
    def function(x):
        return METHODS[name](lib, x)

    x = lib.tensor([[1.0, 2.0], [3.0, 5.0]])
    traced = lib.fx.symbolic_trace(function)
    assert name in [getattr(node.target, "__name__", node.target) for node in traced.graph.nodes]
    assert lib.allclose(traced(x) + 0.0, function(x) + 0.0)


def test_what_has_effects_is_not_dead():
    """In torch calls of methods that write are dead."""
    lib = tp
    held = lib.zeros(2)

    def function(x):
        held[0] = x
        lib.rand(1).add_(x)
        lib.bernoulli(x)
        return x + 1

    class Counts(lib.nn.ReLU):
        _is_impure = True

    class Model(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.counts = Counts()

        def forward(self, x):
            self.counts(x)
            return x * 2

    class Leaves(lib.fx.Tracer):
        def is_leaf_module(self, m, name):
            return True

    traced = lib.fx.symbolic_trace(function)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    traced(lib.tensor(1.0))
    assert held.tolist() == [1.0, 0.0]
    model = Model()
    traced = lib.fx.GraphModule(model, Leaves().trace(model))
    assert not traced.graph.eliminate_dead_code()

    x = lib.fx.Graph()
    a, b = x.placeholder("a"), x.placeholder("b")
    x.call_function(operator.setitem, (a, 0, b))
    x.call_function(operator.and_, (a, b))
    x.output(a)
    assert x.eliminate_dead_code()  # of and_, which writes nothing
    assert [node.name for node in x.nodes if node.op == "call_function"] == ["setitem"]


def decorated(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)

    return inner


@fx.wrap
@decorated
def doubled(x):
    return x * 2


def test_a_decorated_function_is_a_node():
    traced = fx.symbolic_trace(lambda x: doubled(x))
    assert [node.name for node in traced.graph.nodes] == ["x", "doubled", "output"]
    assert traced(3) == 6


@pytest.mark.parametrize("value", [True, False, 3, 2.5, "mean", None])
def test_other_values_than_the_one_traced_for_are_refused(lib, value):
    def function(x, by):
        return x if by is None or isinstance(by, str) else x + by

    traced = lib.fx.symbolic_trace(function, concrete_args={"by": value})
    assert traced(lib.ones(1), value).item() == function(lib.ones(1), value).item()
    with pytest.raises(AssertionError, match=f"by has been specialized to have value {value}"):
        traced(lib.ones(1), "another")


class Forwards:
    """A module with several methods to trace, sub-modules and a parameter."""

    def __new__(cls, lib):
        class Inner(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = lib.nn.Linear(2, 2)

            def forward(self, x):
                return self.linear(x)

        class Outer(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Inner()
                self.weight = lib.nn.Parameter(lib.ones(3, 2))

            def forward(self, x):
                return self.inner(x) * 2

            def minus(self, x):
                return x - 1

            def by_shape(self, x):
                w = self.weight
                flat = w.dim() == 1 or w.ndim == 1 or w.size() == (2,) or w.shape[0] == 1
                return x + (1 if flat or w.numel() == 1 or w.nelement() == 1 else 2)

        return Outer()


def test_another_method_is_traced(lib):
    model, tracer, x = Forwards(lib), lib.fx.Tracer(), lib.ones(1, 2)
    assert copy.deepcopy(tracer).traced_func_name == "forward"
    for name in ("forward", "minus"):
        tracer.traced_func_name = name
        traced = lib.fx.GraphModule(model, tracer.trace(model))
        assert lib.equal(traced(x), getattr(model, name)(x))
    again = copy.deepcopy(tracer)
    assert str(again.graph) == str(tracer.graph)
    tracer.traced_func_name = "plus"
    with pytest.raises(AssertionError, match="traced_func_name=plus doesn't exist in Outer"):
        tracer.trace(model)


def test_shapes_of_parameters_may_be_constants(lib):
    model = Forwards(lib)
    tracer = lib.fx.Tracer(param_shapes_constant=True)
    tracer.traced_func_name = "by_shape"
    traced = lib.fx.GraphModule(model, tracer.trace(model))
    assert lib.equal(traced(lib.ones(1, 2)), lib.full((1, 2), 3.0))
    tracer = lib.fx.Tracer()
    tracer.traced_func_name = "by_shape"
    with pytest.raises(lib.fx.proxy.TraceError):
        tracer.trace(model)


def test_nodes_tell_of_their_modules(lib):
    model = Forwards(lib)
    traced = lib.fx.symbolic_trace(model)
    (node,) = [node for node in traced.graph.nodes if node.op == "call_module"]
    inner = model.inner
    assert node.meta["nn_module_stack"] == {
        "inner": ("inner", type(inner)),
        "inner.linear": ("inner.linear", type(inner.linear)),
    }
    assert all(
        ["nn_module_stack" not in node.meta for node in traced.graph.nodes if node.name == "mul"]
    )
    traced.meta["note"] = 1
    assert copy.deepcopy(traced).meta == {"note": 1}


@dataclasses.dataclass
class Pair:
    a: object
    b: object


class Own:
    def __init__(self, x):
        self.x = x

    def __fx_create_arg__(self, tracer):
        return tracer.create_node("call_function", Own, (tracer.create_arg(self.x),), {})


def test_objects_of_proxies_are_made_in_each_run(lib):
    traced = lib.fx.symbolic_trace(lambda x: Pair(x + 1, [x]))
    made = traced(2)
    assert made == Pair(3, [2])
    assert lib.fx.symbolic_trace(lambda x: Own(x))(2).x == 2
    with pytest.raises(RuntimeError, match="cannot contain a Node"):
        lib.fx.symbolic_trace(lambda x: {x: 1})


def test_writes_are_refused_on_request(lib):
    class Checks(lib.fx.Tracer):
        check_mutable_operations = True

    def function(x):
        return lib.sigmoid(x, out=lib.ones(2))

    lib.fx.Tracer().trace(function)
    with pytest.raises(RuntimeError, match=r"Tried to trace mutable operation aten::sigmoid.out"):
        Checks().trace(function)
    Checks().trace(lambda x: (x & x) + x)


def test_graphs_that_are_not_in_order_say_so(lib):
    graph, other = lib.fx.Graph(), lib.fx.Graph()
    x = other.placeholder("x")
    graph.output(graph.call_function(lib.relu, (x,)))
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        graph.lint()
    for op, target in (("call_function", "relu"), ("call_method", lib.relu), ("get_attr", 3)):
        with pytest.raises(ValueError, match="is expected"):
            lib.fx.Node(graph, "n", op, target, (), {})
    traced = lib.fx.symbolic_trace(Forwards(lib))
    for add in (traced.graph.call_module, traced.graph.get_attr)[lib is not tp :]:
        add("inner.linear")
        with pytest.warns(UserWarning, match="no underlying reference in the owning GraphModule"):
            add("inner.missing")


def test_transformers_keep_how_arguments_are_handed_in():
    class Listed(fx.CodeGen):
        def process_inputs(self, *args):
            return args[0]

    traced = fx.symbolic_trace(lambda a, b: a - b)
    traced.graph.set_codegen(Listed())
    traced.recompile()
    assert traced([3, 1]) == fx.Transformer(traced).transform()([3, 1]) == 2


# --- what replacements bring along --------------------------------------------------------------------


def test_constants_of_replacements_are_their_own():
    """In torch the program's own constant of the same number is taken."""
    first, second = tp.full((2,), 5.0), tp.full((2,), 7.0)
    traced = fx.symbolic_trace(lambda x: tp.relu(x) + first + tp.relu(x + 1))
    found = fx.replace_pattern(traced, lambda x: tp.relu(x), lambda x: tp.mul(x, second) + second)
    assert len(found) == 2
    traced.graph.lint()
    assert traced(tp.ones(2)).tolist() == [7.0 + 7.0 + 5.0 + 2 * 7.0 + 7.0] * 2
    assert len([name for name, _ in traced.named_buffers()]) == 2


@pytest.mark.parametrize("as_graph", [True, False])
def test_modules_and_parameters_of_replacements_come_along(lib, as_graph):
    class Scaled(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.act = lib.nn.Tanh()
            self.inner = lib.nn.Sequential(lib.nn.Linear(2, 2))
            self.scale = lib.nn.Parameter(lib.full((2,), 3.0))

        def forward(self, x):
            return self.inner(self.act(x)) * self.scale

    module = Scaled()
    traced = lib.fx.symbolic_trace(lambda x: lib.relu(x) + 1)
    given = lib.fx.symbolic_trace(module) if as_graph else module
    lib.fx.replace_pattern(traced, lambda x: lib.relu(x), given)
    traced.graph.lint()
    x = lib.ones(2)
    assert lib.allclose(traced(x), module(x) + 1)
    assert {name for name, _ in traced.named_parameters()} == {
        name for name, _ in module.named_parameters()
    }
    assert traced.scale is not module.scale
