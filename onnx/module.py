"""The module that a loaded model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dispatch.keys import default_device
from tensorplug.nn import Module, Parameter

from .program import Call, Program

__all__ = ["ONNXModule"]


class _Part(Module):
    """Holds parameters whose names have a common prefix."""


class ONNXModule(Module):
    """A model of an ONNX file: its initializers are parameters and buffers, its nodes run as ops.

    Made by :func:`load`. It is called with the model's inputs, by position or by name, and returns the
    output, or a tuple of them where there are several. Initializers keep their names in the state dict
    (``layer1.0.conv1.weight``), so that files of PyTorch models load into it and the other way round.

    It is in evaluation mode first. After ``train()`` batch normalization takes the statistics of its batch
    and updates its buffers, and Dropout nodes drop, as the modules they were written from do.

    Attributes
    ----------
    input_names, output_names
        Of the model, in order.
    opset
        The version of each domain of operators that the model was written for.
    metadata
        What the file says beside the graph.
    """

    def __init__(
        self,
        program: Program,
        tensors: Mapping[str, Any],
        parameters: set[str],
        inputs: Mapping[str, tuple[Any, int | None]],
        opset: Mapping[str, int],
        metadata: Mapping[str, str],
    ) -> None:
        super().__init__()
        self._program = program
        self._declared = dict(inputs)
        self.input_names = list(program.inputs)
        self.output_names = list(program.outputs)
        self.opset = dict(opset)
        self.metadata = dict(metadata)
        self._places: dict[str, tuple[Module, str]] = {}
        for key, value in tensors.items():
            self._place(key, value, key in parameters)
        self.eval()

    def _place(self, key: str, value: Tensor, trained: bool) -> None:
        """Register a tensor under its name, whose dots are steps into modules."""
        *path, name = (part or "_" for part in key.split("."))
        owner: Module = self
        for part in path:
            found = owner._modules.get(part)
            if found is None:
                if hasattr(owner, part):
                    part = f"{part}_"
                found = owner._modules.get(part) or _Part()
                owner.add_module(part, found)
            owner = found
        while hasattr(owner, name):
            name += "_"
        if trained:
            owner.register_parameter(name, Parameter(value))
        else:
            owner.register_buffer(name, value)
        self._places[key] = owner, name

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the model's outputs for its inputs."""
        inputs = self._bound(args, kwargs)
        state = {key: getattr(owner, name) for key, (owner, name) in self._places.items()}
        results = self._program.run(
            *inputs, call=Call(_device([*inputs, *state.values()]), self.training, state)
        )
        return results[0] if len(results) == 1 else results

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        names = self.input_names
        if len(args) > len(names):
            raise TypeError(
                f"the model takes {len(names)} inputs ({', '.join(names)}), {len(args)} were given"
            )
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names or name in given:
                why = "is given twice" if name in given else "is not an input"
                raise TypeError(f"{name!r} {why}; the model's inputs are {', '.join(names)}")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise TypeError(f"missing inputs: {', '.join(missing)}")
        for name, value in given.items():
            self._check(name, value)
        return [given[name] for name in names]

    def _check(self, name: str, value: Any) -> None:
        dtype, rank = self._declared.get(name, (None, None))
        if dtype is None or not isinstance(value, Tensor):
            return
        if value.dtype != dtype and not (value.dtype.is_floating_point and dtype.is_floating_point):
            raise TypeError(
                f"input {name!r} is {value.dtype}, the model takes {dtype}: write {name}.to({dtype})"
            )
        if rank is not None and value.dim() != rank:
            raise ValueError(
                f"input {name!r} has the shape {tuple(value.shape)}, the model takes {rank} dimensions"
            )

    def extra_repr(self) -> str:
        """Return the names of inputs and outputs, and the number of nodes."""
        count = sum(1 for _ in self._program.walk())
        return f"{', '.join(self.input_names)} -> {', '.join(self.output_names)}; {count} nodes"


def _device(values: Sequence[Any]) -> Any:
    """Return the device of the first tensor among values and sequences of them."""
    for value in values:
        if isinstance(value, Tensor):
            return value.device
        if isinstance(value, list) and value:
            return _device(value)
    return default_device()
