"""Steps that are counted and skipped on the device, where the host need not look."""

import pytest

import tensorplug as tp
from tensorplug.optim.ops.optimizers.on_device import adam_step_on_device, sgd_step_on_device

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=1 installs it")

OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
    "Adam": {"lr": 0.1, "weight_decay": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.1},
}


def train(library, name, options, bad_step):
    values = [[1.0, -2.0, 3.0], [0.5]]
    parameters = [library.tensor(v, requires_grad=True) for v in values]
    optimizer = getattr(library.optim, name)(parameters, fused=True, **options)
    scaler = library.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    for step in range(5):
        loss = sum((p.square() * (i + 1)).sum() for i, p in enumerate(parameters))
        if step == bad_step:
            loss = loss * float("inf")
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return [p.tolist() for p in parameters], scaler.get_scale(), optimizer


@pytest.mark.parametrize("bad_step", [None, 2, 3])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_scaled_step_is_skipped_without_a_look(name, bad_step, monkeypatch):
    expected, scale, _ = train(torch, name, OPTIMIZERS[name], bad_step)
    looks = []
    item = tp.Tensor.item
    monkeypatch.setattr(tp.Tensor, "item", lambda self: looks.append(1) or item(self))
    found, own_scale, optimizer = train(tp, name, OPTIMIZERS[name], bad_step)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-5)
    assert own_scale == scale
    assert looks == [1]  # get_scale's own
    if name != "SGD":
        steps = [state["step"] for state in optimizer.state.values()]
        assert all(step.tolist() == (5 if bad_step is None else 4) for step in steps)


def test_optimizers_without_the_option_are_asked_on_the_host():
    x = tp.ones(2, requires_grad=True)
    assert not tp.optim.Adam([x])._step_supports_amp_scaling
    assert not tp.optim.RMSprop([x])._step_supports_amp_scaling
    assert tp.optim.AdamW([x], fused=True)._step_supports_amp_scaling


def test_the_learning_rate_may_be_a_tensor():
    results = []
    for rate in (None, tp.tensor(0.25)):
        x = [tp.tensor([1.0, 2.0])]
        averages, squares, steps = [tp.zeros(2)], [tp.zeros(2)], [tp.tensor(0.0)]
        adam_step_on_device(
            x, [tp.tensor([0.5, -1.0])], averages, squares, [], steps, rate, None,
            0.25, 0.9, 0.999, 0.1, 1e-8, False, False, True,
        )  # fmt: skip
        sgd_step_on_device(x, [tp.ones(2)], [], rate, None, 0.25, 0, 0, 0, False, True, False)
        results.append(x[0])
        assert steps[0].item() == 1
    tp.testing.assert_close(*results)
