"""Averaged models and their schedule do what torch's do."""

import pytest

import tensorplug as tp
from tensorplug.optim import swa_utils

torch = pytest.importorskip("torch", reason="values are compared with torch's")

AVERAGES = {
    "default": lambda u: {},
    "swa": lambda u: {"avg_fn": u.get_swa_avg_fn()},
    "swa of lists": lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    "ema": lambda u: {"avg_fn": u.get_ema_avg_fn(0.9)},
    "ema of lists": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9)},
    "own": lambda u: {"avg_fn": lambda mean, value, count: mean * 0.5 + value + count},
}


def model(library):
    made = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.BatchNorm1d(3))
    set_weights(library, made, 0)
    return made


def set_weights(library, made, phase):
    with library.no_grad():
        for number, tensor in enumerate([*made.parameters(), *made.buffers()]):
            numbers = library.arange(tensor.numel()).reshape(tensor.shape)
            tensor.copy_((numbers + 1) * (number + 2) * (phase + 1) % 7)


def values(module):
    return {key: value.reshape(-1).tolist() for key, value in module.state_dict().items()}


# torch takes no plain mean of an integer buffer in its function for lists.
@pytest.mark.parametrize(
    ("name", "use_buffers"),
    [(name, False) for name in AVERAGES]
    + [("swa", True), ("ema", True), ("ema of lists", True), ("own", True)],
)
def test_averages_are_torchs(name, use_buffers):
    def averaged(library, utils):
        made = model(library)
        average = utils.AveragedModel(made, use_buffers=use_buffers, **AVERAGES[name](utils))
        for phase in range(5):
            set_weights(library, made, phase)
            average.update_parameters(made)
        output = average.eval()(library.ones(4, 2))
        return values(average), output.tolist()

    ours, our_output = averaged(tp, swa_utils)
    theirs, their_output = averaged(torch, torch.optim.swa_utils)
    assert list(ours) == list(theirs)
    for key, value in ours.items():
        assert value == pytest.approx(theirs[key], rel=1e-6), key
    assert our_output == [pytest.approx(row, rel=1e-5) for row in their_output]


def test_the_model_is_copied():
    made = model(tp)
    average = swa_utils.AveragedModel(made, device="cpu")
    with tp.no_grad():
        next(made.parameters()).fill_(7.0)
    assert next(average.module.parameters()).flatten().tolist() != [7.0] * 6


@pytest.mark.parametrize("as_list", [False, True])
def test_batch_norms_are_computed_anew(as_list):
    def updated(library, utils):
        made = model(library).eval()
        batches = [
            library.tensor([[1.0, 2.0], [3.0, 5.0], [0.0, 1.0]]) * scale for scale in (1, 2, 5)
        ]
        utils.update_bn([[batch, 0] for batch in batches] if as_list else batches, made, "cpu")
        assert not made.training
        assert made[1].momentum == 0.1
        return values(made)

    ours, theirs = updated(tp, swa_utils), updated(torch, torch.optim.swa_utils)
    for key, value in ours.items():
        assert value == pytest.approx(theirs[key], rel=1e-6), key
    swa_utils.update_bn([1, 2], tp.nn.Linear(2, 2))  # nothing to do, so nothing is read


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 10])
@pytest.mark.parametrize("swa_lr", [0.05, [0.5, 0.01]])
def test_the_schedule_is_torchs(strategy, epochs, swa_lr):
    def rates(library, utils):
        groups = [{"params": [library.zeros(1)]}, {"params": [library.zeros(1)], "lr": 0.3}]
        optimizer = library.optim.SGD(groups, lr=0.1)
        before = library.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        scheduler = utils.SWALR(optimizer, swa_lr, epochs, strategy)
        found = []
        for step in range(50):
            optimizer.step()
            (before if step < 5 else scheduler).step()
            found += [group["lr"] for group in optimizer.param_groups]
        return found

    assert rates(tp, swa_utils) == pytest.approx(rates(torch, torch.optim.swa_utils), rel=1e-10)


BAD = [
    lambda library, u: u.get_ema_avg_fn(1.5),
    lambda library, u: u.get_ema_multi_avg_fn(-0.5),
    lambda library, u: u.AveragedModel(
        library.nn.Linear(1, 1), avg_fn=u.get_swa_avg_fn(), multi_avg_fn=u.get_swa_multi_avg_fn()
    ),
    lambda library, u: u.SWALR(library.optim.SGD([library.zeros(1)]), 0.1, anneal_strategy="x"),
    lambda library, u: u.SWALR(library.optim.SGD([library.zeros(1)]), 0.1, anneal_epochs=-1),
    lambda library, u: u.SWALR(library.optim.SGD([library.zeros(1)]), [0.1, 0.2]),
    lambda library, u: u.SWALR(None, 0.1),
]


@pytest.mark.parametrize("call", BAD)
def test_bad_input_raises_what_torch_raises(call):
    with pytest.raises(Exception) as expected:  # noqa: PT011
        call(torch, torch.optim.swa_utils)
    with pytest.raises(Exception) as raised:  # noqa: PT011
        call(tp, swa_utils)
    assert issubclass(raised.type, expected.type)
