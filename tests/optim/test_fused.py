"""The steps of optimizers as ops: kernels, bodies and torch agree; what is written to is known to be."""

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.kernel_registry import kernels_for
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.optim.ops.optimizers.fused import FUSED

OPTIONS = {
    "SGD": [
        {},
        {"weight_decay": 0.1, "maximize": True},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1, "maximize": True},
        {"momentum": 0.9, "nesterov": True},
    ],
    "Adam": [
        {},
        {"amsgrad": True, "weight_decay": 0.1},
        {"maximize": True, "weight_decay": 0.1, "decoupled_weight_decay": True},
    ],
    "AdamW": [{}, {"amsgrad": True, "maximize": True}],
    "Adagrad": [{}, {"lr_decay": 0.1, "weight_decay": 0.1, "maximize": True}],
    "RMSprop": [
        {},
        {"centered": True, "weight_decay": 0.1},
        {"momentum": 0.9, "maximize": True},
        {"momentum": 0.9, "centered": True},
    ],
    "Adadelta": [{}, {"rho": 0.7, "weight_decay": 0.1, "maximize": True}],
    "Adafactor": [{}, {"d": 2.0, "eps": (1e-3, 1e-2), "weight_decay": 0.1, "maximize": True}],
    "Adamax": [{}, {"betas": (0.5, 0.8), "weight_decay": 0.1, "maximize": True}],
    "ASGD": [{}, {"lambd": 0.01, "t0": 2, "weight_decay": 0.1, "maximize": True}],
    "NAdam": [
        {},
        {"weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True},
        {"weight_decay": 0.1, "decoupled_weight_decay": True},
    ],
    "RAdam": [
        {},
        {"betas": (0.5, 0.8), "weight_decay": 0.1, "maximize": True},
        {"weight_decay": 0.1, "decoupled_weight_decay": True},
    ],
    "Rprop": [{}, {"etas": (0.3, 1.5), "step_sizes": (1e-4, 0.06), "maximize": True}],
}
CASES = [(name, options) for name, several in OPTIONS.items() for options in several]
SHAPES = [(3, 4), (), (0, 2), (20,), (5,)]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let the arrays of these tests be worked on in several blocks."""
    from tensorplug_cpu_numpy.kernels import optimizers

    monkeypatch.setattr(optimizers, "BLOCK", 8)


def values(shape, phase):
    count = 1
    for size in shape:
        count *= size
    return [((i * 37 + phase * 11) % 23 - 11) / 8 for i in range(count)]


def made(library, dtype, strided=False):
    """Return parameters of several shapes; with `strided` their memory has gaps."""
    parameters = []
    for shape in SHAPES:
        numbers = library.tensor(values(shape, 1), dtype=dtype).reshape(shape)
        if strided and shape:
            numbers = library.stack([numbers, numbers], -1)[..., 0]
        parameters.append(numbers.requires_grad_())
    return parameters


def steps(library, name, parameters, count=4, **options):
    optimizer = getattr(library.optim, name)(parameters, lr=0.05, **options)
    for step in range(count):
        for parameter in parameters:
            gradient = library.tensor(values(parameter.shape, step), dtype=parameter.dtype)
            parameter.grad = gradient.reshape(parameter.shape)
        optimizer.step()
    return optimizer


def flat(tensors):
    return [value for tensor in tensors for value in tensor.detach().reshape(-1).tolist()]


@pytest.mark.parametrize(("name", "options"), CASES)
@pytest.mark.parametrize("strided", [False, True])
def test_one_op_ends_where_single_updates_end(name, options, strided):
    together, single = made(tp, tp.float64, strided), made(tp, tp.float64, strided)
    first = steps(tp, name, together, **options)
    second = steps(tp, name, single, foreach=False, **options)
    # Where a gradient and the decay of its weight cancel, rounding is left, which these divide by itself.
    rel = 1e-10 if options.get("weight_decay") else 1e-12
    assert flat(together) == pytest.approx(flat(single), rel=rel, abs=1e-14)
    remembered = [[state for state in o.state.values() if state] for o in (first, second)]
    for a, b in zip(*remembered, strict=True):
        assert a.keys() == b.keys()
        for key in a:
            assert flat([a[key]]) == pytest.approx(flat([b[key]]), rel=rel, abs=1e-14), key


@pytest.mark.parametrize(("name", "options"), CASES)
@pytest.mark.parametrize("how", [{}, {"foreach": True}, {"foreach": False}])
def test_torch_ends_there_too(name, options, how):
    torch = pytest.importorskip("torch", reason="values are compared with torch's")
    ours, theirs = made(tp, tp.float64), made(torch, torch.float64)
    if name == "Adafactor":  # which divides by the number of elements, in torch also if it is 0
        ours, theirs = ([p for p in made if p.numel()] for made in (ours, theirs))
    steps(tp, name, ours, **options, **how)
    steps(torch, name, theirs, **options, **how)
    # ASGD of torch with foreach=True keeps its rates in float32.
    rel = 1e-6 if name == "ASGD" and how.get("foreach") else 1e-10
    assert flat(ours) == pytest.approx(flat(theirs), rel=rel, abs=1e-12)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_is_taken_and_checked(name):
    plain, fused = made(tp, tp.float64), made(tp, tp.float64)
    steps(tp, name, plain)
    steps(tp, name, fused, fused=True)
    assert flat(plain) == flat(fused)
    with pytest.raises(RuntimeError, match="floating point"):
        getattr(tp.optim, name)([tp.zeros(2, dtype=tp.complex64)], fused=True)
    with pytest.raises(RuntimeError, match="cannot be `True` together"):
        getattr(tp.optim, name)([tp.zeros(2)], fused=True, foreach=True)


@pytest.mark.parametrize("name", list(OPTIONS))
def test_parameters_of_several_dtypes_in_one_group(name):
    def several():
        dtypes = [tp.float32, tp.float64, tp.bfloat16, tp.complex64, tp.float32]
        if name == "Adafactor":  # refuses it
            dtypes.remove(tp.complex64)
        return [tp.tensor([0.5, -1.0], dtype=dtype, requires_grad=True) for dtype in dtypes]

    # Adadelta's first steps are of the size of eps, too small for bfloat16.
    options = {"eps": 0.1} if name == "Adadelta" else {}
    together, single = several(), several()
    steps(tp, name, together, **options)
    steps(tp, name, single, foreach=False, **options)
    for a, b in zip(together, single, strict=True):
        assert a.tolist() == pytest.approx(b.tolist(), rel=1e-6)
        assert a.tolist() != [0.5, -1.0]


@pytest.mark.parametrize("function", FUSED)
def test_every_step_is_an_op(function):
    assert get_op(function.op.name) is function.op


KERNELS = [
    "sgd", "adam", "adagrad", "rmsprop", "adadelta", "adamax", "asgd", "nadam", "radam",
]  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_the_default_device_has_a_kernel(name):
    assert [kernel.plugin for kernel in kernels_for(f"optim.{name}_step", "cpu")]


@pytest.mark.parametrize("name", OPTIONS)
def test_a_backend_gets_all_parameters_at_once(name):
    from tensorplug.plugin import KernelTable, hookimpl

    op = f"optim.{name.lower().replace('adamw', 'adam')}_step"
    seen = []

    class Plugin:
        name = "counting_steps"

        @hookimpl
        def tensorplug_kernels(self):
            table = KernelTable("cpu", priority=1000)
            table.add(op, lambda params, *_: seen.append(len(params)), dtypes=[tp.float64])
            return table

    def calls(**how):
        seen.clear()
        steps(
            tp, name, [tp.ones(2, 3, dtype=tp.float64, requires_grad=True) for _ in range(5)], **how
        )
        return list(seen)

    tp.plugins.register(Plugin())
    try:
        assert calls(count=2) == calls(count=2, foreach=True) == [5, 5]
        assert calls(foreach=False) == []
    finally:
        tp.plugins.unregister(Plugin.name)


def test_a_written_tensor_counts_the_write():
    x = tp.ones(3, requires_grad=True)
    result = (x * x).sum()
    x.grad = tp.ones(3)
    before = x._version
    tp.optim.SGD([x], lr=0.1).step()
    assert x._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_memory_that_is_shared_within_a_parameter_is_refused_before_anything_changes():
    first, x = tp.ones(3), tp.ones(1).expand(3)
    first.grad = tp.ones(3)
    x.grad = tp.ones(3)
    with pytest.raises(RuntimeError, match="single memory location"):
        tp.optim.SGD([first, x], lr=0.1).step()
    assert first.tolist() == [1.0, 1.0, 1.0]


def test_a_kernel_of_another_plugin_takes_over():
    from tensorplug.plugin import KernelTable, hookimpl

    seen = []

    class Plugin:
        name = "own_steps"

        @hookimpl
        def tensorplug_kernels(self):
            table = KernelTable("cpu", priority=1_000)

            @table.kernel("optim.sgd_step", dtypes=[tp.float32])
            def sgd_step(params, grads, buffers, lr, *options):
                seen.append((len(params), len(grads), len(buffers), lr, options))
                for p, g in zip(params, grads, strict=True):
                    p -= lr * g

            return table

    plugin = Plugin()
    tp.plugins.register(plugin)
    try:
        parameters = made(tp, tp.float32)[:2]
        steps(tp, "SGD", parameters, count=1)
    finally:
        tp.plugins.unregister(plugin.name)
    assert seen == [(2, 2, 0, 0.05, (0, 0, 0, False, False, True))]
    expected = made(tp, tp.float32)[:2]
    steps(tp, "SGD", expected, count=1)
    assert flat(parameters) == flat(expected)


def test_bodies_run_on_the_meta_device():
    for name, options in CASES:
        if name == "Adafactor":  # reads the norm of each parameter
            continue
        x = tp.empty(3, device="meta", requires_grad=True)
        x.grad = tp.empty(3, device="meta")
        optimizer = getattr(tp.optim, name)([x], **options)
        optimizer.step()
        optimizer.step()
        assert x.shape == (3,)
