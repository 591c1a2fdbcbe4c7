"""How losses are declared: their rules merge torch's old pair of flags into `reduction`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from tensorplug.core.device.dtypes import scalar_type
from tensorplug.core.dispatch.op_registry import Op, composite
from tensorplug.core.errors import type_name
from tensorplug.core.ops.rules import in_float32
from tensorplug.core.tensor.base import TensorBase

P = ParamSpec("P")
R = TypeVar("R")


def loss(
    kernel: str, check: Callable[..., Any] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a loss, an op whose rule leaves out ``size_average`` and ``reduce``.

    Half precision is computed in float32, and rounded once.

    Parameters
    ----------
    kernel : str
        The names of the canonical arguments, as for :func:`composite`.
    check : callable, optional
        Called with the canonical arguments; what it returns, unless None, takes their place.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        rule = _Rule(function, kernel, check)
        declared = composite(kernel, rule=rule, method=False)(in_float32(function))
        rule.op = cast(Any, declared).op
        return declared

    return declare


class _Rule:
    """The rule of one loss."""

    __slots__ = ("check", "defaults", "flags", "names", "op", "values")

    op: Op

    def __init__(
        self, function: Callable[..., Any], kernel: str, check: Callable[..., Any] | None
    ) -> None:
        code = function.__code__
        self.names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = function.__defaults__ or ()
        positional = self.names[: code.co_argcount]
        self.defaults = dict(zip(positional[len(positional) - len(given) :], given, strict=True))
        self.defaults.update(function.__kwdefaults__ or {})
        self.values = tuple([part.strip() for part in kernel.split(",")])
        self.flags = "size_average" in self.names
        self.check = check

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        names = self.names
        given = {**self.defaults, **dict(zip(names, args, strict=False)), **kwargs}
        if (
            len(given) != len(names)
            or len(args) > len(names)
            or (kwargs and not kwargs.keys().isdisjoint(names[: len(args)]))
        ):
            self.op.signature.bind(*args, **kwargs)  # says what does not fit
        if self.flags:
            given["reduction"] = legacy_reduction(
                given["size_average"], given["reduce"], given["reduction"]
            )
        values = tuple([given[name] for name in self.values])
        checked = None if self.check is None else self.check(*values)
        return values if checked is None else checked


def legacy_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return the reduction that torch's old pair of flags stands for."""
    if size_average is None and reduce is None:
        return reduction
    if not (reduce is None or reduce):
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def check_reduction(reduction: str) -> None:
    """Raise ValueError for what is no reduction."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction: none, mean, sum")


def check_gradient(grad_output: Any, shape: tuple[int, ...], reduction: str) -> None:
    """Raise RuntimeError for what is no gradient of losses of a shape, reduced."""
    if grad_output._shape != (shape if reduction == "none" else ()):
        raise RuntimeError(
            f"a gradient of shape {list(grad_output.shape)} is not of losses of shape {list(shape)} with "
            f"reduction {reduction!r}"
        )


def reduced(losses: Any, reduction: str, name: str) -> Any:
    """Return the mean of losses, their sum, or the losses as they are."""
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    if reduction == "none":
        return losses
    raise ValueError(f"{name}(): {reduction} is not a valid value for reduction: none, mean, sum")


def check_weight(input: Any, weight: Any) -> None:
    """Raise RuntimeError for weights of classes that have another dtype than the input."""
    if weight is not None and weight._key.dtype is not input._key.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_type(input._key.dtype)} but found {scalar_type(weight._key.dtype)}"
        )


def check_tensors(name: str, **values: Any) -> None:
    """Raise TypeError for what is no tensor."""
    for argument, value in values.items():
        if not isinstance(value, TensorBase):
            raise TypeError(
                f"{name}(): argument '{argument}' must be Tensor, not {type_name(value)}"
            )
