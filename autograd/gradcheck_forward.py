"""Forward-mode derivatives against finite differences, for ``gradcheck``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from tensorplug.core.ops.creation.creation_like import zeros_like
from tensorplug.core.ops.joining.joining import stack
from tensorplug.core.tensor.tensor import Tensor

from .forward_ad import dual_level, make_dual, unpack_dual
from .grad_mode import enable_grad
from .gradcheck_points import (
    GradcheckError,
    check_alike,
    moved,
    numbers,
    numerical_jacobian,
    outputs_of,
    refill,
    seed_of,
)
from .transforms.transforms import jvp
from .vmap.vmap import vmap


def check(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    positions: list[int],
    eps: float,
    atol: float,
    rtol: float,
    batched: bool,
) -> None:
    """Compare the tangents of the outputs with the rows of the Jacobians."""
    for target in positions:
        numerical = numerical_jacobian(func, args, target, eps)
        _check_rows(func, args, target, numerical, atol, rtol)
        if batched:
            _check_batched(func, args, target)


def check_projected(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    positions: list[int],
    eps: float,
    atol: float,
    rtol: float,
    batched: bool,
) -> None:
    """Compare the tangents of the outputs for one direction of each input."""
    for target in positions:
        seed = seed_of(args[target])
        direction = seed / seed.norm().clamp(min=1)  # eps is the step
        tangents = _tangents(func, args, target, direction)
        changes = _changes(func, args, target, direction, eps)
        for number, (tangent, expected) in enumerate(zip(tangents, changes, strict=True)):
            for index, (a, b) in enumerate(zip(numbers(tangent), expected, strict=True)):
                if not abs(a - b) <= atol + rtol * abs(b):
                    raise GradcheckError(
                        f"Jacobian computed with forward mode mismatch for output {number} with respect to "
                        f"input {target}: in fast mode the tangent of out[{index}] is numerically {b:.8g}, "
                        f"by forward mode {a:.8g}"
                    )
        if batched:
            _check_batched(func, args, target)


def _changes(
    func: Callable[..., Any], args: tuple[Any, ...], target: int, direction: Any, eps: float
) -> list[list[Any]]:
    """Return by how much the elements of each output change along a direction of one input."""
    sides: list[list[list[Any]]] = []
    first: tuple[Any, ...] = ()
    for sign in (1, -1):
        shifted = {target: args[target].detach() + direction * (sign * eps)}
        with enable_grad(), moved(args, shifted) as there:
            found = outputs_of(func, there)
            first = first or found
            check_alike(first, found, eps)
            sides.append([numbers(out) for out in found])
    return [
        [(a - b) / (2 * eps) for a, b in zip(above, below, strict=True)]
        for above, below in zip(*sides, strict=True)
    ]


def _directions(point: Any) -> Iterator[Any]:
    """Yield a tensor's unit directions; a complex one has a real and an imaginary one per element."""
    for position in range(point.numel()):
        for step in (1.0, 1j) if point.is_complex() else (1.0,):
            values: list[Any] = [0.0] * point.numel()
            values[position] = step
            yield refill(point, values)


def _tangents(
    func: Callable[..., Any], args: tuple[Any, ...], target: int, direction: Any
) -> tuple[Any, ...]:
    """Return the tangents of the outputs for one direction of one input; nothing is recorded for backward."""
    point = args[target]
    with dual_level():
        given = [
            make_dual(arg.detach(), direction if arg is point else zeros_like(arg).detach())
            if isinstance(arg, Tensor) and arg.requires_grad
            else arg
            for arg in args
        ]
        pairs = [unpack_dual(out) for out in outputs_of(func, given)]
    return tuple([zeros_like(out) if tangent is None else tangent for out, tangent in pairs])


def _pushed(
    func: Callable[..., Any], args: tuple[Any, ...], target: int, direction: Any
) -> tuple[Any, ...]:
    """Return the tangents as a transform of functions has them, which may be batched."""
    point = args[target]

    def of_target(value: Any) -> tuple[Any, ...]:
        return outputs_of(func, [value if arg is point else arg for arg in args])

    found: tuple[Any, ...] = jvp(of_target, (point,), (direction,))[1]
    return found


def _check_rows(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    target: int,
    numerical: list[list[list[Any]]],
    atol: float,
    rtol: float,
) -> None:
    for row, direction in enumerate(_directions(args[target])):
        for number, tangent in enumerate(_tangents(func, args, target, direction)):
            expected = numerical[number][row]
            for index, (a, b) in enumerate(zip(numbers(tangent), expected, strict=True)):
                if not abs(a - b) <= atol + rtol * abs(b):
                    raise GradcheckError(
                        f"Jacobian computed with forward mode mismatch for output {number} with respect to "
                        f"input {target}: d out[{index}] along direction {row} is numerically {b:.8g}, by "
                        f"forward mode {a:.8g}"
                    )


def _check_batched(func: Callable[..., Any], args: tuple[Any, ...], target: int) -> None:
    """Compare tangents for a batch of directions with those of each."""
    some = list(islice(_directions(args[target]), 2))
    if not some:
        return
    single = [_tangents(func, args, target, direction) for direction in some]
    batches = vmap(lambda direction: _pushed(func, args, target, direction))(stack(some))
    for index, batch in enumerate(batches):
        for row, one in enumerate(single):
            if any(
                abs(a - b) > 1e-9 * (1 + abs(b))
                for a, b in zip(numbers(batch[row]), numbers(one[index]), strict=True)
            ):
                raise GradcheckError(
                    "gradcheck or gradgradcheck failed while testing batched forward gradients: batched and "
                    f"single tangents of output {index} differ for input {target}"
                )
