"""More of the kernel suite: pointwise ops, of float32 and other dtypes, and their derivatives."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .kernel_work import (
    Work,
    above,
    binary,
    double,
    flat,
    inside,
    learned,
    normal,
    positive,
    square,
    truths,
    unary,
    whole,
    whole32,
)


def uniform(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers between 0.05 and 0.95."""
    return generator.random(shape, dtype=np.float32) * np.float32(0.9) + np.float32(0.05)


def half(lib: Any, name: str, x: Any) -> Any:
    return x.to(getattr(lib, name))


def pointwise() -> Iterator[Work]:
    """Yield pointwise ops, and those that broadcast."""
    for name in ("add", "sub", "mul", "maximum", "minimum", "atan2", "copysign"):
        yield binary(name)
    yield binary("div", values=positive, tolerance=1e-3)
    for name in ("fmod", "remainder", "floor_divide"):
        yield binary(name, values=positive, tolerance=5)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        yield binary(name, 2.25)
    yield Work("x / (y * y + 1)", flat, lambda lib, x, y: x / (y * y + 1), 8, 2)
    yield Work("add number", flat, lambda lib, x: x + 2.0, 2)
    yield Work("number / x", flat, lambda lib, x: 2.0 / x, 2, values=positive)
    yield Work("add alpha", flat, lambda lib, x, y: lib.add(x, y, alpha=2.0), 3, 2)
    yield Work("sub alpha", flat, lambda lib, x, y: lib.sub(x, y, alpha=2.0), 3, 2)
    yield Work("add_ alpha", flat, lambda lib, x, y: x.mul_(0.5).add_(y, alpha=0.5), 5, 2)
    yield Work("rsub", flat, lambda lib, x: 2.0 - x, 2)
    yield Work("add in place", flat, lambda lib, x, y: x.mul_(0.5).add_(y), 5, 2)
    yield Work("lt number", flat, lambda lib, x: x < 0.5, 1.25)
    yield Work("add row", square, lambda lib, x: x + x[0], 2)
    yield Work("add column", square, lambda lib, x: x + x[:, :1], 2)
    yield Work("add transposed", square, lambda lib, x: x + x.t(), 3)
    yield Work("add every second", flat, lambda lib, x: x[::2] + x[1::2], 1.5)
    yield Work("where", flat, lambda lib, x, y: lib.where(x > 0, x, y), 4.5, 2)
    yield Work("clamp", flat, lambda lib, x: x.clamp(-0.5, 0.5), 2)
    yield Work("clamp tensors", flat, lambda lib, x, y: x.clamp(y - 0.5, y + 0.5), 8, 2)
    yield Work("clamp_", flat, lambda lib, x: x.clamp_(-0.5, 0.5), 2)
    yield Work("clamp max", flat, lambda lib, x: x.clamp(max=0.0), 2)
    yield Work("clamp min", flat, lambda lib, x: x.clamp(min=0.0), 2)
    yield Work("lerp", flat, lambda lib, x, y: lib.lerp(x, y, 0.3), 3, 2)
    yield Work("addcmul", flat, lambda lib, x, y: lib.addcmul(x, x, y, value=0.5), 4, 2)
    yield Work("lerp tensor", flat, lambda lib, x, y: lib.lerp(x, y, y), 3, 2)
    yield Work("lerp_", flat, lambda lib, x, y: x.lerp_(y, 0.1), 3, 2)
    positives = (normal, positive)  # to divide by
    yield Work(
        "addcdiv", flat, lambda lib, x, y: lib.addcdiv(x, x, y, value=0.5), 4, 2, values=positives
    )
    yield Work("addcmul_", flat, lambda lib, x, y: x.mul_(0.5).addcmul_(y, y, value=0.5), 6, 2)
    yield Work("where number", flat, lambda lib, x: lib.where(x > 0, x, 0.0), 3.5)
    yield Work("masked_fill", flat, lambda lib, x, y: x.masked_fill(y > 0, 0.5), 4.5, 2)
    yield Work("masked_fill_", flat, lambda lib, x, y: x.masked_fill_(y > 0, 0.5), 4.5, 2)
    yield Work("nan_to_num", flat, lambda lib, x: lib.nan_to_num(x), 2)
    for name in ("hypot", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor"):
        yield binary(name)
    yield binary("xlogy", values=positive)
    yield unary("logical_not", 1.25)
    yield Work("remainder number", flat, lambda lib, x: x % 1.5, 2)
    yield Work("isclose", flat, lambda lib, x, y: lib.isclose(x, y), 2.25, 2)
    for exponent in (2, 3, 0.5, -1, 2.5):
        yield Work(
            f"pow {exponent}",
            flat,
            lambda lib, x, exponent=exponent: x**exponent,
            2,
            values=positive,
            tolerance=1e-2,
        )
    yield binary("pow", values=positive, tolerance=1)
    for name in ("neg", "abs", "square", "sign", "relu", "floor", "ceil", "trunc", "round", "frac"):
        yield unary(name)
    for name in ("exp", "exp2", "expm1", "sin", "cos", "tanh", "sigmoid", "erf", "erfc"):
        yield unary(name)
    for name in ("sinh", "cosh", "asinh", "atan"):
        yield unary(name)
    for name in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal"):
        yield unary(name, values=positive)
    for name in ("asin", "acos", "atanh", "tan"):
        yield unary(name, values=inside)
    yield unary("acosh", values=above)
    for name in ("logit", "digamma", "lgamma", "erfinv"):
        yield unary(name, values=uniform, tolerance=1e-3)
    yield Work(
        "polygamma 1", flat, lambda lib, x: lib.polygamma(1, x), 2, values=positive, tolerance=1e-2
    )
    for name in ("i0", "i0e", "i1", "i1e"):
        yield Work(f"special.{name}", flat, lambda lib, x, n=name: getattr(lib.special, n)(x), 2)
    for name in ("ndtr", "entr"):
        yield Work(
            f"special.{name}",
            flat,
            lambda lib, x, n=name: getattr(lib.special, n)(x),
            2,
            values=uniform,
        )
    yield Work("xlog1py", flat, lambda lib, x, y: lib.special.xlog1py(x, y), 3, 2, values=positive)
    yield Work("nextafter", flat, lambda lib, x, y: lib.nextafter(x, y), 3, 2)
    for name in ("sinc", "deg2rad", "signbit", "sgn", "positive"):
        yield unary(name)
    for name in ("isnan", "isfinite", "isinf"):
        yield unary(name, 1.25)


def other_dtypes() -> Iterator[Work]:
    """Yield some ops of integers, truth values, float64 and half precision, and conversions."""
    for name in ("add", "mul", "maximum", "bitwise_and"):
        yield Work(
            f"{name} int64",
            flat,
            lambda lib, x, y, n=name: getattr(lib, n)(x, y),
            6,
            2,
            values=whole,
        )
    for name in ("remainder", "floor_divide", "div"):
        yield Work(
            f"{name} int64",
            flat,
            lambda lib, x, y, n=name: getattr(lib, n)(x, y),
            6,
            2,
            values=whole,
        )
    for name in ("sub", "minimum", "fmod", "bitwise_or", "bitwise_xor"):
        yield Work(
            f"{name} int64",
            flat,
            lambda lib, x, y, n=name: getattr(lib, n)(x, y),
            6,
            2,
            values=whole,
        )
    for name in ("neg", "abs", "sign", "square", "bitwise_not", "logical_not"):
        yield Work(
            f"{name} int64", flat, lambda lib, x, n=name: getattr(lib, n)(x), 4, values=whole
        )
    yield Work("add number int64", flat, lambda lib, x: x + 2, 4, values=whole)
    yield Work("floor_divide number int64", flat, lambda lib, x: x // 7, 4, values=whole)
    yield Work("remainder number int64", flat, lambda lib, x: x % 7, 4, values=whole)
    yield Work("clamp int64", flat, lambda lib, x: x.clamp(10, 50), 4, values=whole)
    yield Work("lt int64", flat, lambda lib, x, y: x < y, 4.25, 2, values=whole)
    yield Work("eq number int64", flat, lambda lib, x: x == 3, 2.25, values=whole)
    yield Work("pow int64", flat, lambda lib, x: x**2, 4, values=whole)
    yield Work("shift int64", flat, lambda lib, x: x << 2, 4, values=whole)
    yield Work("where int64", flat, lambda lib, x, y: lib.where(x > y, x, y), 8, 2, values=whole)
    yield Work("mul int32", flat, lambda lib, x, y: x * y, 3, 2, values=whole32)
    yield Work("floor_divide int32", flat, lambda lib, x, y: x // y, 3, 2, values=whole32)
    yield Work("add int32", flat, lambda lib, x, y: x + y, 3, 2, values=whole32)
    yield Work("eq int64", flat, lambda lib, x, y: x == y, 4.25, 2, values=whole)
    yield Work("sum int64", flat, lambda lib, x: x.sum(), 2, values=whole)
    yield Work("and bool", flat, lambda lib, x, y: x & y, 0.75, 2, values=truths)
    yield Work("logical_or bool", flat, lambda lib, x, y: x.logical_or(y), 0.75, 2, values=truths)
    yield Work("xor bool", flat, lambda lib, x, y: x ^ y, 0.75, 2, values=truths)
    yield Work("eq bool", flat, lambda lib, x, y: x == y, 0.75, 2, values=truths)
    yield Work("where bool", flat, lambda lib, x, y: lib.where(x, x, y), 1, 2, values=truths)
    yield Work("not bool", flat, lambda lib, x: ~x, 0.5, values=truths)
    yield Work("sum bool", flat, lambda lib, x: x.sum(), 0.25, values=truths)
    yield Work("any bool", flat, lambda lib, x: (x & ~x).any(), 0.25, values=truths)
    yield Work("all rows bool", square, lambda lib, x: x.all(1), 0.25, values=truths)
    yield Work("add float64", flat, lambda lib, x, y: x + y, 6, 2, values=double)
    for name in ("mul", "div", "maximum"):
        yield Work(
            f"{name} float64",
            flat,
            lambda lib, x, y, n=name: getattr(lib, n)(x, y),
            6,
            2,
            values=double,
            tolerance=1,
        )
    for name in (
        "sqrt",
        "log",
        "log2",
        "log10",
        "sigmoid",
        "tanh",
        "sin",
        "cos",
        "tan",
        "atan",
        "erf",
    ):
        yield Work(
            f"{name} float64",
            flat,
            lambda lib, x, n=name: getattr(lib, n)(x.abs()),
            8,
            values=double,
        )
    for name in ("exp2", "sinh", "cosh", "erfc"):
        yield Work(
            f"{name} float64", flat, lambda lib, x, n=name: getattr(lib, n)(x), 4, values=double
        )
    for name in ("asin", "acos", "atanh", "erfinv"):
        yield Work(
            f"{name} float64",
            flat,
            lambda lib, x, n=name: getattr(lib, n)(x),
            4,
            values=lambda generator, shape: uniform(generator, shape).astype(np.float64),
        )
    for name in ("atan2", "hypot", "fmod", "remainder"):
        yield Work(
            f"{name} float64",
            flat,
            lambda lib, x, y, n=name: getattr(lib, n)(x, y),
            6,
            2,
            values=double,
            tolerance=5,
        )
    for name in ("bfloat16", "float16"):
        yield Work(
            f"add {name}",
            flat,
            lambda lib, x, y, n=name: half(lib, n, x) + half(lib, n, y),
            8,
            2,
            tolerance=1e-1,
        )
        yield Work(
            f"gelu {name}",
            flat,
            lambda lib, x, n=name: lib.nn.functional.gelu(half(lib, n, x)),
            4,
            tolerance=1e-1,
        )
    yield Work("exp float64", flat, lambda lib, x: lib.exp(x), 4, values=double)
    yield Work("sum float64", flat, lambda lib, x: x.sum(), 2, values=double)
    yield Work("to float64", flat, lambda lib, x: x.double(), 3)
    yield Work("to int64", flat, lambda lib, x: x.long(), 3)
    yield Work("to bool", flat, lambda lib, x: x.bool(), 1.25)
    yield Work("bool to float32", flat, lambda lib, x: x.float(), 1.25, values=truths)
    yield Work("to bfloat16", flat, lambda lib, x: x.bfloat16().float(), 3)
    yield Work("to float16", flat, lambda lib, x: x.half().float(), 3)


def gradients() -> Iterator[Work]:
    """Yield pointwise ops forward and backward."""

    def with_halves(function: Any) -> Any:
        return lambda lib, x: function(lib, x, x.detach())

    for name in ("tanh", "sigmoid", "exp", "log1p", "expm1", "sqrt", "rsqrt", "square", "abs"):
        yield learned(name, lambda lib, x, n=name: getattr(lib, n)(x.abs() + 0.5), flat, 9)
    for name in ("sin", "cos", "neg", "frac", "erf", "sign"):
        yield learned(name, lambda lib, x, n=name: getattr(lib, n)(x), flat, 5)
    # Of numbers that may be zero the results may be none.
    yield learned("reciprocal", lambda lib, x: 1 / (x * x + 1), flat, 11)
    yield learned("pow 2", lambda lib, x: x**2, flat, 5)
    yield learned("pow 3", lambda lib, x: x**3, flat, 5)
    yield learned("clamp", lambda lib, x: x.clamp(-0.5, 0.5), flat, 5)
    yield learned("clamp min", lambda lib, x: x.clamp(min=0.0), flat, 5)
    yield learned("mul", with_halves(lambda lib, x, y: x * y), flat, 7)
    yield learned("div", with_halves(lambda lib, x, y: y / (x * x + 1)), flat, 12)
    yield learned("where", with_halves(lambda lib, x, y: lib.where(y > 0, x, y)), flat, 8)
    yield learned("masked_fill", with_halves(lambda lib, x, y: x.masked_fill(y > 0, 0.5)), flat, 8)
    yield learned("maximum", with_halves(lambda lib, x, y: lib.maximum(x, -y)), flat, 8)
    yield learned("lerp", with_halves(lambda lib, x, y: lib.lerp(x, y, 0.3)), flat, 7)
    yield learned("addcmul", with_halves(lambda lib, x, y: lib.addcmul(x, x, y)), flat, 9)
    yield learned("addcdiv", with_halves(lambda lib, x, y: lib.addcdiv(x, x, y * y + 1)), flat, 13)
    yield learned("add alpha", with_halves(lambda lib, x, y: lib.add(x, y, alpha=0.5)), flat, 7)
    yield learned("hypot", with_halves(lambda lib, x, y: lib.hypot(x, y * y + 1)), flat, 11)
    yield learned("atan2", with_halves(lambda lib, x, y: lib.atan2(x, y)), flat, 7)
    yield learned("logit", lambda lib, x: lib.logit(x.sigmoid()), flat, 9)
