"""What ops compute of sparse tensors: a table by the op's name, and the refusal of all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorplug.core.dispatch.interception import Intercepted
from tensorplug.core.dispatch.op import Op
from tensorplug.core.dispatch.out_variants import resize_out
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TensorBase

from . import arithmetic, factories, indexing, products, reductions
from .tensors import SparseTensor

#: By the op's name: a function of the arguments of the op's call.
TABLE: dict[str, Callable[..., Any]] = {
    **arithmetic.TABLE,
    **factories.TABLE,
    **indexing.TABLE,
    **products.TABLE,
    **reductions.TABLE,
}


#: In-place variants that are more than their results stored: by the variant's name.
IN_PLACE: dict[str, Callable[..., Any]] = {**arithmetic.IN_PLACE, **indexing.IN_PLACE}


def compute(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of an op of which a tensor is sparse.

    Raises
    ------
    Intercepted
        If there is no sparse form of the op.
    """
    original = op.inplace_of
    function = TABLE.get(op.name if original is None else original.name)
    if function is None and "layout" in op.names and next(_sparse_among(args), None) is None:
        return factories.made_into(op, args, kwargs)  # as out= alone
    if function is None:
        raise _missing(op.name, (*args, *kwargs.values()))
    try:
        if original is not None:
            return _in_place(op.name, function, args, kwargs)
        plain = {name: value for name, value in kwargs.items() if name != "out"}
        if kwargs.get("out") is not None:
            return _into(op, function, args, plain, kwargs["out"])
        return function(*args, **plain)
    except Intercepted as error:  # an op inside
        raise _missing(op.name, (*args, *kwargs.values())) from error


def _missing(name: str, values: tuple[Any, ...]) -> Intercepted:
    """Return the error for an op; the call of a composite around it may know better, and catches it."""
    found = next(_sparse_among(values))
    return Intercepted(
        f"{name}(): the op is not there for tensors of layout {found.layout}; convert with .to_dense() "
        "first"
    )


def _into(
    op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
) -> Any:
    """Compute into ``out=``: a sparse tensor becomes the result, a dense one is written to."""
    inputs = (*args, *kwargs.values())
    if isinstance(out, (list, tuple)):
        raise RuntimeError(f"{op.name}(): the result is one tensor, got {len(out)} as out=")
    if next(_sparse_among(inputs), None) is None:
        raise RuntimeError(
            f"{op.name}(): the result of dense tensors is dense, and out= of layout {out.layout}"
        )
    result = written(op.name, function, args, kwargs, out)
    if result is not out and out._shape != result._shape:
        resize_out(op, out, result._shape)
    return out if result is out else out.copy_(result)


def written(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
) -> Any:
    """Return a sparse `out` that has become the result of a function, or a result for a dense one.

    Raises
    ------
    RuntimeError
        If a gradient would be recorded, or the result is of another layout, device or kind of dtype.
    """
    inputs = (*args, *kwargs.values())
    if any([tensor.requires_grad for tensor in _tensors_among((*inputs, out))]) and (
        not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    ):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad"
        )
    result = function(*args, **kwargs)
    if result.layout is not out.layout or result.device != out.device:
        raise RuntimeError(
            f"{name}(): the result is of layout {result.layout} on {result.device}, and out= of layout "
            f"{out.layout} on {out.device}"
        )
    arithmetic.check_kept(name, result, out)
    result = result.to(out.dtype)
    if not isinstance(out, SparseTensor):
        return result
    if any([item._stored is result._stored for item in _sparse_among(inputs)]):
        result = result.clone()
    return out._take_values(result) if out.requires_grad else out._take(result)


def _tensors_among(values: Any, kind: type[TensorBase] = TensorBase) -> Iterator[Any]:
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, kind):
                yield item


def _sparse_among(values: Any) -> Iterator[Any]:
    return _tensors_among(values, SparseTensor)


def _in_place(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Compute an in-place variant: a sparse target becomes the result, a dense one is written to."""
    target = args[0]
    own = IN_PLACE.get(name)
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
    if target.dtype.is_complex and not result.dtype.is_complex:
        method = name.removesuffix("_")
        raise RuntimeError(
            f"In-place {method} is not supported for complex tensors. Call {method}(): what it returns "
            "is real"
        )
    if result.dtype is not target.dtype:
        arithmetic.check_kept(name, result, target)
        result = result.to(target.dtype)
    unrecorded = target.requires_grad and not recorded
    return target._take_values(result) if unrecorded else target._take(result)
