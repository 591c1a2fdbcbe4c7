"""What autocast does with the arguments of ops: declared by plugins, applied by a layer above core."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from ..errors import RegistrationError

Policy = Literal["lower", "float32", "promote", "keep", "refuse"]
POLICIES: tuple[Policy, ...] = ("lower", "float32", "promote", "keep", "refuse")


@dataclass(frozen=True, slots=True)
class AutocastPolicy:
    """What happens to the floating-point tensors, float64 aside, that an op gets under autocast.

    Attributes
    ----------
    op : str
        The op's name, or that of a function of ``nn.functional``.
    policy : {"lower", "float32", "promote", "keep", "refuse"}
        They are converted to autocast's dtype, to float32, or to the widest among them; or they are left
        alone, and so is what a composite consists of; or the call is an error. (Without any policy, an op
        gets its arguments as they are, but the ops that a composite consists of follow theirs.)
    device : str, optional
        The device type that it holds for; by default all without a policy of their own.
    plugin : str
        Where it came from; filled in at registration.

    Examples
    --------
    >>> AutocastPolicy("acme.smooth", "float32").policy
    'float32'
    """

    op: str
    policy: Policy
    device: str | None = None
    plugin: str = ""


_POLICIES: dict[tuple[str, str | None], AutocastPolicy] = {}

#: The names with a policy for any device type.
named: set[str] = set()


def add(policies: Iterable[object], plugin: str) -> list[AutocastPolicy]:
    """Register a plugin's policies, all or none; return them.

    Raises
    ------
    RegistrationError
        If one is malformed, or another plugin has spoken on that op and device type.
    """
    checked: dict[tuple[str, str | None], AutocastPolicy] = {}
    for policy in policies:
        if not isinstance(policy, AutocastPolicy):
            raise RegistrationError(
                f"plugin {plugin}: tensorplug_autocast must return AutocastPolicy objects, got "
                f"{policy!r}"
            )
        if policy.policy not in POLICIES:
            raise RegistrationError(
                f"plugin {plugin}: the autocast policy of {policy.op!r} is {policy.policy!r}; known "
                f"are {', '.join(POLICIES)}"
            )
        key = policy.op, policy.device
        known = checked.get(key) or _POLICIES.get(key)
        if known is not None:
            raise RegistrationError(
                f"plugin {plugin}: op {policy.op!r} has an autocast policy for "
                f"{policy.device or 'all devices'} already, from {known.plugin or plugin}"
            )
        checked[key] = replace(policy, plugin=plugin)
    _POLICIES.update(checked)
    _refresh()
    return list(checked.values())


def remove(policies: Iterable[AutocastPolicy]) -> None:
    """Take policies back."""
    for policy in policies:
        _POLICIES.pop((policy.op, policy.device), None)
    _refresh()


def _refresh() -> None:
    named.clear()
    named.update([op for op, _ in _POLICIES])


def policy_of(op: str, device_type: str) -> Policy | None:
    """Return the policy of an op on a device type."""
    found = _POLICIES.get((op, device_type)) or _POLICIES.get((op, None))
    return None if found is None else found.policy
