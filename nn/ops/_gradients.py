"""Gradients of composites as ops: a kernel may serve them, else the composite's body is differentiated."""

from __future__ import annotations

from typing import Any

from tensorplug.autograd import enable_grad, grad, is_grad_enabled
from tensorplug.core.ops import zeros_like


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
    recorded = is_grad_enabled()
    with enable_grad():
        targets = []
        for place in wanted:
            # A view of its own: other arguments may be made of the same tensor.
            value = values[place]
            target = value.view_as(value) if value.requires_grad and recorded else value.detach()
            targets.append(target if target.requires_grad else target.requires_grad_())
            values[place] = target
        result = function.op.decompose(tuple(values))
        found = grad(result, targets, g, create_graph=True, allow_unused=True)
    made = [
        zeros_like(target) if one is None else one
        for one, target in zip(found, targets, strict=True)
    ]
    return tuple(made if recorded else [one.detach() for one in made])
