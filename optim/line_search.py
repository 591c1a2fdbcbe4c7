"""A line search that ends where the strong Wolfe conditions hold.

Nocedal and Wright, "Numerical Optimization", algorithms 3.5 and 3.6, with the cubic interpolation of section
3.5 and the safeguards of Mark Schmidt's minFunc, which torch follows as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tensorplug.core import Tensor


class Point(NamedTuple):
    """A place along the line: the step, the loss there, its gradient, and its slope along the line."""

    step: float
    loss: float
    gradient: Tensor
    slope: float


def cubic_minimum(one: Point, two: Point, bounds: tuple[float, float] | None = None) -> float:
    """Return where the cubic through two points, with their slopes, is least, within bounds."""
    low, high = bounds or (min(one.step, two.step), max(one.step, two.step))
    left, right = (one, two) if one.step <= two.step else (two, one)
    width = right.step - left.step
    total = left.slope + right.slope
    # Both orders of subtraction give the same quotient.
    chord = total - 3 * (one.loss - two.loss) / (one.step - two.step)
    discriminant = chord**2 - one.slope * two.slope
    if discriminant < 0:
        return (low + high) / 2
    root = discriminant**0.5
    place = right.step - width * (
        (right.slope + root - chord) / (right.slope - left.slope + 2 * root)
    )
    return min(max(place, low), high)


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    step: float,
    largest: float,
    *,
    decrease: float = 1e-4,
    curvature: float = 0.9,
    tolerance_change: float = 1e-9,
    most: int = 25,
) -> tuple[Point, int]:
    """Return a point along a line that is enough below the start and flat enough, and the evaluations used.

    Parameters
    ----------
    evaluate : callable
        Gives the point at a step.
    start : Point
        That at step 0, with a negative slope.
    step : float
        The first step to try.
    largest : float
        The largest magnitude in the direction.
    decrease, curvature : float
        The constants of the two conditions.
    tolerance_change : float
        The bracket is not divided further once it moves no element by more.
    most : int
        The most iterations.
    """

    def is_high(point: Point) -> bool:
        return point.loss > start.loss + decrease * point.step * start.slope

    def is_flat(point: Point) -> bool:
        return abs(point.slope) <= -curvature * start.slope

    # First, steps ever larger until a minimum must lie between two of them.
    previous, point = start, evaluate(step)
    evaluations, iteration = 1, 0
    bracket: list[Point] = []
    done = False
    while iteration < most:
        if is_high(point) or (iteration > 1 and point.loss >= previous.loss):
            bracket = [previous, point]
            break
        if is_flat(point):
            bracket = [point]
            done = True
            break
        if point.slope >= 0:
            bracket = [previous, point]
            break
        bounds = (point.step + 0.01 * (point.step - previous.step), point.step * 10)
        further = cubic_minimum(previous, point, bounds)
        previous, point = point, evaluate(further)
        evaluations += 1
        iteration += 1
    else:
        bracket = [start, point]

    # Then the bracket is made smaller.
    slow = False
    low, high = (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
    while not done and iteration < most:
        left, right = bracket
        if abs(right.step - left.step) * largest < tolerance_change:
            break
        near, far = min(left.step, right.step), max(left.step, right.step)
        step = cubic_minimum(left, right)
        margin = 0.1 * (far - near)
        # A step close to an end is let pass once.
        if min(far - step, step - near) < margin:
            if slow or step >= far or step <= near:
                step = far - margin if abs(step - far) < abs(step - near) else near + margin
                slow = False
            else:
                slow = True
        else:
            slow = False
        point = evaluate(step)
        evaluations += 1
        iteration += 1
        if is_high(point) or point.loss >= bracket[low].loss:
            bracket[high] = point
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        else:
            if is_flat(point):
                done = True
            elif point.slope * (bracket[high].step - bracket[low].step) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
    return bracket[low], evaluations
