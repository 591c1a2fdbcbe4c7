"""Functions at points near the inputs, and what the numbers there say, for ``gradcheck``."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from tensorplug.core.device.device import CPU
from tensorplug.core.tensor.creation import tensor
from tensorplug.core.tensor.layout import strided
from tensorplug.core.tensor.tensor import Tensor

from .grad_mode import enable_grad


class GradcheckError(RuntimeError):
    """The two Jacobians differ, or an input cannot be checked."""


def outputs_of(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the tensors with derivatives among what a function returns."""
    result = function(*inputs)
    results = result if isinstance(result, (tuple, list)) else (result,)
    if any([isinstance(r, Tensor) and r.layout is not strided for r in results]):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet: call to_dense() on it within the function"
        )
    return tuple([r for r in results if isinstance(r, Tensor) and r._key.is_differentiable])


def of_values(
    function: Callable[..., Any], inputs: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Put the stored values of sparse inputs that require grad in their place."""
    sparse: dict[int, Any] = {
        position: point
        for position, point in enumerate(inputs)
        if isinstance(point, Tensor) and point.requires_grad and point.layout is not strided
    }
    if not sparse:
        return function, inputs

    def of_values(*given: Any) -> Any:
        points = list(given)
        for position, point in sparse.items():
            points[position] = point._with_values(given[position])
        return function(*points)

    values = list(inputs)
    for position, point in sparse.items():
        values[position] = point._stored.detach().clone().requires_grad_()
    return of_values, tuple(values)


def numbers(tensor: Any) -> list[Any]:
    """Return the elements of a tensor as Python numbers."""
    flat = tensor.detach().to(CPU).reshape(-1)
    if flat._key.intercepts:  # its class tells one element at a time
        return [element.item() for element in flat]
    return flat.tolist()


def numerical_jacobian(
    function: Callable[..., Any], inputs: Sequence[Any], target: int, eps: float
) -> list[list[list[Any]]]:
    """Return, per output, the rows d output / d element of one input; complex has two rows each."""
    point = inputs[target]
    values = numbers(point)
    first: tuple[Any, ...] = ()
    rows: list[list[list[Any]]] = []
    steps: tuple[Any, ...] = (eps, 1j * eps) if point.is_complex() else (eps,)
    for position in range(len(values)):
        for step in steps:
            sides = []
            for sign in (1, -1):
                shifted = list(values)
                shifted[position] = values[position] + sign * step
                # Recorded, for a function may ask which of its tensors require grad.
                with enable_grad(), moved(inputs, {target: refill(point, shifted)}) as args:
                    found = outputs_of(function, args)
                    first = first or found
                    check_alike(first, found, eps)
                    sides.append([numbers(out) for out in found])
            rows.append(
                [
                    [(a - b) / (2 * eps) for a, b in zip(plus, minus, strict=True)]
                    for plus, minus in zip(*sides, strict=True)
                ]
            )
    count = len(rows[0]) if rows else 0
    return [[row[number] for row in rows] for number in range(count)]


def check_alike(outputs: tuple[Any, ...], moved: tuple[Any, ...], eps: float) -> None:
    """Refuse a function whose outputs are of another kind where its inputs differ a little."""
    for what in ("shape", "dtype"):
        kinds = [[getattr(out, what) for out in found] for found in (outputs, moved)]
        if kinds[0] != kinds[1]:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed by {eps}, "
                f"but got {what}s {kinds[0]} and {kinds[1]}"
            )


@contextmanager
def moved(inputs: Sequence[Any], values: dict[int, Any]) -> Generator[list[Any], None, None]:
    """Yield the inputs with other elements, written to their memory: a function may hold them itself."""
    args = list(inputs)
    kept = {}
    try:
        for position, value in values.items():
            point = args[position]
            if 0 in point.stride():  # its elements share memory
                args[position] = value.detach().requires_grad_()
            else:
                kept[position] = point.detach().clone()
                point.data.copy_(value)
        yield args
    finally:
        for position, value in kept.items():
            inputs[position].data.copy_(value)


def refill(like: Any, values: list[Any]) -> Any:
    """Return a tensor with the layout of `like` and other elements."""
    return tensor(values, dtype=like.dtype, device=like.device).reshape(like.shape)


def seed_of(output: Any) -> Any:
    """Return a fixed, irregular gradient for an output."""
    values: list[Any] = [((7 * i + 3) % 11) / 5 - 1.1 for i in range(output.numel())]
    if output.is_complex():
        values = [v + 1j * (((5 * i + 1) % 7) / 4 - 0.8) for i, v in enumerate(values)]
    return refill(output, values)


def inner_product(a: Any, b: Any) -> float:
    """Return the real part of the inner product of two tensors."""
    return float(
        sum((complex(x).conjugate() * y).real for x, y in zip(numbers(a), numbers(b), strict=True))
    )
