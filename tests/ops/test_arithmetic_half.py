"""Half precision and numbers that it does not hold: which of them are rounded first, and how often."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

torch: Any = pytest.importorskip("torch", reason="torch is the reference of these tests")

HALVES = ["float16", "bfloat16"]
# Held by both, by one, by none; beyond the range; among the subnormal numbers of one; ints.
NUMBERS = [0.5, 3.3125, 0.4, -7.7, 1 / 3, 1e5, -3e38, 1e300, 6e-8, 1e-6, 3, 1001, 70000]

# As many as the loops of torch take at once: what is left over, they may round otherwise.
VALUES = np.random.default_rng(7).standard_normal(128) * 3
OTHERS = np.random.default_rng(8).standard_normal(128) * 3


def same(compute: Callable[[Any, Any, Any], Any], half: str) -> None:
    """Compare what a function of a library and two of its tensors returns or raises, to the last digit."""
    results = []
    for library in (tp, torch):
        dtype = getattr(library, half)
        x, y = (library.tensor(v.tolist()).to(dtype) for v in (VALUES, OTHERS))
        try:
            result = compute(library, x, y)
        except (RuntimeError, OverflowError) as error:
            results.append(type(error))
            continue
        assert result.dtype is dtype
        results.append(np.array(result.detach().to(library.float32).tolist()))
    ours, theirs = results
    np.testing.assert_array_equal(ours, theirs)


BY_NUMBER: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "add": lambda library, x, y, n: x + n,
    "sub": lambda library, x, y, n: x - n,
    "rsub": lambda library, x, y, n: n - x,
    "mul": lambda library, x, y, n: x * n,
    "rmul": lambda library, x, y, n: n * x,
    "div": lambda library, x, y, n: x / n,
    "rdiv": lambda library, x, y, n: n / x,
    "div_floor": lambda library, x, y, n: library.div(x, n, rounding_mode="floor"),
    "div_trunc": lambda library, x, y, n: library.div(x, n, rounding_mode="trunc"),
    "floor_divide": lambda library, x, y, n: x // n,
    "remainder": lambda library, x, y, n: x % n,
    "fmod": lambda library, x, y, n: library.fmod(x, n),
    "strided": lambda library, x, y, n: x[::2] * n,
    "mul_out": lambda library, x, y, n: library.mul(x, n, out=library.empty_like(x)),
    "div_out": lambda library, x, y, n: library.div(x, n, out=library.empty_like(x)),
    "foreach_mul": lambda library, x, y, n: library._foreach_mul([x], n)[0],
    "foreach_div": lambda library, x, y, n: library._foreach_div([x], n)[0],
    "add_alpha": lambda library, x, y, n: library.add(x, y, alpha=n),
    "sub_alpha": lambda library, x, y, n: library.sub(x, y, alpha=n),
    "rsub_alpha": lambda library, x, y, n: library.rsub(x, y, alpha=n),
    "add_number_alpha": lambda library, x, y, n: library.add(x, 2.3, alpha=n),
    "foreach_add_alpha": lambda library, x, y, n: library._foreach_add([x], [y], alpha=n)[0],
    "addcmul": lambda library, x, y, n: library.addcmul(x, x, y, value=n),
    "addcdiv": lambda library, x, y, n: library.addcdiv(x, x, y, value=n),
    "leaky_relu": lambda library, x, y, n: library.nn.functional.leaky_relu(x, n),
    "softshrink": lambda library, x, y, n: library.nn.functional.softshrink(x, abs(n)),
    "xlogy": lambda library, x, y, n: library.xlogy(x, abs(n)),
    "rxlogy": lambda library, x, y, n: library.xlogy(n, x.abs()),
    "xlog1py": lambda library, x, y, n: library.special.xlog1py(x, abs(n)),
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", BY_NUMBER)
def test_number(name: str, half: str, number: float) -> None:
    compute = BY_NUMBER[name]
    for _ in range(3):  # by the rule, by what is kept of it, by what was traced
        same(lambda library, x, y: compute(library, x, y, number), half)


IN_PLACE = {
    "add": operator.iadd,
    "sub": operator.isub,
    "mul": operator.imul,
    "div": operator.itruediv,
    "floor_divide": operator.ifloordiv,
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", IN_PLACE)
def test_number_in_place(name: str, half: str, number: float) -> None:
    same(lambda library, x, y: IN_PLACE[name](x, number), half)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "int64"])
@pytest.mark.parametrize("number", [0.4, 1e5, 1001, 6e-8])
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "div_trunc", "xlogy"])
@pytest.mark.parametrize("turned", [False, True])
def test_tensor_without_dimensions(
    name: str, half: str, number: float, kind: str, turned: bool
) -> None:
    """Such a tensor of another dtype is a number as the second operand, and rounded as the first one."""
    function, _, mode = name.partition("_")
    options = {"rounding_mode": mode} if mode else {}

    def compute(library: Any, x: Any, y: Any) -> Any:
        scalar = library.tensor(number).to(getattr(library, kind))
        operands = (scalar, x.abs()) if turned else (x, scalar)
        return getattr(library, function)(*operands, **options)

    for _ in range(3):
        same(compute, half)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", ["mul", "rmul", "div", "add_alpha", "leaky_relu"])
def test_gradient(name: str, half: str) -> None:
    def gradient(library: Any, x: Any, y: Any) -> Any:
        x.requires_grad_()
        BY_NUMBER[name](library, x, y, 0.4).backward(y)
        return x.grad

    same(gradient, half)


MATRICES: dict[str, tuple[tuple[int, ...], ...]] = {
    "addmm": ((8, 6), (8, 5), (5, 6)),
    "addmv": ((8,), (8, 5), (5,)),
    "addr": ((8, 6), (8,), (6,)),
    "baddbmm": ((3, 8, 6), (3, 8, 5), (3, 5, 6)),
}


@pytest.mark.parametrize("factors", [(1, 1), (0.4, 0.3), (2, 0.1), (0, 0.7), (0.7, 0)])
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", MATRICES)
def test_products_added(name: str, half: str, factors: tuple[float, float]) -> None:
    draw = np.random.default_rng(9)
    values = [draw.standard_normal(shape).tolist() for shape in MATRICES[name]]
    beta, alpha = factors

    def compute(library: Any, x: Any, y: Any) -> Any:
        tensors = [library.tensor(v).to(x.dtype) for v in values]
        return getattr(library, name)(*tensors, beta=beta, alpha=alpha)

    same(compute, half)


@pytest.mark.parametrize("half", HALVES)
def test_sum_over_a_batch_is_rounded_once(half: str) -> None:
    """torch rounds after each matrix."""
    draw = np.random.default_rng(9)
    shapes = ((8, 6), (50, 8, 5), (50, 5, 6))
    given = [tp.tensor(draw.standard_normal(shape)).to(getattr(tp, half)) for shape in shapes]
    exact = tp.addbmm(*[tensor.double() for tensor in given], beta=0.4, alpha=0.3)
    found = tp.addbmm(*given, beta=0.4, alpha=0.3)
    assert found.dtype is given[0].dtype
    distance = (found.double() - exact).abs()
    assert (distance <= exact.abs() * tp.finfo(found.dtype).eps + 1e-5).all()


@pytest.mark.parametrize("half", HALVES)
def test_what_is_held(half: str) -> None:
    """What ``held`` and ``rounded`` say of numbers is what a cast does to them."""
    from tensorplug.core.device.scalars import held, rounded

    dtype = getattr(tp, half)
    numbers = [*VALUES.tolist(), *NUMBERS, *np.logspace(-46, 39, 300).tolist(), 65519.0, 65520.0]
    numbers += [0.0, 1.7976931348623157e308, 5e-324]
    for number in (n for value in numbers for n in (value, -value)):
        expected = torch.tensor(number, dtype=torch.float64).to(getattr(torch, half)).item()
        assert rounded(number, dtype) == expected, number
        assert math.copysign(1, rounded(number, dtype)) == math.copysign(1, expected), number
        assert held(number, dtype) == (expected == number), number
    assert held(float("inf"), dtype)
    assert held(float("nan"), dtype)
