"""Derivatives of reading and writing at positions."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.op_registry import handle
from tensorplug.core.ops.creation.creation import fill_new
from tensorplug.core.ops.indexing.gather import (
    gather,
    gather_backward,
    scatter,
    scatter_add,
    scatter_reduce,
)
from tensorplug.core.ops.indexing.index_select import index_select
from tensorplug.core.ops.indexing.indexing import (
    basic_index,
    index,
    index_backward,
    index_put,
    place,
    zeros_like_gradient,
    zeros_like_gradient as zeros,
)

from ..engine.derivatives import derivative, on_tensors
from ..forward.tangents import linear
from ..vmap.vmap_rules import shared_rule
from .shape import sum_to_shape

_WHERE = handle("where")


def _number(g: Any, value: int) -> Any:
    return fill_new((), value, g.dtype, g.device)


def _shown(g: Any, dim: int, index: Any, src_shape: tuple[int, ...]) -> Any:
    # A number was broadcast; it asks for no gradient.
    return gather(g, dim, index) if src_shape == index.shape else zeros(g, src_shape)


def _plain(reduce: str | None) -> None:
    if reduce is not None:
        raise NotImplementedError(
            f"the derivative of scatter with reduce={reduce!r} is not implemented; use scatter_reduce"
        )


def _scatter_input(g: Any, dim: int, index: Any, reduce: str | None) -> Any:
    _plain(reduce)
    return scatter(g, dim, index, 0)


def _scatter_src(g: Any, dim: int, index: Any, src_shape: Any, reduce: str | None) -> Any:
    _plain(reduce)
    return _shown(g, dim, index, src_shape)


def _shares(
    g: Any, input: Any, dim: int, index: Any, src: Any, result: Any
) -> tuple[Any, Any, Any]:
    """Return where input and src attain an extreme, and the gradient's equal share of each."""
    mine = input == result
    theirs = src == gather(result, dim, index)
    count = scatter_add(mine.to(g.dtype), dim, index, theirs.to(g.dtype))
    return mine, theirs, g / count


def _counts(g: Any, dim: int, index: Any, include_self: bool) -> Any:
    start = fill_new(g._shape, 1 if include_self else 0, g.dtype, g.device)
    ones = fill_new(index._shape, 1, g.dtype, g.device)
    count = scatter_add(start, dim, index, ones)
    return _WHERE.call(count == 0, _number(count, 1), count)


def _factors(
    input: Any, dim: int, index: Any, src: Any, include_self: bool
) -> tuple[Any, Any, Any]:
    """Return of each product the plain factors, multiplied; how many are zero or nan; the sum of these.

    The sum of zeros is zero, but has a derivative.
    """
    product = scatter_reduce(
        _or_one(input), dim, index, _or_one(src), "prod", include_self=include_self
    )
    # A zero of the input that does not take part has to count as none.
    own = input if include_self else _number(input, 1).expand(input.shape)
    count = scatter_add(
        _no_divisor(own).to(input.dtype), dim, index, _no_divisor(src).to(input.dtype)
    )
    return product, count, scatter_add(_or_zero(own), dim, index, _or_zero(src))


def _without(factor: Any, product: Any, count: Any, zeros: Any) -> Any:
    """Return the product of all factors but this, for derivatives up to the second."""
    # Two zeros or more make zero, and nan with a nan among them.
    one, several = _number(factor, 1), zeros * 0
    # But for this one zero, the other zeros are: none, one, which their sum is, or more.
    other = _WHERE.call(count == 1, one, _WHERE.call(count == 2, zeros - _or_zero(factor), several))
    every = _WHERE.call(count == 0, one, _WHERE.call(count == 1, zeros, several))
    return product / _or_one(factor) * _WHERE.call(_no_divisor(factor), other, every)


def _no_divisor(value: Any) -> Any:
    """Return where a product can't be divided by a factor to get that of the others."""
    return (value == 0) | (value != value)


def _or_one(value: Any) -> Any:
    return _WHERE.call(_no_divisor(value), _number(value, 1), value)


def _or_zero(value: Any) -> Any:
    return _WHERE.call(_no_divisor(value), value, _number(value, 0))


def _reduced_input(
    g: Any,
    input: Any,
    dim: int,
    index: Any,
    src: Any,
    reduce: str,
    include_self: bool,
    result: Any,
) -> Any:
    if reduce == "sum" or not include_self:  # then, of what nothing was written to
        gradient = g
    elif reduce == "mean":
        gradient = g / _counts(g, dim, index, include_self)
    elif reduce == "prod":
        product, count, zeros = _factors(input, dim, index, src, include_self)
        gradient = g * _without(input, product, count, zeros)._conj()
    else:
        mine, _, share = _shares(g, input, dim, index, src, result)
        gradient = _WHERE.call(mine, share, _number(share, 0))
    return gradient if include_self else scatter(gradient, dim, index, 0)


def _reduced_src(
    g: Any,
    input: Any,
    dim: int,
    index: Any,
    src: Any,
    reduce: str,
    include_self: bool,
    result: Any,
) -> Any:
    if reduce == "sum":
        return gather(g, dim, index)
    if reduce == "mean":
        return gather(g / _counts(g, dim, index, include_self), dim, index)
    if reduce == "prod":
        factors = [
            gather(value, dim, index) for value in _factors(input, dim, index, src, include_self)
        ]
        return gather(g, dim, index) * _without(src, *factors)._conj()
    _, theirs, share = _shares(g, input, dim, index, src, result)
    return _WHERE.call(theirs, gather(share, dim, index), _number(share, 0))


@on_tensors
def _spread(g: Any, input_shape: tuple[int, ...], indices: list[Any]) -> Any:
    return index_backward(g, input_shape, indices)


@on_tensors
def _spread_slices(g: Any, input_shape: tuple[int, ...], dim: int, index: Any) -> Any:
    return index_backward(g, input_shape, [*[None] * dim, index])


@on_tensors
def _kept(g: Any, dim: int, index: Any) -> Any:
    """Return the gradient of what slices were written into."""
    return index_put(g, [*[None] * dim, index], zeros_like_gradient(g, ()))


def _selected(g: Any, dim: int, index: Any) -> Any:
    return index_select(g, dim, index)


# Keys differ from call to call (a loop over time steps): noting a program for each would cost more.
@on_tensors
def _place(g: Any, input_shape: tuple[int, ...], key: tuple[Any, ...]) -> Any:
    return place(g, input_shape, key)


@on_tensors
def _placed(g: Any, key: tuple[Any, ...]) -> Any:
    return basic_index(g, key)


DERIVATIVES = [
    derivative(
        "gather",
        input=lambda g, input_shape, dim, index: gather_backward(g, input_shape, dim, index),
    ),
    derivative("gather_backward", g=lambda g, dim, index: gather(g, dim, index)),
    derivative("scatter", input=_scatter_input, src=_scatter_src),
    derivative(
        "scatter_add",
        input=lambda g: g,
        src=lambda g, dim, index: gather(g, dim, index),
    ),
    derivative("scatter_reduce", input=_reduced_input, src=_reduced_src),
    derivative("basic_index", input=_place),
    derivative("index", input=_spread),
    derivative("index_backward", g=on_tensors(lambda g, indices: index(g, indices))),
    derivative(
        "index_put",
        input=lambda g, indices, accumulate: (
            g if accumulate else index_put(g, indices, zeros_like_gradient(g, ()))
        ),
        values=lambda g, indices, values_shape: sum_to_shape(index(g, indices), values_shape),
    ),
    derivative("index_select", input=_spread_slices),
    derivative("index_add", input=lambda g: g, source=_selected),
    derivative("index_copy", input=_kept, source=_selected),
    derivative("place", input=_placed),
]


TANGENTS = [
    linear("basic_index", "input"),
    linear("gather", "input"),
    linear("index", "input"),
    linear("place", "input"),
    linear("index_select", "input"),
    linear("index_add", "input", "source"),
    linear("index_copy", "input", "source"),
    linear("index_put", "input", "values"),
]


VMAP_RULES = [
    shared_rule("gather", "gather"),
    shared_rule("scatter", "scatter", "scatter_reduce"),
    shared_rule("basic_index", "basic_index"),
    shared_rule("place", "place"),
    shared_rule("index", "index"),
    shared_rule("index_put", "index_put"),
]
