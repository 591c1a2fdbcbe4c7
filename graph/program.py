"""Programs: graphs brought down to calls of kernels on raw arrays, for tensors of given shapes and dtypes.

What is left of a graph at a run (:mod:`.lowering`) are the kernels, found in the tables anew each time, so
that one which a plugin registers later serves here as well, and calls that a plugin's fuser makes of several
kernels. What depends on nothing but state is computed once. An array goes as soon as nothing needs it, or the
next pointwise kernel writes into it.
"""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.execution import call_kernel
from tensorplug.core.dispatch.keys import DispatchKey, on_reset
from tensorplug.core.dispatch.op import Op
from tensorplug.core.tensor.base import new_tensor

from .fusing import FusedStep
from .nodes import Node, Value, run_node

__all__ = ["CallStep", "KernelStep", "Program"]


class KernelStep:
    """A call of a kernel.

    Attributes
    ----------
    op, key : Op, DispatchKey
        Which kernel.
    template : list
        Its arguments; those at `slots` are arrays.
    slots : list of (int, int or tuple)
        The indices of arrays in the template and their places among the program's values; for a list of
        arrays all places, None for what is none.
    out : list of int
        The places of the results.
    into : int
        The place of an array of an argument that the result is written into; -1 for memory of its own.
    """

    __slots__ = ("into", "key", "op", "out", "slots", "template")

    def __init__(self, op: Op, key: DispatchKey, template: list[Any]) -> None:
        self.op = op
        self.key = key
        self.template = template
        self.slots: list[tuple[int, Any]] = []
        self.out: list[int] = []
        self.into = -1

    def run(self, values: list[Any], keys: list[DispatchKey]) -> None:
        """Call the kernel."""
        raw = self.template.copy()
        for slot in self.slots:
            index, place = slot
            raw[index] = values[place] if type(place) is int else _gathered(values, place)
        out = self.out
        if self.into >= 0:
            writer = self.key.writers[self.op.index]
            if writer is not None:
                target = values[self.into]
                try:
                    writer(*raw, out=target)
                except Warning:
                    with self.key.runtime.quiet():  # it has written, but for the warning
                        pass
                values[out[0]] = target
                return
        try:
            results = self.key.kernels[self.op.index](*raw)
        except Warning:  # where warnings are errors
            results = call_kernel(self.op, self.key, raw)
        arrays = (results,) if len(out) == 1 else results
        for number, place in enumerate(out):
            array = arrays[number]
            key = keys[place]
            values[place] = array if type(array) is key.array_type else key.as_array(array)

    def places(self) -> list[int]:
        """Return the places of the arguments."""
        found: list[int] = []
        for _, place in self.slots:
            found += [place] if type(place) is int else [p for p in place if p is not None]
        return found


class CallStep:
    """A call of an op on tensors: of one that draws random numbers, writes arguments, or reads data."""

    __slots__ = ("given", "node", "out")

    def __init__(self, node: Node, given: dict[Value, int], out: list[int]) -> None:
        self.node = node
        self.given = given
        self.out = out

    def run(self, values: list[Any], keys: list[DispatchKey]) -> None:
        """Call the op."""
        tensors = {
            value: new_tensor(values[place], keys[place], tuple(values[place].shape))
            for value, place in self.given.items()
        }
        run_node(self.node, tensors)
        for place, value in zip(self.out, self.node.outputs, strict=True):
            values[place] = tensors[value]._array

    def places(self) -> list[int]:
        """Return the places of the arguments."""
        return list(self.given.values())


class _Tables:
    """How often the tables of kernels were reset."""

    number = 0

    def reset(self) -> None:
        """Count once more."""
        self.number += 1


_tables = _Tables()
on_reset(_tables.reset)


class Program:
    """A sequence of calls on raw arrays.

    Attributes
    ----------
    steps : list of KernelStep, CallStep and FusedStep
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

    def __init__(self) -> None:
        self.steps: list[KernelStep | CallStep | FusedStep] = []
        self.free: list[tuple[int, ...]] = []
        self.keys: list[DispatchKey] = []
        self.constants: dict[int, Any] = {}
        self.state: set[int] = set()
        self.outputs: list[int] = []
        self.fresh: list[bool] = []
        self._tables = _tables.number

    @property
    def current(self) -> bool:
        """Whether no plugin came or went since it was made."""
        return self._tables == _tables.number

    def run(self, inputs: list[Any]) -> list[Any]:
        """Return the resulting arrays for those that go in."""
        keys = self.keys
        values: list[Any] = [None] * len(keys)
        values[: len(inputs)] = inputs
        for place, array in self.constants.items():
            values[place] = array
        for number, step in enumerate(self.steps):
            step.run(values, keys)
            dead = self.free[number]
            for place in dead:
                values[place] = None
        return [values[place] for place in self.outputs]


def _gathered(values: list[Any], places: tuple[Any, ...]) -> list[Any]:
    return [None if place is None else values[place] for place in places]
