"""Checkpoints that keep what some ops compute: in backward the part runs again, but for these ops.

The first run keeps the results of the ops that a policy chooses, and notes which of their arguments and
results their nodes save. The second run takes the results from there and hands those tensors over, in the
same order.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

from tensorplug._ops import _overload
from tensorplug.autograd.graph.hooks import saved_tensors_hooks
from tensorplug.autograd.transforms.pytree import tree_flatten, tree_unflatten
from tensorplug.core import Tensor
from tensorplug.core.contexts import thread

from ._python_dispatch import TorchDispatchMode

#: Ops that no policy is asked about.
SAC_IGNORED_OPS = {_overload("aten", "detach", "default")}


class CheckpointPolicy(enum.Enum):
    """What a policy says of an op: whether backward finds its results kept, or computes them again."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


class SelectiveCheckpointContext:
    """What a policy gets beside the op.

    Attributes
    ----------
    is_recompute : bool
        Whether this is the second run; policies are asked in the first one alone.
    """

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


Policy = Callable[..., CheckpointPolicy | bool]
_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, True)


class _Kept(NamedTuple):
    """What an op computed, and what of it and its arguments its nodes save: positions among their tensors."""

    leaves: list[Any]
    required: list[bool]
    spec: Any
    saved: list[int]

    def again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the results, and hand over what the nodes save."""
        results = [
            leaf.detach().requires_grad_(required) if isinstance(leaf, Tensor) else leaf
            for leaf, required in zip(self.leaves, self.required, strict=True)
        ]
        given = [*tree_flatten((args, kwargs))[0], *results]
        pack, _ = thread.saved_hooks[-1]
        for position in self.saved:
            pack(given[position])
        return tree_unflatten(results, self.spec)


def _kept(result: Any, given: list[Any], saved: list[Any]) -> _Kept | None:
    """Return what to keep of a call; None if its nodes save what is neither argument nor result."""
    leaves, spec = tree_flatten(result)
    places = [
        next((n for n, value in enumerate((*given, *leaves)) if _same(value, tensor)), None)
        for tensor in saved
    ]
    if None in places:
        return None
    required = [isinstance(leaf, Tensor) and leaf.requires_grad for leaf in leaves]
    kept = [leaf.detach() if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return _Kept(kept, required, spec, [place for place in places if place is not None])


def _same(value: Any, tensor: Tensor) -> bool:
    return value is tensor or (
        isinstance(value, Tensor)
        and value.dtype == tensor.dtype
        and value.shape == tensor.shape
        and value.data_ptr() == tensor.data_ptr()
        and value.stride() == tensor.stride()
    )


class _Keeping(TorchDispatchMode):
    """The first run."""

    def __init__(self, policy: Policy, calls: dict[Any, list[_Kept | None]]) -> None:
        self.policy, self.calls = policy, calls

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        chosen = self.policy(SelectiveCheckpointContext(is_recompute=False), func, *args, **kwargs)
        if chosen not in _SAVED or not thread.saved_hooks:
            self.calls[func].append(None)
            return func(*args, **kwargs)
        pack, unpack = thread.saved_hooks[-1]
        saved: list[Any] = []

        def noting(tensor: Any) -> Any:
            saved.append(tensor)
            return pack(tensor)

        with saved_tensors_hooks(noting, unpack):
            result = func(*args, **kwargs)
        self.calls[func].append(_kept(result, tree_flatten((args, kwargs))[0], saved))
        return result


class _Taking(TorchDispatchMode):
    """The second run."""

    def __init__(self, calls: dict[Any, list[_Kept | None]]) -> None:
        self.calls = calls
        self.done: defaultdict[Any, int] = defaultdict(int)

    def __enter__(self) -> Self:
        self.done.clear()
        return super().__enter__()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        known, number = self.calls.get(func, ()), self.done[func]
        self.done[func] += 1
        kept = known[number] if number < len(known) and func not in SAC_IGNORED_OPS else None
        return func(*args, **kwargs) if kept is None else kept.again(args, kwargs)


def _listed(chosen: list[Any], _ctx: Any, op: Any, *_: Any, **__: Any) -> bool:
    return op in chosen


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | Sequence[Any],
    allow_cache_entry_mutation: bool = False,  # noqa: ARG001  torch's
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """Return the contexts of a checkpoint that keeps what some ops compute.

    Parameters
    ----------
    policy_fn_or_list : callable or sequence of ops
        ``policy(ctx, op, *args, **kwargs)`` is asked about each op, as ATen has it, and returns a
        :class:`CheckpointPolicy`; or the ops whose results are kept.
    allow_cache_entry_mutation : bool
        Taken as in torch; what is kept is never checked for writes.

    Returns
    -------
    tuple of context managers
        For the first and the second run, as ``context_fn`` of :func:`checkpoint` returns them.

    Examples
    --------
    >>> import functools
    >>> import tensorplug as tp
    >>> from tensorplug.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep = functools.partial(create_selective_checkpoint_contexts, [tp.ops.aten.mm.default])
    >>> x, w = tp.eye(2, requires_grad=True), tp.ones(2, 2)
    >>> y = checkpoint(lambda x: (x @ w).sigmoid(), x, use_reentrant=False, context_fn=keep)
    >>> y.sum().backward()
    >>> x.grad
    tensor([[0.3932, 0.3932],
            [0.3932, 0.3932]])
    """
    calls: defaultdict[Any, list[_Kept | None]] = defaultdict(list)
    if callable(policy_fn_or_list):
        policy: Policy = policy_fn_or_list
    else:
        chosen = list(policy_fn_or_list)
        for op in chosen:
            if not hasattr(op, "overloadpacket"):
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
                    "You may be passing an OpOverloadPacket instead: add `.default`"
                )
        policy = partial(_listed, chosen)
    return _Keeping(policy, calls), _Taking(calls)
