"""Functions of functions: derivatives, batching, and modules as functions (``torch.func``)."""

from __future__ import annotations

from tensorplug.autograd.transforms.jacobians import (
    hessian as hessian,
    jacfwd as jacfwd,
    jacrev as jacrev,
)
from tensorplug.autograd.transforms.transforms import (
    grad as grad,
    grad_and_value as grad_and_value,
    jvp as jvp,
    linearize as linearize,
    vjp as vjp,
)
from tensorplug.autograd.vmap import vmap as vmap
from tensorplug.nn.utils.stateless import (
    functional_call as functional_call,
    stack_module_state as stack_module_state,
)

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
