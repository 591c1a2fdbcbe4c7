"""Saved tensors as a node shows them, each of which takes a pair of hooks of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.tensor.base import TensorBase

from .nodes import SavedByHook
from .saved_tensors import pack_by


class SavedTensor:
    """A tensor that a node saved: what ``grad_fn._raw_saved_self`` and its like return.

    See Also
    --------
    saved_tensors_hooks : Hooks for all tensors that are saved in a ``with`` block.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x.exp()
    >>> y.grad_fn._raw_saved_result.register_hooks(lambda t: t.numpy(), tp.from_numpy)
    >>> y.sum().backward()
    >>> x.grad
    tensor([2.7183, 7.3891])
    """

    __slots__ = ("_node", "_place")

    def __init__(self, node: Any, *place: int) -> None:
        self._node = node
        # Where it is in what the node saved; within a list of tensors, where in that, too.
        self._place = place

    def register_hooks(
        self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]
    ) -> None:
        """Pack the tensor now, and unpack it whenever it is needed.

        Parameters
        ----------
        pack_hook : callable
            ``pack_hook(tensor)`` returns anything.
        unpack_hook : callable
            Given what ``pack_hook`` returned, returns a tensor with the same values.

        Raises
        ------
        RuntimeError
            If the tensor was freed by a backward, has hooks already, or is None.
        """
        node = self._node
        if node.saved is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values "
                "of the graph are freed when you call .backward() or autograd.grad(); pass "
                "retain_graph=True to keep them"
            )
        first, *within = self._place
        value = node.saved[first][within[0]] if within else node.saved[first]
        if isinstance(value, SavedByHook):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one "
                "pair of hooks is allowed at a time."
            )
        if not isinstance(value, TensorBase):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        node.saved = _with(node.saved, self._place, pack_by(value, pack_hook, unpack_hook))
        node.versions = _with(node.versions, self._place, None)


def _with(values: Any, place: tuple[int, ...], value: Any) -> Any:
    """Return values with another one at a place, which may lie in a list of them."""
    if values is None:
        return None
    first, *within = place
    changed = list(values)
    changed[first] = _with(values[first], tuple(within), value) if within else value
    return type(values)(changed)


def shown(node: Any, index: int) -> Any:
    """Return the :class:`SavedTensor` of what a node saved at an index, or the tuple of those of a list."""
    value = None if node.saved is None else node.saved[index]
    if isinstance(value, (list, tuple)):
        return tuple([SavedTensor(node, index, number) for number in range(len(value))])
    return SavedTensor(node, index)
