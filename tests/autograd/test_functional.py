"""Jacobians, Hessians and products with them, against torch: values, structures and errors."""

from __future__ import annotations

import warnings

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="compares with torch")

NUMBERS = [[0.3, -1.2, 0.7], [1.5, 0.2, -0.4]]


def inputs(L, count=2, dtype="float64"):
    dtype = getattr(L, dtype)
    points = (L.tensor(NUMBERS, dtype=dtype), L.tensor([0.5, 2.0, -1.0], dtype=dtype))
    return points[0] if count == 1 else points


def one_to_one(L, x, *rest):
    return x.exp() * x


def two_to_two(L, x, y):
    return (x * y).sin().sum(0), x.exp().sum() * y


def only_first(L, x, y):
    return x.square()


def scalar(L, x, *rest):
    return (x**3).sum() * (rest[0].exp().sum() if rest else 1.0)


def scalar_without_second(L, x, y):
    return x.square().sum()


def plain(value):
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value.detach().tolist(), tuple(value.shape), str(value.dtype).rpartition(".")[2]


def close(a, b):
    if isinstance(a, list) and a and isinstance(a[0], (list, tuple)) and not isinstance(a, tuple):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, tuple):
        return a[1:] == b[1:] and torch.allclose(torch.tensor(a[0]), torch.tensor(b[0]))
    return torch.allclose(torch.tensor(a), torch.tensor(b))


def both(call):
    results = []
    for L in (torch, tp):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # torch's own use of torch.jit
                results.append(plain(call(L, L.autograd.functional)))
        except Exception as error:
            results.append((type(error).__name__, str(error)))
    return results


FUNCTIONS = [
    (one_to_one, 1),
    (one_to_one, 2),
    (two_to_two, 2),
    (only_first, 2),
]
SCALARS = [(scalar, 1), (scalar, 2), (scalar_without_second, 2)]


def like(L, value, seed):
    if isinstance(value, tuple):
        return tuple(like(L, item, seed + n) for n, item in enumerate(value))
    numbers = [((n + seed) * 37 % 11 - 5) / 4 for n in range(value.numel())]
    return L.tensor(numbers, dtype=value.dtype).reshape(value.shape)


def agree(call):
    expected, got = both(call)
    if isinstance(expected, tuple) and isinstance(expected[0], str):
        assert got[0] == expected[0], (expected, got)
        return
    assert close(expected, got), (expected, got)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("function", "count"), FUNCTIONS)
def test_products(function, count, strict, create_graph):
    def reverse(L, F):
        points = inputs(L, count)
        args = points if count > 1 else (points,)
        v = like(L, function(L, *args), 1)
        return F.vjp(lambda *p: function(L, *p), points, v, create_graph, strict)

    def forward(L, F):
        points = inputs(L, count)
        return F.jvp(lambda *p: function(L, *p), points, like(L, points, 2), create_graph, strict)

    agree(reverse)
    agree(forward)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"create_graph": True},
        {"strict": True},
        {"strict": True, "create_graph": True},
        {"vectorize": True},
        {"vectorize": True, "create_graph": True},
        {"vectorize": True, "strategy": "forward-mode"},
        {"strategy": "forward-mode"},
        {"vectorize": True, "strict": True},
    ],
    ids=str,
)
@pytest.mark.parametrize(("function", "count"), FUNCTIONS)
def test_jacobian(function, count, options):
    agree(lambda L, F: F.jacobian(lambda *p: function(L, *p), inputs(L, count), **options))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"create_graph": True},
        {"strict": True},
        {"vectorize": True},
        {"vectorize": True, "outer_jacobian_strategy": "forward-mode"},
    ],
    ids=str,
)
@pytest.mark.parametrize(("function", "count"), SCALARS)
def test_hessian(function, count, options):
    agree(lambda L, F: F.hessian(lambda *p: function(L, *p), inputs(L, count), **options))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["vhp", "hvp"])
@pytest.mark.parametrize(("function", "count"), SCALARS)
def test_hessian_products(function, count, name, strict):
    def call(L, F):
        points = inputs(L, count)
        return getattr(F, name)(
            lambda *p: function(L, *p), points, like(L, points, 3), strict=strict
        )

    agree(call)


def test_complex():
    def call(L, F):
        return F.jacobian(lambda x: x * x, L.tensor([1 + 2j, 0.5j], dtype=L.complex128))

    agree(call)


def test_graph_of_results():
    x = tp.tensor([0.5, 1.5], dtype=tp.float64, requires_grad=True)
    F = tp.autograd.functional
    hessian = F.hessian(lambda x: (x**4).sum(), x, create_graph=True)
    (third,) = tp.autograd.grad(hessian.sum(), x)
    assert tp.allclose(third, 24 * x.detach())
    assert not F.hessian(lambda x: (x**4).sum(), x).requires_grad
    v = tp.ones(2, dtype=tp.float64, requires_grad=True)
    _, product = F.hvp(lambda x: (x**4).sum(), x, v, create_graph=True)
    (back,) = tp.autograd.grad(product.sum(), v)
    assert tp.allclose(back, 12 * x.detach() ** 2)


ERRORS = [
    ("vjp", lambda L, x: x * 2, ()),
    ("vjp", lambda L, x: x * 2, (2,)),
    ("vjp", lambda L, x: 3, ()),
    ("jvp", lambda L, x: x * 2, ()),
    ("jvp", lambda L, x: x * 2, (2,)),
    ("hessian", lambda L, x: x * 2, ()),
    ("hessian", lambda L, x: (x.sum(), x.sum()), ()),
    ("vhp", lambda L, x: x * 2, (3,)),
    ("vhp", lambda L, x: (x.sum(), 1), (3,)),
    ("vhp", lambda L, x: x.sum(), ()),
    ("hvp", lambda L, x: x.sum(), (2,)),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    name, function, sizes = ERRORS[number]

    def call(L, F):
        return getattr(F, name)(
            lambda x: function(L, x), L.ones(3), *[L.ones(size) for size in sizes]
        )

    expected, got = both(call)
    assert isinstance(expected[0], str)
    assert expected[0] == got[0]
    assert expected[1].replace("torch.Size", "Size") == got[1].replace("tensorplug.Size", "Size")
