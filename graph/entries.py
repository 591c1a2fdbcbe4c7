"""Entries: a captured graph, what it holds for, and how a call of the program runs it."""

from __future__ import annotations

import weakref
from typing import Any

from tensorplug.autograd.grad_mode import enable_grad, no_grad
from tensorplug.autograd.graph import saved_tensors
from tensorplug.autograd.graph.views import requires_grad
from tensorplug.autograd.transforms.pytree import Tree, tree_unflatten
from tensorplug.core.device.generator import generator_of, going_on
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TRACKED, Storage, bump_version, new_tensor, version_of
from tensorplug.core.tensor.exposure import (
    handed_out,
    is_handed_out,
    taken_from,
    taken_in,
    unwatch,
    watch,
)

from .given import UNCHANGED, Place, put_back
from .graph import Graph
from .guards import Watch
from .joint import NothingRecorded
from .lowering import lower
from .memory import Uncapturable
from .nodes import Value
from .passes import optimize
from .program import Program
from .results import Parts, with_parts
from .training import Training

__all__ = ["Entry"]

#: From how many times on that state was written its values are in no program any more.
_REWRITTEN = 4


class Entry:
    """A graph and what it holds for."""

    def __init__(
        self,
        graph: Graph,
        watch: Watch,
        tree: Tree,
        parts: Parts,
        same: dict[int, int],
        shared: dict[Value, int],
        memory: frozenset[str],
        fixed: dict[int, Any],
        mode: str,
        changed: list[int] | None = None,
    ) -> None:
        self.graph = graph
        self.mode = mode
        self.watch = watch
        self.tree = tree
        self.parts = parts
        # Which results are inputs themselves, written or not.
        self.same = same
        self.shared = shared
        # The values whose memory results show, by name.
        self.memory = memory
        # Which arguments are state, by number.
        self.fixed = fixed
        # What has generators be where they were before the call; None once it has written.
        self.devices = {v.device for node in graph.nodes if node.op.random for v in node.outputs}
        self.before: list[Any] | None = None
        self.program: Program | None = None
        # The state whose values are in the program, and how often it had been written.
        self.folded: list[tuple[Any, int]] = []
        self.written = 0
        # Their arrays, and the names of state whose memory others got hold of meanwhile.
        self.kept: list[Any] = []
        self.handed_out = -1
        self.shown: frozenset[str] = frozenset()
        self.unwatch: Any = None
        # The program's graph; for each of its inputs the number of the entry's, or a tensor that is none.
        self.inference: Graph | None = None
        self.sources: list[Any] = []
        # By which inputs require grad, the latest apart; and why gradients are left to ops.
        self.trainings: dict[tuple[bool, ...], Training | bool | None] = {}
        self.needing: list[bool] = []
        self.training: Training | bool | None = False
        self.refused: Uncapturable | None = None
        self.state = list(graph.state.values())
        self.arrays = [tensor._array for tensor in self.state]
        self.kinds = [(tensor._key, tensor._shape) for tensor in self.state]
        # Storages come to be when views are made; None holds for no tensor yet.
        self.storages: list[Any] = [...] * len(self.state)
        self.memory_of_state: frozenset[int] = frozenset()
        # Which of the state shows the same memory.
        self.partition = _partition(self.arrays, [tensor._storage for tensor in self.state])
        # For each input of the graph its state, None of arguments.
        self.given = [graph.state.get(value.name) for value in graph.inputs]
        # A call's tensors by place: the inputs, then what is made. Of the latter the numbers among the
        # outputs, and one number for those that show the same memory, -1 for none.
        places = graph.places()
        self.made: list[int] = []
        self.groups: list[int] = []
        numbers = dict(zip(set(shared.values()), range(len(shared)), strict=False))
        for number, value in enumerate(graph.outputs()):
            if places[value] == len(graph.inputs) + len(self.made):
                self.made.append(number)
                self.groups.append(numbers[shared[value]] if value in shared else -1)
        # What is returned: places, and plain objects where there is none.
        self.leaves = [None if type(leaf) is Value else leaf for leaf in graph.result]
        self.results = [places[leaf] if type(leaf) is Value else -1 for leaf in graph.result]
        for position, number in same.items():
            self.results[position] = number
        # Of what is given by contents the numbers of what is changed, and which results are such objects.
        self.changed = changed
        self.objects = [
            (position, leaf.number)
            for position, leaf in enumerate(self.leaves)
            if type(leaf) is Place and leaf is not UNCHANGED
        ]
        self.kind: Any = tree.type
        if parts or any([child.type is not None for child in tree.children_specs]):
            self.kind = Tree
        # What is written, and what into it, by place.
        self.targets = [places[target] for target, _ in graph.writes]
        self.news = [places[new] for _, new in graph.writes]

    def holds(self, tensors: list[Any]) -> bool:
        """Return whether state is as it was when the graph was captured, and no argument is state."""
        if self.fixed:
            for number, tensor in self.fixed.items():
                if tensors[number] is not tensor:
                    return False
        if not _as_known(self.state, self.arrays, self.storages) and not self._has():
            return False
        if self.memory_of_state and not _apart(tensors, self.fixed, self.memory_of_state):
            return False
        return not self.watch.changed()

    def _has(self) -> bool:
        """Return whether state has memory of the kind that it had; which memory it is may change."""
        for number, (tensor, (key, shape)) in enumerate(zip(self.state, self.kinds, strict=True)):
            array = tensor._array
            if array is not self.arrays[number]:
                self.program = None
                strides = key.runtime.strides
                if (
                    tensor._key is not key
                    or tensor._shape != shape
                    or strides(array) != strides(self.arrays[number])
                ):
                    return False
                self.arrays[number] = array
        storages = [tensor._storage for tensor in self.state]
        if _partition(self.arrays, storages) != self.partition:
            self.storages = [...] * len(self.state)
            return False
        self.storages = storages
        self.memory_of_state = _memory_of(self.arrays, self.storages)
        return True

    def is_apart(self, objects: list[Any]) -> bool:
        """Return whether nothing that is given by contents is state as well."""
        state = self.watch.kept()
        return not any([id(value) in state for value in objects])

    def run(self, tensors: list[Any], recorded: bool, objects: list[Any] | None) -> Any:
        """Return what the program returns for tensors, and the objects that are given by contents.

        Raises
        ------
        Unexpected
            If the data is such that the program would do something else.
        """
        self.before = [going_on(generator_of(device)) for device in self.devices]
        inputs = tensors
        if self.state:
            inputs = []
            number = 0
            for tensor in self.given:
                if tensor is None:
                    tensor = tensors[number]
                    number += 1
                inputs.append(tensor)
        if recorded:
            needing = _needing(inputs)
            if True in needing:
                training = self._training(inputs, needing)
                if training is None:
                    return self._ended(self._by_ops(inputs), objects)
                if type(training) is Training:
                    return self._ended(self._recorded(training, inputs), objects)
        return self._ended(self._by_kernels(inputs), objects)

    def _ended(self, leaves: list[Any], objects: list[Any] | None) -> Any:
        """Return the results, made of their leaves; change what is given."""
        kind = self.kind
        if kind is None:
            return leaves[0]
        if kind is tuple:
            return tuple(leaves)
        if kind is list:
            return leaves
        if objects is not None:
            for position, number in self.objects:
                leaves[position] = objects[number]
        if self.parts:
            leaves = with_parts(leaves, self.parts)
        if objects is None:
            return tree_unflatten(leaves, self.tree)
        result, changes = tree_unflatten(leaves, self.tree)
        for number, contents in zip(self.changed or (), changes, strict=True):
            put_back(objects[number], contents)
        return result

    def undo(self) -> bool:
        """After a call that failed: have generators be where they were; return whether it wrote nothing."""
        for step in self.before or ():
            step()
        return self.before is not None

    def _by_ops(self, inputs: list[Any]) -> list[Any]:
        targets = {target for target, _ in self.graph.writes}
        # What ops save of a tensor is not to be written by the program's own writes.
        apart = [
            tensor.clone() if value in targets else tensor
            for value, tensor in zip(self.graph.inputs, inputs, strict=True)
        ]
        leaves, written = self.graph.evaluate(apart)
        known = dict(zip(self.graph.inputs, inputs, strict=True))
        for (target, new), (_, tensor) in zip(self.graph.writes, written, strict=True):
            with enable_grad() if new.node is None or new.node.records else no_grad():
                known[target].copy_(tensor)
            self.before = None
        for position, number in self.same.items():
            leaves[position] = inputs[number]
        return leaves

    # --- with gradients ---

    def _training(self, inputs: list[Any], needing: list[bool]) -> Training | bool | None:
        """Return what runs the graph and its gradients; None if only ops do, False if there are none."""
        watched = dispatch_state.gradient.watched and saved_tensors.are_watched()
        if watched or _unusual(inputs):
            return None
        if needing == self.needing:
            return self.training
        key = tuple(needing)
        if key not in self.trainings:
            self.trainings[key] = self._new_training(inputs)
        self.training = self.trainings[key]
        self.needing = needing
        return self.training

    def _new_training(self, inputs: list[Any]) -> Training | bool | None:
        if len(set(self.shared.values())) < len(self.shared):
            return None
        if any([inputs[target].requires_grad for target in self.targets]):
            return None
        try:
            return Training(self.graph, inputs, self.mode)
        except NothingRecorded:
            return False
        except Uncapturable as error:
            self.refused = error
            return None

    def _recorded(self, training: Training, inputs: list[Any]) -> list[Any]:
        streams = training.streams()
        arrays, saved = training.run(inputs)
        tensors = inputs.copy()
        for number in self.made:
            array = arrays[number]
            tensors.append(new_tensor(array, training.keys[number], tuple(array.shape)))
        training.record(inputs, saved, streams, tensors)
        return self._written(tensors)

    def _written(self, tensors: list[Any]) -> list[Any]:
        """Write what the program writes, and return the leaves of what it returns."""
        self.before = None
        for number, place in enumerate(self.targets):
            target, new = tensors[place], tensors[self.news[number]]
            target._key.runtime.copy_into(target._array, new._array)
            bump_version(target)
        leaves = self.leaves.copy()
        for number, place in enumerate(self.results):
            if place >= 0:
                leaves[number] = tensors[place]
        return leaves

    # --- without ---

    def _by_kernels(self, inputs: list[Any]) -> list[Any]:
        program = self.program
        if program is not None and (not program.is_current() or not self._as_folded()):
            program = None
            self.written += 1
        if program is not None and self.handed_out != handed_out.count:
            self.handed_out = handed_out.count
            if any(map(is_handed_out, self.kept)):
                state = self.graph.state.items()
                self.shown |= {name for name, tensor in state if is_handed_out(tensor._array)}
                program = None
        if program is None:
            program, arrays = self._lowered(inputs)
        else:
            given = []
            for source in self.sources:
                tensor = inputs[source] if type(source) is int else source
                given.append(tensor._array)
            arrays = program.run(given)
        tensors = inputs.copy()
        keys, outputs = program.keys, program.outputs
        inference = dispatch_state.inference
        storages: dict[int, Any] = {}
        for number, place in enumerate(self.made):
            array = arrays[place]
            made = new_tensor(array, keys[outputs[place]], tuple(array.shape))
            group = self.groups[number]
            if group >= 0:
                made._storage = storages.setdefault(group, Storage(0))
            if inference:
                dispatch_state.gradient.mark_if_inference(made)
            tensors.append(made)
        return self._written(tensors)

    def _as_folded(self) -> bool:
        """Return whether nobody wrote state whose values are in the program."""
        return not any([version_of(tensor) != version for tensor, version in self.folded])

    def _lowered(self, inputs: list[Any]) -> tuple[Program, list[Any]]:
        """Make the program; return it and the arrays of its outputs for these inputs."""
        if taken_in:
            state = self.graph.state.items()
            self.shown |= {name for name, tensor in state if taken_from(tensor._array)}
        graph, folded = optimize(self.graph, self.shown, self.memory)
        self.inference = graph
        numbers = {value.name: number for number, value in enumerate(self.graph.inputs)}
        self.sources = [
            numbers.get(value.name, graph.state.get(value.name)) for value in graph.inputs
        ]
        given = [inputs[source] if type(source) is int else source for source in self.sources]
        frozen = frozenset(graph.state) - self.shown if self.written < _REWRITTEN else frozenset()
        program, made = lower(graph, given, self.mode, frozen)
        self.program = program
        folded += [given[place] for place in program.state]
        self.folded = [(tensor, version_of(tensor)) for tensor in folded]
        self._watch([tensor._array for tensor in folded])
        return program, [tensor._array for tensor in made]

    def _watch(self, arrays: list[Any]) -> None:
        if self.unwatch is not None:
            self.unwatch()
        self.kept = arrays
        self.handed_out = -1
        self.unwatch = weakref.finalize(self, unwatch, watch(arrays))
        self.unwatch.atexit = False


def _as_known(tensors: list[Any], arrays: list[Any], storages: list[Any]) -> bool:
    """Return whether tensors have the memory that they had."""
    for number, tensor in enumerate(tensors):
        if tensor._array is not arrays[number] or tensor._storage is not storages[number]:
            return False
    return True


def _memory_of(arrays: list[Any], storages: list[Any]) -> frozenset[int]:
    """Return the ids by which memory is known."""
    taken = map(taken_from, arrays) if taken_in else ()
    return frozenset([*map(id, (*arrays, *storages)), *taken]) - {id(None), 0}


def _partition(arrays: list[Any], storages: list[Any]) -> list[int]:
    """Return for each tensor, given its memory, the number of the first one with the same."""
    known: dict[int, int] = {}
    found = []
    for number, (array, storage) in enumerate(zip(arrays, storages, strict=True)):
        same = (id(array), id(storage)) if storage is not None else (id(array),)
        first = min([known.get(key, number) for key in same])
        found.append(first)
        known.update([(key, first) for key in same])
    return found


def _apart(tensors: list[Any], fixed: dict[int, Any], memory: frozenset[int]) -> bool:
    """Return whether no argument, but for what is state, shows memory with one of some ids."""
    for number, tensor in enumerate(tensors):
        storage = tensor._storage
        if number not in fixed and (
            id(tensor._array) in memory
            or id(storage) in memory
            or (taken_in and taken_from(tensor._array) in memory)
        ):
            return False
        mirror = None if storage is None else storage.mirror
        if mirror is not None and any([id(other) in memory for other in mirror.others()]):
            return False
    return True


def _needing(tensors: list[Any]) -> list[bool]:
    """Return which tensors require grad."""
    found = []
    for item in tensors:
        tensor = item
        state = tensor._state
        found.append(state == TRACKED or (state > TRACKED and requires_grad(tensor)))
    return found


def _unusual(tensors: list[Any]) -> bool:
    """Return whether a tensor has tangents, or was made in inference mode."""
    for item in tensors:
        if item._tangents is not None:
            return True
        tensor = item
        extra = tensor._extra
        if extra is not None and extra.inference:
            return True
    return False
