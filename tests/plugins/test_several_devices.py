"""Several devices of third parties in one process: copies between all of them, and a model over two."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.plugin import array_api_backend

VAULT = Path(__file__).parent / "packages" / "tp_second_memory" / "src"
# A device with a memory and kernels of its own, and two that share a library and nothing else.
OTHERS = ("vault", "abacus", "ledger")
DEVICES = ("cpu", *OTHERS)


@pytest.fixture(scope="module", autouse=True)
def devices():
    sys.path.insert(0, str(VAULT))
    try:
        import tp_second_memory
    finally:
        sys.path.remove(str(VAULT))
    plugins = [
        tp_second_memory.plugin,
        array_api_backend(np, device_type="abacus"),
        array_api_backend(np, device_type="ledger"),
    ]
    names = [tp.plugins.register(plugin).name for plugin in plugins]
    yield
    for name in names:
        tp.plugins.unregister(name)


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(DEVICES, 2)))
class TestPairs:
    @pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.int8, tp.int64, tp.bool])
    @pytest.mark.parametrize("layout", ["rows", "transposed", "strided", "empty", "0-d"])
    def test_copy(self, source, target, dtype, layout):
        x = tp.arange(12).reshape(3, 4).to(dtype)
        x = {
            "rows": x, "transposed": x.t(), "strided": x[::2, 1::2], "empty": x[:0], "0-d": x[1, 2],
        }[layout]  # fmt: skip
        there = x.to(source)
        copy = there.to(target)
        assert copy.device.type == target
        assert (copy.dtype, copy.tolist()) == (dtype, x.tolist())
        copy.zero_()
        assert there.tolist() == x.tolist()

    def test_gradient_comes_back(self, source, target):
        x = tp.tensor([1.0, 2.0], device=source, requires_grad=True)
        (x.to(target) * tp.tensor([3.0, 4.0], device=target)).sum().backward()
        assert x.grad.device.type == source
        assert x.grad.tolist() == [3.0, 4.0]

    def test_copy_into(self, source, target):
        x = tp.zeros(2, 3, device=target)
        x.t().copy_(tp.arange(6.0, device=source).reshape(3, 2))
        assert x.tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]

    def test_they_do_not_mix_by_themselves(self, source, target):
        with pytest.raises(RuntimeError, match="device") as raised:
            tp.ones(2, device=source) + tp.ones(2, device=target)
        assert source in str(raised.value)
        assert target in str(raised.value)


def record_of_device(type_):
    """The name of the plugin that a device came from."""
    (name,) = [
        record.name
        for record in tp.core.plugins.registered()
        if any(runtime.type == type_ for runtime in record.devices)
    ]
    return name


def network():
    tp.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh()), nn.Sequential(
        nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)
    )


def train(first_device, second_device, steps=5):
    """Train the halves of a network where they are told to be, and return losses and weights."""
    first, second = network()
    first.to(first_device)
    second.to(second_device)
    tp.manual_seed(1)
    x, y = tp.randn(16, 4), tp.randn(16, 1)
    optimizer = tp.optim.AdamW([*first.parameters(), *second.parameters()], lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        hidden = first(x.to(first_device)).to(second_device)
        loss = nn.functional.mse_loss(second(hidden), y.to(second_device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert {p.grad.device.type for p in first.parameters()} == {first_device}
    assert {p.grad.device.type for p in second.parameters()} == {second_device}
    return losses, [p.detach().cpu() for p in (*first.parameters(), *second.parameters())]


@pytest.mark.parametrize(
    ("first", "second"), [("vault", "abacus"), ("abacus", "ledger"), ("ledger", "vault")]
)
def test_a_model_split_over_two(first, second):
    losses, weights = train(first, second)
    expected, same = train("cpu", "cpu")
    assert losses[-1] < losses[0]
    assert losses == pytest.approx(expected, rel=1e-4)
    for weight, other in zip(weights, same, strict=True):
        tp.testing.assert_close(weight, other, rtol=1e-4, atol=1e-5)


def test_each_op_ran_where_its_tensors_were():
    with tp.profiler.profile() as profile:
        train("vault", "abacus", steps=1)
    owners = {}
    for event in profile.events():
        if event.choice is not None and event.choice.kernel is not None:
            device = event.device.partition(":")[0]
            owners.setdefault(device, set()).add(event.choice.kernel.plugin)
    assert owners["abacus"] == {"abacus"}
    assert owners["vault"] == {record_of_device("vault")}
    assert "ledger" not in owners


def test_one_goes_and_the_others_stay():
    tp.plugins.register(array_api_backend(np, device_type="guest"))
    x = tp.ones(2, device="guest")
    kept = x.to("vault")
    tp.plugins.unregister("guest")
    assert (kept + kept).tolist() == [2.0, 2.0]
    assert (tp.ones(2, device="abacus") + 1).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="went away when plugin guest was unregistered"):
        x + x


def test_state_moves_between_them():
    first, _ = network()
    state = first.to("vault").state_dict()
    other, _ = network()
    other.to("ledger").load_state_dict(state)
    assert next(other.parameters()).device.type == "ledger"
    tp.testing.assert_close(next(other.parameters()).cpu(), next(first.parameters()).cpu())
