"""What ops compute of sparse tensors: a table by the op's name, and the refusal of all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.dispatch.interception import Intercepted
from tensorplug.core.dispatch.op import Op
from tensorplug.core.dispatch.state import dispatch_state

from . import arithmetic, indexing, products, reductions
from .tensors import SparseTensor

#: By the op's name: a function of the arguments of the op's call.
TABLE: dict[str, Callable[..., Any]] = {
    **arithmetic.TABLE,
    **indexing.TABLE,
    **products.TABLE,
    **reductions.TABLE,
}


def compute(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of an op of which a tensor is sparse.

    Raises
    ------
    Intercepted
        If there is no sparse form of the op.
    """
    original = op.inplace_of
    function = TABLE.get(op.name if original is None else original.name)
    if function is None or kwargs.get("out") is not None:
        raise _missing(op.name, (*args, *kwargs.values()), function is not None)
    try:
        if original is not None:
            return _in_place(op.name, function, args, kwargs)
        return function(*args, **{name: v for name, v in kwargs.items() if name != "out"})
    except Intercepted as error:  # an op inside
        raise _missing(op.name, (*args, *kwargs.values()), False) from error


def _missing(name: str, values: tuple[Any, ...], only_out: bool) -> Intercepted:
    """Return the error for an op; the call of a composite around it may know better, and catches it."""
    found = next(_sparse_among(values))
    what = "out= is" if only_out else "the op is"
    return Intercepted(
        f"{name}(): {what} not there for tensors of layout {found.layout}; convert with .to_dense() "
        "first"
    )


def _sparse_among(values: Any) -> Any:
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, SparseTensor):
                yield item


def _in_place(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Compute an in-place variant: a sparse target becomes the result, a dense one is written to."""
    target = args[0]
    own = arithmetic.IN_PLACE.get(name)
    if not isinstance(target, SparseTensor):
        if own is None:
            result = function(*args, **kwargs)
            arithmetic.check_kept(name, result, target)
            return target.copy_(result.to_dense())
        return own(*args, **kwargs)
    recorded = not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    if recorded and target.requires_grad and target.is_leaf:
        raise RuntimeError(
            f"{name}(): a leaf Variable that requires grad is being used in an in-place operation; wrap "
            "the update in `with tp.no_grad():`, or work on a clone()"
        )
    result = own(*args, **kwargs) if own is not None else function(*args, **kwargs)
    if result is target:
        return target
    if result.layout is not target.layout or result._shape != target._shape:
        raise RuntimeError(
            f"{name}(): the result, {list(result.shape)} of layout {result.layout}, is no value for "
            f"a tensor of layout {target.layout} and shape {list(target.shape)}"
        )
    if result.dtype is not target.dtype:
        arithmetic.check_kept(name, result, target)
        result = result.to(target.dtype)
    unrecorded = target.requires_grad and not recorded
    return target._take_values(result) if unrecorded else target._take(result)
