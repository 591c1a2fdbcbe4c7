"""A check, for finding errors, that all processes are in the same collective with tensors alike.

``TORCH_DISTRIBUTED_DEBUG=DETAIL`` in the environment, or ``set_debug_level(DebugLevel.DETAIL)``, turns it on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from tensorplug.core.device.dtypes import dtype_named
from tensorplug.core.ops import zeros
from tensorplug.core.tensor.creation import frombuffer

from .work import Work

if TYPE_CHECKING:
    from tensorplug.core.plugins.process_groups import Communicator

    from .groups import ProcessGroup

__all__ = ["DebugLevel", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]

# What is compared of a collective has so many bytes.
_WIDTH = 512


class DebugLevel(IntEnum):
    """How much is checked before each collective: at ``DETAIL``, that all processes do the same."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """Return how much is checked.

    Examples
    --------
    >>> import tensorplug.distributed as dist
    >>> dist.get_debug_level()
    <DebugLevel.OFF: 0>
    """
    if _level is None:
        set_debug_level_from_env()
    return DebugLevel.OFF if _level is None else _level


def set_debug_level(level: DebugLevel) -> None:
    """Set how much is checked; on all processes alike, or they wait for each other."""
    global _level
    _level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Set how much is checked to what ``TORCH_DISTRIBUTED_DEBUG`` says.

    Raises
    ------
    RuntimeError
        If that is none of OFF, INFO and DETAIL.
    """
    said = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper() or "OFF"
    if said not in DebugLevel.__members__:
        raise RuntimeError(
            "The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL, got " + said
        )
    set_debug_level(DebugLevel[said])


def compare(
    group: ProcessGroup, what: str, alike: Sequence[Any], communicator: Communicator
) -> None:
    """Raise on all processes if they are not in the same collective with what has to be alike.

    Raises
    ------
    RuntimeError
        If they differ; the message has what the first two that differ are in.
    """
    bytes_ = dtype_named("uint8")
    device = next(type_ for type_, own in group._communicators.items() if own is communicator)
    said = f"{what}({', '.join(map(str, alike))})".encode()[:_WIDTH]
    own = frombuffer(bytearray(said.ljust(_WIDTH, b" ")), dtype=bytes_).to(device)
    everybody = zeros(group.size(), _WIDTH, dtype=bytes_, device=device)
    request = communicator.all_gather(everybody._array, own._array)
    Work(group, what, request, communicator, number=group._number + 1).wait()
    told = [bytes(row.numpy()).decode(errors="replace").rstrip() for row in everybody.cpu()]
    for member, other in enumerate(told):
        if other != told[0]:
            raise RuntimeError(
                f"Detected mismatch between collectives on ranks. Rank {group._to_global(0)} is running "
                f"collective: {told[0]}, but Rank {group._to_global(member)} is running collective: {other}."
            )
