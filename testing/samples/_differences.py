"""Gradients by differences, as references of ops that compute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_STEP = 1e-6

# Differences are off by the third derivative, and by rounding over the step.
ROUGH = {"float64": 1e-7, "float32": 1e-4}


def by_differences(function: Callable[..., Any], *places: int) -> Callable[..., Any]:
    """Return the gradients of some arguments of `function`, for a gradient of its result.

    Parameters
    ----------
    function : callable
        Of NumPy arrays and plain values.
    *places : int
        The arguments whose gradients are wanted.

    Returns
    -------
    callable
        ``(g, *arguments)`` gives one array, or a tuple of several.
    """

    def gradients(g: Any, *arguments: Any) -> Any:
        found = []
        for place in places:
            x = arguments[place]
            gradient = np.zeros(x.shape)
            for at in np.ndindex(x.shape):
                sides = []
                for step in (_STEP, -_STEP):
                    moved = np.array(x, np.float64)
                    moved[at] += step
                    sides.append(function(*arguments[:place], moved, *arguments[place + 1 :]))
                gradient[at] = ((sides[0] - sides[1]) * g).sum() / (2 * _STEP)
            found.append(gradient)
        return found[0] if len(found) == 1 else tuple(found)

    return gradients
