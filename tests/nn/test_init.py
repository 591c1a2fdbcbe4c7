"""Initialisers: ranges and moments, exact results where there are some, bad input."""

import math

import pytest

import tensorplug as tp
from tensorplug.nn import init

torch = pytest.importorskip("torch", reason="gains are compared with torch's")


def flat(tensor):
    return tensor.detach().reshape(-1).tolist()


def seeded(seed=5):
    generator = tp.Generator()
    generator.manual_seed(seed)
    return generator


def moments(values):
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


@pytest.mark.parametrize(
    "name",
    [
        "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
        "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu",
    ],
)  # fmt: skip
def test_gains_are_torchs(name):
    assert init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))


def test_gain_of_a_slope():
    assert init.calculate_gain("leaky_relu", 0.3) == pytest.approx(math.sqrt(2 / 1.09))
    with pytest.raises(ValueError, match="negative_slope True not a valid number"):
        init.calculate_gain("leaky_relu", True)
    with pytest.raises(ValueError, match="Unsupported nonlinearity gelu"):
        init.calculate_gain("gelu")


# Each fills (400, 100) values: bounds, standard deviation.
SIZE = (400, 100)
RANDOM = [
    (lambda t, g: init.uniform_(t, -3.0, 1.0, g), (-3.0, 1.0), 4 / math.sqrt(12), -1.0),
    (lambda t, g: init.normal_(t, 2.0, 0.5, g), None, 0.5, 2.0),
    (lambda t, g: init.xavier_uniform_(t, 2.0, g), 2 * math.sqrt(6 / 500), None, 0.0),
    (lambda t, g: init.xavier_normal_(t, 2.0, g), None, 2 * math.sqrt(2 / 500), 0.0),
    (lambda t, g: init.kaiming_uniform_(t, generator=g), math.sqrt(6 / 100), None, 0.0),
    (
        lambda t, g: init.kaiming_uniform_(t, 1.0, "fan_out", generator=g),
        math.sqrt(3 / 400),
        None,
        0.0,
    ),
    (
        lambda t, g: init.kaiming_normal_(t, nonlinearity="relu", generator=g),
        None,
        math.sqrt(2 / 100),
        0.0,
    ),
    (lambda t, g: init.trunc_normal_(t, generator=g), 2.0, 0.8796, 0.0),
]


@pytest.mark.parametrize(("fill", "bounds", "std", "mean"), RANDOM)
def test_random_values(fill, bounds, std, mean):
    tensor = tp.empty(*SIZE, requires_grad=True)
    assert fill(tensor, seeded()) is tensor
    assert tensor.is_leaf
    values = flat(tensor)
    if bounds is not None:
        low, high = bounds if isinstance(bounds, tuple) else (-bounds, bounds)
        span = high - low
        assert low <= min(values) < low + 0.01 * span
        assert high - 0.01 * span < max(values) <= high
        std = span / math.sqrt(12) if std is None else std
    found_mean, found_std = moments(values)
    # 40,000 values: the mean's standard error is std / 200.
    assert abs(found_mean - mean) < 5 * std / 200
    assert found_std == pytest.approx(std, rel=0.02)
    again = tp.empty(*SIZE)
    fill(again, seeded())
    assert flat(again) == values


def test_fans_of_a_convolution():
    assert init._calculate_fan_in_and_fan_out(tp.empty(8, 4, 3, 5)) == (60, 120)
    tensor = init.kaiming_uniform_(tp.empty(8, 4, 3, 5))
    assert max(flat(tensor)) <= math.sqrt(6 / 60)


def test_truncation_far_from_the_mean():
    tensor = tp.empty(1000, dtype=tp.float64)
    init.trunc_normal_(tensor, mean=1.0, std=0.5, a=1.2, b=1.3)
    assert min(flat(tensor)) >= 1.2
    assert max(flat(tensor)) <= 1.3
    with pytest.warns(UserWarning, match="mean is more than 2 std"):
        init.trunc_normal_(tensor, mean=10.0)


def test_constants():
    tensor = tp.empty(2, requires_grad=True)
    assert init.constant_(tensor, 0.5).tolist() == [0.5, 0.5]
    assert init.ones_(tensor).tolist() == [1.0, 1.0]
    assert init.zeros_(tensor) is tensor
    assert tensor.tolist() == [0.0, 0.0]


def test_eye():
    tensor = tp.full((2, 3), 7.0)
    assert init.eye_(tensor) is tensor
    assert tensor.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize("shape", [(4, 2, 3), (2, 4, 3, 3), (4, 4, 2, 3, 5)])
@pytest.mark.parametrize("groups", [1, 2])
def test_dirac(shape, groups):
    ours = init.dirac_(tp.empty(*shape), groups)
    theirs = torch.nn.init.dirac_(torch.empty(*shape), groups)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("shape", [(4, 4), (7, 3), (3, 7), (3, 2, 2), (1, 5)])
def test_orthogonal(shape):
    tensor = tp.empty(*shape, dtype=tp.float64)
    assert init.orthogonal_(tensor, 2.0) is tensor
    matrix = tensor.reshape(shape[0], -1)
    if matrix.shape[0] > matrix.shape[1]:
        matrix = matrix.t()
    product = (matrix @ matrix.t()).tolist()
    for i, row in enumerate(product):
        assert row == pytest.approx([4.0 if i == j else 0.0 for j in range(len(row))], abs=1e-12)


def test_orthogonal_is_the_q_of_qr_with_positive_diagonal():
    matrix = [[3.0, -1.0, 2.0], [0.5, 2.0, -4.0], [1.0, 1.0, 0.25], [-2.0, 0.5, 1.5]]
    ours = init._orthonormal_columns(tp.tensor(matrix, dtype=tp.float64))
    q, r = torch.linalg.qr(torch.tensor(matrix, dtype=torch.float64))
    assert flat(ours) == pytest.approx(flat(q * r.diagonal().sign()), rel=1e-12)


def test_sparse():
    tensor = tp.empty(10, 4)
    assert init.sparse_(tensor, 0.25, generator=seeded()) is tensor
    for column in tensor.t().tolist():
        assert column.count(0.0) == 3
    assert max(map(abs, flat(tensor))) < 0.1


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: init.eye_(tp.empty(2)), "Only tensors with 2 dimensions"),
        (lambda: init.sparse_(tp.empty(2), 0.5), "Only tensors with 2 dimensions"),
        (lambda: init.dirac_(tp.empty(2, 2)), "Only tensors with 3, 4, or 5 dimensions"),
        (lambda: init.dirac_(tp.empty(3, 2, 2), 2), "dim 0 must be divisible by groups"),
        (lambda: init.orthogonal_(tp.empty(2)), "Only tensors with 2 or more dimensions"),
        (lambda: init.xavier_uniform_(tp.empty(2)), "fewer than 2 dimensions"),
        (lambda: init.xavier_normal_(tp.empty(2)), "fewer than 2 dimensions"),
        (lambda: init.kaiming_normal_(tp.empty(2)), "fewer than 2 dimensions"),
        (lambda: init.kaiming_uniform_(tp.empty(2, 2), mode="x"), "Mode x not supported"),
    ],
)
def test_bad_input(act, text):
    with pytest.raises(ValueError, match=text):
        act()


@pytest.mark.parametrize("name", ["kaiming_uniform_", "kaiming_normal_"])
def test_nothing_to_fill(name):
    tensor = tp.empty(0, 3)
    with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
        assert getattr(init, name)(tensor) is tensor


#: Arguments of the initialisers that need some.
ARGUMENTS = {"constant_": (2.0,), "sparse_": (0.5,)}
FORMER = sorted(
    name[:-1]
    for name in vars(init)
    if name.endswith("_") and name not in ("ones_", "trunc_normal_", "zeros_") and name[0] != "_"
)


@pytest.mark.parametrize("name", FORMER)
def test_names_from_before_the_underscore_warn_and_do_the_same(name):
    sizes = (4, 4, 3) if name == "dirac" else (4, 3)
    results = []
    for spelling in (f"{name}_", name):
        tp.manual_seed(0)
        weight = tp.full(sizes, 7.0)
        function = getattr(init, spelling)
        arguments = ARGUMENTS.get(f"{name}_", ())
        if spelling == name:
            with pytest.warns(FutureWarning, match=f"`nn.init.{name}` is now deprecated in favor"):
                result = function(weight, *arguments)
        else:
            result = function(weight, *arguments)
        assert result is weight
        results.append(weight.tolist())
    assert results[0] == results[1]
    assert getattr(init, name).__name__ == name
