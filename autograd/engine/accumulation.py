"""The last step of a backward pass: a gradient becomes a leaf's ``grad``, or is added to it."""

from __future__ import annotations

import threading
from typing import Any

from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.keys import DispatchKey
from tensorplug.core.locks import renewed
from tensorplug.core.ops.copying import clone_strided
from tensorplug.core.tensor.base import bump_version, extra_of, new_tensor
from tensorplug.core.tensor.layout import is_dense

from .arithmetic import normal

ADD = op_registry.handle("add")
CLONE = op_registry.handle("clone")

# Held while a leaf's gradient is looked at and written to, so that none is lost where threads share leaves. A
# layer may run a pass of its own within, hence the R.
_accumulating = renewed(threading.RLock())


def accumulate(leaf: Any, tensor: Any, fresh: bool, create_graph: bool, raw: bool) -> None:
    """Add a gradient to a leaf's ``grad``, and call the hooks that wait for it.

    Parameters
    ----------
    leaf, tensor : Tensor
        The leaf, and its gradient.
    fresh : bool
        Whether nobody else holds the gradient, so that the leaf may keep it.
    create_graph, raw : bool
        Whether the pass is recorded, and whether its gradients are raw arrays, see BackwardPass.
    """
    with _accumulating:
        extra = extra_of(leaf)
        known = extra.grad
        if known is None:
            if create_graph:
                extra.grad = tensor if fresh else tensor.clone()
            else:
                extra.grad = _own(tensor, leaf, fresh)
        elif create_graph or known.requires_grad:
            extra.grad = known + tensor
        # In place: whoever holds ``grad`` sees the sum, as in torch.
        elif not raw or not _added(known, tensor):
            if known._key.intercepts and known._key is not tensor._key:
                extra.grad = tensor + known  # dense from now on
            else:
                known.add_(tensor)
    if extra.post_accumulate_hooks:
        for hook in list(extra.post_accumulate_hooks.values()):
            returned = hook(leaf)
            if returned is not None and returned is not leaf:
                raise RuntimeError(
                    "Tensor post accumulate grad hooks should return None: they change the tensor in "
                    f"place; got {type(returned).__name__}"
                )


def _own(gradient: Any, leaf: Any, fresh: bool) -> Any:
    """Return a gradient for a leaf to keep: in the order of its memory if that is dense, else in rows."""
    key: DispatchKey = leaf._key
    runtime = key.runtime
    if gradient._key is not key or key.intercepts:
        return gradient if fresh else gradient.clone()
    if not runtime.is_contiguous(leaf._array):
        strides = runtime.strides(leaf._array)
        if is_dense(leaf._shape, strides):
            if fresh and runtime.strides(gradient._array) == strides:
                return gradient
            return clone_strided(gradient, strides)
    if fresh and runtime.is_contiguous(gradient._array):
        return gradient
    array = normal(key.kernels[CLONE.index](gradient._array), key)
    return new_tensor(array, key, gradient._shape)


def _added(known: Any, tensor: Any) -> bool:
    """Add to a gradient in place, if that takes no more than a kernel."""
    key = known._key
    writer = key.writers[ADD.index]
    if (
        writer is None
        or known._extra is not None
        or known._view is not None
        or tensor._key is not key
        or known._shape != tensor._shape
        or not key.runtime.is_contiguous(known._array)
    ):
        return False
    writer(known._array, tensor._array, out=known._array)
    bump_version(known)
    return True
