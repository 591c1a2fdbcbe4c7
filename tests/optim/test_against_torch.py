"""Every optimizer takes the same way as torch's on the same problem."""

import inspect
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
    ("ASGD", {"lr": 0.001, "alpha": 0.5, "maximize": True}),
    ("Adagrad", {"lr": 0.1, "eps": 1e-2, "maximize": True}),
    ("Adadelta", {"eps": 1e-3}),
    ("Adamax", {"eps": 1e-3, "maximize": True}),
    ("NAdam", {"betas": (0.5, 0.8), "eps": 1e-3, "momentum_decay": 0.1, "maximize": True}),
    ("RAdam", {"eps": 1e-2}),
    ("RMSprop", {"eps": 1e-2, "momentum": 0.9}),
    ("AdamW", {"betas": (0.5, 0.8), "eps": 1e-3}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.1, "beta2_decay": -0.5, "eps": (1e-3, 1e-2), "d": 2.0}),
    ("Adafactor", {"weight_decay": 0.1, "maximize": True}),
    ("LBFGS", {"max_iter": 2}),
    ("LBFGS", {"lr": 0.1, "max_iter": 3, "history_size": 3, "max_eval": 2}),
    ("LBFGS", {"max_iter": 4, "line_search_fn": "strong_wolfe", "tolerance_grad": 1e-12}),
    ("LBFGS", {"lr": 0.5, "line_search_fn": "strong_wolfe", "tolerance_change": 1e-3}),
]

# Accepted for torch's sake, or tested elsewhere.
OTHER_OPTIONS = {"params", "foreach", "fused", "differentiable", "capturable"}


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
    go(optimizer, loss, steps)
    return parameters, optimizer


def go(optimizer, loss, steps):
    """Take some steps; every optimizer takes a closure, and one asks for it."""

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    for _ in range(steps):
        if type(optimizer).__name__ == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()


def flat(tensors):
    return [value for tensor in tensors for value in tensor.detach().reshape(-1).tolist()]


@pytest.mark.parametrize("how", [{}, {"foreach": True}, {"foreach": False}], ids=str)
@pytest.mark.parametrize(("name", "options"), CASES)
def test_fifty_steps_end_where_torch_ends(name, options, how):
    if name == "LBFGS" and how:
        pytest.skip("LBFGS has no foreach, nor has torch's")
    ours, _ = run(tp, name, options | how)
    theirs, _ = run(torch, name, options | how)
    assert flat(ours) == pytest.approx(flat(theirs), rel=1e-10, abs=1e-12)
    assert flat(ours) != pytest.approx(flat(problem(tp)[0]), rel=1e-3)


OPTIMIZERS = [name for name in tp.optim.__all__ if name[0].isupper() and name != "Optimizer"]
# Its options are compared in test_sparse_gradients.py.
DENSE = sorted({*OPTIMIZERS} - {"SparseAdam"})


@pytest.mark.parametrize("name", DENSE)
def test_every_option_is_in_some_case(name):
    options = set(inspect.signature(getattr(torch.optim, name)).parameters) - OTHER_OPTIONS
    cases = MUON if name == "Muon" else [o for n, o in CASES if n == name]
    missing = options - {option for case in cases for option in case}
    assert not missing


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_signature_is_torchs(name):
    ours = inspect.signature(getattr(tp.optim, name)).parameters.values()
    theirs = inspect.signature(getattr(torch.optim, name)).parameters.values()
    assert [(p.name, p.kind, p.default) for p in ours] == [
        (p.name, p.kind, p.default) for p in theirs
    ]


MUON = [
    {},
    {"lr": 0.01, "momentum": 0.5, "nesterov": False, "weight_decay": 0.3},
    {"lr": 0.01, "adjust_lr_fn": "match_rms_adamw"},
    {"lr": 0.01, "ns_steps": 3, "ns_coefficients": (2.0, -1.5, 0.5), "eps": 1e-3},
]


@pytest.mark.parametrize("options", MUON)
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (3, 3)])
def test_fifty_steps_of_muon(options, shape):
    def end(library, moved=None):
        values = [[0.5, -1.5, 2.0], [1.0, 0.25, -0.75], [0.3, 0.8, -0.1]]
        x = library.tensor([row[: shape[1]] for row in values[: shape[0]]], requires_grad=True)
        target = library.ones(*shape) * 0.3
        optimizer = library.optim.Muon([x], **options)
        go(optimizer, lambda: ((x - target) ** 4).sum() + (x**2).sum(), STEPS)
        return x.tolist(), optimizer

    ours, optimizer = end(tp)
    theirs, reference = end(torch)
    # The direction is computed in bfloat16, which rounds to 8 bits: products come out by their order.
    step = options.get("lr", 1e-3) * 0.1 * STEPS
    for mine, their in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(their, abs=step)
    saved, expected = optimizer.state_dict(), reference.state_dict()
    assert saved["param_groups"] == expected["param_groups"]
    assert saved["state"][0].keys() == expected["state"][0].keys()
    reference.load_state_dict({**saved, "state": to_torchs(saved["state"])})
    optimizer.load_state_dict({**expected, "state": to_ours(expected["state"])})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Adafactor", {"lr": -1.0}),
        ("Adafactor", {"beta2_decay": 1.0}),
        ("Adafactor", {"eps": (-1.0, 1.0)}),
        ("Adafactor", {"eps": (None, -1.0)}),
        ("Adafactor", {"d": 0.5}),
        ("Adafactor", {"weight_decay": -1.0}),
        ("Muon", {"lr": -1.0}),
        ("Muon", {"momentum": -1.0}),
        ("Muon", {"weight_decay": -1.0}),
        ("Muon", {"adjust_lr_fn": "nosuch"}),
        ("LBFGS", {"lr": -1.0}),
    ],
)
def test_bad_options_raise_what_torch_raises(name, options):
    for library in (tp, torch):
        with pytest.raises(ValueError, match=r"should be|Invalid|not supported"):
            getattr(library.optim, name)([library.zeros(2, 2)], **options)


def test_bad_parameters_raise_what_torch_raises():
    for library in (tp, torch):
        with pytest.raises(ValueError, match="2D"):
            library.optim.Muon([library.zeros(2)])
        two = [{"params": [library.zeros(2)]}, {"params": [library.zeros(2)]}]
        with pytest.raises(ValueError, match="parameter groups"):
            library.optim.LBFGS(two)
        x = library.zeros(2, requires_grad=True)
        x.grad = library.ones(2)
        with pytest.raises(RuntimeError, match="strong_wolfe"):
            library.optim.LBFGS([x], line_search_fn="weak").step(lambda: 1.0)
        z = library.zeros(2, 2, dtype=library.complex64, requires_grad=True)
        z.grad = library.zeros_like(z)
        for name in ("Adafactor", "Muon"):
            with pytest.raises(RuntimeError, match="complex"):
                getattr(library.optim, name)([z]).step()


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
    if isinstance(value, list):
        return [to_ours(item) for item in value]
    return value


def to_torchs(value):
    if isinstance(value, tp.Tensor):
        return torch.tensor(
            value.tolist(), dtype=getattr(torch, str(value.dtype).rpartition(".")[2])
        )
    if isinstance(value, dict):
        return {key: to_torchs(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_torchs(item) for item in value]
    return value


ROUND_TRIPS = [(name, options) for name, options in CASES if "maximize" not in options]


@pytest.mark.slow
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
        go(moved, loss, 30)
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
            mine = saved["state"][number][key]
            if not isinstance(value, torch.Tensor) or not isinstance(mine, tp.Tensor):
                continue  # numbers, of which torch has some in tensors
            assert flat([mine]) == pytest.approx(flat([value]), rel=1e-10), key
            assert str(mine.dtype).rpartition(".")[2] == str(value.dtype).rpartition(".")[2], key


@pytest.mark.parametrize("foreach", [None, True, False])
@pytest.mark.parametrize("name", sorted({*DENSE} - {"LBFGS", "Muon", "Adafactor"}))
def test_complex_parameters(name, foreach):
    def steps(library):
        z = library.tensor([1.0 + 2.0j, -0.5 + 0.25j], requires_grad=True)
        optimizer = getattr(library.optim, name)([z], lr=0.05, foreach=foreach)
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
        ("Adadelta", {"eps": 0.1, "weight_decay": 0.1}),
        ("NAdam", {"weight_decay": 0.1}),
        ("RAdam", {"betas": (0.5, 0.6), "weight_decay": 0.1}),
        ("Rprop", {}),
        ("ASGD", {"t0": 1, "weight_decay": 0.1}),
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
        kept = [
            state
            for name, state in optimizer.state[parameter].items()
            if name != "step" and isinstance(state, tp.Tensor) and state.shape == start.shape
        ]
        return start, sum((each**2).sum() for each in (parameter, *kept))

    values, h = [0.5, -1.25], 1e-6
    start, result = outcome(values, requires_grad=True)
    result.backward()
    for i in range(2):
        above, below = list(values), list(values)
        above[i] += h
        below[i] -= h
        slope = (outcome(above)[1].item() - outcome(below)[1].item()) / (2 * h)
        assert start.grad[i].item() == pytest.approx(slope, rel=1e-5)


def after_differentiable_steps(name, options, number, state=None):
    """The sum of squares of a parameter after steps with `number` as learning rate, or in the state."""
    parameter = tp.tensor([0.5, -1.25]) * 1.0
    rate = 0.1 if state else number
    optimizer = getattr(tp.optim, name)([parameter], lr=rate, differentiable=True, **options)
    for scale in (1.0, -2.0, 3.0):
        parameter.grad = tp.tensor([0.25, -0.5]) * scale
        optimizer.step()
        if state and scale == 1.0:
            optimizer.state[parameter][state] = number * 1.0
    return (parameter**2).sum()


@pytest.mark.parametrize(
    ("name", "options", "state"),
    [
        ("SGD", {}, None),
        ("Adam", {}, None),
        ("AdamW", {}, None),
        ("NAdam", {}, None),
        ("RAdam", {"betas": (0.5, 0.6)}, None),
        ("RMSprop", {}, None),
        ("Adamax", {}, None),
        ("Adadelta", {"eps": 0.1}, None),
        ("NAdam", {}, "mu_product"),
    ],
)
def test_gradients_pass_to_numbers_of_a_differentiable_step(name, options, state):
    number = tp.tensor(0.3, requires_grad=True)
    after_differentiable_steps(name, options, number, state).backward()
    h = 1e-6
    above, below = [
        after_differentiable_steps(name, options, tp.tensor(0.3 + step), state).item()
        for step in (h, -h)
    ]
    assert number.grad.item() == pytest.approx((above - below) / (2 * h), rel=1e-5)


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
