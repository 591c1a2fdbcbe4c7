"""Transforms of functions: gradients, and products with Jacobians, each a function again.

All of them nest, with each other and with ``vmap``. Reverse mode knows no levels: a function is
differentiated at points that are fresh in the graph, so that inner and outer derivatives do not mix.
Inside of vmap it works on the tensors behind: samples do not depend on each other, so the gradient of the
sum of all results holds each sample's own gradient.
"""

from __future__ import annotations

import functools
from typing import Any

from tensorplug.core.dispatch.layers import recording
from tensorplug.core.ops.creation.creation_like import zeros_like
from tensorplug.core.tensor.tensor import Tensor

from ..engine import backward
from ..forward.forward_mode import ForwardLevel, set_tangent, tangent_at
from ..vmap.batched_tensor import moved, ordinary
from .levels import ActiveLevels, differentiated, entered, state
from .points import (
    Function,
    behind,
    gradients_of,
    picked_arguments,
    point_of,
    probe_like,
    raised,
    rebuilt,
    released,
    replaced_arguments,
)
from .pytree import tree_flatten, tree_unflatten

__all__ = [
    "grad",
    "grad_and_value",
    "jvp",
    "linearize",
    "vjp",
]


# --- gradients --------------------------------------------------------------------------------


def grad_and_value(
    func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Function:
    """Return a function that returns the gradient of `func`, and what `func` returns.

    Parameters
    ----------
    func, argnums, has_aux
        As for :func:`grad`.

    Returns
    -------
    callable
        Returns ``(gradient, value)``, or ``(gradient, (value, aux))``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.func.grad_and_value(lambda x: x * x)(tp.tensor(3.0))
    (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        batches = state.batches
        outside = recording.enabled
        chosen, picked = picked_arguments(args, argnums)
        with differentiated():
            leaves, spec = tree_flatten(picked)
            points = [point_of(leaf, batches) for leaf in leaves]
            inner = tree_unflatten([raised(point, batches) for point in points], spec)
            output = func(*replaced_arguments(args, argnums, chosen, inner), **kwargs)
            aux = None
            if has_aux:
                if not isinstance(output, tuple) or len(output) != 2:
                    raise RuntimeError(
                        "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if "
                        "has_aux is True"
                    )
                output, aux = output
            _check_scalar(output)
            low = behind(output, batches)
            with ActiveLevels((), state.tangents):
                ones = zeros_like(low.detach()) + 1
        found = gradients_of([low], points, [ones], batches, outside, False)
        gradients = tree_unflatten([raised(value, batches) for value in found], spec)
        value = released(output, points, outside)
        if has_aux:
            return gradients, (value, released(aux, points, outside))
        return gradients, value

    return transformed


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
        )
    if output.ndim:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{output.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def grad(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """Return the function that computes the gradient of `func`.

    Parameters
    ----------
    func : callable
        Returns a tensor of no dimensions; with `has_aux` a pair, of which the second part is passed on.
    argnums : int or tuple of int
        For which arguments; each may be a nested container of tensors.
    has_aux : bool
        Whether `func` returns something beside the value.

    Returns
    -------
    callable
        Takes what `func` takes; returns the gradient, with the structure of the argument, or
        ``(gradient, aux)``.

    Raises
    ------
    RuntimeError
        When called, if `func` returns something else, or `argnums` does not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.func import grad
    >>> grad(tp.sin)(tp.tensor(0.0))
    tensor(1.)
    >>> grad(grad(lambda x: x**3))(tp.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return transformed


# --- products with Jacobians ------------------------------------------------------------------


def _tensors(tree: Any, name: str, may_be_empty: bool = False) -> tuple[list[Any], Any]:
    """Return the leaves of what a function returned, which must be tensors, and the structure."""
    leaves, spec = tree_flatten(tree)
    if tree is None or (not leaves and not may_be_empty):
        raise RuntimeError(
            f"{name}: Expected f to be a function that has non-empty output (got output = {tree!r})"
        )
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return leaves, spec


def _split_aux(output: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    if not has_aux:
        return output, None
    if not isinstance(output, tuple) or len(output) != 2:
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """Return ``func(*primals)``, and the function that multiplies a vector with the Jacobian there.

    Parameters
    ----------
    func : callable
        Returns a tensor or a nested container of tensors; with `has_aux` a pair.
    *primals
        Tensors or nested containers of them.
    has_aux : bool
        Whether `func` returns something beside the value.

    Returns
    -------
    tuple
        ``(output, vjp_fn)`` or ``(output, vjp_fn, aux)``. ``vjp_fn(cotangents)`` takes what has the output's
        structure, and returns a tuple of one part per primal (for a single primal, that part).

    Examples
    --------
    >>> import tensorplug as tp
    >>> output, back = tp.func.vjp(lambda x: x * x, tp.tensor([1.0, 2.0]))
    >>> back(tp.ones(2))
    (tensor([2., 4.]),)
    """
    name = "vjp(f, *primals)"
    batches = state.batches
    outside = recording.enabled
    with differentiated():
        leaves, spec = tree_flatten(primals)
        points = [point_of(leaf, batches) for leaf in leaves]
        output = func(*tree_unflatten([raised(point, batches) for point in points], spec))
        output, aux = _split_aux(output, has_aux, name)
        results, out_spec = _tensors(output, name)
        low = [behind(result, batches) for result in results]

    def back(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        vectors, given_spec = tree_flatten(given)
        if given_spec != out_spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to "
                f"the function. cotangents: {given_spec}, primal output: {out_spec}"
            )
        for number, (vector, result) in enumerate(zip(vectors, results, strict=True)):
            if vector._shape != result._shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{number}] has a shape of {vector.shape} and "
                    f"output[{number}] has a shape of {result.shape}."
                )
        # The cotangents may be batched at levels that came later.
        pushed = [behind(vector, batches) for vector in vectors]
        record = recording.enabled if create_graph is None else create_graph
        found = gradients_of(low, points, pushed, batches, record, retain_graph)
        return tree_unflatten([raised(value, batches) for value in found], spec)

    value = released(output, points, outside)
    return (value, back, released(aux, points, outside)) if has_aux else (value, back)


def push(
    func: Function,
    points: list[Any],
    spec: Any,
    directions: list[Any],
    level: ForwardLevel,
    has_aux: bool,
    name: str,
) -> tuple[Any, Any, list[Any], list[Any], Any]:
    """Call a function at points that have tangents.

    Returns its output, what it returns beside, the tensors in the output with the tangent of each, None if it
    has none, and the output's structure. Where the level pushes many directions, they are along the last
    dimension of tangents.

    Parameters
    ----------
    directions : list of Tensor
        What lies behind the batches at work, if any.
    """
    batches = state.batches
    duals = []
    for point in points:
        low = behind(point, batches)
        with ActiveLevels((), state.tangents):
            duals.append(low.view_as(low))
    number = len(state.tangents)
    with level, entered(level, batch=False):
        for dual, direction in zip(duals, directions, strict=True):
            set_tangent(dual, level, direction)
        arguments = [raised(dual, batches) for dual in duals]
        output = func(*tree_unflatten(arguments, spec))
        output, aux = _split_aux(output, has_aux, name)
        results, out_spec = _tensors(output, name)
        with level.below(number):
            tangents = [_tangent_of(result, level) for result in results]
    return output, aux, results, tangents, out_spec


def _tangent_of(tensor: Any, level: ForwardLevel) -> Any:
    """Return a tensor's tangent, None if it has none."""
    tangent = tangent_at(ordinary(tensor), level)
    if tangent is None:
        return None
    if level.batches:
        with ActiveLevels((), state.tangents):
            tangent = moved(tangent.value, tangent.bdim, len(tangent._shape))
    return rebuilt(tensor, lambda _: tangent)


def jvp(
    func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """Return ``func(*primals)``, and the product of the Jacobian there with a vector, by forward mode.

    Parameters
    ----------
    func : callable
        Returns a tensor or a nested container of tensors; with `has_aux` a pair.
    primals, tangents : tuple
        The arguments and the vector, of the same structure.
    strict : bool
        Raise where an output does not depend on the arguments, rather than return zeros.
    has_aux : bool
        Whether `func` returns something beside the value.

    Returns
    -------
    tuple
        ``(output, tangent)`` or ``(output, tangent, aux)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.func.jvp(tp.sin, (tp.tensor(0.0),), (tp.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    points, spec = tree_flatten(primals)
    if not points:
        raise RuntimeError(f"{name}: Expected primals to contain at least one Tensor.")
    vectors, vector_spec = tree_flatten(tangents)
    if spec != vector_spec:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For example, if "
            "primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{spec} and tangents with structure {vector_spec}"
        )
    for what, items in (("primals", points), ("tangents", vectors)):
        for item in items:
            if not isinstance(item, Tensor):
                raise RuntimeError(
                    f"{name}: Expected {what} to only contain Tensors, got {type(item)}"
                )
    for point, vector in zip(points, vectors, strict=True):
        if point._shape != vector._shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original "
                f"Tensor, this is not supported. Tensor is of size {list(point._shape)} while the given "
                f"forward gradient is of size {list(vector._shape)}."
            )
    directions = [behind(vector, state.batches) for vector in vectors]
    output, aux, results, pushed, out_spec = push(
        func, points, spec, directions, ForwardLevel(), has_aux, name
    )
    if strict and any(tangent is None for tangent in pushed):
        raise RuntimeError(
            f"{name}: The output of f is independent of the inputs, which strict=True forbids"
        )
    pushed = [
        zeros_like(value) if tangent is None else tangent
        for value, tangent in zip(results, pushed, strict=True)
    ]
    answer = tree_unflatten(pushed, out_spec)
    return (output, answer, aux) if has_aux else (output, answer)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """Return ``func(*primals)``, and the linear function that the function's derivative there is.

    The function is run once, here; each call of what is returned costs one backward pass.

    Examples
    --------
    >>> import tensorplug as tp
    >>> output, push = tp.func.linearize(lambda x: x * x, tp.tensor([1.0, 2.0]))
    >>> push(tp.tensor([1.0, 0.0]))
    tensor([2., 0.])
    """
    batches = state.batches
    outside = recording.enabled
    with differentiated():
        leaves, spec = tree_flatten(primals)
        points = [point_of(leaf, batches) for leaf in leaves]
        output = func(*tree_unflatten([raised(point, batches) for point in points], spec))
        results, out_spec = _tensors(output, "linearize(f, *primals)", may_be_empty=True)
        low = [behind(result, batches) for result in results]
        with ActiveLevels((), state.tangents):
            live = [value for value in low if value.requires_grad]
            probes = [probe_like(value.detach()) for value in live]
            pulled = (
                backward.grad(live, points, probes, create_graph=True, allow_unused=True)
                if live
                else [None] * len(points)
            )

    def push(*tangents: Any) -> Any:
        vectors, given = tree_flatten(tangents)
        if given != spec:
            raise RuntimeError(
                "Expected the tangents to have the structure of the primals passed to linearize(): "
                f"{spec}, got {given}"
            )
        for vector, point in zip(vectors, leaves, strict=True):
            if vector._shape != point._shape or vector._key.dtype is not point._key.dtype:
                raise RuntimeError(
                    "Expected the tangents to have the shape and dtype of the primals passed to "
                    f"linearize(): {point.shape} of {point.dtype}, got {vector.shape} of {vector.dtype}"
                )
        pairs = [
            (value, behind(vector, batches))
            for value, vector in zip(pulled, vectors, strict=True)
            if value is not None and value.requires_grad
        ]
        found = iter(
            gradients_of(
                [value for value, _ in pairs],
                probes,
                [vector for _, vector in pairs],
                batches,
                recording.enabled,
                True,
                points,
            )
        )
        pushed = [
            next(found) if value.requires_grad else zeros_like(value.detach()) for value in low
        ]
        return tree_unflatten([raised(value, batches) for value in pushed], out_spec)

    return released(output, points, outside), push
