"""Whole Jacobians and Hessians, as transforms of functions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tensorplug.core.ops.creation.creation_like import zeros_like
from tensorplug.core.ops.creation.ranges import eye
from tensorplug.core.ops.joining.joining import stack
from tensorplug.core.tensor.tensor import Tensor

from ..forward.forward_mode import ForwardLevel
from ..vmap.batched_tensor import BatchLevel, moved, wrap
from ..vmap.vmap import vmap
from .levels import ActiveLevels, state
from .points import Function, picked_arguments, replaced_arguments
from .pytree import tree_flatten, tree_map, tree_unflatten
from .transforms import jvp, push, vjp

__all__ = ["hessian", "jacfwd", "jacrev"]


# --- Jacobians --------------------------------------------------------------------------------


def _check_real(tensors: Sequence[Any], name: str, what: str) -> None:
    """Refuse complex numbers: rows and columns of a Jacobian would be conjugated differently."""
    for number, tensor in enumerate(tensors):
        if isinstance(tensor, Tensor) and tensor._key.dtype.is_complex:
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened "
                f"{what[:-1]} idx: {number}; view_as_real() makes the parts numbers of their own"
            )


def _basis(like: Any) -> Any:
    """Return the unit vectors of a tensor's shape, along a new first dimension."""
    size = like.numel()
    made = eye(size, dtype=like._key.dtype, device=like._key.device)
    return made.reshape((size, *like._shape))


def jacrev(
    func: Function,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:
    """Return the function that computes the Jacobian of `func`, row by row in one batch.

    Parameters
    ----------
    func : callable
        Returns a tensor or a nested container of tensors; with `has_aux` a pair.
    argnums : int or tuple of int
        For which arguments.
    has_aux : bool
        Whether `func` returns something beside the value.
    chunk_size : int, optional
        How many rows to compute at a time; by default all. One at a time is computed without ``vmap``.

    Returns
    -------
    callable
        Takes what `func` takes; returns, in the structure of the output, for each argument a tensor of the
        output's shape followed by the argument's.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.func.jacrev(lambda x: x * x)(tp.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        chosen, picked = picked_arguments(args, argnums)

        def of_picked(inner: Any) -> Any:
            return func(*replaced_arguments(args, argnums, chosen, inner), **kwargs)

        inputs, in_spec = tree_flatten(picked)
        _check_real(inputs, "jacrev", "inputs")
        output, back, *aux = vjp(of_picked, picked, has_aux=has_aux)
        results, out_spec = tree_flatten(output)
        _check_real(results, "jacrev", "outputs")
        blocks = []
        for number, result in enumerate(results):
            if not result.numel():
                empty: list[Any] = [
                    result.new_zeros((*result._shape, *point._shape)) for point in inputs
                ]
                blocks.append(tree_unflatten(empty, in_spec))
                continue

            def row(vector: Any, number: int = number) -> Any:
                seeds = [zeros_like(other.detach()) for other in results]
                seeds[number] = vector
                return back(tree_unflatten(seeds, out_spec))[0]

            if chunk_size == 1:  # without a batch: functions that have no rule for one work as well
                rows = [row(vector) for vector in _basis(result).unbind()]
                found = tree_map(lambda *parts: stack(parts), *rows)
            else:
                found = vmap(row, chunk_size=chunk_size)(_basis(result))
            blocks.append(
                tree_map(
                    lambda value, shape=result._shape: value.reshape((*shape, *value._shape[1:])),
                    found,
                )
            )
        jacobian = tree_unflatten(blocks, out_spec)
        return (jacobian, aux[0]) if has_aux else jacobian

    return transformed


def jacfwd(
    func: Function,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Function:
    """Return the function that computes the Jacobian of `func`, column by column in one batch.

    Cheaper than :func:`jacrev` where there are fewer inputs than outputs.

    Parameters
    ----------
    func, argnums, has_aux
        As for :func:`jacrev`.
    randomness : {"error", "same", "different"}
        As for ``vmap``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.func.jacfwd(lambda x: x * x)(tp.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )

    @functools.wraps(func)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        chosen, picked = picked_arguments(args, argnums)

        def of_picked(*leaves: Any) -> Any:
            inner = tree_unflatten(list(leaves), spec)
            return func(*replaced_arguments(args, argnums, chosen, inner), **kwargs)

        inputs, spec = tree_flatten(picked)
        columns, out_spec, aux = _columns(of_picked, tuple(inputs), has_aux, randomness)
        blocks = [tree_unflatten(list(row), spec) for row in columns]
        jacobian = tree_unflatten(blocks, out_spec)
        return (jacobian, aux) if has_aux else jacobian

    return transformed


def _columns(
    func: Function, inputs: tuple[Any, ...], has_aux: bool, randomness: str
) -> tuple[list[list[Any]], Any, Any]:
    """Return the Jacobians, by output and input, and the structure of the output."""
    _check_real(inputs, "jacfwd", "inputs")
    sizes = [point.numel() for point in inputs]
    total = sum(sizes)
    directions = []
    start = 0
    for point, size in zip(inputs, sizes, strict=True):
        own = eye(total, dtype=point._key.dtype, device=point._key.device).narrow(1, start, size)
        directions.append(own.reshape((total, *point._shape)))
        start += size
    if randomness == "different":
        found, out_spec, aux = _pushed_by_sample(func, inputs, directions, has_aux)
    else:
        batch = BatchLevel(total, randomness)
        found, out_spec, aux = _pushed(func, inputs, directions, batch, has_aux)
    blocks = []
    for value in found:
        shape = value._shape[:-1]
        row = []
        start = 0
        for point, size in zip(inputs, sizes, strict=True):
            row.append(value.narrow(-1, start, size).reshape((*shape, *point._shape)))
            start += size
        blocks.append(row)
    return blocks, out_spec, aux


def _pushed(
    func: Function,
    points: tuple[Any, ...],
    directions: list[Any],
    batch: BatchLevel,
    has_aux: bool,
) -> tuple[list[Any], Any, Any]:
    """Return the tangents of a function's results, with a last dimension for the directions.

    The function runs once; its tensors are not batched, their tangents are.
    """
    outside = tuple([level.size for level in state.batches])
    count = batch.size
    batched = []
    for point, direction in zip(points, directions, strict=True):
        with ActiveLevels((), ()):
            direction = direction.reshape((count, *((1,) * len(outside)), *point._shape))
            whole = direction.expand((count, *outside, *point._shape)).clone()
        batched.append(wrap(whole, 0, batch))
    _, aux, results, tangents, spec = push(
        func, list(points), tree_flatten(points)[1], batched, ForwardLevel(batch), has_aux, "jacfwd"
    )
    _check_real(results, "jacfwd", "outputs")
    found = [
        value.new_zeros((*value._shape, count)) if tangent is None else tangent
        for value, tangent in zip(results, tangents, strict=True)
    ]
    return found, spec, aux


def _pushed_by_sample(
    func: Function,
    points: tuple[Any, ...],
    directions: list[Any],
    has_aux: bool,
) -> tuple[list[Any], Any, Any]:
    """Return the same, the function batched: random ops draw for each direction."""
    kept: list[Any] = []

    def column(*vectors: Any) -> Any:
        _, tangent, *aux = jvp(func, points, vectors, has_aux=has_aux)
        leaves, spec = tree_flatten(tangent)
        _check_real(leaves, "jacfwd", "outputs")
        beside, beside_spec = tree_flatten(aux[0] if has_aux else ())
        kept[:] = [spec, beside, beside_spec]
        return tuple(leaves), [leaf for leaf in beside if isinstance(leaf, Tensor)]

    found, batched = vmap(column, randomness="different")(*directions)
    spec, beside, beside_spec = kept
    # Tensors beside the value are the same in each column, what else is there is as the function made it.
    tensors = iter(batched)
    aux = [next(tensors)[0] if isinstance(leaf, Tensor) else leaf for leaf in beside]
    last = [moved(value, 0, len(value._shape) - 1) for value in found]
    return last, spec, tree_unflatten(aux, beside_spec)


def jacobian_columns(func: Function, points: tuple[Any, ...]) -> tuple[bool, list[list[Any]]]:
    """Return whether `func`, which tells with its results, returns a tuple, and its Jacobians."""
    many: list[bool] = []

    def values(*inner: Any) -> Any:
        is_tuple, outputs = func(*inner)
        many[:] = [is_tuple]
        return outputs

    blocks, _, _ = _columns(values, points, False, "error")
    return many[0], blocks


def hessian(func: Function, argnums: int | tuple[int, ...] = 0) -> Function:
    """Return the function that computes the Hessian of `func`: forward mode over reverse mode.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.func.hessian(lambda x: (x**3).sum())(tp.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
