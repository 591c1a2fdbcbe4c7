"""Gradients of backward passes against finite differences, for ``gradcheck``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.ops.creation.creation_like import zeros_like
from tensorplug.core.ops.joining.joining import stack
from tensorplug.core.tensor.tensor import Tensor

from .engine.backward import grad
from .grad_mode import enable_grad
from .gradcheck_points import (
    GradcheckError,
    check_alike,
    inner_product,
    moved,
    numbers,
    numerical_jacobian,
    outputs_of,
    refill,
    seed_of,
)

_REAL = "While considering the real part of complex outputs only, "
_IMAGINARY = "While considering the imaginary part of complex outputs only, "
_BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation"


def check(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    positions: list[int],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
) -> None:
    """Compare all elements of the Jacobians, and that two passes give the same."""
    outputs = outputs_of(func, args)
    live = [number for number, out in enumerate(outputs) if out.requires_grad]
    for target in positions:
        numerical = numerical_jacobian(func, args, target, eps)
        for number in live:
            analytical = _analytical(outputs[number], args[target], nondet_tol)
            if numerical:
                _compare(
                    numerical[number],
                    analytical,
                    outputs[number],
                    args[target],
                    number,
                    target,
                    atol,
                    rtol,
                )
        for number in range(len(outputs)):
            if number in live or not numerical:
                continue
            _check_zero([x for row in numerical[number] for x in row], number, target, atol)


def check_projected(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    positions: list[int],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
) -> None:
    """Compare the Jacobian of each output by each input between one direction of both."""
    distinct = {id(args[position]): position for position in positions}.values()
    points = [args[position] for position in distinct]
    outputs = outputs_of(func, args)
    seeds = [seed_of(out) for out in outputs]
    directions = [  # eps is the step
        seed / seed.norm().clamp(min=1) for seed in map(seed_of, points)
    ]
    analytical = [
        _projected(out, seed, points, directions, nondet_tol) if out.requires_grad else None
        for out, seed in zip(outputs, seeds, strict=True)
    ]
    for column, position in enumerate(distinct):
        sides = []
        for sign in (1, -1):
            shifted = {position: points[column].detach() + directions[column] * (sign * eps)}
            with enable_grad(), moved(args, shifted) as there:
                values = outputs_of(func, there)
                check_alike(outputs, values, eps)
                # Here: results may show the inputs' memory.
                sides.append([inner_product(*pair) for pair in zip(seeds, values, strict=True)])
        for number, (above, below) in enumerate(zip(*sides, strict=True)):
            numerical = (above - below) / (2 * eps)
            row = analytical[number]
            if row is None:
                _check_zero((numerical,), number, position, atol)
            elif not abs(row[column] - numerical) <= atol + rtol * abs(numerical):
                raise GradcheckError(
                    f"Jacobian mismatch for output {number} with respect to input {position}: in fast mode "
                    f"the projection is numerically {numerical:.8g}, analytically {row[column]:.8g}"
                )


def _projected(
    output: Any, seed: Any, points: list[Any], directions: list[Any], nondet_tol: float
) -> list[float]:
    """Return the gradient of an output along a direction of each input."""
    found = [
        grad(output, points, seed, retain_graph=True, materialize_grads=True) for _ in range(2)
    ]
    for first, second in zip(*found, strict=True):
        _check_alike_twice(numbers(first), numbers(second), nondet_tol)
    return [inner_product(*pair) for pair in zip(found[0], directions, strict=True)]


def _check_alike_twice(first: list[Any], second: list[Any], nondet_tol: float) -> None:
    if any(abs(a - b) > nondet_tol for a, b in zip(first, second, strict=True)):
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and "
            "grad_output multiple times gives different values"
        )


def _check_zero(values: Any, number: int, target: int, atol: float) -> None:
    if any(abs(x) > atol for x in values):
        raise GradcheckError(
            f"Numerical gradient for function expected to be zero: output {number} does not "
            f"require grad, but depends on input {target}"
        )


def _analytical(output: Any, point: Any, nondet_tol: float) -> list[list[Any]]:
    """Return one gradient of the input per output element (two for a complex output)."""
    seeds: tuple[Any, ...] = (1.0, 1j) if output.is_complex() else (1.0,)
    rows: list[list[Any]] = []
    for position in range(output.numel()):
        for seed in seeds:
            start = [0.0] * output.numel()
            start[position] = seed
            seeded = refill(output, start)
            gradients = [
                grad(output, point, seeded, retain_graph=True, materialize_grads=True)[0]
                for _ in range(1 if rows else 2)
            ]
            row = numbers(gradients[0])
            for other in gradients[1:]:
                _check_alike_twice(row, numbers(other), nondet_tol)
            if gradients[0].shape != point.shape:
                raise GradcheckError(
                    f"the gradient has shape {list(gradients[0].shape)}, the input {list(point.shape)}"
                )
            rows.append(row)
    return rows


def _compare(
    numerical: list[list[Any]],
    analytical: list[list[Any]],
    output: Any,
    point: Any,
    number: int,
    target: int,
    atol: float,
    rtol: float,
) -> None:
    """Compare the Jacobians as real matrices, the imaginary part of complex outputs first."""
    complex_out, complex_in = output.is_complex(), point.is_complex()
    for part in (1, 0) if complex_out else (0,):
        considered = "" if not complex_out else _IMAGINARY if part else _REAL
        for out_position in range(output.numel()):
            row = analytical[out_position * (2 if complex_out else 1) + part]
            for in_position in range(point.numel()):
                for axis in range(2 if complex_in else 1):
                    change = numerical[in_position * (2 if complex_in else 1) + axis][out_position]
                    # <seed, d out>: the seed is 1 or i, so this is the real or the imaginary part.
                    expected = (change.imag if part else change.real) if complex_out else change
                    gradient = row[in_position]
                    got = (gradient.imag if axis else gradient.real) if complex_in else gradient
                    if not abs(got - expected) <= atol + rtol * abs(expected):
                        raise GradcheckError(
                            f"{considered}Jacobian mismatch for output {number} with respect to input "
                            f"{target}: d out[{out_position}]{'.imag' if part else ''} / "
                            f"d in[{in_position}]{'.imag' if axis else ''} is numerically {expected:.8g}, "
                            f"analytically {got:.8g}"
                        )


def check_multiplied(func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Check that gradients of zero give gradients of zero."""
    outputs = [out for out in outputs_of(func, args) if out.requires_grad]
    points = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
    if not outputs:
        return
    found = grad(outputs, points, [zeros_like(out) for out in outputs], allow_unused=True)
    for value, point in zip(found, points, strict=True):
        if value is None:
            continue
        if value.layout is not point.layout:
            raise GradcheckError(f"grad is incorrect layout: {value.layout} is not {point.layout}")
        if any(x != 0 for x in numbers(value)):
            raise GradcheckError("backward not multiplied by grad_output")


def check_dtypes(func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Check that gradients have the dtype of their inputs."""
    for out in outputs_of(func, args):
        if out.requires_grad:
            points = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
            for point, value in zip(
                points,
                grad(out, points, zeros_like(out) + 1, allow_unused=True, retain_graph=True),
                strict=True,
            ):
                if value is not None and value.dtype is not point.dtype:
                    raise GradcheckError(f"a gradient is {value.dtype}, its input {point.dtype}")


def check_batched(
    func: Callable[..., Any], args: tuple[Any, ...], atol: float, rtol: float
) -> None:
    """Check that two passes at once give what each gives."""
    points = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
    for out in outputs_of(func, args):
        if not out.requires_grad:
            continue
        rows = [out.detach() * 0 + 1, out.detach() * 0 - 2]
        single = [grad(out, points, row, allow_unused=True, retain_graph=True) for row in rows]
        try:
            batched = grad(
                out,
                points,
                stack(rows),
                is_grads_batched=True,
                allow_unused=True,
                retain_graph=True,
            )
        except RuntimeError as error:
            raise GradcheckError(f"{_BATCHED}: {error}") from error
        for number, value in enumerate(batched):
            for row, alone in enumerate(single):
                if value is not None and any(
                    abs(x - y) > atol + rtol * abs(y)
                    for x, y in zip(numbers(value[row]), numbers(alone[number]), strict=True)
                ):
                    raise GradcheckError(f"{_BATCHED}: batched and single gradients differ")
