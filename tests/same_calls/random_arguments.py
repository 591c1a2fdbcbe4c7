"""Shapes that fit, or nearly, and numbers, for calls of both libraries."""

import numpy as np


def nearly(rng, shape):
    """Return a shape, every second time with another size, a dimension less or more, or without any."""
    place = rng.randrange(len(shape) + 1)
    return rng.choice(
        [
            *[shape] * 4,
            (*shape[:place], rng.choice([0, 1, 2, 3, 5]), *shape[place + 1 :]),
            shape[:place] + shape[place + 1 :],
            (*shape[:place], rng.choice([1, 2, 3]), *shape[place:]),
            (),
        ]
    )


def drawn(rng, kind, shape):
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    if kind.isdigit():
        return numbers.integers(0, int(kind) + 2 * (rng.random() < 0.1), shape)
    made = numbers.uniform(0.05, 0.95, shape) if kind == "chance" else numbers.normal(size=shape)
    return np.asarray(np.sign(made) if kind == "sign" else made, np.float32)
