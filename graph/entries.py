"""Entries: a captured graph, what it holds for, and how a call of the program runs it."""

from __future__ import annotations

import weakref
from typing import Any

from tensorplug.autograd.grad_mode import enable_grad, no_grad
from tensorplug.autograd.transforms.pytree import Tree, tree_unflatten
from tensorplug.core.device.generator import generator_of, going_on
from tensorplug.core.dispatch.keys import dispatch_key
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import Storage, bump_version, new_tensor, version_of
from tensorplug.core.tensor.exposure import is_handed_out, unwatch, watch

from .graph import Graph
from .guards import Watch
from .joint import NothingRecorded
from .lowering import lower
from .memory import Uncapturable
from .nodes import Value
from .passes import optimize
from .program import Program
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
        same: dict[int, int],
        shared: dict[Value, int],
        memory: frozenset[str],
        fixed: dict[int, Any],
        mode: str,
    ) -> None:
        self.graph = graph
        self.mode = mode
        self.watch = watch
        self.tree = tree
        self.leaves = list(graph.result)
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
        self.shown: frozenset[str] = frozenset()
        self.unwatch: Any = None
        self.inference: Graph | None = None
        # By which inputs require grad; and why gradients are left to ops.
        self.trainings: dict[tuple[bool, ...], Training | bool | None] = {}
        self.refused: Uncapturable | None = None
        self.state = list(graph.state.values())
        self.arrays = [tensor._array for tensor in self.state]
        self.kinds = [(tensor._key, tensor._shape) for tensor in self.state]
        # Storages come to be when views are made; None holds for no tensor yet.
        self.storages: list[Any] = [...] * len(self.state)
        self.memory_of_state: frozenset[int] = frozenset()
        # For each input of the graph its state, None of arguments; and what it makes.
        self.given = [graph.state.get(value.name) for value in graph.inputs]
        self.outputs = graph.outputs()

    def holds(self, tensors: list[Any]) -> bool:
        """Return whether state is as it was when the graph was captured, and no argument is state."""
        for number, tensor in self.fixed.items():
            if tensors[number] is not tensor:
                return False
        if not _as_known(self.state, self.arrays, self.storages) and not self._has():
            return False
        return _apart(tensors, self.fixed, self.memory_of_state) and not self.watch.changed()

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
        self.storages = [tensor._storage for tensor in self.state]
        self.memory_of_state = frozenset(map(id, (*self.arrays, *self.storages))) - {id(None)}
        return True

    def run(self, tensors: list[Any], recorded: bool) -> Any:
        """Return what the program returns for tensors.

        Raises
        ------
        Unexpected
            If the data is such that the program would do something else.
        """
        self.before = [going_on(generator_of(device)) for device in self.devices]
        given = iter(tensors)
        inputs = [next(given) if tensor is None else tensor for tensor in self.given]
        if recorded:
            needing = tuple([tensor.requires_grad for tensor in inputs])
            if True in needing:
                training = self._training(inputs, needing)
                if training is None:
                    return self._by_ops(inputs)
                if type(training) is Training:
                    return self._recorded(training, inputs)
        return self._by_kernels(inputs)

    def undo(self) -> bool:
        """After a call that failed: have generators be where they were; return whether it wrote nothing."""
        for step in self.before or ():
            step()
        return self.before is not None

    def _by_ops(self, inputs: list[Any]) -> Any:
        targets = {target for target, _ in self.graph.writes}
        # What ops save of a tensor is not to be written by the program's own writes.
        apart = [
            tensor.clone() if value in targets else tensor
            for value, tensor in zip(self.graph.inputs, inputs, strict=True)
        ]
        leaves, written = self.graph.evaluate(apart)
        self.before = None
        known = dict(zip(self.graph.inputs, inputs, strict=True))
        for (target, new), (_, tensor) in zip(self.graph.writes, written, strict=True):
            with enable_grad() if new.node is None or new.node.records else no_grad():
                known[target].copy_(tensor)
        return self._finished(leaves, inputs)

    def _finished(self, leaves: list[Any], inputs: list[Any]) -> Any:
        for position, number in self.same.items():
            leaves[position] = inputs[number]
        return tree_unflatten(leaves, self.tree)

    # --- with gradients ---

    def _training(self, inputs: list[Any], needing: tuple[bool, ...]) -> Training | bool | None:
        """Return what runs the graph and its gradients; None if only ops do, False if there are none."""
        if dispatch_state.gradient.watched or any(map(_unusual, inputs)):
            return None
        if needing in self.trainings:
            return self.trainings[needing]
        made: Training | bool | None = None
        alone = len(set(self.shared.values())) == len(self.shared)
        if alone and not any([target.requires_grad for target in self._targets(inputs)]):
            try:
                made = Training(self.graph, inputs, self.mode)
            except NothingRecorded:
                made = False
            except Uncapturable as error:
                self.refused = error
        self.trainings[needing] = made
        return made

    def _targets(self, inputs: list[Any]) -> list[Any]:
        known = dict(zip(self.graph.inputs, inputs, strict=True))
        return [known[target] for target, _ in self.graph.writes]

    def _recorded(self, training: Training, inputs: list[Any]) -> Any:
        graph = self.graph
        streams = training.streams()
        arrays, saved = training.run(inputs)
        returned: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
        for value, array in zip(self.outputs, arrays, strict=True):
            if value not in returned:
                key = dispatch_key(value.device, value.dtype)
                returned[value] = new_tensor(array, key, tuple(array.shape))
        training.record(inputs, saved, streams, returned)
        return self._written(returned, inputs)

    def _written(self, returned: dict[Value, Any], inputs: list[Any]) -> Any:
        """Write what the program writes, and return what it returns."""
        self.before = None
        for target, new in self.graph.writes:
            tensor = returned[target]
            tensor._key.runtime.copy_into(tensor._array, returned[new]._array)
            bump_version(tensor)
        leaves = [returned[leaf] if type(leaf) is Value else leaf for leaf in self.leaves]
        return self._finished(leaves, inputs)

    # --- without ---

    def _by_kernels(self, inputs: list[Any]) -> Any:
        if self.program is not None and (
            not self.program.current
            or any([version_of(tensor) != version for tensor, version in self.folded])
        ):
            self.program = None
            self.written += 1
        if self.program is not None and any(map(is_handed_out, self.kept)):
            state = self.graph.state.items()
            self.shown |= {name for name, tensor in state if is_handed_out(tensor._array)}
            self.program = None
        if self.program is None:
            self.inference, folded = optimize(self.graph, self.shown, self.memory)
            given = self._with_state(inputs)
            frozen = frozenset(self.inference.state) - self.shown
            frozen = frozen if self.written < _REWRITTEN else frozenset()
            self.program, made = lower(self.inference, given, self.mode, frozen)
            folded += [given[place] for place in self.program.state]
            self.folded = [(tensor, version_of(tensor)) for tensor in folded]
            self._watch([tensor._array for tensor in folded])
            arrays = [tensor._array for tensor in made]
        else:
            arrays = self.program.run([tensor._array for tensor in self._with_state(inputs)])
        program = self.program
        graph = self.graph
        returned: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
        storages: dict[int, Storage] = {}
        for value, place, array in zip(self.outputs, program.outputs, arrays, strict=True):
            if value in returned:
                continue
            made = returned[value] = new_tensor(array, program.keys[place], tuple(array.shape))
            group = self.shared.get(value)
            if group is not None:
                made._storage = storages.setdefault(group, Storage(0))
            if dispatch_state.inference:
                dispatch_state.gradient.mark_if_inference(made)
        return self._written(returned, inputs)

    def _watch(self, arrays: list[Any]) -> None:
        if self.unwatch is not None:
            self.unwatch()
        self.kept = arrays
        self.unwatch = weakref.finalize(self, unwatch, watch(arrays))
        self.unwatch.atexit = False

    def _with_state(self, inputs: list[Any]) -> list[Any]:
        """Return the tensors of the optimized graph's inputs."""
        assert self.inference is not None
        known = dict(zip([v.name for v in self.graph.inputs], inputs, strict=True))
        state = self.inference.state
        return [known[v.name] if v.name in known else state[v.name] for v in self.inference.inputs]


def _as_known(tensors: list[Any], arrays: list[Any], storages: list[Any]) -> bool:
    """Return whether tensors have the memory that they had."""
    for number, tensor in enumerate(tensors):
        if tensor._array is not arrays[number] or tensor._storage is not storages[number]:
            return False
    return True


def _apart(tensors: list[Any], fixed: dict[int, Any], memory: frozenset[int]) -> bool:
    """Return whether no argument, but for what is state, shows memory with one of some ids."""
    for number, tensor in enumerate(tensors):
        storage = tensor._storage
        if number not in fixed and (id(tensor._array) in memory or id(storage) in memory):
            return False
    return True


def _unusual(tensor: Any) -> bool:
    """Return whether a tensor has tangents, or was made in inference mode."""
    extra = tensor._extra
    return tensor._tangents is not None or (extra is not None and extra.inference)
