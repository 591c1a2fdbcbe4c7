"""Pointwise ops: arithmetic, comparisons, functions, activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.core.device import dtypes
from tensorplug.graph import Node, Value

from ..writing import Inexpressible, Writer
from .indexing import nonzero_places
from .table import LOWERINGS, lowering

__all__: list[str] = []


def _unary(onnx_name: str, **attributes: Any) -> Callable[..., str]:
    def lower(w: Writer, node: Node, **arguments: Any) -> str:
        return w.add(onnx_name, w.value(node.args[0], node.output.dtype), **attributes)

    return lower


_FUNCTIONS = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "log": "Log", "neg": "Neg",
    "reciprocal": "Reciprocal", "relu": "Relu", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin",
    "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh", "softsign": "Softsign", "mish": "Mish",
    "clone": "Identity", "contiguous": "Identity", "graph.detach": "Identity", "cast": "Identity",
    "conj_physical": "Identity", "clone_strided": "Identity", "hardswish": "HardSwish",
}  # fmt: skip
for _name, _onnx in _FUNCTIONS.items():
    LOWERINGS[_name] = _unary(_onnx)


def _rounding(onnx_name: str) -> Callable[..., str]:
    def lower(w: Writer, node: Node, input: Value, **arguments: Any) -> str:
        whole = not input.dtype.is_floating_point
        return w.add("Identity" if whole else onnx_name, w.value(input))

    return lower


LOWERINGS["floor"] = _rounding("Floor")
LOWERINGS["ceil"] = _rounding("Ceil")
LOWERINGS["rint"] = _rounding("Round")


def _one(w: Writer, node: Node) -> str:
    return w.constant(1, node.output.dtype)


@lowering("expm1")
def _expm1(w: Writer, node: Node, input: Value, **arguments: Any) -> str:
    """Say it through tanh, which keeps the digits of small numbers: expm1 x = 2t / (1 − t), t = tanh x/2."""
    x = w.value(input, node.output.dtype)
    t = w.add("Tanh", w.add("Mul", x, w.constant(0.5, node.output.dtype)))
    near = w.add("Div", w.add("Add", t, t), w.add("Sub", _one(w, node), t))
    far = w.add("Sub", w.add("Exp", x), _one(w, node))
    return w.add("Where", w.add("Greater", x, w.constant(1.0, node.output.dtype)), far, near)


@lowering("log1p")
def _log1p(w: Writer, node: Node, input: Value, **arguments: Any) -> str:
    """Keep the digits of small numbers: log1p x = 2 atanh(x / (2 + x)) near zero."""
    kind = node.output.dtype
    x = w.value(input, kind)
    ratio = w.add("Div", x, w.add("Add", x, w.constant(2, kind)))
    half = w.add("Atanh", ratio)
    near = w.add("Add", half, half)
    far = w.add("Log", w.add("Add", x, _one(w, node)))
    small = w.add("Less", w.add("Abs", x), w.constant(0.5, kind))
    return w.add("Where", small, near, far)


@lowering("erfc")
def _erfc(w: Writer, node: Node, input: Value, **arguments: Any) -> str:
    return w.add("Sub", _one(w, node), w.add("Erf", w.value(input, node.output.dtype)))


@lowering("square")
def _square(w: Writer, node: Node, input: Value, **arguments: Any) -> str:
    x = w.value(input, node.output.dtype)
    return w.add("Mul", x, x)


@lowering("rsqrt")
def _rsqrt(w: Writer, node: Node, input: Value, **arguments: Any) -> str:
    return w.add("Reciprocal", w.add("Sqrt", w.value(input, node.output.dtype)))


@lowering("bitwise_not", "logical_not")
def _not(w: Writer, node: Node, input: Value, **arguments: Any) -> str:
    if node.op.name == "logical_not" or input.dtype is dtypes.bool_:
        return w.add("Not", w.value(input, dtypes.bool_))
    return w.add("BitwiseNot", w.value(input))


@lowering("isnan", "isinf")
def _is(w: Writer, node: Node, input: Value, **arguments: Any) -> str:
    x = w.value(input) if input.dtype.is_floating_point else w.value(input, dtypes.float32)
    return w.add("IsNaN" if node.op.name == "isnan" else "IsInf", x)


# --- of two ---------------------------------------------------------------------------------------


def _both(w: Writer, node: Node, a: Any, b: Any, kind: Any = None) -> tuple[str, str]:
    kind = kind or node.output.dtype
    return w.value(a, kind), w.value(b, kind)


@lowering("add", "sub")
def _add(w: Writer, node: Node, input: Any, other: Any, alpha: Any = 1, **rest: Any) -> str:
    a, b = _both(w, node, input, other)
    if node.output.dtype is dtypes.bool_:
        return w.add("Or" if node.op.name == "add" else "Xor", a, b)
    if alpha != 1:
        b = w.add("Mul", b, w.value(alpha, node.output.dtype))
    return w.add("Add" if node.op.name == "add" else "Sub", a, b)


@lowering("mul")
def _mul(w: Writer, node: Node, input: Any, other: Any, **rest: Any) -> str:
    return w.add(
        "And" if node.output.dtype is dtypes.bool_ else "Mul", *_both(w, node, input, other)
    )


@lowering("maximum", "minimum", "clamp_min", "clamp_max")
def _extreme(w: Writer, node: Node, **arguments: Any) -> str:
    largest = node.op.name in ("maximum", "clamp_min")
    a, b = _both(w, node, node.args[0], node.args[1])
    if node.output.dtype is dtypes.bool_:
        return w.add("Or" if largest else "And", a, b)
    return w.add("Max" if largest else "Min", a, b)


@lowering("clamp")
def _clamp(
    w: Writer, node: Node, input: Value, min: Any = None, max: Any = None, **rest: Any
) -> str:
    kind = node.output.dtype
    x = w.value(input, kind)
    if min is not None:
        x = w.add("Max", x, w.value(min, kind))
    return x if max is None else w.add("Min", x, w.value(max, kind))


@lowering("pow")
def _pow(w: Writer, node: Node, input: Any, exponent: Any, **rest: Any) -> str:
    return w.add("Pow", *_both(w, node, input, exponent))


@lowering("div")
def _div(
    w: Writer, node: Node, input: Any, other: Any, rounding_mode: str | None = None, **rest: Any
) -> str:
    a, b = _both(w, node, input, other)
    kind = node.output.dtype
    if rounding_mode == "floor":
        return _floor_divided(w, a, b, kind)
    result = w.add("Div", a, b)
    if rounding_mode == "trunc" and kind.is_floating_point:
        return w.add("Mul", w.add("Floor", w.add("Abs", result)), w.add("Sign", result))
    return result


@lowering("floor_divide")
def _floor_divide(w: Writer, node: Node, input: Any, other: Any, **rest: Any) -> str:
    return _floor_divided(w, *_both(w, node, input, other), node.output.dtype)


def _floor_divided(w: Writer, a: str, b: str, kind: Any) -> str:
    if kind.is_floating_point:
        return w.add("Floor", w.add("Div", a, b))
    return w.add("Div", w.add("Sub", a, w.add("Mod", a, b)), b)


@lowering("remainder")
def _remainder(w: Writer, node: Node, input: Any, other: Any, **rest: Any) -> str:
    """Say it of floats through fmod, whose result is exact and has the sign of the dividend."""
    a, b = _both(w, node, input, other)
    kind = node.output.dtype
    if not kind.is_floating_point:
        return w.add("Mod", a, b)
    rest_ = w.add("Mod", a, b, fmod=1)
    zero = w.constant(0.0, kind)
    signs = w.add("Xor", w.add("Less", rest_, zero), w.add("Less", b, zero))
    wrong = w.add("And", w.add("Not", w.add("Equal", rest_, zero)), signs)
    return w.add("Where", wrong, w.add("Add", rest_, b), rest_)


@lowering("fmod")
def _fmod(w: Writer, node: Node, input: Any, other: Any, **rest: Any) -> str:
    return w.add("Mod", *_both(w, node, input, other), fmod=1)


def _compare(onnx_name: str, negated: bool = False) -> Callable[..., str]:
    def lower(w: Writer, node: Node, input: Any, other: Any, **rest: Any) -> str:
        kind = w.common(input, other)
        if kind is dtypes.bool_ and onnx_name != "Equal":
            kind = dtypes.int32
        result = w.add(onnx_name, *_both(w, node, input, other, kind))
        return w.add("Not", result) if negated else result

    return lower


LOWERINGS["eq"] = _compare("Equal")
LOWERINGS["ne"] = _compare("Equal", True)
LOWERINGS["lt"] = _compare("Less")
LOWERINGS["le"] = _compare("LessOrEqual")
LOWERINGS["gt"] = _compare("Greater")
LOWERINGS["ge"] = _compare("GreaterOrEqual")


def _bits(onnx_name: str, logical: str) -> Callable[..., str]:
    def lower(w: Writer, node: Node, input: Any, other: Any, **rest: Any) -> str:
        name = logical if node.output.dtype is dtypes.bool_ else onnx_name
        return w.add(name, *_both(w, node, input, other))

    return lower


LOWERINGS["bitwise_and"] = _bits("BitwiseAnd", "And")
LOWERINGS["bitwise_or"] = _bits("BitwiseOr", "Or")
LOWERINGS["bitwise_xor"] = _bits("BitwiseXor", "Xor")


@lowering("bitwise_left_shift")
def _left_shift(w: Writer, node: Node, input: Any, other: Any, **rest: Any) -> str:
    if node.output.dtype.is_floating_point:
        raise Inexpressible("shifts of floating-point numbers")
    a, b = _both(w, node, input, other, dtypes.uint64)
    return w.cast(w.add("BitShift", a, b, direction="LEFT"), node.output.dtype)


@lowering("bitwise_right_shift")
def _right_shift(w: Writer, node: Node, input: Any, other: Any, **rest: Any) -> str:
    """Divide by a power of two, rounding down, as a shift of a number with sign does."""
    a, b = _both(w, node, input, other, dtypes.int64)
    power = w.add("Pow", w.constant(2, dtypes.int64), b)
    return w.cast(_floor_divided(w, a, power, dtypes.int64), node.output.dtype)


@lowering("copysign")
def _copysign(w: Writer, node: Node, input: Any, other: Any, **rest: Any) -> str:
    kind = node.output.dtype
    a, b = _both(w, node, input, other)
    zero = w.constant(0.0, kind)
    # 1 / b tells −0 from 0
    negative = w.add(
        "Less", w.add("Where", w.add("Equal", b, zero), w.add("Reciprocal", b), b), zero
    )
    size = w.add("Abs", a)
    return w.add("Where", negative, w.add("Neg", size), size)


@lowering("atan2")
def _atan2(w: Writer, node: Node, input: Any, other: Any, **rest: Any) -> str:
    """Choose the half plane: atan y/x, and π more or less where x is negative."""
    kind = node.output.dtype
    y, x = _both(w, node, input, other)
    zero, pi = w.constant(0.0, kind), w.constant(math.pi, kind)
    inner = w.add("Atan", w.add("Div", y, x))
    low = w.add("Less", w.add("Where", w.add("Equal", y, zero), w.add("Reciprocal", y), y), zero)
    turned = w.add("Where", low, w.add("Sub", inner, pi), w.add("Add", inner, pi))
    left = w.add("Less", w.add("Where", w.add("Equal", x, zero), w.add("Reciprocal", x), x), zero)
    origin = w.add("And", w.add("Equal", x, zero), w.add("Equal", y, zero))
    at = w.add("Where", left, pi, zero)
    at = w.add("Where", low, w.add("Neg", at), at)
    return w.add("Where", origin, at, w.add("Where", left, turned, inner))


@lowering("where")
def _where(
    w: Writer, node: Node, condition: Value, input: Any = None, other: Any = None, **rest: Any
) -> str | list[str]:
    if input is None:
        if not condition.shape:
            raise Inexpressible("where of a single truth value")
        return nonzero_places(w, condition)
    choice, (a, b) = w.value(condition, dtypes.bool_), _both(w, node, input, other)
    if node.output.dtype is dtypes.bool_:  # onnxruntime's Where takes no truth values
        return w.add("Or", w.add("And", choice, a), w.add("And", w.add("Not", choice), b))
    return w.add("Where", choice, a, b)


@lowering("copy")
def _copy(w: Writer, node: Node, input: Value, src: Any, **rest: Any) -> str:
    return w.add("Expand", w.value(src, node.output.dtype), w.ints(w.shape(node.output)))


# --- activations, which programs also call in place --------------------------------------------------


@lowering("hardtanh", "relu6")
def _hardtanh(
    w: Writer, node: Node, input: Value, min_val: float = -1.0, max_val: float = 1.0, **rest: Any
) -> str:
    kind = node.output.dtype
    low, high = (0, 6) if node.op.name == "relu6" else (min_val, max_val)
    return w.add("Clip", w.value(input, kind), w.value(low, kind), w.value(high, kind))


@lowering("silu")
def _silu(w: Writer, node: Node, input: Value, **rest: Any) -> str:
    x = w.value(input, node.output.dtype)
    return w.add("Mul", x, w.add("Sigmoid", x))


@lowering("hardsigmoid")
def _hardsigmoid(w: Writer, node: Node, input: Value, **rest: Any) -> str:
    return w.add("HardSigmoid", w.value(input), alpha=1 / 6, beta=0.5)


@lowering("elu", "celu", "selu")
def _elu(
    w: Writer,
    node: Node,
    input: Value,
    alpha: float = 1.0,
    scale: float = 1.0,
    input_scale: float = 1.0,
    **rest: Any,
) -> str:
    if scale != 1 or input_scale != 1:
        raise Inexpressible("with scales")
    name = node.op.name.capitalize()
    if name == "Selu":
        return w.add(name, w.value(input))
    if name == "Celu" and input.dtype is not dtypes.float32:
        raise Inexpressible("of other than float32")
    return w.add(name, w.value(input), alpha=float(alpha))


@lowering("threshold")
def _threshold(w: Writer, node: Node, input: Value, threshold: Any, value: Any, **rest: Any) -> str:
    kind = node.output.dtype
    x = w.value(input)
    above = w.add("Greater", x, w.value(threshold, kind))
    return w.add("Where", above, x, w.value(value, kind))


@lowering("dropout", "alpha_dropout", "feature_alpha_dropout")
def _dropout(
    w: Writer, node: Node, input: Value, p: float = 0.5, training: bool = True, **rest: Any
) -> str:
    if training and p:
        raise Inexpressible("random numbers")
    return w.add("Identity", w.value(input))
