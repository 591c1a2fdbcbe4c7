"""What a stranger's package registers under a public name is what runs, in training too."""

import sys
from pathlib import Path

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug.core import plugins
from tensorplug.core.dispatch import op_registry
from tensorplug.core.plugins import discovery, entry_points
from tensorplug.plugin import (
    FLOATS,
    Kernel,
    derivative,
    hookimpl,
    kernel_below,
    tangent,
    vmap_rule,
)
from tensorplug.testing import cases, making
from tensorplug.testing.records import all_records

sys.path.append(str(Path(__file__).parents[2]))  # the benchmarks are imported from the repository
from benchmarks import database

TOP = 1_000
FLOAT32 = tp.float32
NAME = "stranger"


class Stranger:
    """A plugin of somebody else's, with a kernel for each of some ops that counts its calls."""

    name = NAME

    def __init__(self, names, dtypes=FLOATS):
        self.names = names
        self.dtypes = dtypes
        self.calls = dict.fromkeys(names, 0)

    @hookimpl
    def tensorplug_kernels(self):
        return [self.kernel(name, dtype) for name in self.names for dtype in self.dtypes]

    def kernel(self, name, dtype):
        below = None

        def counting(*raw):
            nonlocal below
            self.calls[name] += 1
            below = below or kernel_below(name, "cpu", dtype, NAME)
            return below(*raw)

        return Kernel(name, "cpu", counting, {dtype}, priority=TOP)


@pytest.fixture
def stranger():
    """Register plugins, and take them back."""
    names = []

    def register(plugin):
        plugins.register(plugin)
        names.append(plugin.name)
        return plugin

    yield register
    for name in names:
        plugins.unregister(name)


def made(*shape):
    tp.manual_seed(0)
    return (tp.rand(*shape) + 0.5).requires_grad_()


def index(*values):
    return tp.tensor(values)


def _lstm(x):
    tp.manual_seed(0)
    return tp.nn.LSTM(4, 3)(x)[0]


SPD = tp.tensor([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]])

# A training step's call of each, of a tensor that requires grad.
CALLS = {
    "add": lambda: made(3) + made(3),
    "mul": lambda: made(3) * made(3),
    "div": lambda: tp.div(made(3), made(3)),
    "pow": lambda: made(3) ** 2.5 + made(3) ** 2,
    "exp": lambda: made(3).exp(),
    "tanh": lambda: made(3).tanh(),
    "where": lambda: tp.where(made(3) > 1, made(3), made(3) * 2),
    "clamp": lambda: made(3).clamp(0.6, 1.2),
    "lerp": lambda: tp.lerp(made(3), made(3), 0.3),
    "addcmul": lambda: tp.addcmul(made(3), made(3), made(3)),
    "sum": lambda: made(2, 3).sum(1),
    "mean": lambda: made(2, 3).mean(1),
    "var": lambda: made(2, 3).var(1),
    "std": lambda: made(2, 3).std(1),
    "max": lambda: made(2, 3).max(1).values,
    "median": lambda: made(2, 3).median(1).values,
    "sort": lambda: made(2, 3).sort(1).values,
    "topk": lambda: made(2, 3).topk(2).values,
    "cumsum": lambda: made(2, 3).cumsum(1),
    "cummax": lambda: made(2, 3).cummax(1).values,
    "logsumexp": lambda: made(2, 3).logsumexp(1),
    "softmax": lambda: made(2, 3).softmax(1),
    "log_softmax": lambda: F.log_softmax(made(2, 3), 1),
    "cat": lambda: tp.cat([made(2), made(3)]),
    "stack": lambda: tp.stack([made(2), made(2)]),
    "roll": lambda: made(3).roll(1),
    "tril": lambda: made(3, 3).tril(),
    "gather": lambda: made(2, 3).gather(1, index([0], [1])),
    "index_select": lambda: made(2, 3).index_select(1, index(0, 2)),
    "index_add": lambda: made(2, 3).index_add(1, index(0, 2), made(2, 2)),
    "scatter_add": lambda: made(2, 3).scatter_add(1, index([0], [1]), made(2, 1)),
    "masked_fill": lambda: made(3).masked_fill(tp.tensor([True, False, True]), 1.0),
    "matmul": lambda: made(2, 3) @ made(3, 2),
    "bmm": lambda: tp.bmm(made(2, 2, 3), made(2, 3, 2)),
    "addmm": lambda: tp.addmm(made(2, 2), made(2, 3), made(3, 2)),
    "einsum": lambda: tp.einsum("ij,jk->ik", made(2, 3), made(3, 2)),
    "norm": lambda: made(2, 3).norm(dim=1),
    "cdist": lambda: tp.cdist(made(2, 3), made(4, 3)),
    "linalg.svd": lambda: tp.linalg.svd(made(3, 2), full_matrices=False)[1],
    "linalg.qr": lambda: tp.linalg.qr(made(3, 2))[1],
    "linalg.cholesky": lambda: tp.linalg.cholesky(SPD.clone().requires_grad_()),
    "linalg.solve": lambda: tp.linalg.solve(SPD.clone().requires_grad_(), made(3, 1)),
    "linalg.inv": lambda: tp.linalg.inv(SPD.clone().requires_grad_()),
    "linalg.det": lambda: tp.linalg.det(SPD.clone().requires_grad_()),
    "linalg.eigh": lambda: tp.linalg.eigh(SPD.clone().requires_grad_())[0],
    "relu": lambda: F.relu(made(3)),
    "gelu": lambda: F.gelu(made(3)),
    "silu": lambda: F.silu(made(3)),
    "glu": lambda: F.glu(made(2, 4)),
    "leaky_relu": lambda: F.leaky_relu(made(3)),
    "linear": lambda: F.linear(made(2, 3), made(4, 3), made(4)),
    "bilinear": lambda: F.bilinear(made(2, 3), made(2, 4), made(5, 3, 4)),
    "embedding": lambda: F.embedding(index(0, 2), made(3, 4)),
    "conv1d": lambda: F.conv1d(made(2, 3, 8), made(4, 3, 3)),
    "conv2d": lambda: F.conv2d(made(2, 3, 6, 6), made(4, 3, 3, 3), made(4), padding=1),
    "conv_transpose2d": lambda: F.conv_transpose2d(made(2, 3, 4, 4), made(3, 4, 3, 3)),
    "max_pool2d": lambda: F.max_pool2d(made(1, 2, 4, 4), 2),
    "avg_pool2d": lambda: F.avg_pool2d(made(1, 2, 4, 4), 2),
    "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(made(1, 2, 4, 4), 2),
    "interpolate": lambda: F.interpolate(made(1, 2, 4, 4), scale_factor=2),
    "pad": lambda: F.pad(made(2, 3), (1, 1)),
    "grid_sample": lambda: F.grid_sample(made(1, 2, 4, 4), made(1, 3, 3, 2)),
    "layer_norm": lambda: F.layer_norm(made(2, 3), (3,), made(3), made(3)),
    "rms_norm": lambda: F.rms_norm(made(2, 3), (3,), made(3)),
    "group_norm": lambda: F.group_norm(made(2, 4, 3), 2, made(4), made(4)),
    "batch_norm": lambda: F.batch_norm(
        made(4, 3), tp.zeros(3), tp.ones(3), made(3), made(3), training=True
    ),
    "cross_entropy": lambda: F.cross_entropy(made(2, 3), index(0, 2)),
    "nll_loss": lambda: F.nll_loss(made(2, 3), index(0, 2)),
    "mse_loss": lambda: F.mse_loss(made(3), made(3) * 2),
    "binary_cross_entropy_with_logits": lambda: F.binary_cross_entropy_with_logits(
        made(3), tp.tensor([0.0, 1, 1])
    ),
    "scaled_dot_product_attention": lambda: F.scaled_dot_product_attention(
        made(1, 2, 4, 8), made(1, 2, 4, 8), made(1, 2, 4, 8)
    ),
    "lstm": lambda: _lstm(made(5, 2, 4)),
}


def trained(call):
    """Return a call's result, and the gradients of all leaves that it was made from."""
    leaves = []
    original = tp.Tensor.requires_grad_

    def noted(self, *args):
        leaves.append(self)
        return original(self, *args)

    tp.Tensor.requires_grad_ = noted
    try:
        result = call()
    finally:
        tp.Tensor.requires_grad_ = original
    assert result.requires_grad
    (result * tp.arange(1.0, result.numel() + 1).reshape(result.shape)).sum().backward()
    return result.detach(), [leaf.grad for leaf in leaves]


def same(ours, theirs):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            tp.testing.assert_close(a, b, equal_nan=True)


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_for_a_public_name_serves_training(stranger, name):
    expected, gradients = trained(CALLS[name])
    plugin = stranger(Stranger([name]))
    result, found = trained(CALLS[name])
    assert plugin.calls[name] >= 1, f"the kernel registered for {name!r} was not called"
    tp.testing.assert_close(result, expected)
    same(found, gradients)
    chosen = tp.explain(name)
    assert chosen.kernel.plugin == NAME
    assert NAME in str(chosen)


# --- every op -----------------------------------------------------------------------------------


def _first_call(record):
    """Return arguments for a call of an op with a float32 tensor that requires grad, or None."""
    making.seed(f"{record.op} stranger")
    maker = cases.Maker("cpu", FLOAT32, requires_grad=record.gradient)
    for sample in record.samples(maker, FLOAT32):
        tensors = list(cases.tensors_in((sample.args, sample.kwargs)))
        if tensors and all(t.numel() for t in tensors) and tensors[0].dtype is FLOAT32:
            return cases.map_tensors((sample.args, sample.kwargs), _leaf)
    return None


def _leaf(tensor):
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _run(op, args, kwargs):
    """Return the results of a call, the gradients of its leaves, and which results require grad."""
    leaves = [t for t in cases.tensors_in((args, kwargs)) if t.requires_grad]
    for leaf in leaves:
        leaf.grad = None
    results = list(cases.tensors_in(op.call(*args, **kwargs)))
    tracked = [result for result in results if result.requires_grad]
    if tracked:
        tp.autograd.backward(tracked, [tp.ones_like(result) for result in tracked])
    flags = [result.requires_grad for result in results]
    return [r.detach() for r in results], [leaf.grad for leaf in leaves], flags


#: Which Python loops over, so that long ones take minutes, and those with a result for each pair of elements.
NOT_ENLARGED = (
    "cartesian_prod", "combinations", "ctc_loss", "ctc_loss_backward", "gru", "gru_layer_backward", "lstm",
    "lstm_layer_backward",
)  # fmt: skip
LARGE = 20_000  # elements: matrices of 142 rows
LARGEST = 100 * LARGE  # of results


def _large_call(op, call):
    """Return a call with the same arguments repeated along a dimension, or None where an op takes none."""
    if op.name in NOT_ENLARGED:
        return None
    for form in database.grown(call, LARGE, tp):
        args, kwargs = form = cases.map_tensors(form, _leaf)
        for made, given in zip(cases.tensors_in(form), cases.tensors_in(call), strict=True):
            made.requires_grad_(given.requires_grad)
        try:
            shapes = cases.map_tensors(form, lambda t: t.detach().to("meta"))
            results = list(cases.tensors_in(op.call(*shapes[0], **shapes[1])))
        except Exception:
            results = []  # whose sizes are known from values alone, or not of these sizes
        if sum(result.numel() for result in results) > LARGEST:
            continue
        try:
            op.call(*args, **kwargs)
        except Exception:
            continue
        return form
    return None


def _large_ops():
    for op, call in _callable_ops():
        large = _large_call(op, call)
        if large is not None:
            yield op, large


def _callable_ops():
    discovery.load_device(entry_points.EXTENSION)
    for record in all_records():
        op = op_registry.get_op(record.op)
        # A view's kernel must return a view, and random ops draw others each time.
        empty = "empty" in op.name  # whose contents are any
        if FLOAT32 in record.dtypes and not (op.view or op.random or op.writes or empty):
            call = _first_call(record)
            if call is not None:
                yield op, call


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ops", "least"), [(_callable_ops, 400), (_large_ops, 450)], ids=["small", "large"]
)
def test_a_kernel_for_any_op_serves_training(stranger, ops, least):
    """Of all ops with samples, but views and random ones; with all others replaced at the same time."""
    expected = {}
    for op, call in ops():
        expected[op.name] = (op, call, *_run(op, *call))
    # Large systems are solved by the factors, which the backward pass takes too, where who solves makes them.
    for name in ("linalg_solve_lu", "linalg_lu_factor_ex"):
        expected.pop(name, None)
    plugin = stranger(Stranger(list(expected), (FLOAT32,)))
    silent, wrong = [], []
    for name, (op, call, results, gradients, flags) in expected.items():
        before = plugin.calls[name]
        found, slopes, flagged = _run(op, *call)
        if plugin.calls[name] == before:
            silent.append(name)
        try:
            same(found, results)
            same(slopes, gradients)
            assert flagged == flags
        except AssertionError:
            wrong.append(name)
    assert not wrong, f"other values or gradients: {wrong}"
    assert len(expected) > least
    assert sorted(silent) == sorted(NOT_CALLED), "kernels that were not called"
    for name in NOT_CALLED:
        assert "other ops serve some forms: " in str(tp.explain(name))


#: The first samples of these ask for the one of all elements, which other ops serve: amax, amin, median_all.
NOT_CALLED = ("max", "median", "min", "nanmedian")

#: Without a kernel the bodies of these differentiate those of other ops, whose derivatives are asked before.
BY_OTHERS = (
    "ctc_loss_backward", "embedding_bag_backward", "grid_sampler_backward", "interpolate_backward",
    "local_response_norm_backward", "multi_margin_loss_backward", "multilabel_margin_loss_backward",
)  # fmt: skip


def test_a_kernel_for_solving_serves_large_systems_in_training(stranger):
    """Without one, the factors of large matrices are kept for the backward pass, by another op."""
    plugin = stranger(Stranger(["linalg_solve_ex"]))
    A = (tp.eye(130) * 2).requires_grad_()
    tp.linalg.solve_ex(A, tp.ones(130, 2)).result.sum().backward()
    assert plugin.calls["linalg_solve_ex"] == 2
    tp.testing.assert_close(A.grad, tp.full((130, 130), -0.5))


def _calls_with_0d():
    """Yield ops that take a 0-d tensor for their first one, and such a call of each."""
    for op, (args, kwargs) in _callable_ops():
        tensors = list(cases.tensors_in((args, kwargs)))
        if not args or tensors[0] is not args[0]:
            continue
        if op.owner != "tensorplug" and op.canonical is None:
            continue  # nn's own functions check what they hand to such an op; its kernels need not
        bound = op.signature.bind(*args, **kwargs)
        if type(bound.arguments.get("dim", 0)) is not int:
            continue
        bound.arguments[next(iter(bound.arguments))] = made(1).sum().detach().requires_grad_()
        if "dim" in op.names:
            bound.arguments["dim"] = 0
        try:
            results = list(cases.tensors_in(op.call(*bound.args, **bound.kwargs)))
        except Exception:
            continue  # not of a 0-d tensor
        yield op, (bound.args, bound.kwargs), results


def test_a_kernel_serves_0d_tensors(stranger):
    expected = {op.name: (op, call, results) for op, call, results in _calls_with_0d()}
    plugin = stranger(Stranger(list(expected), (FLOAT32,)))
    silent = []
    for name, (op, (args, kwargs), results) in expected.items():
        before = plugin.calls[name]
        found = list(cases.tensors_in(op.call(*args, **kwargs)))
        for ours, theirs in zip(found, results, strict=True):
            tp.testing.assert_close(ours.detach(), theirs.detach(), equal_nan=True)
        if plugin.calls[name] == before:
            silent.append(name)
    assert len(expected) > 200
    assert silent == ["equal"], "which tensors of two shapes are not needs no kernel"


def test_a_former_order_of_arguments_reaches_the_kernel(stranger):
    plugin = stranger(Stranger(["addmm"]))
    input, a, b = made(2, 2), made(2, 3), made(3, 2)
    with pytest.warns(UserWarning, match="numbers before tensors"):
        found = tp.addmm(2, input, 3, a, b)
    assert plugin.calls["addmm"] == 1
    tp.testing.assert_close(found, 2 * input + 3 * (a @ b))


def test_kernels_that_each_ask_for_the_one_below(stranger):
    calls = []

    class Second(Stranger):
        name = "second"

        def kernel(self, name, dtype):
            def lower(*raw):
                calls.append(name)
                return kernel_below(name, "cpu", dtype, "second")(*raw)

            return Kernel(name, "cpu", lower, {dtype}, priority=TOP - 1)

    stranger(Second(["exp"], (FLOAT32,)))
    top = stranger(Stranger(["exp"], (FLOAT32,)))
    tp.testing.assert_close(tp.zeros(3).exp(), tp.ones(3))
    assert (top.calls["exp"], calls) == (1, ["exp"])


# --- rules for differentiation and vmap ---------------------------------------------------------------


class Met(Exception):
    """Raised by a stranger's rule: it was asked."""


class Derivatives:
    """A plugin of somebody else's, with a derivative for each of some ops, which all raise."""

    name = NAME

    def __init__(self, ops):
        self.made = [self.make(op) for op in ops]

    def make(self, op):
        formula = raising(op, *gradients_of(op))
        return derivative(op.name, priority=TOP, **dict.fromkeys(op.parameters, formula))

    @hookimpl
    def tensorplug_derivatives(self):
        return self.made


class Tangents(Derivatives):
    def make(self, op):
        return tangent(op.name, priority=TOP, **dict.fromkeys(op.parameters, raising(op, "t")))

    @hookimpl
    def tensorplug_derivatives(self):
        return []

    @hookimpl
    def tensorplug_tangents(self):
        return self.made


class VmapRules(Derivatives):
    def make(self, op):
        formula = raising(op)
        return vmap_rule(op.name, lambda *_: formula(), priority=TOP)

    @hookimpl
    def tensorplug_derivatives(self):
        return []

    @hookimpl
    def tensorplug_vmap_rules(self):
        return self.made


def raising(op, *names):
    """Return a formula that asks for these, and says whose it is."""

    def say():
        raise Met(op.name)

    return eval(f"lambda {', '.join(names)}: say()", {"say": say})


def gradients_of(op):
    """Return the names by which a derivative asks for the gradients of an op's outputs."""
    if op.outputs == ("*",):
        return ("gs",)
    return ("g",) if len(op.outputs) == 1 else tuple([f"g_{name}" for name in op.outputs])


def in_backward(op, args, kwargs, _):
    _run(op, args, kwargs)


def in_forward_mode(op, args, kwargs, first):
    def dual(x):
        x, itself = x.detach(), x is first
        return tp.autograd.forward_ad.make_dual(x, tp.ones_like(x)) if itself else x

    with tp.autograd.forward_ad.dual_level():
        args, kwargs = cases.map_tensors((args, kwargs), dual)
        op.call(*args, **kwargs)


def in_vmap(op, args, kwargs, first):
    def call(x):
        given, named = cases.map_tensors((args, kwargs), lambda y: x if y is first else y.detach())
        return op.call(*given, **named)

    tp.vmap(call)(tp.stack([first.detach()] * 2))


@pytest.mark.parametrize(
    ("plugin", "run"),
    [(Derivatives, in_backward), (Tangents, in_forward_mode), (VmapRules, in_vmap)],
    ids=["derivative", "tangent", "vmap rule"],
)
def test_a_rule_for_any_op_is_asked(stranger, plugin, run):
    """Of all ops with samples, but views and random ones: it stands in for ours."""
    calls = []
    for op, (args, kwargs) in _callable_ops():
        leaves = [t for t in cases.tensors_in((args, kwargs)) if t.requires_grad]
        if leaves:
            calls.append((op, args, kwargs, leaves[0]))
    stranger(plugin([op for op, *_ in calls]))
    others = {}
    for op, args, kwargs, first in calls:
        with pytest.raises(Met) as met:
            run(op, args, kwargs, first)
        if met.value.args[0] != op.name:
            others[op.name] = met.value.args[0]
    assert len(calls) > 400
    assert set(others) <= {*NOT_CALLED, *BY_OTHERS}, others
