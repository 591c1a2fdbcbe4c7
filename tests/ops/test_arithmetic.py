"""Pointwise arithmetic in the corners where libraries disagree."""

from __future__ import annotations

import math
import operator
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op

torch: Any = pytest.importorskip("torch", reason="torch is the reference of these tests")

NAN, INF = math.nan, math.inf
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, INF, -INF, NAN]
DTYPES = [
    "int8",
    "uint8",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex128",
    "bool",
]


def same(ours: Any, theirs: Any, rtol: float = 1e-6) -> None:
    """Compare shape, dtype and values with torch's."""
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    assert tuple(ours.shape) == tuple(theirs.shape)
    wide = theirs.to(torch.float32) if theirs.dtype is torch.bfloat16 else theirs
    values = ours.to(tp.float32) if ours.dtype is tp.bfloat16 else ours
    np.testing.assert_allclose(
        values.detach().numpy(),
        wide.detach().resolve_conj().numpy(),
        rtol=rtol,
        atol=1e-7 if theirs.dtype is torch.float32 else 1e-12,
    )


def pair(values: Any, dtype: str) -> tuple[Any, Any]:
    """Return the same tensor of ours and of torch's."""
    return tp.tensor(values, dtype=getattr(tp, dtype)), torch.tensor(
        values, dtype=getattr(torch, dtype)
    )


@pytest.mark.parametrize("mode", ["trunc", "floor"])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "bfloat16", "float32", "float64"])
def test_rounded_quotients(dtype: str, mode: str) -> None:
    """Of tensors and numbers, calls alike one after the other, the last of which is served from a cache."""
    is_float = dtype not in ("uint8", "int64")
    values = [*SPECIAL, 7.0, -7.0] if is_float else [1, 2, 7, 100]
    dividends, divisors = [[a] for a in values], values
    for number in (None, 3, 2) if not is_float else (None, 3, 0.1, 7e4):
        for turn in range(3):
            values = [
                [a[0] if not turn else a[0] / 2 if is_float else a[0] // 2] for a in dividends
            ]
            (x, y), (z, w) = pair(values, dtype), pair(divisors, dtype)
            ours = tp.div(x, z if number is None else number, rounding_mode=mode)
            theirs = torch.div(y, w if number is None else number, rounding_mode=mode)
            same(ours, theirs)


@pytest.mark.parametrize("shapes", [((5,), (5,)), ((3, 1), (4,)), ((), (2, 3)), ((2, 3), ())])
def test_slopes_of_rounded_quotients(shapes: Any) -> None:
    a, b = [tp.rand(shape).mul(4).add(1).requires_grad_() for shape in shapes]
    for mode in ("trunc", "floor"):
        quotient = tp.div(a, b, rounding_mode=mode)
        assert quotient.requires_grad
        for gradient, leaf in zip(tp.autograd.grad(quotient.sum(), (a, b)), (a, b), strict=True):
            assert gradient.shape == leaf.shape
            assert not gradient.any()


BINARY = [
    "add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "maximum", "minimum",
    "fmax", "fmin", "atan2", "copysign", "hypot", "logaddexp", "logaddexp2", "xlogy", "heaviside",
    "nextafter",
]  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_of_two_arguments(name: str, dtype: str) -> None:
    a, ta = pair([[x] for x in SPECIAL], dtype)
    b, tb = pair(SPECIAL, dtype)
    same(getattr(tp, name)(a, b), getattr(torch, name)(ta, tb))


@pytest.mark.parametrize(
    "name",
    [
        "abs",
        "neg",
        "sign",
        "sgn",
        "square",
        "reciprocal",
        "sqrt",
        "rsqrt",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "sigmoid",
        "relu",
        "floor",
        "ceil",
        "trunc",
        "round",
        "frac",
        "isnan",
        "isinf",
        "isfinite",
        "isposinf",
        "isneginf",
        "signbit",
        "angle",
        "nan_to_num",
        "sinc",
        "erf",
        "erfc",
        "erfinv",
        "lgamma",
        "i0",
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_special_values_of_one_argument(name: str, dtype: str) -> None:
    a, ta = pair(SPECIAL, dtype)
    # Half precision of torch rounds where float32 would have been exact.
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-5)
    ours, theirs = getattr(tp, name)(a), getattr(torch, name)(ta)
    keep = ~(torch.isfinite(theirs) & (theirs.abs() < 1e-3)) if theirs.is_floating_point() else ...
    if name == "i0":  # of infinity torch has nan
        keep &= ~torch.isinf(ta)
    same(ours[tp.from_numpy(keep.numpy())] if keep is not ... else ours, theirs[keep], tolerance)


@pytest.mark.parametrize("one", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
@pytest.mark.parametrize("name", ["add", "mul", "div", "eq", "where", "maximum", "lt"])
def test_promotion(name: str, one: str, other: str) -> None:
    if {one, other} == {"float16", "complex128"}:
        pytest.skip("torch gives a complex dtype of half precision, which is missing here")
    a, ta = pair([1, 0, 1], one)
    b, tb = pair([1, 1, 0], other)
    for x, tx in ((b, tb), (b[0], tb[0])):
        args, targs = (a, x), (ta, tx)
        if name == "where":
            mask, tmask = pair([True, False, True], "bool")
            args, targs = (mask, a, x), (tmask, ta, tx)
        try:
            expected = getattr(torch, name)(*targs)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                getattr(tp, name)(*args)
        else:
            same(getattr(tp, name)(*args), expected, 1e-2)


@pytest.mark.parametrize("number", [2, -1, 2.5, True, 1j, 300])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.truediv, operator.eq])
def test_numbers_beside_tensors(op: Any, dtype: str, number: Any) -> None:
    if number == 1j and dtype == "float16":
        pytest.skip("there is no complex dtype of half precision")
    a, ta = pair([1, 0, 1], dtype)
    same(op(a, number), op(ta, number), 1e-2)
    same(op(number, a), op(number, ta), 1e-2)


WHOLE = st.lists(st.integers(-128, 127), min_size=1, max_size=8)


@settings(deadline=None, max_examples=150)
@given(WHOLE, st.lists(st.integers(-128, 127).filter(bool), min_size=8, max_size=8))
def test_integer_division(dividends: list[int], divisors: list[int]) -> None:
    divisors = divisors[: len(dividends)]
    a, b = tp.tensor(dividends), tp.tensor(divisors)
    assert (a // b).tolist() == [x // y for x, y in zip(dividends, divisors, strict=True)]
    assert (a % b).tolist() == [x % y for x, y in zip(dividends, divisors, strict=True)]
    assert tp.fmod(a, b).tolist() == [
        int(math.fmod(x, y)) for x, y in zip(dividends, divisors, strict=True)
    ]
    truncated = tp.div(a, b, rounding_mode="trunc")
    assert truncated.tolist() == [int(x / y) for x, y in zip(dividends, divisors, strict=True)]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(-5, 5), min_size=6, max_size=6), WHOLE)
def test_integer_powers_wrap_and_round_to_zero(bases: list[int], exponents: list[int]) -> None:
    exponents = [e % 20 - 6 for e in exponents][: len(bases)]
    bases = bases[: len(exponents)]
    ours = tp.pow(tp.tensor(bases), tp.tensor(exponents))
    theirs = torch.pow(torch.tensor(bases), torch.tensor(exponents))
    nonzero = [b != 0 or e >= 0 for b, e in zip(bases, exponents, strict=True)]
    got = [x for x, keep in zip(ours.tolist(), nonzero, strict=True) if keep]
    assert got == [x for x, keep in zip(theirs.tolist(), nonzero, strict=True) if keep]


@settings(deadline=None, max_examples=100)
@given(WHOLE, st.lists(st.integers(-3, 80), min_size=8, max_size=8))
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_shifts_by_any_number(dtype: str, values: list[int], by: list[int]) -> None:
    a, ta = pair(values, dtype)
    b, tb = pair(by[: len(values)], dtype)
    same(a << b, ta << tb)
    same(a >> b, ta >> tb)


def test_division_of_integers_by_zero_raises() -> None:
    a = tp.tensor([1, 2])
    for op in (tp.floor_divide, tp.remainder, tp.fmod):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            op(a, tp.tensor([1, 0]))
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            op(a, 0)
    assert (a / 0).tolist() == [INF, INF]
    assert (tp.tensor([], dtype=tp.int64) % 0).tolist() == []


def test_unsigned_integers_wrap_around() -> None:
    a = tp.tensor([0, 1, 255], dtype=tp.uint8)
    assert (a - 1).tolist() == [255, 0, 254]
    assert (-a).tolist() == [0, 255, 1]
    assert (a * 2).tolist() == [0, 2, 254]
    assert (a / -1).tolist() == [0.0, -1.0, -255.0]
    assert tp.square(a).tolist() == [0, 1, 1]


def test_half_precision_overflows_to_infinity() -> None:
    a = tp.tensor([300.0], dtype=tp.float16)
    assert (a * a).tolist() == [INF]
    assert tp.exp(a).tolist() == [INF]
    assert (a / 0).tolist() == [INF]
    assert tp.sigmoid(-a).tolist() == [0.0]


def test_powers() -> None:
    with pytest.raises(RuntimeError, match="negative integer powers"):
        tp.tensor([2]) ** -1
    assert (tp.tensor([2, 1, -1]) ** tp.tensor(-1)).tolist() == [0, 1, -1]
    assert (2 ** tp.tensor([-1, 3])).tolist() == [0, 8]
    assert (2.0 ** tp.tensor([-1, 3])).tolist() == [0.5, 8.0]
    assert (tp.tensor([True, False]) ** 2).dtype is tp.int64
    assert (tp.tensor([-8.0]) ** (1 / 3)).isnan().item()


def gradient(function: Any, *points: list[float]) -> list[list[float]]:
    leaves = [tp.tensor(point, dtype=tp.float64, requires_grad=True) for point in points]
    return [g.tolist() for g in tp.autograd.grad(function(*leaves).sum(), leaves)]


def test_gradients_at_kinks_and_limits() -> None:
    assert gradient(tp.abs, [0.0, -0.0, -2.0]) == [[0.0, 0.0, -1.0]]
    assert gradient(tp.relu, [0.0, -1.0, 2.0]) == [[0.0, 0.0, 1.0]]
    assert gradient(tp.maximum, [1.0, 2.0], [1.0, 1.0]) == [[0.5, 1.0], [0.5, 0.0]]
    assert gradient(tp.minimum, [1.0, 2.0], [1.0, 1.0]) == [[0.5, 0.0], [0.5, 1.0]]
    assert gradient(lambda x: tp.clamp(x, -1, 1), [-1.0, 1.0, 2.0]) == [[1.0, 1.0, 0.0]]
    assert gradient(lambda x: x**0, [0.0, INF]) == [[0.0, 0.0]]
    assert gradient(lambda x: x**2, [0.0, -3.0]) == [[0.0, -6.0]]
    assert gradient(tp.pow, [0.0, 0.0], [0.0, 2.0]) == [[0.0, 0.0], [0.0, 0.0]]
    assert gradient(lambda y: 0**y, [1.0, 2.0]) == [[0.0, 0.0]]
    assert gradient(tp.atan2, [0.0], [0.0]) == [[0.0], [0.0]]
    assert gradient(tp.sinc, [0.0]) == [[0.0]]
    assert gradient(tp.floor, [1.5]) == [[0.0]]
    assert gradient(tp.logaddexp, [0.0], [0.0]) == [[0.5], [0.5]]


def test_gradients_of_mixed_dtypes_come_back_in_each_dtype() -> None:
    a = tp.ones(3, dtype=tp.float32, requires_grad=True)
    b = tp.ones(1, dtype=tp.float64, requires_grad=True)
    c = tp.ones(3, 1, dtype=tp.complex128, requires_grad=True)
    for function in (tp.add, tp.mul, tp.div, tp.pow, tp.xlogy, tp.maximum):
        ga, gb = tp.autograd.grad(function(a, b).sum(), (a, b))
        assert (ga.dtype, gb.dtype) == (tp.float32, tp.float64)
        assert (ga.shape, gb.shape) == (a.shape, b.shape)
    ga, gc = tp.autograd.grad((a * c).abs().sum(), (a, c))
    assert (ga.dtype, gc.dtype) == (tp.float32, tp.complex128)
    assert (ga.shape, gc.shape) == (a.shape, c.shape)


def test_in_place() -> None:
    x = tp.tensor([4.0, 9.0])
    assert x.sqrt_() is x
    assert x.tolist() == [2.0, 3.0]
    x.div_(2).pow_(2).add_(1, alpha=2).mul_(2)
    assert x.tolist() == [6.0, 8.5]
    x.fill_(3).masked_fill_(tp.tensor([True, False]), 0)
    assert x.tolist() == [0.0, 3.0]
    assert x.zero_().tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="can't be cast"):
        tp.tensor([1]).div_(2)
    with pytest.raises(RuntimeError, match="broadcast"):
        tp.zeros(1).add_(tp.zeros(3))
    with pytest.raises(RuntimeError, match="0-dimensional"):
        tp.zeros(2).fill_(tp.zeros(1))


def test_zero_dimensional_tensors_of_other_dtypes_and_devices() -> None:
    assert (tp.ones(2, dtype=tp.float32) * tp.tensor(2.0, dtype=tp.float64)).dtype is tp.float32
    assert (tp.ones(2) + tp.tensor(1j, dtype=tp.complex128)).dtype is tp.complex64
    on_meta = tp.ones(2, device="meta") * tp.tensor(2.0)
    assert on_meta.device.type == "meta"


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "floor", "relu", "abs"])
def test_refused_dtypes(name: str) -> None:
    arguments = [tp.tensor([True])] * (2 if name in ("floor_divide", "remainder", "fmod") else 1)
    with pytest.raises(NotImplementedError, match="bool"):
        getattr(tp, name)(*arguments)


FORMER = {
    "add": lambda m, t: m.add(t(1.0), 2, t(3.0)),
    "add method": lambda m, t: t(1.0).add(2, t(3.0)),
    "add_": lambda m, t: t(1.0).add_(2, t(3.0)),
    "add_ of factor 1": lambda m, t: t(1.0).add_(1, t(3.0)),
    "sub": lambda m, t: m.sub(t(1.0), 2, t(3.0)),
    "sub_": lambda m, t: t(1.0).sub_(2, t(3.0)),
    "addcmul": lambda m, t: m.addcmul(t(1.0), 2, t(3.0), t(4.0)),
    "addcmul_": lambda m, t: t(1.0).addcmul_(2, t(3.0), t(4.0)),
    "addcdiv": lambda m, t: m.addcdiv(t(1.0), 2, t(3.0), t(4.0)),
    "addcdiv_": lambda m, t: t(1.0).addcdiv_(2, t(3.0), t(4.0)),
    "addmm": lambda m, t: m.addmm(3, t([1.0]), 2, t([5.0]), t([7.0])),
    "addmm_": lambda m, t: t([1.0]).addmm_(3, 2, t([5.0]), t([7.0])),
    "addmm of beta": lambda m, t: t([1.0]).addmm(3, t([5.0]), t([7.0])),
    "addmv": lambda m, t: m.addmv(3, t(1.0), 2, t([5.0]), t(7.0)),
    "addr": lambda m, t: m.addr(3, t([1.0]), 2, t(5.0), t(7.0)),
    "addbmm": lambda m, t: m.addbmm(3, t([1.0]), 2, t([[5.0]]), t([[7.0]])),
    "baddbmm": lambda m, t: m.baddbmm(3, t([[1.0]]), 2, t([[5.0]]), t([[7.0]])),
}


@pytest.mark.parametrize("name", FORMER)
def test_calls_with_numbers_before_tensors(name):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = FORMER[name](torch, lambda x: torch.tensor([x]))
        for _ in range(2):  # then by what is remembered
            assert FORMER[name](tp, lambda x: tp.tensor([x])).tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["add", "sub", "addmm", "addmv", "addr", "addbmm", "baddbmm"])
def test_what_stands_before_tensors_is_a_number(name):
    function = getattr(tp, name)
    matrix = tp.ones(2, 2)
    with pytest.raises(TypeError, match=r"must be a number, not Tensor|positional arguments"):
        function(matrix, matrix, matrix, *() if name in ("add", "sub") else (matrix, matrix))


def test_numbers_before_tensors_are_deprecated():
    with pytest.warns(UserWarning, match="deprecated"):
        tp.ones(2).add_(2, tp.ones(2))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "floor_divide", "true_divide", "eq"])
def test_two_numbers(name):
    torch = pytest.importorskip("torch")
    outcomes = []
    for module in (torch, tp):
        outcomes.append([])
        for pair in ((True, True), (1, 2), (7, 2), (2.5, 2), (True, 3), (3, 2.5)):
            try:
                made = getattr(module, name)(*pair)
            except (TypeError, RuntimeError):
                outcomes[-1].append("error")
            else:
                outcomes[-1].append((made.item(), str(made.dtype).split(".")[-1]))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("dtype", [tp.bool, tp.uint8, tp.int64, tp.bfloat16, tp.float32])
def test_the_conjugate_of_a_real_tensor_is_the_tensor(dtype: tp.dtype) -> None:
    x = tp.ones(2, dtype=dtype)
    assert tp.conj_physical(x) is x
    assert x.conj_physical() is x
    assert tp.conj_physical(x, out=tp.empty_like(x)).tolist() == x.tolist()


@pytest.mark.parametrize("dtype", [tp.bfloat16, tp.float16])
@pytest.mark.parametrize(
    "name", ["lerp", "lerp by tensors", "addcmul", "addcdiv", "addcmul with a value", "hypot"]
)
def test_halves_are_rounded_once(name: str, dtype: tp.DType) -> None:
    """What several steps compute is that of float32, rounded at the end, whether a kernel does it or not."""
    base, _, form = name.partition(" ")
    op = get_op(base)
    a, b, c = (tp.testing.make_tensor(500, dtype=dtype, low=0.1, high=3.0) for _ in range(3))
    operands = [a, b] if base == "hypot" else [a, b, 0.375] if name == "lerp" else [a, b, c]
    options = {"value": 3.0} if "value" in form else {}
    wide = [x.float() if isinstance(x, tp.Tensor) else x for x in operands]
    expected = op.call(*wide, **options).to(dtype).tolist()
    assert op.call(*operands, **options).tolist() == expected
    values = op.arguments(tuple(operands), options)
    assert op.decompose(values).tolist() == expected


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("op", ["add", "sub"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("alpha", [-3, 0, 2, 100, 60000, 2**31 - 1, -(2**63), 1.5, True])
def test_factors_of_integers(alpha: Any, dtype: str, op: str, in_place: bool) -> None:
    """What does not fit is refused, and what does is computed modulo what the dtype holds."""
    name = f"{op}_" if in_place else op
    ours, theirs = pair([[1, 2, 100], [5, 0, 127]], dtype)
    other, others = pair([[7, 1, 3], [100, 2, 11]], dtype)
    try:
        expected = getattr(theirs, name)(others, alpha=alpha)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            getattr(ours, name)(other, alpha=alpha)
        return
    same(getattr(ours, name)(other, alpha=alpha), expected)
