"""Functions of functions: derivatives, batching, and modules as functions (``torch.func``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

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
from tensorplug.nn.functional_call import (
    functional_call as functional_call,
    stack_module_state as stack_module_state,
)
from tensorplug.nn.modules.batchnorm import (
    replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_,
)

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function that computes the same: writes in place take part in all transforms as they are.

    Parameters
    ----------
    func : callable
        The function; it may write in place.
    remove : {"mutations", "mutations_and_views"}
        What torch would take out of it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.func.functionalize(lambda x: x.clone().add_(1))(tp.zeros(2))
    tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for remove=. Valid options are: "
            f'remove="mutations", remove="mutations_and_views"; got {remove}'
        )

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapper
