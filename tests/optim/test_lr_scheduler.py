"""Schedulers: torch's rates for 50 steps, closed forms, checkpoints, bad input."""

import math

import pytest

import tensorplug as tp
from tensorplug.optim import lr_scheduler

torch = pytest.importorskip("torch", reason="values are compared with torch's")


def sequential(optimizer, module):
    return module.SequentialLR(
        optimizer,
        [
            module.LinearLR(optimizer, 0.1, total_iters=5),
            module.CosineAnnealingLR(optimizer, 20, eta_min=0.01),
            module.ExponentialLR(optimizer, 0.9),
        ],
        [5, 30],
    )


def chained(optimizer, module):
    return module.ChainedScheduler(
        [
            module.ConstantLR(optimizer, 0.1, total_iters=4),
            module.ExponentialLR(optimizer, 0.95),
            module.CosineAnnealingLR(optimizer, 15, eta_min=0.001),
        ]
    )


SCHEDULES = {
    "lambda": lambda o, m: m.LambdaLR(o, lambda epoch: 0.95**epoch / (1 + epoch)),
    "lambdas": lambda o, m: m.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "multiplicative": lambda o, m: m.MultiplicativeLR(o, lambda epoch: 1 - 0.01 * epoch),
    "step": lambda o, m: m.StepLR(o, 7, 0.3),
    "multi step": lambda o, m: m.MultiStepLR(o, [3, 10, 10, 30], 0.5),
    "constant": lambda o, m: m.ConstantLR(o, 0.25, 6),
    "linear": lambda o, m: m.LinearLR(o, 0.2, 0.7, 12),
    "linear to zero": lambda o, m: m.LinearLR(o, 1.0, 0.0, 12),
    "exponential": lambda o, m: m.ExponentialLR(o, 0.93),
    "cosine": lambda o, m: m.CosineAnnealingLR(o, 50, 0.01),
    "cosine beyond its end": lambda o, m: m.CosineAnnealingLR(o, 8, 0.01),
    "cosine to zero": lambda o, m: m.CosineAnnealingLR(o, 7),
    "restarts": lambda o, m: m.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "equal restarts": lambda o, m: m.CosineAnnealingWarmRestarts(o, 7),
    "polynomial": lambda o, m: m.PolynomialLR(o, 20, 0.9),
    "cyclic": lambda o, m: m.CyclicLR(o, 0.01, 0.3, 5, 8),
    "cyclic halved": lambda o, m: m.CyclicLR(o, 0.01, 0.3, 6, mode="triangular2"),
    "cyclic exponential": lambda o, m: m.CyclicLR(o, 0.01, 0.3, 6, mode="exp_range", gamma=0.97),
    "cyclic by hand": lambda o, m: m.CyclicLR(
        o, [0.01, 0.02], [0.3, 0.4], 6, scale_fn=lambda x: 1 / x, cycle_momentum=False
    ),
    "one cycle": lambda o, m: m.OneCycleLR(o, 0.5, total_steps=51),
    "one cycle linear": lambda o, m: m.OneCycleLR(
        o, [0.5, 0.3], epochs=3, steps_per_epoch=17, anneal_strategy="linear", three_phase=True
    ),
    "sequential": sequential,
    "chained": chained,
}


def optimizer_of(library, name="SGD"):
    parameters = [library.zeros(1, requires_grad=True) for _ in range(2)]
    groups = [{"params": [parameters[0]]}, {"params": [parameters[1]], "lr": 0.25}]
    options = {"momentum": 0.9} if name == "SGD" else {}
    return getattr(library.optim, name)(groups, lr=0.1, **options)


def rates(optimizer):
    keys = ("lr", "momentum", "betas")
    return [[group[key] for key in keys if key in group] for group in optimizer.param_groups]


def flat(nested):
    if isinstance(nested, (list, tuple)):
        return [value for item in nested for value in flat(item)]
    return [nested]


def path(optimizer, scheduler, steps=50):
    taken = [rates(optimizer)]
    for _ in range(steps):
        optimizer.step()
        scheduler.step()
        taken.append(rates(optimizer))
    return flat(taken)


# torch's own SequentialLR passes `epoch` to schedulers, which it has deprecated.
quiet = pytest.mark.filterwarnings("ignore:The epoch parameter in")


@quiet
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_fifty_steps_have_torchs_rates(name, kind):
    ours, theirs = optimizer_of(tp, kind), optimizer_of(torch, kind)
    our_scheduler = SCHEDULES[name](ours, lr_scheduler)
    their_scheduler = SCHEDULES[name](theirs, torch.optim.lr_scheduler)
    assert path(ours, our_scheduler) == pytest.approx(
        path(theirs, their_scheduler), rel=1e-12, abs=1e-12
    )
    assert our_scheduler.get_last_lr() == [group["lr"] for group in ours.param_groups]


@quiet
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_checkpoint_resumes(name):
    whole = optimizer_of(tp)
    expected = path(whole, SCHEDULES[name](whole, lr_scheduler))
    first = optimizer_of(tp)
    scheduler = SCHEDULES[name](first, lr_scheduler)
    start = path(first, scheduler, 23)
    second = optimizer_of(tp)
    resumed = SCHEDULES[name](second, lr_scheduler)
    second.load_state_dict(first.state_dict())
    resumed.load_state_dict(scheduler.state_dict())
    assert "optimizer" not in scheduler.state_dict()
    rest = path(second, resumed, 27)
    per_step = len(flat(rates(whole)))
    assert start + rest[per_step:] == pytest.approx(expected, rel=1e-12)


@quiet
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("goes", ["to torch", "from torch"])
def test_state_is_exchanged_with_torch(name, goes):
    libraries = [(tp, lr_scheduler), (torch, torch.optim.lr_scheduler)]
    (one, ones_module), (other, others_module) = libraries[:: 1 if goes == "to torch" else -1]
    first, second = optimizer_of(one), optimizer_of(other)
    given = SCHEDULES[name](first, ones_module)
    taken = SCHEDULES[name](second, others_module)
    path(first, given, 9)
    taken.load_state_dict(given.state_dict())
    second.load_state_dict({**first.state_dict(), "state": {}})
    assert path(first, given, 20) == pytest.approx(path(second, taken, 20), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
@pytest.mark.parametrize("cooldown", [0, 3])
def test_plateau_follows_torch(mode, threshold_mode, cooldown):
    metrics = [math.sin(i / 3) + 2 - i * 0.01 for i in range(50)]
    taken = []
    for library in (tp, torch):
        optimizer = optimizer_of(library)
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer,
            mode,
            factor=0.5,
            patience=2,
            threshold=0.01,
            threshold_mode=threshold_mode,
            cooldown=cooldown,
            min_lr=[0.001, 0.01],
        )
        path = []
        for metric in metrics:
            scheduler.step(metric)
            path.append((scheduler.get_last_lr(), scheduler.num_bad_epochs))
        taken.append(path)
    assert taken[0] == taken[1]
    assert taken[0][0][0] != taken[0][-1][0]


def test_plateau_takes_tensors_and_resumes():
    optimizer = optimizer_of(tp)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    scheduler.step(tp.tensor(1.0))
    state = scheduler.state_dict()
    other = lr_scheduler.ReduceLROnPlateau(optimizer, patience=5)
    other.load_state_dict(state)
    assert other.best == 1.0
    other.step(2.0)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)


def test_a_tensor_rate_keeps_its_identity():
    lr = tp.tensor(1.0)
    optimizer = tp.optim.SGD([tp.zeros(1)], lr=lr)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is lr
    assert lr.item() == 0.5
    assert optimizer.param_groups[0]["initial_lr"].item() == 1.0


#: Schedulers by tensors, and the options of a group that they make of them.
BY_TENSORS = {
    "CyclicLR": (
        {"base_lr": 0.1, "max_lr": 0.5, "base_momentum": 0.8, "max_momentum": 0.9},
        {"step_size_up": 3},
    ),
    "OneCycleLR": (
        {"max_lr": 0.5, "base_momentum": 0.8, "max_momentum": 0.9},
        {"total_steps": 12},
    ),
    "SWALR": ({"swa_lr": 0.05}, {"anneal_epochs": 4}),
}


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", BY_TENSORS)
def test_who_gave_a_tensor_may_write_to_it(name, several):
    numbers, others = BY_TENSORS[name]
    tensors = {key: tp.tensor(value, dtype=tp.float64) for key, value in numbers.items()}
    taken = []
    for given in (numbers, tensors):
        optimizer = optimizer_of(tp)
        module = tp.optim.swa_utils if name == "SWALR" else lr_scheduler
        values = {key: [value] * 2 if several else value for key, value in given.items()}
        scheduler = getattr(module, name)(optimizer, **values, **others)
        for tensor in tensors.values():
            tensor.fill_(7.0)
        steps = [float(value) for _ in range(8) for value in path(optimizer, scheduler, 1)[4:]]
        options = {*numbers, "initial_lr"} & {*optimizer.param_groups[0]}
        taken.append(
            steps + [float(group[key]) for group in optimizer.param_groups for key in options]
        )
        for key, value in numbers.items():
            tensors[key].fill_(value)
    assert taken[1] == pytest.approx(taken[0], rel=1e-6)


def test_groups_do_not_share_a_tensor():
    optimizer = optimizer_of(tp)
    lr_scheduler.OneCycleLR(optimizer, max_lr=tp.tensor(0.5), total_steps=5)
    first, second = (group["max_lr"] for group in optimizer.param_groups)
    assert first is not second


def test_resuming_at_an_epoch():
    optimizer = optimizer_of(tp)
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified in param_groups"):
        lr_scheduler.StepLR(optimizer, 3, last_epoch=5)
    lr_scheduler.StepLR(optimizer, 3)
    assert lr_scheduler.StepLR(optimizer, 3, last_epoch=4).last_epoch == 5


def test_an_explicit_epoch_uses_the_closed_form():
    for name in ("step", "multi step", "linear", "exponential", "cosine", "polynomial", "constant"):
        optimizer = optimizer_of(tp)
        expected = path(optimizer, SCHEDULES[name](optimizer, lr_scheduler), 9)[-4:]
        optimizer = optimizer_of(tp)
        scheduler = SCHEDULES[name](optimizer, lr_scheduler)
        optimizer.step()
        with pytest.warns(UserWarning, match="The epoch parameter"):
            scheduler.step(9)
        assert flat(rates(optimizer)) == pytest.approx(expected, rel=1e-12)


def test_restarts_may_go_to_a_fraction_of_an_epoch():
    taken = []
    for library in (tp, torch):
        optimizer = optimizer_of(library)
        scheduler = library.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 4, 3)
        optimizer.step()
        path = []
        for i in range(100):
            scheduler.step(i / 3)
            path.append(optimizer.param_groups[1]["lr"])
        taken.append(path)
    assert taken[0] == pytest.approx(taken[1], rel=1e-9, abs=1e-12)
    with pytest.raises(ValueError, match="non-negative epoch"):
        scheduler.step(-1)


def test_stepping_before_the_optimizer_warns():
    scheduler = lr_scheduler.StepLR(optimizer_of(tp), 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()


BAD = [
    (lambda o: lr_scheduler.StepLR(3, 1), TypeError, "int is not an Optimizer"),
    (lambda o: lr_scheduler.LambdaLR(o, [math.sqrt]), ValueError, "Expected 2 lr_lambdas"),
    (lambda o: lr_scheduler.ConstantLR(o, 1.5), ValueError, "between 0 and 1"),
    (lambda o: lr_scheduler.LinearLR(o, 0.0), ValueError, "greater than 0"),
    (lambda o: lr_scheduler.LinearLR(o, 0.5, 2.0), ValueError, "between 0 and 1"),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0), ValueError, "positive integer T_0"),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 1, 0), ValueError, "T_mult >= 1"),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 1, 1, "a"), ValueError, "eta_min"),
    (lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.2, mode="square"), ValueError, "mode is invalid"),
    (lambda o: lr_scheduler.CyclicLR(o, [0.1], 0.2), ValueError, "same length"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1), ValueError, "must define either total_steps OR"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 0), ValueError, "positive integer total_steps"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1, None, 2, -1), ValueError, "integer steps_per_epoch"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 5, pct_start=2), ValueError, "pct_start"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 5, anneal_strategy="x"), ValueError, "'cos' or"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be < 1.0"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, "up"), ValueError, "mode up is unknown"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "threshold mode"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, min_lr=[1.0]), ValueError, "expected 2 min_lrs"),
    (lambda o: lr_scheduler.SequentialLR(o, [], []), ValueError, "at least one scheduler"),
    (lambda o: lr_scheduler.ChainedScheduler([]), ValueError, "at least one scheduler"),
    (
        lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 1)], [3]),
        ValueError,
        "one more than the number of milestone",
    ),
    (
        lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.StepLR(o, 1), lr_scheduler.StepLR(optimizer_of(tp), 1)]
        ),
        ValueError,
        "same optimizer",
    ),
]


@pytest.mark.parametrize(("make", "error", "text"), BAD)
def test_bad_input(make, error, text):
    with pytest.raises(error, match=text):
        make(optimizer_of(tp))


@pytest.mark.parametrize("name", ["CyclicLR", "OneCycleLR"])
def test_momentum_must_be_there_to_be_cycled(name):
    optimizer = tp.optim.Adagrad([tp.zeros(1)])
    options = {"base_lr": 0.1} if name == "CyclicLR" else {"total_steps": 5}
    with pytest.raises(ValueError, match="must support momentum or beta1"):
        getattr(lr_scheduler, name)(optimizer, max_lr=0.2, **options)


def test_one_cycle_ends():
    optimizer = optimizer_of(tp)
    scheduler = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)
    optimizer.step()
    scheduler.step()
    scheduler.step()
    with pytest.raises(ValueError, match="Tried to step 3 times"):
        scheduler.step()


def test_the_base_has_no_rates():
    with pytest.raises(NotImplementedError, match="does not define get_lr"):
        lr_scheduler.LRScheduler(optimizer_of(tp))


RESUMED = {
    "step": lambda o, m, e: m.StepLR(o, 3, last_epoch=e),
    "multi step": lambda o, m, e: m.MultiStepLR(o, [2, 7], last_epoch=e),
    "constant": lambda o, m, e: m.ConstantLR(o, total_iters=6, last_epoch=e),
    "linear": lambda o, m, e: m.LinearLR(o, total_iters=8, last_epoch=e),
    "exponential": lambda o, m, e: m.ExponentialLR(o, 0.9, last_epoch=e),
    "polynomial": lambda o, m, e: m.PolynomialLR(o, 10, 2.0, last_epoch=e),
    "multiplicative": lambda o, m, e: m.MultiplicativeLR(o, lambda _: 0.9, last_epoch=e),
    "lambda": lambda o, m, e: m.LambdaLR(o, lambda epoch: 0.9**epoch, last_epoch=e),
    "cosine": lambda o, m, e: m.CosineAnnealingLR(o, 20, last_epoch=e),
    "warm restarts": lambda o, m, e: m.CosineAnnealingWarmRestarts(o, 4, last_epoch=e),
}


@pytest.mark.parametrize("epoch", [0, 1, 4, 5, 9])
@pytest.mark.parametrize("name", RESUMED)
def test_a_schedule_that_is_resumed(name, epoch):
    rates = []
    for module in (torch, tp):
        optimizer = module.optim.SGD([module.zeros(1)], lr=0.03)
        optimizer.param_groups[0]["initial_lr"] = 0.05
        schedule = RESUMED[name](optimizer, module.optim.lr_scheduler, epoch)
        rates.append(list(schedule.get_last_lr()))
        for _ in range(5):
            optimizer.step()
            schedule.step()
            rates[-1] += schedule.get_last_lr()
    assert rates[1] == pytest.approx(rates[0], rel=1e-6, abs=1e-12)


def test_the_bounds_of_momentum_are_in_the_groups():
    groups = []
    for module in (torch, tp):
        parameters = [module.zeros(1), module.zeros(1)]
        optimizer = module.optim.SGD([{"params": [p]} for p in parameters], lr=0.1, momentum=0.9)
        schedule = module.optim.lr_scheduler.CyclicLR(
            optimizer, 0.01, 0.1, step_size_up=2, base_momentum=[0.8, 0.7], max_momentum=[0.9, 0.95]
        )
        for _ in range(3):
            optimizer.step()
            schedule.step()
            names = ("momentum", "base_momentum", "max_momentum")
            groups.append([[group[n] for n in names] for group in optimizer.param_groups])
    assert groups[:3] == groups[3:]


def test_an_optimizer_whose_step_was_replaced():
    def replaced(before):
        optimizer = tp.optim.SGD([tp.ones(1, requires_grad=True)], lr=0.1)
        if before:
            step = optimizer.step
            optimizer.step = lambda *args: step(*args)
        scheduler = tp.optim.lr_scheduler.StepLR(optimizer, 1)
        assert not {"_own_step", "optimizer"} & scheduler.state_dict().keys()
        if not before:
            optimizer.step = lambda: None
        optimizer.step()
        return scheduler

    with pytest.warns(UserWarning, match="has been overridden after"):
        replaced(False).step()
    replaced(True).step()


PLATEAUS = {
    "plateau": lambda o, m: m.ReduceLROnPlateau(o, factor=0.5, patience=1, min_lr=0.03),
    "plateau of each group": lambda o, m: m.ReduceLROnPlateau(o, patience=0, min_lr=[0.02, 0.05]),
}


def joined_later(library, name):
    """Return the rates of groups of which one joins after three steps; or the type of the error."""
    optimizer = optimizer_of(library)
    module = library.optim.lr_scheduler
    scheduler = {**SCHEDULES, **PLATEAUS}[name](optimizer, module)
    metric = [1.0] if name in PLATEAUS else []
    found = []
    try:
        for number in range(9):
            if number == 3:
                weight = library.zeros(1, requires_grad=True)
                optimizer.add_param_group({"params": [weight], "lr": 0.5, "initial_lr": 0.5})
            optimizer.step()
            scheduler.step(*metric)
            found.append(flat([group["lr"] for group in optimizer.param_groups]))
    except Exception as error:
        found.append(type(error).__name__)
    return found


@quiet
@pytest.mark.parametrize("name", [*SCHEDULES, *PLATEAUS])
def test_a_group_that_joins_later(name):
    ours, theirs = joined_later(tp, name), joined_later(torch, name)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(other, str):
            assert isinstance(one, str), (one, other)
        else:
            assert one == pytest.approx(other, rel=1e-12)
