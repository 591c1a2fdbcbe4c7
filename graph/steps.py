"""Steps: what a program does one after another, on raw arrays that it knows by their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core.dispatch.execution import call_kernel
from tensorplug.core.dispatch.keys import DispatchKey
from tensorplug.core.dispatch.op import Op
from tensorplug.core.plugins import fusers
from tensorplug.core.plugins.fusers import FusedCall, Fuser
from tensorplug.core.tensor.base import new_tensor

from .nodes import Node, Value, run_node

__all__ = ["CallStep", "FusedStep", "KernelStep", "Step", "WriteStep"]


class Step:
    """Base class of steps.

    Attributes
    ----------
    out : list of int
        The places of the results.
    """

    __slots__ = ("out",)

    out: list[int]

    def run(self, values: list[Any], keys: list[DispatchKey]) -> None:
        """Take arguments from their places among the values, and put the results into theirs."""
        raise NotImplementedError

    def places(self) -> list[int]:
        """Return the places of the arguments."""
        raise NotImplementedError


class KernelStep(Step):
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
    into : int
        The place of an array of an argument that the result is written into; -1 for memory of its own.
    """

    __slots__ = ("first", "into", "key", "op", "second", "slots", "template")

    def __init__(self, op: Op, key: DispatchKey, template: list[Any]) -> None:
        self.op = op
        self.key = key
        self.template = template
        self.slots: list[tuple[int, Any]] = []
        self.out: list[int] = []
        self.into = -1
        # The places of one or two arguments that are all there are; -1 for none.
        self.first = self.second = -1

    def settle(self) -> None:
        """Once all slots are known: note arguments that need no list."""
        places = [place for _, place in self.slots]
        count = len(self.template)
        if len(places) == count <= 2 and all([type(place) is int for place in places]):
            self.first = places[0]
            self.second = places[1] if count == 2 else -1

    def run(self, values: list[Any], keys: list[DispatchKey]) -> None:
        """Call the kernel."""
        key = self.key
        index = self.op.index
        out = self.out
        if self.into >= 0:
            writer = key.writers[index]
            if writer is not None:
                target = values[self.into]
                try:
                    if self.second >= 0:
                        writer(values[self.first], values[self.second], out=target)
                    elif self.first >= 0:
                        writer(values[self.first], out=target)
                    else:
                        writer(*self._arguments(values), out=target)
                except Warning:
                    with key.runtime.quiet():  # it has written, but for the warning
                        pass
                values[out[0]] = target
                return
        kernel = key.kernels[index]
        try:
            if self.second >= 0:
                results = kernel(values[self.first], values[self.second])
            elif self.first >= 0:
                results = kernel(values[self.first])
            else:
                results = kernel(*self._arguments(values))
        except Warning:  # where warnings are errors
            results = call_kernel(self.op, key, self._arguments(values))
        if len(out) == 1:
            result = keys[out[0]]
            values[out[0]] = (
                results if type(results) is result.array_type else result.as_array(results)
            )
            return
        for number, place in enumerate(out):
            array = results[number]
            result = keys[place]
            values[place] = array if type(array) is result.array_type else result.as_array(array)

    def _arguments(self, values: list[Any]) -> list[Any]:
        raw = self.template.copy()
        for slot in self.slots:
            index, place = slot
            raw[index] = values[place] if type(place) is int else _gathered(values, place)
        return raw

    def places(self) -> list[int]:
        """Return the places of the arguments."""
        found: list[int] = []
        for _, place in self.slots:
            found += [place] if type(place) is int else [p for p in place if p is not None]
        return found


class CallStep(Step):
    """A call of an op on tensors: of one that draws random numbers, writes arguments, or reads data."""

    __slots__ = ("given", "node")

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


class WriteStep(CallStep):
    """A call of a kernel that writes arguments, which are copies made for it.

    Attributes
    ----------
    op, key, template, slots
        As of a :class:`KernelStep`.
    written : list of int
        The places of the arguments that it writes; `out` are those of their new values.
    """

    __slots__ = ("key", "op", "slots", "template", "written")

    def __init__(self, node: Node, op: Op, key: DispatchKey, template: list[Any]) -> None:
        super().__init__(node, {}, [])
        self.op = op
        self.key = key
        self.template = template
        self.slots: list[tuple[int, int]] = []
        self.written: list[int] = []

    def run(self, values: list[Any], keys: list[DispatchKey]) -> None:
        """Call the kernel."""
        raw = self.template.copy()
        for slot in self.slots:
            index, place = slot
            raw[index] = values[place]
        key = self.key
        with key.runtime.quiet():  # once: what is written half cannot be tried again
            key.kernels[self.op.index](*raw)
        for number, place in enumerate(self.written):
            values[self.out[number]] = values[place]

    def places(self) -> list[int]:
        """Return the places of the arguments."""
        return [place for _, place in self.slots]


class FusedStep(Step):
    """Several steps in one call.

    Attributes
    ----------
    fuser : Fuser
        What compiled it.
    steps : list of KernelStep and FusedStep
        What it does.
    inputs : list of int
        The places of what goes in.
    call : callable or None
        What the fuser made; None once it has failed.
    """

    __slots__ = ("_plugin", "call", "fuser", "inputs", "steps")

    def __init__(
        self,
        fuser: Fuser,
        plugin: str,
        call: FusedCall,
        steps: list[Any],
        inputs: list[int],
        out: list[int],
    ) -> None:
        self.fuser = fuser
        self.steps = steps
        self.inputs = inputs
        self.out = out
        self.call: FusedCall | None = call
        self._plugin = plugin

    def run(self, values: list[Any], keys: list[DispatchKey]) -> None:
        """Run them."""
        if self.call is not None:
            try:
                results = self.call([values[place] for place in self.inputs])
                if results is not None:
                    self._put(results, values)
                    return
            except MemoryError:
                raise
            except Exception as error:
                self.give_up(error)
        for step in self.steps:
            step.run(values, keys)

    def _put(self, results: Sequence[Any], values: list[Any]) -> None:
        out = self.out
        if len(results) != len(out):
            raise ValueError(f"expected {len(out)} arrays, got {len(results)}")
        for number, place in enumerate(out):
            values[place] = results[number]

    def fits(self, values: Sequence[Any], keys: list[DispatchKey]) -> bool:
        """Run it once, and return whether it makes arrays like those that its steps made."""
        assert self.call is not None
        try:
            results = self.call([values[place] for place in self.inputs])
            if results is None:
                return True
            for place, array in zip(self.out, results, strict=True):
                _check(array, values[place], keys[place])
        except Exception as error:
            self.give_up(error)
            return False
        return True

    def give_up(self, error: Exception) -> None:
        """Set the fuser aside: from now on the steps run."""
        self.call = None
        fusers.quarantine(self.fuser, self._plugin, error)

    def places(self) -> list[int]:
        """Return the places of the arguments."""
        return self.inputs


def _check(array: Any, like: Any, key: DispatchKey) -> None:
    if not isinstance(array, key.array_type):
        raise TypeError(f"expected a {key.array_type.__name__}, got {array!r}")
    runtime = key.runtime
    found = tuple(array.shape), runtime.dtype(array)
    wanted = tuple(like.shape), runtime.dtype(like)
    if found != wanted:
        raise ValueError(f"expected shape and dtype {wanted}, got {found}")


def _gathered(values: list[Any], places: tuple[Any, ...]) -> list[Any]:
    return [None if place is None else values[place] for place in places]
