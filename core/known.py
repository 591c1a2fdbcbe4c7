"""What an op's rule came to for one combination of arguments, so that it need not run again."""

from __future__ import annotations

from typing import Any

from .kinds import Kind
from .op import Op, Spec
from .tensor_base import TensorBase


class Known:
    """What a rule came to for one combination of kinds, shapes and plain values.

    A rule sees nothing else of its arguments, so for the same ones the spec is the same but for the tensors
    in it.

    Attributes
    ----------
    template, raw : list
        The arguments of the op and those of its kernel, None in place of tensors.
    places, positions : tuple of int
        Where the tensors go in the template, and where they stand among the call's arguments.
    kind, outputs : Kind, tuple
        As in the spec.
    result, shape : Kind or None, tuple of int or None
        Of a single output whose shape is known.
    recordings : dict
        The gradient layer's own: how such a call is recorded, by which tensors require grad.
    """

    __slots__ = (
        "kind", "outputs", "places", "positions", "raw", "recordings", "result", "shape",
        "template",
    )  # fmt: skip

    def __init__(
        self, op: Op, spec: Spec, places: tuple[int, ...], positions: tuple[int, ...]
    ) -> None:
        self.template: list[Any] = [
            None if isinstance(value, TensorBase) else value for value in spec.values
        ]
        self.raw = self.template
        if op.pointwise:  # numbers become arrays
            self.raw = [
                spec.kind.scalar(value) if place not in places else None
                for place, value in enumerate(self.template)
            ]
        self.places = places
        self.positions = positions
        self.recordings: dict[int, Any] = {}
        self.kind = spec.kind
        self.outputs = spec.outputs
        self.result: Kind | None = None
        self.shape, dtype = spec.outputs[0]
        if len(spec.outputs) == 1 and self.shape is not None:
            self.result = spec.kind.with_dtype(dtype)

    def fill(self, args: tuple[Any, ...]) -> list[Any]:
        """Return the kernel's arguments with the tensors of a call."""
        values = self.template.copy()
        for place, position in zip(self.places, self.positions, strict=True):
            values[place] = args[position]
        return values
