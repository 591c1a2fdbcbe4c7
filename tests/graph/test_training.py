"""Captured gradients are the program's: first and higher ones, hooks, several backward passes, errors."""

import copy

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.core.plugins import manager
from tensorplug.graph import joint, training
from tensorplug.graph.cut import INFINITE, Network
from tensorplug.nn import functional as F
from tensorplug.utils.checkpoint import checkpoint


def equal(a, b):
    a, b = (tp.utils._pytree.tree_leaves(tree) for tree in (a, b))
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert (x is None) is (y is None)
        if x is not None:
            assert x.dtype is y.dtype
            assert np.array_equal(x.detach().numpy(), y.detach().numpy(), equal_nan=True)


def alike(a, b):
    """Compare bit for bit, but where a device fuses, whose roundings are others."""
    if manager.fusers_of("cpu"):
        tp.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    else:
        equal(a, b)


def halves(compiled):
    """Return what runs the captured gradients of a compiled function or module."""
    compiled = getattr(compiled, "_compiled", compiled)
    found = [
        t for entries in compiled._entries.values() for e in entries for t in e.trainings.values()
    ]
    return [t for t in found if isinstance(t, training.Training)]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).reshape(2, -1, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(found.transpose(1, 2).reshape(x.shape))


class Autocast(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        with tp.autocast("cpu", tp.bfloat16):
            return self.module(x)


NETWORKS = {
    "convolution": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.2),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5), nn.GELU(),
        ),
        lambda: tp.randn(2, 3, 8, 8),
    ),
    "attention": (Attention, lambda: tp.randn(2, 5, 8)),
    "attention in bfloat16": (lambda: Autocast(Attention()), lambda: tp.randn(2, 5, 8)),
    "embedding": (
        lambda: nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 9), nn.LogSoftmax(-1)),
        lambda: tp.randint(9, (2, 4)),
    ),
    "dropouts": (
        lambda: nn.Sequential(nn.Dropout1d(0.5), nn.AlphaDropout(0.3), nn.RReLU(), nn.Dropout(1.0)),
        lambda: tp.randn(2, 3, 4),
    ),
    "recurrent": (lambda: Only(nn.LSTM(4, 3)), lambda: tp.randn(5, 2, 4)),
}  # fmt: skip


class Only(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)[0]


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_train_alike(name):
    make, data = NETWORKS[name]
    tp.manual_seed(0)
    eager = make()
    twin = copy.deepcopy(eager)
    compiled = tp.compile(twin)
    optimizers = [
        tp.optim.SGD(m.parameters(), lr=0.1) for m in (eager, twin) if list(m.parameters())
    ]
    for step in range(5):
        x = data()
        xs = [x.clone().requires_grad_(x.is_floating_point()) for _ in range(2)]
        results = []
        for module, given in zip((eager, compiled), xs, strict=True):
            tp.manual_seed(step)
            results.append(module(given))
            results[-1].square().sum().backward()
        equal(*results)
        equal(xs[0].grad, xs[1].grad)
        equal([p.grad for p in eager.parameters()], [p.grad for p in twin.parameters()])
        for optimizer in optimizers:
            optimizer.step()
        equal(list(eager.buffers()), list(twin.buffers()))
    assert halves(compiled)


#: How the gradient of a result may lie in memory.
LAYOUTS = {
    "reversed": lambda g: g.permute(*reversed(range(g.dim()))).contiguous().permute(
        *reversed(range(g.dim()))
    ),
    "with gaps": lambda g: tp.stack([g, -g], -1)[..., 0],
    "expanded": lambda g: g[:1].expand(g.shape),
    "one number": lambda g: g.mean().expand(g.shape),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_lie_in_memory_as_they_may(name, layout):
    make, data = NETWORKS[name]
    tp.manual_seed(0)
    eager = make()
    twin = copy.deepcopy(eager)
    compiled = tp.compile(twin)
    for step in range(4):
        x = data()
        xs = [x.clone().requires_grad_(x.is_floating_point()) for _ in range(2)]
        for module, given in zip((eager, compiled), xs, strict=True):
            tp.manual_seed(step)
            result = module(given)
            gradient = tp.linspace(-1, 2, result.numel()).reshape(result.shape)
            result.backward(LAYOUTS[layout](gradient) if step else gradient)
        for a, b in zip(
            [xs[0].grad, *[p.grad for p in eager.parameters()]],
            [xs[1].grad, *[p.grad for p in twin.parameters()]],
            strict=True,
        ):
            assert (a is None) is (b is None)
            if a is not None:  # sums may be of other order in memory of another
                assert np.allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)
    assert halves(compiled)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_compiled_networks_within_checkpoints(name, reentrant):
    make, data = NETWORKS[name]
    tp.manual_seed(0)
    eager = make()
    twin = copy.deepcopy(eager)
    compiled = tp.compile(twin)
    for step in range(4):
        x = data()
        xs = [x.clone().requires_grad_(x.is_floating_point()) for _ in range(2)]
        if reentrant and not x.is_floating_point():
            return  # nothing would require grad
        results = []
        for module, given in zip((eager, compiled), xs, strict=True):
            tp.manual_seed(step)
            results.append(checkpoint(module, given, use_reentrant=reentrant))
            results[-1].square().sum().backward()
        alike(*results)
        alike(xs[0].grad, xs[1].grad)
        for p, q in zip(eager.parameters(), twin.parameters(), strict=True):
            alike(p.grad, q.grad)


def function(x, w):
    h = (x @ w).tanh()
    return h * h.exp(), h.sum(0)


def ready(program, *tensors):
    """Return a compiled program that has run with its gradients."""
    compiled = tp.compile(program)
    for _ in range(3):
        given = [t.clone().requires_grad_() for t in tensors]
        outs = tp.utils._pytree.tree_leaves(compiled(*given))
        sum([out.square().sum() for out in outs]).backward()
    assert halves(compiled)
    return compiled


def pair(*tensors):
    return [[t.clone().requires_grad_() for t in tensors] for _ in range(2)]


DATA = (tp.linspace(-1, 1, 6).reshape(2, 3), tp.linspace(0, 1, 9).reshape(3, 3))


def test_one_of_several_results_has_a_gradient():
    compiled = ready(function, *DATA)
    for which in (0, 1):
        (a, b), (c, d) = pair(*DATA)
        function(a, b)[which].square().sum().backward()
        compiled(c, d)[which].square().sum().backward()
        equal([a.grad, b.grad], [c.grad, d.grad])


def test_what_a_result_does_not_depend_on_has_no_gradient():
    def program(x, y):
        return x * 2, y * 3

    compiled = ready(program, *DATA)
    x, y = (t.clone().requires_grad_() for t in DATA)
    compiled(x, y)[0].sum().backward()
    assert y.grad is None
    equal(x.grad, tp.full((2, 3), 2.0))


def test_higher_derivatives():
    compiled = ready(function, *DATA)
    found = []
    for run, (x, w) in zip((function, compiled), pair(*DATA), strict=True):
        outs = run(x * 1, w)
        grads = tp.autograd.grad(outs, (x, w), [o.detach() for o in outs], create_graph=True)
        second = tp.autograd.grad(sum([(g * g).sum() for g in grads]), (x, w), create_graph=True)
        found.append([*grads, *second, *tp.autograd.grad(second[0].sum(), w)])
    for a, b in zip(*found, strict=True):
        tp.testing.assert_close(a, b)


def test_second_derivatives_draw_the_same_numbers():
    def program(x):
        return F.dropout(x.tanh(), 0.5)

    compiled = ready(program, DATA[0])
    found = []
    for run, (x,) in zip((program, compiled), pair(DATA[0]), strict=True):
        tp.manual_seed(5)
        out = run(x)
        (g,) = tp.autograd.grad(out.square().sum(), x, create_graph=True)
        found.append([out, *tp.autograd.grad(g.sum(), x), tp.rand(1)])
    for a, b in zip(*found, strict=True):
        tp.testing.assert_close(a, b)


def test_backward_twice():
    compiled = ready(function, *DATA)
    found = []
    for run, (x, w) in zip((function, compiled), pair(*DATA), strict=True):
        loss = run(x, w)[0].sum()
        loss.backward(retain_graph=True)
        loss.backward()
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()
        found.append([x.grad, w.grad])
    equal(*found)


@pytest.mark.parametrize("which", ["argument", "result", "view"])
def test_writing_to_what_was_saved_is_an_error(which):
    def program(x, w):
        h = (x * w).exp()
        return h if which != "view" else h.reshape(-1)

    compiled = ready(program, DATA[0], DATA[0])
    for run in (program, compiled):
        x, w = (DATA[0].clone().requires_grad_() for _ in range(2))
        given = x * 1
        out = run(given, w)
        with tp.no_grad():
            (given if which == "argument" else out).mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            out.sum().backward()


def test_results_are_written_and_hooked_as_others_are():
    compiled = ready(function, *DATA)
    found = []
    for run, (x, w) in zip((function, compiled), pair(*DATA), strict=True):
        seen = []
        first, second = run(x, w)
        second.mul_(2)
        second.register_hook(seen.append)
        first.retain_grad()
        x.register_hook(lambda g: g * 3)
        (first.sum() + second.square().sum()).backward()
        found.append([x.grad, w.grad, first.grad, *seen])
    equal(*found)


def test_gradients_of_any_layout():
    compiled = ready(function, *DATA)
    for make in (
        lambda shape: tp.ones(()).expand(shape),
        lambda shape: tp.arange(6.0).reshape(3, 2).T if shape == (2, 3) else tp.ones(shape),
        lambda shape: tp.arange(24.0)[:: 24 // np.prod(shape)].reshape(shape).flip(0),
    ):
        found = []
        for run, (x, w) in zip((function, compiled), pair(*DATA), strict=True):
            outs = run(x, w)
            given = [make(tuple(out.shape)) for out in outs]
            found.append(tp.autograd.grad(outs, (x, w), given))
        for a, b in zip(*found, strict=True):
            tp.testing.assert_close(a, b)


def test_parameters_that_freeze():
    module = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))
    compiled = tp.compile(module)
    x = DATA[0]
    for step in range(6):
        module[0].requires_grad_(step % 2 == 0)
        for run in (module, compiled):
            module.zero_grad()
            run(x).sum().backward()
            if run is module:
                wanted = [None if p.grad is None else p.grad.clone() for p in module.parameters()]
        equal([p.grad for p in module.parameters()], wanted)
    assert len(halves(compiled)) == 2


def test_what_is_not_captured_runs_op_by_op():
    def written(x, y):
        x.add_(y)
        return x.exp()

    def data(x, y):
        return tp.cdist(x, y)

    for program in (written, data):
        compiled = tp.compile(program)
        for _ in range(3):
            found = []
            for run, (x, y) in zip((program, compiled), pair(DATA[0], DATA[0]), strict=True):
                run(x * 1, y).sum().backward()
                found.append([x.grad, y.grad])
            equal(*found)
        assert not halves(compiled)
        assert compiled.explain().eager == 0
    assert "gradients op by op: a derivative keeps" in str(compiled.explain())


def test_a_gradient_whose_body_differentiates():
    def program(x, y):
        return F.interpolate(x[None] * y, scale_factor=2)

    compiled = tp.compile(program)
    for _ in range(3):
        found = []
        for run, (x, y) in zip((program, compiled), pair(DATA[0], DATA[0]), strict=True):
            run(x * 1, y).sum().backward()
            found.append([x.grad, y.grad])
        equal(*found)
    assert halves(compiled)


def test_data_that_is_read():
    def program(x, w):
        if (x > 0).all():
            return (x * w).exp()
        return x * w.sum()

    compiled = ready(program, DATA[0].abs() + 1, DATA[0])
    for data in (DATA[0].abs() + 1, DATA[0], DATA[0].abs() + 2, DATA[0], DATA[0]):
        found = []
        for run, (x, w) in zip((program, compiled), pair(data, DATA[0]), strict=True):
            out = run(x, w)
            out.square().sum().backward()
            found.append([out, x.grad, w.grad])
        equal(*found)
    assert len(halves(compiled)) == 2


def test_shapes_of_tensors_among_the_arguments():
    def program(x):
        return x.reshape(x.shape).expand(tp.Size([2, *x.shape])) * 2

    compiled = tp.compile(program)
    for rows in (2, 2, 3, 3, 4, 4):
        x = tp.randn(rows, 3)
        equal(compiled(x), program(x))
    assert len(compiled.explain().graphs) == 1


def test_saved_tensors_hooks_see_what_eager_saves():
    compiled = ready(function, *DATA)
    counts = []
    for run, (x, w) in zip((function, compiled), pair(*DATA), strict=True):
        packed = []
        with tp.autograd.graph.saved_tensors_hooks(
            lambda t, p=packed: p.append(t) or t, lambda t: t
        ):
            run(x, w)
        counts.append(len(packed))
    assert counts[0] == counts[1] > 0


def test_a_planted_fault_is_found(monkeypatch):
    monkeypatch.setattr(joint, "_simplify", _wrong(joint._simplify))
    with pytest.raises(AssertionError):
        test_networks_train_alike("attention")


def _wrong(simplify):
    def planted(graph):
        simplify(graph)
        node = next(n for n in graph.nodes if n.op.name == "mul")
        node.args = (node.args[0], node.args[0])

    return planted


@pytest.mark.parametrize("seed", range(20))
def test_cuts_are_the_least(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 8))
    capacity = rng.integers(0, 6, (size, size)) * (rng.random((size, size)) < 0.5)
    network = Network()
    points = [network.add() for _ in range(size)]
    for a in points:
        for b in points:
            if capacity[a, b] and a != b:
                network.join(a, b, int(capacity[a, b]))
    side = network.cut(0, size - 1)

    def cost(inside):
        return sum(
            capacity[a, b] for a in inside for b in range(size) if b not in inside and a != b
        )

    others = [
        {0, *[p for p in range(1, size - 1) if mask >> (p - 1) & 1]}
        for mask in range(1 << (size - 2))
    ]
    assert cost(side) == min(map(cost, others))
    assert capacity.sum() < INFINITE


PAIRS = [
    tp.add, tp.sub, tp.mul, tp.div, tp.pow, tp.maximum, tp.minimum, tp.atan2, tp.hypot, tp.fmod, tp.remainder,
    tp.xlogy, tp.logaddexp, tp.copysign, tp.ldexp, lambda a, b: tp.where(b > 0, a, b),
    lambda a, b: tp.where(b > 0, b, a),
    lambda a, b: tp.addcmul(a, b, b, value=0.5), lambda a, b: tp.lerp(a, b.to(a.dtype), 0.3),
    lambda a, b: a * (b > 1),
    lambda a, b: a / (b > 0).sum(), lambda a, b: b - a, lambda a, b: a.masked_fill(b > 1, 2),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [tp.int64, tp.float64, tp.float16, tp.bool])
def test_derivatives_that_keep_what_an_op_converted(dtype):
    made = 0
    for pair in PAIRS:
        compiled = tp.compile(pair)
        found = []
        for run in (pair, compiled, compiled, compiled):
            a = tp.tensor([0.5, 1.5, 2.5], requires_grad=True)
            b = tp.tensor([1.0, 2.0, 3.0]).to(dtype)
            b.requires_grad_(dtype.is_floating_point)
            try:
                loss = run(a, b).sum()
                loss.backward()
            except RuntimeError:  # such as a difference of bools
                found.append([])
                continue
            found.append([loss.detach(), a.grad, b.grad])
        for other in found[1:]:
            equal(found[0], other)
        made += len(halves(compiled))
    assert made >= len(PAIRS) - 4


LOSSES = [
    lambda x: F.cross_entropy(x, tp.tensor([0, 2, 1]), label_smoothing=0.1),
    lambda x: F.cross_entropy(x, tp.tensor([0, 2, 1]), ignore_index=2, label_smoothing=0.2),
    lambda x: F.cross_entropy(x, tp.tensor([0, 2, 1]), tp.tensor([1.0, 2, 3]), label_smoothing=0.2),
    lambda x: F.cross_entropy(x, x.detach().softmax(1)), lambda x: F.cross_entropy(x[0], tp.tensor(1)),
    lambda x: F.nll_loss(x.log_softmax(1), tp.tensor([0, 2, 1])),
    lambda x: F.layer_norm(x, x.shape[1:]).sum(),
]  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_calls_that_a_rule_leaves_to_other_ops(loss):
    def run(x):
        return loss(x * 2)

    compiled = tp.compile(run)
    found = []
    for which in (run, compiled, compiled):
        x = tp.arange(9.0).reshape(3, 3).sin().requires_grad_()
        value = which(x)
        value.backward()
        found.append([value.detach(), x.grad])
    equal(found[0], found[1])
    equal(found[0], found[2])
    assert halves(compiled)


REDUCTIONS = {
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "sum of rows": lambda x: x.sum(1),
    "sum of columns, kept": lambda x: x.sum(0, keepdim=True),
    "mean of rows": lambda x: x.mean(1, keepdim=True),
    "expanded": lambda x: x.expand(2, 3, 4),
    "broadcast": lambda x: x + tp.zeros(2, 1, 1),
    "diagonal": lambda x: x.diagonal(),
    "norm": lambda x: x.norm(),
    "trace": lambda x: x[:, :3].trace(),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_gradient_that_is_spread_is_added_to_one_from_outside(name):
    reduced = REDUCTIONS[name]

    def program(x, other):
        return reduced(x) * other.sum()

    compiled = tp.compile(program)
    for number in range(4):
        start = tp.randn(3, 4)
        found = []
        for run in (program, compiled):
            x = start.clone().requires_grad_()
            run(x, x * x).sum().backward()  # which reaches `other`, and so `x`, later
            found.append(x.grad)
        assert tp.allclose(found[0], found[1], 1e-5, 1e-5), number
    assert compiled.explain().calls == 3


@pytest.mark.parametrize(
    "bounds", [(-1, 1), (0.0, 6.0), (-0.1, 0.7), (0.3, 0.3), (-float("inf"), 1e-3)]
)
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.bfloat16, tp.float16])
def test_what_was_cut_off_is_told_by_results(dtype, bounds):
    """The next op keeps them anyway; halves cannot hold all bounds."""
    points = [*bounds, 0.0, -0.0, float("nan"), float("inf"), -float("inf"), 0.5, 3.0, -2.0]
    x = tp.tensor(points, dtype=tp.float64).to(dtype)
    x = tp.cat([x, x * (1 - 1e-7), x * (1 + 1e-7), x * 0.99, x * 1.01])

    def program(x):
        y = F.hardtanh(x + 0, *bounds)
        return (y * y * y).sum()

    compiled = tp.compile(program)
    for _ in range(3):
        found = []
        for run in (program, compiled):
            source = x.clone().requires_grad_()
            run(source).backward()
            found.append(source.grad)
        equal(*found)
    (half,) = halves(compiled)
    for node in half.joint.backward.nodes:
        if node.op.name == "hardtanh_backward":  # without a kernel of its own it is other ops
            by_result = node.args[1].name.startswith("hardtanh")
            assert by_result == (dtype in (tp.float32, tp.float64))
