"""Operators of one element each: arithmetic, comparisons, bits, functions, activations, casts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.device.dtypes import finfo
from tensorplug.core.tensor.creation import tensor
from tensorplug.nn import functional as F

from ..registry import operator
from ..values import dtype_of

__all__: list[str] = []

_UNARY: dict[str, Callable[..., Any]] = {
    "Abs": ops.abs,
    "Acos": ops.acos,
    "Acosh": ops.acosh,
    "Asin": ops.asin,
    "Asinh": ops.asinh,
    "Atan": ops.atan,
    "Atanh": ops.atanh,
    "BitwiseNot": ops.bitwise_not,
    "Ceil": ops.ceil,
    "Cos": ops.cos,
    "Cosh": ops.cosh,
    "Erf": ops.erf,
    "Exp": ops.exp,
    "Floor": ops.floor,
    "HardSwish": F.hardswish,
    "IsNaN": ops.isnan,
    "Log": ops.log,
    "Mish": F.mish,
    "Neg": ops.neg,
    "Not": ops.logical_not,
    "Reciprocal": ops.reciprocal,
    "Relu": F.relu,
    "Round": ops.round,
    "Sigmoid": ops.sigmoid,
    "Sign": ops.sign,
    "Sin": ops.sin,
    "Sinh": ops.sinh,
    "Softplus": F.softplus,
    "Softsign": F.softsign,
    "Sqrt": ops.sqrt,
    "Tan": ops.tan,
    "Tanh": ops.tanh,
}

_BINARY: dict[str, Callable[..., Any]] = {
    "Add": ops.add,
    "And": ops.logical_and,
    "BitwiseAnd": ops.bitwise_and,
    "BitwiseOr": ops.bitwise_or,
    "BitwiseXor": ops.bitwise_xor,
    "Greater": ops.gt,
    "GreaterOrEqual": ops.ge,
    "Less": ops.lt,
    "LessOrEqual": ops.le,
    "Mul": ops.mul,
    "Or": ops.logical_or,
    "Sub": ops.sub,
    "Xor": ops.logical_xor,
}


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(X: Any) -> Any:
        return function(X)

    return compute


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(A: Any, B: Any) -> Any:
        return function(A, B)

    return compute


def _broadcast_from(function: Callable[..., Any]) -> Callable[..., Any]:
    """Before opset 7 the second operand was broadcast from an axis on, where an attribute said so."""

    def compute(A: Any, B: Any, *, broadcast: int = 0, axis: int | None = None) -> Any:
        if broadcast and axis is not None and axis >= 0:
            B = B.reshape(tuple(B.shape) + (1,) * (A.dim() - axis - B.dim()))
        return function(A, B)

    return compute


def _div(A: Tensor, B: Tensor) -> Tensor:
    return ops.div(A, B) if A.dtype.is_floating_point else ops.div(A, B, rounding_mode="trunc")


def _pow(X: Tensor, Y: Tensor) -> Tensor:
    return ops.pow(X, Y).to(X.dtype)


def _equal(A: Any, B: Any) -> Any:
    if isinstance(A, Tensor):
        return ops.eq(A, B)
    count = max(len(A), len(B))
    pairs = zip(A * (count // len(A)), B * (count // len(B)), strict=True)
    return tensor([one == other for one, other in pairs])


for _name, _function in _UNARY.items():
    operator(_name)(_unary(_function))
for _name, _function in {**_BINARY, "Equal": _equal, "Div": _div, "Pow": _pow}.items():
    operator(_name)(_broadcast_from(_function))
    operator(_name, since=7)(_binary(_function))


@operator("Mod")
def mod(A: Tensor, B: Tensor, *, fmod: int = 0) -> Tensor:
    return ops.fmod(A, B) if fmod else ops.remainder(A, B)


@operator("BitShift")
def bit_shift(X: Tensor, Y: Tensor, *, direction: str) -> Tensor:
    """Shift bits; by the width of the type or more nothing is left, but for the sign."""
    width = X.dtype.itemsize * 8
    inside = ops.clamp(Y, max=width - 1)
    if direction == "LEFT":
        shifted = ops.bitwise_left_shift(X, inside)
        return ops.where(width > Y, shifted, ops.zeros_like(shifted))
    shifted = ops.bitwise_right_shift(X, inside)
    rest = ops.bitwise_right_shift(shifted, 1) if X.dtype.is_signed else ops.zeros_like(shifted)
    return ops.where(width > Y, shifted, rest)


def _folded(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def compute(*data: Any) -> Any:
        result = data[0]
        for item in data[1:]:
            result = function(result, item)
        return result

    return compute


for _name, _function in {"Max": ops.maximum, "Min": ops.minimum, "Sum": ops.add}.items():
    operator(_name)(_folded(_function))


@operator("Mean")
def mean(*data: Any) -> Any:
    return _folded(ops.add)(*data) / len(data)


@operator("Where")
def where(condition: Tensor, X: Any, Y: Any) -> Tensor:
    return ops.where(condition, X, Y)


@operator("Clip")
def clip(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Bound from below, then from above: where the bounds cross, the upper one holds."""
    if min is not None:
        input = ops.maximum(input, min) if isinstance(min, Tensor) else ops.clamp(input, min=min)
    if max is not None:
        input = ops.minimum(input, max) if isinstance(max, Tensor) else ops.clamp(input, max=max)
    return input


@operator("IsInf")
def is_inf(X: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    if detect_negative and detect_positive:
        return ops.isinf(X)
    if detect_negative or detect_positive:
        return ops.isposinf(X) if detect_positive else ops.isneginf(X)
    return ops.zeros_like(X, dtype=dtype_of(9))


@operator("Identity")
def identity(input: Any) -> Any:
    return input


@operator("Cast")
def cast(input: Any, *, to: int | str, saturate: int = 1, round_mode: str = "up") -> Any:
    if isinstance(to, str):  # opset 1 wrote names
        from ..package import onnx_package

        to = int(onnx_package().TensorProto.DataType.Value(to.upper()))
    dtype = dtype_of(to)
    if not isinstance(input, Tensor):
        return _from_strings(input, dtype)
    return converted(input, dtype, bool(saturate), round_mode)


@operator("CastLike")
def cast_like(input: Any, target_type: Tensor, *, saturate: int = 1, round_mode: str = "up") -> Any:
    if not isinstance(target_type, Tensor):
        raise NotImplementedError("tensors of string have no dtype here")
    if not isinstance(input, Tensor):
        return _from_strings(input, target_type.dtype)
    return converted(input, target_type.dtype, bool(saturate), round_mode)


@operator("BitCast", since=26)
def bit_cast(input: Tensor, *, to: int) -> Tensor:
    return input.view(dtype_of(to))


def converted(x: Tensor, dtype: Any, saturate: bool = True, round_mode: str = "up") -> Tensor:
    """Return a tensor in another dtype; in one of 8 bits large numbers become the largest where asked for."""
    if not (dtype.is_floating_point and dtype.itemsize == 1 and x.dtype.is_floating_point):
        return x.to(dtype)
    if not finfo(dtype).min < 0:  # powers of two
        if round_mode == "nearest":
            return x.to(dtype)
        x = ops.clamp(ops.abs(x.float()), min=2.0**-127)
        fraction, exponent = ops.frexp(x)
        down = (fraction == 0.5) | ops.full_like(x, round_mode != "up", dtype=dtype_of(9))
        power = ops.ldexp(ops.ones_like(x), exponent - down.int())
        return ops.where(ops.isfinite(x), power, x).to(dtype)
    limit = finfo(dtype).max
    if saturate:
        return ops.clamp(x, min=-limit, max=limit).to(dtype)
    if dtype in (
        dtype_of(17),
        dtype_of(18),
        dtype_of(20),
    ):
        # Not infinity: what is beyond is no number.
        step = 2 ** (math.floor(math.log2(limit)) - (2 if dtype == dtype_of(20) else 3))
        x = ops.where(ops.abs(x) > limit + step / 2, math.nan, x)
    return x.to(dtype)


def _from_strings(strings: Any, dtype: Any) -> Tensor:
    def number(text: Any) -> Any:
        if isinstance(text, list):
            return [number(item) for item in text]
        return float(text) if dtype.is_floating_point else int(text)

    return tensor(number(strings), dtype=dtype)


@operator("Elu")
def elu(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.elu(X, alpha)


@operator("Celu")
def celu(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.celu(X, alpha)


@operator("Selu")
def selu(
    X: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Tensor:
    return gamma * ops.where(X > 0, X, alpha * ops.expm1(ops.clamp(X, max=0)))


@operator("LeakyRelu")
def leaky_relu(X: Tensor, *, alpha: float = 0.01) -> Tensor:
    return F.leaky_relu(X, alpha)


@operator("ThresholdedRelu")
def thresholded_relu(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.threshold(X, alpha, 0.0)


def prelu(X: Tensor, slope: Tensor) -> Tensor:
    if X.dtype.is_floating_point:
        return ops.where(X < 0, slope * X, X)
    return ops.where(X < 0, (slope * X).to(X.dtype), X)


@operator("PRelu")
def prelu_by_channel(X: Tensor, slope: Tensor) -> Tensor:
    """Before opset 7 a slope of several elements was that of the channels."""
    if slope.dim() == 1 and slope.numel() > 1:
        slope = slope.reshape((-1,) + (1,) * (X.dim() - 2))
    return ops.where(X < 0, slope * X, X)


operator("PRelu", since=7)(prelu)


@operator("Gelu")
def gelu(X: Tensor, *, approximate: str = "none") -> Tensor:
    return F.gelu(X, approximate=approximate)


@operator("Swish")
def swish(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.silu(X) if alpha == 1.0 else X * ops.sigmoid(alpha * X)


@operator("HardSigmoid")
def hard_sigmoid(X: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return ops.clamp(alpha * X + beta, 0, 1)


@operator("Shrink")
def shrink(input: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    low = ops.where(input < -lambd, input + bias, ops.zeros_like(input + bias))
    return ops.where(input > lambd, input - bias, low).to(input.dtype)


def _softmaxes(name: str, function: Callable[..., Any]) -> None:
    def flattened(input: Tensor, *, axis: int = 1) -> Tensor:
        """Before opset 13 all dimensions from the axis on were one."""
        axis = axis % max(input.dim(), 1)
        rows = math.prod(input.shape[:axis])
        return function(input.reshape(rows, -1), 1).reshape(input.shape)

    def along(input: Tensor, *, axis: int = -1) -> Tensor:
        return function(input, axis)

    operator(name)(flattened)
    operator(name, since=13)(along)


def _hardmax(x: Tensor, dim: int) -> Tensor:
    first = ops.argmax(x, dim=dim, keepdim=True)
    return ops.scatter(ops.zeros_like(x), dim, first, 1)


_softmaxes("Softmax", F.softmax)
_softmaxes("LogSoftmax", F.log_softmax)
_softmaxes("Hardmax", _hardmax)


@operator("Dropout")
def dropout(
    data: Tensor,
    ratio: Any = 0.5,
    training_mode: Any = None,
    *,
    is_test: int = 1,
    training: bool,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """Drop elements where the node or the module is in training; the second result is what was kept."""
    ratio = 0.5 if ratio is None else float(ratio)
    active = training or not is_test or (training_mode is not None and bool(training_mode))
    if not active or ratio == 0:
        return (data, ops.ones_like(data, dtype=dtype_of(9)))[:n_outputs]
    kept = ops.rand_like(data) >= ratio
    return (data * kept / (1 - ratio), kept)[:n_outputs]
