"""Complex numbers, which no operator of ONNX takes: two values each, the real and the imaginary parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.core.device import dtypes
from tensorplug.core.device.dtypes import DType
from tensorplug.core.dispatch.op import Op
from tensorplug.graph import Node, Value

from ..writing import Inexpressible, Size, Writer
from .table import LOWERINGS

__all__ = ["REASON", "give_parts", "is_complex", "lower_complex"]

REASON = "no operator of ONNX takes complex numbers"
#: A part that is zero.
_ZERO = 0.0
_Parts = tuple[Any, Any]

#: What is done to both parts alike, and which arguments are numbers.
_ALIKE = {
    **dict.fromkeys(
        (
            "as_strided", "basic_index", "broadcast_to", "clone", "contiguous", "cumsum", "diagonal",
            "dropout", "expand", "expand_as", "flatten", "flip", "gather", "graph.detach", "index",
            "index_select", "mean", "neg", "permute", "place", "reshape", "squeeze", "sum", "transpose",
            "unflatten", "unfold", "unsqueeze", "view", "view_as",
        ),
        ("input",),
    ),
    "cat": ("tensors",),
    "copy": ("input", "src"),
    "graph.write_view": ("input", "value"),
    "index_put": ("input", "values"),
    "where": ("input", "other"),
}  # fmt: skip
#: Products: of sums of two numbers they are sums of four products.
_PRODUCTS = ("mul", "matmul")


def is_complex(node: Node) -> bool:
    """Return whether a call takes or makes complex numbers."""
    return any(value.dtype.is_complex for value in (*node.values(), *node.outputs))


def give_parts(w: Writer, value: Value, names: tuple[str, str]) -> None:
    """Note what the parts of a complex value are called."""
    made = []
    for name in names:
        part = Value(name, value.shape, value.dtype.to_real(), value.device)
        if value in w.shapes:
            w.shapes[part] = w.shapes[value]
        w.take(part, name)
        made.append(part)
    w.parts[value] = (made[0], made[1])


def lower_complex(w: Writer, node: Node) -> list[str | None]:
    """Write the nodes of a call; return the names of what it makes, None of complex numbers."""
    name = node.op.name
    made: Any
    if name in _ALIKE:
        made = _alike(w, node, _ALIKE[name])
    elif name in _PRODUCTS:
        made = _product(w, node)
    elif name in _COMPLEX:
        made = _COMPLEX[name](w, node, **node.arguments)
    else:
        raise Inexpressible(REASON)
    if isinstance(made, str):
        return [made]
    give_parts(w, node.output, made)
    return [None]


# --- parts ----------------------------------------------------------------------------------------


def _parts(w: Writer, argument: Any) -> _Parts:
    """Return the parts of a value or number."""
    if not isinstance(argument, Value):
        number = complex(argument) if not isinstance(argument, Size) else argument
        return (number, _ZERO) if isinstance(number, Size) else (number.real, number.imag)
    if not argument.dtype.is_complex:
        return argument, _ZERO
    if argument not in w.parts:
        given = argument.node is None
        hint = ": it is given to the program, which may take view_as_real of it" if given else ""
        raise Inexpressible(REASON + hint)
    return w.parts[argument]


def _names(w: Writer, argument: Any, dtype: Any) -> tuple[str, str]:
    """Return the names of both parts in a dtype of real numbers, of a value or number."""
    real, imag = _parts(w, argument)
    return w.value(real, dtype), w.value(imag, dtype)


def _zeros(w: Writer, value: Value, dtype: Any) -> str:
    return w.add("Expand", w.constant(0, dtype), w.ints(w.shape(value)))


def _lower(w: Writer, op: Op, args: Any, like: Value) -> str:
    """Write a call for real numbers, whose result has the shape of a complex one."""
    node = Node(op, args)
    output = Value(like.name, like.shape, like.dtype.to_real(), like.device, node=node)
    if like in w.shapes:
        w.shapes[output] = w.shapes[like]
    node.outputs.append(output)
    made: str = LOWERINGS[op.name](w, node, **node.arguments)
    return made


def _alike(w: Writer, node: Node, given: tuple[str, ...]) -> _Parts:
    if not node.output.dtype.is_complex:
        raise Inexpressible(REASON)
    kind = node.output.dtype.to_real()

    def part(argument: Any, place: int) -> Any:
        if isinstance(argument, (list, tuple)):
            return [part(item, place) for item in argument]
        if argument is None:
            return None
        found = _parts(w, argument)[place]
        if isinstance(argument, Value) and found is _ZERO:
            found = Value("zeros", argument.shape, kind, argument.device)
            if argument in w.shapes:
                w.shapes[found] = w.shapes[argument]
            w.names[found] = _zeros(w, argument, kind)
        return found

    def args(place: int) -> tuple[Any, ...]:
        pairs = zip(node.op.names, node.args, strict=True)
        return tuple([part(arg, place) if n in given else _real(arg) for n, arg in pairs])

    return _lower(w, node.op, args(0), node.output), _lower(w, node.op, args(1), node.output)


def _real(argument: Any) -> Any:
    """Return an argument; of a dtype of complex numbers that of their parts."""
    return argument.to_real() if isinstance(argument, DType) and argument.is_complex else argument


def _product(w: Writer, node: Node) -> _Parts:
    """Write (a + bi)(c + di) = ac - bd + (ad + bc)i, without the products with parts that are zero."""
    a, b = _parts(w, node.args[0])
    c, d = _parts(w, node.args[1])

    def product(x: Any, y: Any) -> str | None:
        if x is _ZERO or y is _ZERO:
            return None
        return _lower(w, node.op, (x, y, *node.args[2:]), node.output)

    def together(op: str, x: str | None, y: str | None) -> str:
        if x is not None and y is not None:
            return w.add(op, x, y)
        if x is None and y is None:
            return _zeros(w, node.output, node.output.dtype.to_real())
        if y is None:
            return str(x)
        return y if op == "Add" else w.add("Neg", y)

    return (
        together("Sub", product(a, c), product(b, d)),
        together("Add", product(a, d), product(b, c)),
    )


# --- of numbers -----------------------------------------------------------------------------------


def _view_as_complex(w: Writer, node: Node, input: Value) -> _Parts:
    return _unstacked(w, w.value(input), len(input.shape) - 1)


def _view_as_real(w: Writer, node: Node, input: Value) -> str:
    return _stacked(w, _names(w, input, node.output.dtype))


def _stacked(w: Writer, parts: tuple[str, str]) -> str:
    last = w.ints([-1])
    return w.add("Concat", *[w.add("Unsqueeze", part, last) for part in parts], axis=-1)


def _unstacked(w: Writer, name: str, axis: int) -> tuple[str, str]:
    real, imag = [w.add("Gather", name, w.constant(i, dtypes.int64), axis=axis) for i in (0, 1)]
    return real, imag


def _add(w: Writer, node: Node, input: Any, other: Any, alpha: Any = 1, **rest: Any) -> _Parts:
    kind = node.output.dtype.to_real()
    a, b = _names(w, input, kind)
    c, d = _names(w, other, kind)
    scale = complex(alpha)
    if scale != 1:
        real, imag = w.constant(scale.real, kind), w.constant(scale.imag, kind)
        c, d = (
            w.add("Sub", w.add("Mul", c, real), w.add("Mul", d, imag)),
            w.add("Add", w.add("Mul", c, imag), w.add("Mul", d, real)),
        )
    op = "Add" if node.op.name == "add" else "Sub"
    return w.add(op, a, c), w.add(op, b, d)


def _div(w: Writer, node: Node, input: Any, other: Any, **rest: Any) -> _Parts:
    kind = node.output.dtype.to_real()
    a, b = _names(w, input, kind)
    if _parts(w, other)[1] is _ZERO:
        c = w.value(other, kind)
        return w.add("Div", a, c), w.add("Div", b, c)
    c, d = _names(w, other, kind)
    whole = w.add("Add", w.add("Mul", c, c), w.add("Mul", d, d))
    real = w.add("Add", w.add("Mul", a, c), w.add("Mul", b, d))
    imag = w.add("Sub", w.add("Mul", b, c), w.add("Mul", a, d))
    return w.add("Div", real, whole), w.add("Div", imag, whole)


def _conj(w: Writer, node: Node, input: Value) -> _Parts:
    real, imag = _names(w, input, node.output.dtype.to_real())
    return real, w.add("Neg", imag)


def _abs(w: Writer, node: Node, input: Value) -> str:
    """Divide by the larger part, whose square may be too large for its dtype."""
    kind = node.output.dtype
    sizes = [w.add("Abs", part) for part in _names(w, input, kind)]
    large, small = w.add("Max", *sizes), w.add("Min", *sizes)
    none = w.add("Equal", large, w.constant(0, kind))
    ratio = w.add("Div", small, w.add("Where", none, w.constant(1, kind), large))
    one = w.constant(1, kind)
    return w.add("Mul", large, w.add("Sqrt", w.add("Add", one, w.add("Mul", ratio, ratio))))


def _fill(w: Writer, node: Node, shape: Any, value: Any, **rest: Any) -> _Parts:
    kind = node.output.dtype.to_real()
    sizes = w.ints(shape)
    real, imag = [w.add("Expand", name, sizes) for name in _names(w, value, kind)]
    return real, imag


def _like(w: Writer, node: Node, input: Any, fill_value: Any = None, **rest: Any) -> Any:
    value = {"zeros_like": 0, "ones_like": 1, "empty_like": 0}.get(node.op.name, fill_value)
    if not node.output.dtype.is_complex:  # of complex numbers
        return w.add("Expand", w.value(value, node.output.dtype), w.ints(w.shape(node.output)))
    return _fill(w, node, w.shape(node.output), value)


def _square(w: Writer, node: Node, input: Value) -> _Parts:
    real, imag = _names(w, input, node.output.dtype.to_real())
    both = w.add("Mul", real, imag)
    squares = w.add("Mul", real, real), w.add("Mul", imag, imag)
    return w.add("Sub", *squares), w.add("Add", both, both)


def _exp(w: Writer, node: Node, input: Value) -> _Parts:
    real, imag = _names(w, input, node.output.dtype.to_real())
    size = w.add("Exp", real)
    return w.add("Mul", size, w.add("Cos", imag)), w.add("Mul", size, w.add("Sin", imag))


def _equal(w: Writer, node: Node, input: Any, other: Any) -> str:
    kind = next(v.dtype for v in node.values() if v.dtype.is_complex).to_real()
    pairs = zip(_names(w, input, kind), _names(w, other, kind), strict=True)
    same = w.add("And", *[w.add("Equal", *pair) for pair in pairs])
    return same if node.op.name == "eq" else w.add("Not", same)


def _cast(w: Writer, node: Node, input: Value, dtype: Any, **rest: Any) -> _Parts | str:
    if dtype is dtypes.bool_:
        parts = [w.cast(part, dtype) for part in _names(w, input, input.dtype.to_real())]
        return w.add("Or", *parts)
    if not dtype.is_complex:
        return w.value(_parts(w, input)[0], dtype)
    kind = dtype.to_real()
    real, imag = _parts(w, input)
    zero = imag is _ZERO
    return w.value(real, kind), _zeros(w, node.output, kind) if zero else w.value(imag, kind)


def _transform(
    w: Writer, node: Node, input: Value, dim: tuple[int, ...], normalization: int, forward: bool
) -> _Parts:
    """Write a DFT for each dimension, of rows of pairs behind one more dimension, which it wants."""
    kind = node.output.dtype.to_real()
    name = w.add("Unsqueeze", _stacked(w, _names(w, input, kind)), w.ints([0]))
    for axis in dim:
        where = {} if w.opset >= 20 else {"axis": axis + 1}
        given = [w.constant(axis + 1, dtypes.int64)] if w.opset >= 20 else []
        blank = ["", *given] if given else []
        name = w.add("DFT", name, *blank, inverse=int(not forward), **where)
    # ONNX divides by the number of elements on the way back.
    powers = {(True, 0): 0, (True, 1): -0.5, (True, 2): -1, (False, 0): 1, (False, 1): 0.5}
    power = powers.get((forward, normalization), 0)
    if power:
        sizes = [w.shape(input)[axis] for axis in dim]
        if any(isinstance(size, Size) for size in sizes):
            raise Inexpressible("it is scaled by the number of elements, which varies")
        scale = math.prod(sizes) ** power
        name = w.add("Mul", name, w.constant(scale, kind))
    return _unstacked(w, w.add("Squeeze", name, w.ints([0])), len(input.shape))


#: By the name of the op: what returns the names of both parts, or of what is real.
_COMPLEX: dict[str, Callable[..., Any]] = {
    "abs": _abs,
    "add": _add,
    "cast": _cast,
    "conj_physical": _conj,
    "div": _div,
    "eq": _equal,
    "exp": _exp,
    "empty_like": _like,
    "fft_c2c": _transform,
    "fill_new": _fill,
    "full_like": _like,
    "ne": _equal,
    "ones_like": _like,
    "square": _square,
    "sub": _add,
    "view_as_complex": _view_as_complex,
    "view_as_real": _view_as_real,
    "zeros_like": _like,
}
