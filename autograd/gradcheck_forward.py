"""Forward-mode derivatives against finite differences, for ``gradcheck``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorplug.core.ops.joining.joining import stack

from .transforms.transforms import jvp
from .vmap.vmap import vmap

Outputs = Callable[[Callable[..., Any], Any], tuple[Any, ...]]


def directions(point: Any, refill: Callable[[Any, list[Any]], Any]) -> Iterator[Any]:
    """Yield a tensor's unit directions; a complex one has a real and an imaginary one per element."""
    for position in range(point.numel()):
        for step in (1.0, 1j) if point.is_complex() else (1.0,):
            values: list[Any] = [0.0] * point.numel()
            values[position] = step
            yield refill(point, values)


def tangents(
    func: Callable[..., Any], args: tuple[Any, ...], target: int, direction: Any, outputs: Outputs
) -> tuple[Any, ...]:
    """Return the tangents of the outputs for one direction of one input."""

    def of_target(value: Any) -> tuple[Any, ...]:
        return outputs(func, [value if i == target else arg for i, arg in enumerate(args)])

    found: tuple[Any, ...] = jvp(of_target, (args[target],), (direction,))[1]
    return found


def mismatch(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    target: int,
    numerical: list[list[list[Any]]],
    atol: float,
    rtol: float,
    outputs: Outputs,
    flat: Callable[[Any], list[Any]],
    refill: Callable[[Any, list[Any]], Any],
) -> str | None:
    """Return what differs between the tangents and the rows of the numerical Jacobian, or None."""
    for row, direction in enumerate(directions(args[target], refill)):
        for number, tangent in enumerate(tangents(func, args, target, direction, outputs)):
            expected = numerical[number][row]
            for index, (a, b) in enumerate(zip(flat(tangent), expected, strict=True)):
                if not abs(a - b) <= atol + rtol * abs(b):
                    return (
                        f"Jacobian computed with forward mode mismatch for output {number} with respect to "
                        f"input {target}: d out[{index}] along direction {row} is numerically {b:.8g}, by "
                        f"forward mode {a:.8g}"
                    )
    return None


def batched_mismatch(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    target: int,
    outputs: Outputs,
    flat: Callable[[Any], list[Any]],
    refill: Callable[[Any, list[Any]], Any],
) -> str | None:
    """Return whether tangents for a batch of directions differ from those of each, or None."""
    some = list(directions(args[target], refill))[:2]
    if not some:
        return None
    single = [tangents(func, args, target, direction, outputs) for direction in some]

    def along(direction: Any) -> tuple[Any, ...]:
        return tangents(func, args, target, direction, outputs)

    for index, batched in enumerate(vmap(along)(stack(some))):
        for row, one in enumerate(single):
            if any(
                abs(a - b) > 1e-9 * (1 + abs(b))
                for a, b in zip(flat(batched[row]), flat(one[index]), strict=True)
            ):
                return f"batched and single tangents of output {index} differ for input {target}"
    return None
