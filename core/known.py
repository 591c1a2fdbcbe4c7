"""What an op's rule came to in earlier calls, so that it need not run again."""

from __future__ import annotations

from typing import Any

from .kinds import Kind
from .op import Op, Spec, first_tensor
from .tensor_base import TensorBase, new_tensor


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
    listed : bool
        Whether the tensors are instead the items of the first argument, a list.
    kind, outputs : Kind, tuple
        As in the spec.
    result, shape : Kind or None, tuple of int or None
        Of a single output whose shape is known.
    native : bool
        Of a composite: whether a kernel stands in for its body.
    recordings : dict
        The gradient layer's own: how such a call is recorded, by which tensors require grad.
    """

    __slots__ = (
        "kind", "listed", "native", "outputs", "places", "positions", "raw", "recordings", "result",
        "shape", "template",
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
        self.native = False
        self.listed = False
        self.kind = spec.kind
        self.outputs = spec.outputs
        self.result: Kind | None = None
        self.shape: tuple[int, ...] | None = None
        if len(spec.outputs) == 1:
            self.shape, dtype = spec.outputs[0]
            if self.shape is not None:
                self.result = spec.kind.with_dtype(dtype)

    def fill(self, args: tuple[Any, ...]) -> list[Any]:
        """Return the kernel's arguments with the tensors of a call."""
        values = self.template.copy()
        for place, position in zip(self.places, self.positions, strict=True):
            values[place] = args[position]
        return values


class Memory:
    """What an op's rule came to in the latest calls."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[Any, Known] = {}
        _memories.append(self)


_memories: list[Memory] = []
_KEPT = 512


def forget_specs() -> None:
    """Forget what rules came to; a default or a kernel that they depend on has changed."""
    for memory in _memories:
        memory.known.clear()


def key_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a rule sees of its arguments."""
    parts: list[Any] = []
    for arg in args:
        if isinstance(arg, TensorBase):
            tensor = arg
            parts.append(tensor._kind)
            parts.append(tensor._shape)
        else:
            parts.append(type(arg))
            parts.append(arg)
    if kwargs:
        for name, value in kwargs.items():
            parts.append((name, type(value), value))
    return tuple(parts)


def remember(
    op: Op, memory: Memory, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], spec: Spec
) -> Known | None:
    """Keep a spec whose tensors are the call's own arguments, each of them."""
    if zeros((*args, *kwargs.values())):
        return None
    tensors = [position for position, arg in enumerate(args) if isinstance(arg, TensorBase)]
    given = {id(args[position]): position for position in tensors}
    if any([isinstance(arg, TensorBase) for arg in kwargs.values()]):
        return None
    if not given and not any([arg is spec.kind.device for arg in args]):
        return None  # where it computes does not follow from its arguments
    bound = (
        op.sort == "composite" and op.canonical is None
    )  # its spec has the arguments in their order
    if len(given) != len(tensors) and not bound:
        # One tensor twice: which is which, only tensors that are alike can tell.
        args = tuple([_alike(arg) if isinstance(arg, TensorBase) else arg for arg in args])
        again = _spec_of(op, args, kwargs)
        return None if again is None else remember(op, memory, key, args, kwargs, again)
    places = []
    positions = []
    for place, value in enumerate(spec.values):
        if isinstance(value, TensorBase):
            position = given.get(id(value))
            if bound and place < len(args) and args[place] is value:
                position = place
            if position is None:  # a tensor that the rule made, by a conversion say
                return None
            if value._kind is not spec.kind and value._kind.device is not spec.kind.device:
                return None  # to be refused
            places.append(place)
            positions.append(position)
        elif isinstance(value, (list, tuple)) and first_tensor(value) is not None:
            return None
    if set(positions) != set(tensors) or spec.kind.is_meta:
        return None  # the rule read a tensor's value
    return keep(memory, key, Known(op, spec, tuple(places), tuple(positions)))


def _spec_of(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Spec | None:
    if op.sort == "primitive":
        return op.function(*args, **kwargs)
    from .composites import composite_spec

    return composite_spec(op, args, kwargs)


def _alike(tensor: TensorBase) -> Any:
    return new_tensor(tensor._array, tensor._kind, tensor._shape)


def zeros(values: tuple[Any, ...]) -> bool:
    """Return whether a value is 0.0 or -0.0, which are one as keys."""
    return any([isinstance(value, (float, complex)) and not value for value in values])


def keep(memory: Memory, key: Any, known: Known) -> Known:
    """Keep what is known, among the latest."""
    if len(memory.known) >= _KEPT:
        memory.known.clear()
    memory.known[key] = known
    return known
