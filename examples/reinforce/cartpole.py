"""The cart with a pole on it, many at once."""

import math

import tensorplug as tp

GRAVITY = 9.8  # m/s²
CART, POLE = 1.0, 0.1  # kg
HALF = 0.5  # half the pole's length, m
FORCE = 10.0  # N, to the left or to the right
INTERVAL = 0.02  # s
WIDEST = 2.4  # m from the middle
STEEPEST = math.radians(12)
LONGEST = 500  # steps of an episode


def reset(count: int, generator, device: str = "cpu"):
    """Return first states ``(count, 4)``: position, speed, angle, angular speed; nearly at rest."""
    return (tp.rand(count, 4, generator=generator) * 0.1 - 0.05).to(device)


def advance(states, actions):
    """Return the states an interval later, and which poles are still up.

    Parameters
    ----------
    states : Tensor
        ``(N, 4)``.
    actions : Tensor
        int64, ``(N,)``: 0 pushes to the left, 1 to the right.

    Notes
    -----
    The equations of Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve
    difficult learning control problems", 1983, without friction, by Euler's method.
    """
    x, speed, angle, spin = states.unbind(1)
    force = FORCE * (2.0 * actions - 1.0)
    cosine, sine = angle.cos(), angle.sin()
    total = CART + POLE
    push = (force + POLE * HALF * spin * spin * sine) / total
    turn = (GRAVITY * sine - cosine * push) / (HALF * (4 / 3 - POLE * cosine * cosine / total))
    acceleration = push - POLE * HALF * turn * cosine / total
    later = (
        x + INTERVAL * speed,
        speed + INTERVAL * acceleration,
        angle + INTERVAL * spin,
        spin + INTERVAL * turn,
    )
    up = (later[0].abs() <= WIDEST) & (later[2].abs() <= STEEPEST)
    return tp.stack(later, dim=1), up
