"""Gradients of composites as ops: a kernel may serve them, else the composite's body is differentiated."""

from __future__ import annotations

from typing import Any

from tensorplug.autograd.transforms.levels import ActiveLevels, state, tensors_in
from tensorplug.autograd.transforms.points import met_by
from tensorplug.autograd.transforms.transforms import vjp


def gradients(function: Any, g: Any, arguments: tuple[Any, ...], *wanted: int) -> tuple[Any, ...]:
    """Return the gradients of some arguments of a composite by its body.

    Parameters
    ----------
    function : callable
        The composite.
    g : Tensor
        The gradient of its result.
    arguments : tuple
        Its canonical arguments.
    *wanted : int
        Which of them have a gradient; the others are constants.

    Returns
    -------
    tuple of Tensor
        One for each, of its shape, differentiable in turn.
    """
    values = list(arguments)

    def body(*targets: Any) -> Any:
        for place, target in zip(wanted, targets, strict=True):
            values[place] = target
        return function.op.decompose(tuple(values))

    # Where directions are batched, and not what is differentiated, neither are its gradients.
    with ActiveLevels(met_by(tensors_in((g, arguments))), state.tangents):
        _, back = vjp(body, *[arguments[place] for place in wanted])
        return tuple(back(g))
