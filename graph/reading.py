"""Reading: a program that reads data while it is captured, and what its graph then holds for.

Up to 64 numbers may be read. A program that is followed reads what it likes: its graph holds for runs that
read the same. Elsewhere numbers are fixed as they are if they depend on buffers and constants alone, or if
whoever captures asserts that they stay.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from tensorplug.core.dispatch import layers

from .memory import Memory, Uncapturable, line_in, source_line
from .nodes import Value, known_op

__all__ = ["Reading"]

#: How programs read data that can be compared, and up to how many numbers.
_READS = ("item()", "tolist()")
_MOST = 64


class Reading(Memory):
    """What a capture knows of data that was read."""

    def __init__(self, follow: bool, asserted: bool) -> None:
        super().__init__()
        # Whether the program may read data: the graph then holds for runs that read the same. What is
        # asserted ends no capture either, but the program has to be captured whole.
        self.follow = follow
        self.asserted = asserted
        # The state on which numbers depend that the program read.
        self.read_state: set[Value] = set()
        # The program itself, and the line at which it first read data.
        self.root: CodeType | None = None
        self.read_line = 0

    def note_read(self, tensor: Any, how: str) -> None:
        """Note that the program reads data.

        Raises
        ------
        Uncapturable
            If no graph holds then.
        """
        if (
            tensor is None
            or how not in _READS
            or tensor.numel() > _MOST
            or not (self.follow or self._may_read(tensor))
        ):
            raise Uncapturable(f"the program reads data: {how}", source_line())
        self.read_line = self.read_line or line_in(self.root)
        with layers.isolated():
            value = self.value_of(tensor)
            state = None if self.follow else origins(value)
            if state is None or state:  # what depends on nothing stays
                self._node(known_op("graph.expect"), (value, tensor.tolist()))
                self.read_state |= state or set()

    def _may_read(self, tensor: Any) -> bool:
        """Return whether the program may read a tensor: its numbers are asserted, or fixed as it stands."""
        if tensor.numel() > _MOST:
            return False
        with layers.isolated():
            return self.asserted or origins(self.value_of(tensor)) is not None

    def _number(self, tensor: Any) -> Any:
        """Return the number in a tensor, which an op would read, as `view` does of sizes in tensors."""
        whole = not (tensor.is_floating_point() or tensor.is_complex())
        return int(tensor) if not tensor.ndim and whole and self._may_read(tensor) else tensor


def origins(value: Value) -> set[Value] | None:
    """Return the buffers and constants that a value depends on; None if it depends on anything else.

    That are arguments, parameters, which are trained, and random numbers.
    """
    found: set[Value] = set()
    known = {value}
    todo = [value]
    while todo:
        value = todo.pop()
        if value.node is None:
            if value.kind not in ("buffer", "constant"):
                return None
            found.add(value)
            continue
        if value.node.op.random:
            return None
        todo += [given for given in value.node.values() if given not in known]
        known.update(value.node.values())
    return found
