"""Programs: graphs brought down to calls of kernels on raw arrays, for tensors of given shapes and dtypes.

What is left of a graph at a run (:mod:`.lowering`) are the kernels, found in the tables anew each time, so
that one which a plugin registers later serves here as well, and calls that a plugin's fuser makes of several
kernels. What depends on nothing but state is computed once. An array goes as soon as nothing needs it, or the
next pointwise kernel writes into it.
"""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.keys import DispatchKey, on_reset

from .steps import Step

__all__ = ["Program"]


class _Tables:
    """How often the tables of kernels were reset."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0

    def reset(self) -> None:
        """Count once more."""
        self.number += 1


_tables = _Tables()
on_reset(_tables.reset)


class Program:
    """A sequence of calls on raw arrays.

    Attributes
    ----------
    steps : list of Step
        The calls.
    free : list of tuple
        For each step the places of arrays that nobody needs after it.
    keys : list of DispatchKey
        For each place the dtype and device.
    constants : dict
        Arrays that rules made of plain numbers, or that depend on state alone, by place.
    state : set of int
        The places of inputs whose values are in the program.
    outputs : list of int
        The places of the results.
    fresh : list of bool
        Of each result: whether its memory is its own.
    """

    __slots__ = (
        "_blank", "_tables", "constants", "free", "fresh", "keys", "outputs", "state", "steps",
    )  # fmt: skip

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.free: list[tuple[int, ...]] = []
        self.keys: list[DispatchKey] = []
        self.constants: dict[int, Any] = {}
        self.state: set[int] = set()
        self.outputs: list[int] = []
        self.fresh: list[bool] = []
        # What stands at the places before a run.
        self._blank: list[Any] | None = None
        self._tables = _tables.number

    def is_current(self) -> bool:
        """Return whether no plugin came or went since it was made."""
        return self._tables == _tables.number

    def run(self, inputs: list[Any]) -> list[Any]:
        """Return the resulting arrays for those that go in; that list is emptied, so that each goes early."""
        keys = self.keys
        if self._blank is None:
            self._blank = [self.constants.get(place) for place in range(len(keys))]
        values = self._blank.copy()
        for number, array in enumerate(inputs):
            values[number] = array
        inputs.clear()
        free = self.free
        for number, step in enumerate(self.steps):
            step.run(values, keys)
            dead = free[number]
            for place in dead:
                values[place] = None
        return [values[place] for place in self.outputs]
