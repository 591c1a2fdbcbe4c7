"""The nodes, constants and names of an ONNX graph while it is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tensorplug.core.device import dtypes
from tensorplug.core.tensor.predicates import result_type
from tensorplug.graph import Value

from .package import onnx_package
from .values import TYPE_NUMBERS

__all__ = ["Inexpressible", "Size", "Writer"]


class Inexpressible(NotImplementedError):
    """ONNX has no way to say what an op does."""


class Size:
    """A size that is not the same in all runs: what it was in each of some captures.

    It has no arithmetic, so that what is computed from it never becomes a constant by accident.
    """

    def __init__(self, values: Sequence[int]) -> None:
        self.values = tuple(values)

    def __repr__(self) -> str:
        return f"Size{self.values}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and other.values == self.values

    def __hash__(self) -> int:
        return hash(self.values)


class Writer:
    """Collects what becomes a GraphProto.

    Attributes
    ----------
    nodes, initializers
        The protos so far.
    names
        What a value of the graph is called in the file.
    shapes
        The sizes of values, those that vary as :class:`Size`.
    parts
        The real and imaginary parts of complex values, which have no names.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.names: dict[Value, str] = {}
        self.shapes: dict[Value, tuple[Any, ...]] = {}
        self.parts: dict[Value, tuple[Value, Value]] = {}
        # In the order in which they are made: whose sizes can be asked for.
        self.known: list[Value] = []
        self._taken: set[str] = set()
        self._constants: dict[Any, str] = {}
        self._sizes: dict[Any, str] = {}

    # --- names ---

    def name(self, wanted: str) -> str:
        """Return a name that nothing has yet, and take it."""
        name, number = wanted, 0
        while name in self._taken or not name:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name

    def take(self, value: Value, name: str) -> str:
        """Give a value its name in the file."""
        self.names[value] = name
        self.known.append(value)
        return name

    def shape(self, value: Value) -> tuple[Any, ...]:
        """Return the sizes of a value."""
        return self.shapes.get(value, value.shape)

    # --- nodes ---

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or a list of them."""
        made = [self.name(f"{op.lower()}_{len(self.nodes)}") for _ in range(outputs)]
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        kept = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(onnx_package("helper").make_node(op, given, made, **kept))
        return made[0] if outputs == 1 else made

    def constant(self, value: Any, dtype: Any, shape: Sequence[int] = ()) -> str:
        """Return the name of a constant of numbers."""
        flat = list(value) if isinstance(value, (list, tuple)) else [value]
        key = (tuple(map(repr, flat)), dtype, tuple(shape))
        if key not in self._constants:
            if dtype not in TYPE_NUMBERS:
                raise Inexpressible(f"ONNX has no element type like {dtype}")
            if dtype.is_complex:
                raise Inexpressible("no operator of ONNX takes complex numbers")
            name = self.name("constant")
            helper = onnx_package("helper")
            tensor = helper.make_tensor(name, TYPE_NUMBERS[dtype], list(shape), flat)
            self.initializers.append(tensor)
            self._constants[key] = name
        return self._constants[key]

    def ints(self, values: Iterable[Any]) -> str:
        """Return the name of a vector of sizes, axes or places."""
        items = list(values)
        if not any(isinstance(item, Size) for item in items):
            return self.constant([int(i) for i in items], dtypes.int64, [len(items)])
        parts = [
            self.size(item)
            if isinstance(item, Size)
            else self.constant([int(item)], dtypes.int64, [1])
            for item in items
        ]
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=0)

    def size(self, size: Size) -> str:
        """Return the name of a vector with one size, read from a value that has it."""
        if size in self._sizes:
            return self._sizes[size]
        for value in self.known:
            for axis, other in enumerate(self.shape(value)):
                if other == size:
                    shape = self.add("Shape", self.names[value], start=axis, end=axis + 1)
                    return self._sizes.setdefault(size, shape)
        found = self._product(size)
        if found is None:
            raise Inexpressible(
                f"a size that was {', '.join(map(str, size.values))} as inputs varied is not one of a "
                "tensor, nor a product of such: keep this dimension fixed"
            )
        return self._sizes.setdefault(size, found)

    def _product(self, size: Size) -> str | None:
        """Return a size as that of a tensor times a number or another size, plus a number."""
        there = dict.fromkeys(s for v in self.known for s in self.shape(v) if isinstance(s, Size))
        for one in there:
            factors = {a / b for a, b in zip(size.values, one.values, strict=True)}
            if len(factors) == 1:
                factor = factors.pop()
                if factor == int(factor):
                    return self.add("Mul", self.size(one), self.ints([int(factor)]))
                if 1 / factor == int(1 / factor):
                    return self.add("Div", self.size(one), self.ints([int(1 / factor)]))
        for one in there:
            rests = {a - b for a, b in zip(size.values, one.values, strict=True)}
            if len(rests) == 1:
                return self.add("Add", self.size(one), self.ints([rests.pop()]))
        for one in there:
            for two in there:
                pairs = zip(size.values, one.values, two.values, strict=True)
                factors = {a / (b * c) for a, b, c in pairs}
                if len(factors) == 1 and (factor := factors.pop()) == int(factor):
                    both = self.add("Mul", self.size(one), self.size(two))
                    return self.add("Mul", both, self.ints([int(factor)]))
        return None

    def reshape(self, name: str, shape: Iterable[Any]) -> str:
        """Add a node that reshapes: one size that varies follows from the others."""
        sizes = list(shape)
        varying = [i for i, size in enumerate(sizes) if isinstance(size, Size)]
        if len(varying) == 1 and 0 not in sizes:
            sizes[varying[0]] = -1
        allow = 1 if 0 in sizes else None  # else a zero stands for the size that was there
        return self.add("Reshape", name, self.ints(sizes), allowzero=allow)

    # --- values ---

    def dtype(self, argument: Any) -> Any:
        """Return the dtype of a value or number."""
        return argument.dtype if isinstance(argument, Value) else None

    def common(self, *arguments: Any) -> Any:
        """Return the dtype that values and numbers are promoted to together."""
        metas = [
            a.meta() if isinstance(a, Value) else a for a in arguments if not isinstance(a, Size)
        ]
        kind: Any = metas[0]
        if len(metas) == 1:
            return kind.dtype
        for other in metas[1:]:
            kind = result_type(kind, other)
        return kind

    def value(self, argument: Any, dtype: Any = None) -> str:
        """Return the name of a value or number, in a dtype if one is said."""
        if argument is None:
            return ""
        if isinstance(argument, Value):
            name = self.names[argument]
            return name if dtype in (None, argument.dtype) else self.cast(name, dtype)
        if isinstance(argument, Size):
            return self.cast(self.add("Squeeze", self.size(argument)), dtype or dtypes.int64)
        if dtype is None:
            raise Inexpressible(f"the argument {argument!r}")
        if isinstance(argument, complex):
            raise Inexpressible("no operator of ONNX takes complex numbers")
        number: Any = argument
        if dtype is dtypes.bool_:
            number = bool(argument)
        elif not dtype.is_floating_point:
            number = int(argument)
        return self.constant(number, dtype)

    def cast(self, name: str, dtype: Any) -> str:
        """Return the name of a value in another dtype."""
        if dtype not in TYPE_NUMBERS or dtype.is_complex:
            raise Inexpressible(f"no operator of ONNX takes {dtype}")
        return self.add("Cast", name, to=TYPE_NUMBERS[dtype])
