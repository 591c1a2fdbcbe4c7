"""Every optimizer takes the same way as torch's on the same problem."""

import math

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="values are compared with torch's")

STEPS = 50
START = [[[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]], [0.3, -0.2, 0.1]]

CASES = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "momentum": 0.9}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.001, "maximize": True}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "betas": (0.5, 0.8), "eps": 1e-3, "maximize": True}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "amsgrad": True, "weight_decay": 0.3, "maximize": True}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.5, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01, "maximize": True, "alpha": 0.5}),
    ("Adagrad", {"lr": 0.1}),
    (
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5},
    ),
    ("Adadelta", {"lr": 1.0}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {"lr": 0.05}),
    ("Adamax", {"lr": 0.05, "betas": (0.5, 0.8), "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.05}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Rprop", {"lr": 0.01}),
    ("Rprop", {"lr": 0.01, "etas": (0.3, 1.5), "step_sizes": (1e-4, 0.1), "maximize": True}),
    ("ASGD", {"lr": 0.05}),
    ("ASGD", {"lr": 0.05, "lambd": 0.01, "t0": 10, "weight_decay": 0.1}),
]


@pytest.fixture(autouse=True)
def float64_by_default():
    """Let the numbers that optimizers keep beside the tensors be of double precision."""
    libraries = (tp, torch)
    for library in libraries:
        library.set_default_dtype(library.float64)
    yield
    for library in libraries:
        library.set_default_dtype(library.float32)


def problem(library):
    """Return two parameters and a function that computes their loss."""
    weight = library.tensor(START[0], requires_grad=True)
    bias = library.tensor(START[1], requires_grad=True)

    def loss():
        x = library.tensor([[1.0, -2.0], [0.5, 3.0], [2.0, 0.1]])
        y = library.tanh(x @ weight + bias)
        return ((y - 0.5) ** 2).sum() + 0.1 * (weight**4).sum()

    return [weight, bias], loss


def run(library, name, options, steps=STEPS, optimizer=None, parameters=None):
    """Return parameters and optimizer after some steps."""
    parameters, loss = problem(library)
    optimizer = getattr(library.optim, name)(parameters, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return parameters, optimizer


def flat(tensors):
    return [value for tensor in tensors for value in tensor.detach().reshape(-1).tolist()]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_fifty_steps_end_where_torch_ends(name, options):
    ours, _ = run(tp, name, options)
    theirs, _ = run(torch, name, options)
    assert flat(ours) == pytest.approx(flat(theirs), rel=1e-10, abs=1e-12)
    assert flat(ours) != pytest.approx(flat(problem(tp)[0]), rel=1e-3)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_default_options_are_torchs(name):
    ours = getattr(tp.optim, name)([tp.zeros(1)]).defaults
    theirs = getattr(torch.optim, name)([torch.zeros(1)]).defaults
    assert {key: ours[key] for key in theirs} == theirs


def to_ours(value):
    if isinstance(value, torch.Tensor):
        return tp.tensor(value.tolist(), dtype=getattr(tp, str(value.dtype).rpartition(".")[2]))
    if isinstance(value, dict):
        return {key: to_ours(item) for key, item in value.items()}
    return value


def to_torchs(value):
    if isinstance(value, tp.Tensor):
        return torch.tensor(
            value.tolist(), dtype=getattr(torch, str(value.dtype).rpartition(".")[2])
        )
    if isinstance(value, dict):
        return {key: to_torchs(item) for key, item in value.items()}
    return value


ROUND_TRIPS = [(name, options) for name, options in CASES if "maximize" not in options]


@pytest.mark.parametrize(("name", "options"), ROUND_TRIPS)
def test_state_goes_to_torch_and_back(name, options):
    # 20 steps here, then 30 in the other library, must be 50 steps there.
    expected, _ = run(torch, name, options)
    ours, our_optimizer = run(tp, name, options, steps=20)
    theirs, their_optimizer = run(torch, name, options, steps=20)
    ours_saved, theirs_saved = our_optimizer.state_dict(), their_optimizer.state_dict()

    their_optimizer.load_state_dict(
        {"state": to_torchs(ours_saved["state"]), "param_groups": ours_saved["param_groups"]}
    )
    our_optimizer.load_state_dict(
        {"state": to_ours(theirs_saved["state"]), "param_groups": theirs_saved["param_groups"]}
    )
    for library, parameters, optimizer in (
        (tp, ours, our_optimizer),
        (torch, theirs, their_optimizer),
    ):
        fresh, loss = problem(library)
        with library.no_grad():
            for parameter, start in zip(fresh, parameters, strict=True):
                parameter.copy_(start)
        moved = getattr(library.optim, name)(fresh, **options)
        moved.load_state_dict(optimizer.state_dict())
        for _ in range(30):
            moved.zero_grad()
            loss().backward()
            moved.step()
        assert flat(fresh) == pytest.approx(flat(expected), rel=1e-10)


@pytest.mark.parametrize(("name", "options"), ROUND_TRIPS)
def test_state_dict_has_torchs_layout(name, options):
    _, ours = run(tp, name, options, steps=2)
    _, theirs = run(torch, name, options, steps=2)
    saved, expected = ours.state_dict(), theirs.state_dict()
    assert list(saved) == list(expected)
    assert [group["params"] for group in saved["param_groups"]] == [[0, 1]]
    assert set(expected["param_groups"][0]) <= set(saved["param_groups"][0])
    for number, state in expected["state"].items():
        for key, value in state.items():
            if value is None:
                continue
            mine = saved["state"][number][key]
            assert flat([mine]) == pytest.approx(flat([value]), rel=1e-10), key
            assert str(mine.dtype).rpartition(".")[2] == str(value.dtype).rpartition(".")[2], key


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adamax", "ASGD"])
def test_complex_parameters(name):
    def steps(library):
        z = library.tensor([1.0 + 2.0j, -0.5 + 0.25j], requires_grad=True)
        optimizer = getattr(library.optim, name)([z], lr=0.05)
        for _ in range(10):
            optimizer.zero_grad()
            ((z * z.conj()).real.sum() + (z * (2 - 1j)).real.sum()).backward()
            optimizer.step()
        return z.detach().tolist()

    assert steps(tp) == pytest.approx(steps(torch), rel=1e-10)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {}),
        ("RMSprop", {"centered": True}),
        ("Adagrad", {}),
        ("Adamax", {}),
    ],
)
def test_gradients_pass_through_a_differentiable_step(name, options):
    def outcome(values, requires_grad=False):
        start = tp.tensor(values, requires_grad=requires_grad)
        parameter = start * 1.0
        optimizer = getattr(tp.optim, name)([parameter], lr=0.1, differentiable=True, **options)
        for scale in (1.0, 2.0, 3.0):
            parameter.grad = parameter * scale + start * start
            optimizer.step()
        return start, (parameter**2).sum()

    values, h = [0.5, -1.25], 1e-6
    start, result = outcome(values, requires_grad=True)
    result.backward()
    for i in range(2):
        above, below = list(values), list(values)
        above[i] += h
        below[i] -= h
        slope = (outcome(above)[1].item() - outcome(below)[1].item()) / (2 * h)
        assert start.grad[i].item() == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_learning_rate_may_be_a_tensor(name):
    ours, _ = run(tp, name, {"lr": tp.tensor(0.05)}, steps=5)
    theirs, _ = run(torch, name, {"lr": 0.05}, steps=5)
    assert flat(ours) == pytest.approx(flat(theirs), rel=1e-10)


def test_hand_computed_momentum():
    x = tp.tensor([1.0], requires_grad=True)
    optimizer = tp.optim.SGD([x], lr=0.1, momentum=0.5)
    for gradient in (2.0, 4.0):
        x.grad = tp.tensor([gradient])
        optimizer.step()
    # b1 = 2, x = 1 - 0.2; b2 = 1 + 4 = 5, x = 0.8 - 0.5
    assert x.item() == pytest.approx(0.3)


def test_hand_computed_adam():
    x = tp.tensor([1.0], requires_grad=True)
    optimizer = tp.optim.Adam([x], lr=0.1, betas=(0.5, 0.5), eps=0.0)
    m = v = 0.0
    expected = 1.0
    for step, gradient in enumerate((2.0, -4.0, 1.0), 1):
        x.grad = tp.tensor([gradient])
        optimizer.step()
        m, v = (m + gradient) / 2, (v + gradient**2) / 2
        expected -= 0.1 * (m / (1 - 0.5**step)) / math.sqrt(v / (1 - 0.5**step))
        assert x.item() == pytest.approx(expected, rel=1e-12)
