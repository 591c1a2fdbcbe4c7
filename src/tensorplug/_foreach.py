"""Torch's ``_foreach_*`` functions: one op over each tensor of a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dispatch import op_registry

PREFIX = "_foreach_"

_UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
    "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_BINARY = (
    "add",
    "clamp_max",
    "clamp_min",
    "div",
    "lerp",
    "maximum",
    "minimum",
    "mul",
    "pow",
    "sub",
)
_TERNARY = ("addcdiv", "addcmul")
#: A tensor beside the list counts as its number, which takes no part in promotion; factors and divisors do.
_BY_NUMBER = frozenset(("add", "clamp_max", "clamp_min", "maximum", "minimum", "pow"))
_IN_PLACE = (*_UNARY, *_BINARY, *_TERNARY)

#: The names, without the prefix.
NAMES = frozenset(
    {
        *_IN_PLACE,
        *[f"{name}_" for name in _IN_PLACE],
        "clone",
        "copy_",
        "max",
        "mm",
        "norm",
        "powsum",
        "zero_",
    }
)


def find(name: str) -> Callable[..., Any]:
    """Return the function of a name, such as ``_foreach_add_``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp._foreach_add([tp.ones(2), tp.zeros(1)], [tp.ones(2), tp.ones(1)], alpha=2)
    (tensor([3., 3.]), tensor([2.]))
    """
    short = name.removeprefix(PREFIX)
    base = short.removesuffix("_")
    in_place = short.endswith("_")
    one = _in_place(base) if in_place else _function(base)

    def call(*args: Any, **kwargs: Any) -> Any:
        lists = [value for value in (*args, *kwargs.values()) if isinstance(value, (list, tuple))]
        if not lists:
            raise TypeError(f"{name}(): expected a list of tensors, got {args!r}")
        count = len(lists[0])
        if not count:
            raise RuntimeError(f"{name}(): Tensor list must have at least one tensor.")
        if base in _TERNARY and len(args) == 4:
            *args_, value = args
            args, kwargs = tuple(args_), {**kwargs, "value": value}
        elif base in _TERNARY and "scalars" in kwargs:
            kwargs = {**kwargs, "value": kwargs["scalars"]}
            del kwargs["scalars"]
        if isinstance(kwargs.get("value"), Tensor):
            kwargs = {**kwargs, "value": kwargs["value"].tolist()}
        for values in (*args, *kwargs.values()):
            if isinstance(values, (list, tuple)) and len(values) != count:
                raise _unequal(name, count, values)
        if base in _BY_NUMBER:
            args = tuple([v.item() if isinstance(v, Tensor) else v for v in args])
        results = [
            one(
                *[_at(value, i) for value in args],
                **{key: _at(value, i) for key, value in kwargs.items()},
            )
            for i in range(count)
        ]
        return args[0] if in_place else tuple(results)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Call ``{short}`` for each tensor of a list; other lists go along with it."
    return call


def _unequal(name: str, count: int, values: Any) -> RuntimeError:
    if values and isinstance(values[0], Tensor):
        text = f"Tensor lists must have the same number of tensors, got {count} and {len(values)}"
    else:
        text = (
            "Tensor list must have same number of elements as scalar list. Got "
            f"{count} and {len(values)}"
        )
    return RuntimeError(f"{name}(): {text}")


def _at(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, (list, tuple)) else value


def _function(base: str) -> Callable[..., Any]:
    if base in ("norm", "powsum"):
        return _norm if base == "norm" else _powsum
    if base in ("maximum", "minimum"):
        return _bounded(base)
    found: Callable[..., Any] = op_registry.get_op(base).call
    return found


def _in_place(base: str) -> Callable[..., Any]:
    if base not in ("maximum", "minimum"):
        found: Callable[..., Any] = getattr(Tensor, f"{base}_")
        return found
    clamped = Tensor.clamp_min_ if base == "maximum" else Tensor.clamp_max_
    bounded = _bounded(base)

    def write(tensor: Any, other: Any) -> Any:
        # Complex numbers are refused under the name that was called.
        return bounded(tensor, other) if tensor.is_complex() else clamped(tensor, other)

    return write


def _powsum(tensor: Any, ord: Any = 2, dtype: Any = None) -> Any:
    return (tensor.abs() ** ord).sum(dtype=dtype)


def _norm(tensor: Tensor, ord: Any = 2, dtype: Any = None) -> Any:
    return op_registry.get_op("linalg_vector_norm").call(tensor, ord, dtype=dtype)


def _bounded(base: str) -> Callable[..., Any]:
    pair = op_registry.get_op(base).call
    clamp = op_registry.get_op("clamp_min" if base == "maximum" else "clamp_max").call

    def one(tensor: Any, other: Any) -> Any:
        # Complex numbers are refused under the name that was called.
        pairs = isinstance(other, Tensor) or tensor.is_complex()
        return pair(tensor, other) if pairs else clamp(tensor, other)

    return one
