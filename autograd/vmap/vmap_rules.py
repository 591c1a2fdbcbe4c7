"""Rules of ``vmap``: how an op treats tensors of which one dimension holds the samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorplug.core.dispatch.op import Op
from tensorplug.core.errors import RegistrationError
from tensorplug.core.plugins import manager
from tensorplug.core.plugins.op_rules import OpRules

__all__ = ["VmapInfo", "VmapRule", "first_dim_is_batch", "vmap_rule"]


class VmapInfo(NamedTuple):
    """What a rule is told of the ``vmap`` around the call."""

    batch_size: int
    randomness: str


class VmapRule:
    """The rule of one op, as a plugin hands it over."""

    __slots__ = ("function", "op", "owner", "priority", "shared")

    hook = "tensorplug_vmap_rules"

    def __init__(self, op: str, function: Any, priority: int = 0, *, shared: bool = False) -> None:
        self.op = op
        self.function = function
        self.priority = priority
        self.owner = ""
        # Whether the function is the name of one of those in .batching that serve many ops.
        self.shared = shared

    def __repr__(self) -> str:
        return f"<vmap rule of {self.op}>"


def vmap_rule(op: str, function: Callable[..., Any], *, priority: int = 0) -> VmapRule:
    """Return an op's rule for ``vmap``, to be handed over by ``tensorplug_vmap_rules``.

    Few ops need one: pointwise ops and composites are batched as they are, and any other primitive works
    without a rule, called once per sample.

    Parameters
    ----------
    op : str
        The op's name.
    function : callable
        ``function(info, in_dims, *args)`` returns ``(outputs, out_dims)``, as the ``vmap`` of an
        ``autograd.Function`` does. `args` are the op's canonical arguments, all of them, with the samples of
        all batched tensors along the dimensions in `in_dims` (None for what is no batch); `info` has
        ``batch_size`` and ``randomness``. It returns NotImplemented for calls that it does not serve.
    priority : int
        A rule of higher priority replaces one of lower; equal priorities are refused.

    Examples
    --------
    >>> import tensorplug as tp
    >>> vmap_rule("acme.row_sum", lambda info, in_dims, x: (x.movedim(in_dims[0], 0).sum(-1), 0))
    <vmap rule of acme.row_sum>
    """
    return VmapRule(op, function, priority)


def first_dim_is_batch(*ops: str, priority: int = 0) -> list[VmapRule]:
    """Say that these composites treat the first dimension of their first argument as a batch.

    Where only that argument has samples, they are joined with it.

    Examples
    --------
    >>> first_dim_is_batch("convolution", "avg_pool")
    [<vmap rule of convolution>, <vmap rule of avg_pool>]
    """
    return shared_rule("merged", *ops, priority=priority)


def shared_rule(function: str, *ops: str, priority: int = 0) -> list[VmapRule]:
    """Return rules that are one function of ``.batching``: its ``rules`` (primitives) or ``whole_rules``.

    It goes by its name, so that importing tensorplug does not import all of vmap.
    """
    return [VmapRule(op, function, priority, shared=True) for op in ops]


def _compiled(op: Op, rule: VmapRule) -> VmapRule:
    if not rule.shared and not callable(rule.function):
        raise RegistrationError(
            f"{rule.owner}: the vmap rule of {op.name!r} is not callable: {rule.function!r}"
        )
    return rule


#: The rules that plugins registered.
VMAP_RULES = manager.op_rules["vmap_rules"] = OpRules(
    "tensorplug_vmap_rules", "vmap rule", VmapRule, _compiled
)
