"""Why a call failed, told of the public op.

Ops check values; that arguments are of the types that the op's signature names, is not looked at before it
matters. Where Python's or an array library's own error comes out of a call, the arguments are compared with
the signature, and the error that the caller gets speaks of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..device.device import Device
from ..device.dtypes import INTEGER, DType
from ..errors import OutOfMemoryError
from ..labels import RAISED_BY
from ..tensor.base import TensorBase
from ..tensor.shapes import broadcast_shapes
from .arguments import is_scalar
from .op import Op

# Texts of Python and of array libraries. What our own code raises names the op, or tells values and shapes.
_FOREIGN = r"""\b_\w+[.(]|<lambda>|<locals>|\bcanonical\(|\bdecompose\(|__\w+__
    |[Nn]um[Pp]y|ndarray|ufunc|dtype\('|for\ axis\ \d|cannot\ reshape\ array
    |(?<!indexing\ tensors\ )could\ not\ be\ broadcast
    |object\ has\ no\ attribute|NoneType|not\ subscriptable|not\ iterable|to\ unpack|object\ is\ not\ callable
    |unsupported\ operand|not\ supported\ between|be\ interpreted\ as|bad\ operand|has\ no\ len
    |negative\ dimensions\ are|Maximum\ allowed|array\ is\ too\ big|array\ shape\ too|broadcast\ dimension
    |too\ large\ to\ convert|too\ big\ to\ convert|could\ not\ convert|invalid\ literal|can't\ multiply
    |can\ only\ concatenate|argument\ must\ be\ a|(list|tuple)\ indices\ must\ be|list\ index|tuple\ index
    |arguments?\ but|required\ positional|unexpected\ keyword|multiple\ values\ for
    |^[fi]info\(\)|only\ one\ element\ tensors\ can\ be|Boolean\ value\ of\ Tensor
    |tensors\ of\ a\ single\ element
    """
_INTERNAL = (
    ArithmeticError,
    AttributeError,
    KeyError,
    NameError,
    RecursionError,
    StopIteration,
    SystemError,
)
_PUBLIC = (TypeError, ValueError, IndexError, RuntimeError)
_SIZES = "negative dimensions|Maximum allowed|too big|shape too|broadcast dimension"
_DTYPES = r"ufunc|[Nn]um[Pp]y boolean|dtype\('|^[fi]info\(\)"
_AMOUNT = r"\d[\d.]* (\w*B|bytes)\b"
_INDEX = r"index (-?\d+) is out of bounds for axis (\d+) with size (\d+)"


def _told(error: Exception) -> Exception:
    """Mark an error as one of an op: an op that called this one tells it of itself."""
    vars(error)["_told"] = True
    return error


def out_of_memory(name: str, error: MemoryError) -> Exception:
    """Return the error to raise in place of Python's or an array library's; a device's own tells more."""
    if isinstance(error, OutOfMemoryError):
        return error
    amount = re.search(_AMOUNT, str(error))
    tried = f": you tried to allocate {amount[0]}" if amount else ""
    return _told(OutOfMemoryError(f"{name}(): can't allocate memory{tried}"))


def explained(
    op: Op, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Exception | None:
    """Return the error to raise in place of one that came out of a call, if that one does not tell enough.

    A function among the arguments may raise whatever it likes, and so may one that takes any arguments.
    """
    kind = type(error)
    name = name.rpartition(".")[2]
    text = str(error)
    if "_told" in vars(error):
        error.args = (f"{name}(){text.partition('()')[2]}",)
        return None
    if isinstance(error, OutOfMemoryError):
        return None
    if kind is OverflowError and text.startswith("int too big to convert: "):
        return _told(OverflowError(f"{name}(): {text}"))  # of an operand, see scalars.wrapped
    if isinstance(error, MemoryError):
        return out_of_memory(name, error)
    if kind.__module__ not in ("builtins", "numpy.exceptions"):
        return None  # it has a meaning of its own
    if kind is ValueError and (
        op.pointwise or op.elementwise
    ):  # a kernel's, of arrays or their memory
        try:
            broadcast_shapes(*[tensor._shape for tensor in _tensors((*args, *kwargs.values()))])
        except RuntimeError as clash:
            return clash
    internal = isinstance(error, _INTERNAL)
    public = isinstance(error, _PUBLIC)
    foreign = public and re.search(_FOREIGN, text, re.VERBOSE)
    own = public and not foreign
    if not (internal or public) or (kind is TypeError and text.startswith(f"{name}(")):
        return None
    signature = op.signature
    if any(
        [
            "Callable" in str(p.annotation) or p.kind is p.VAR_KEYWORD
            for p in signature.parameters.values()
        ]
    ):
        return None
    # Where a check of our own has spoken, only what it cannot have been about is told before.
    wrong = misfit(signature, name, args, kwargs, own and kind is not TypeError)
    if wrong is not None:
        return TypeError(wrong)
    if own:
        return None
    index = re.search(_INDEX, text)
    if index is not None:
        number, dim, size = index.group(1, 2, 3)
        return _told(
            IndexError(
                f"{name}(): index {number} is out of bounds for dimension {dim} with size {size}"
            )
        )
    if re.search(_DTYPES, text):
        dtypes = dict.fromkeys([t.dtype.name for t in _tensors((*args, *kwargs.values()))])
        return NotImplementedError(f'"{name}" not implemented for {", ".join(dtypes)}')
    if re.search(_SIZES, text) or isinstance(error, OverflowError):
        got = ", ".join([_value(value) for value in (*args, *kwargs.values())])
        kind = (
            TypeError
            if _wide((*args, *kwargs.values()) if re.search(_SIZES, text) else args[:1])
            else RuntimeError
        )
        if kind is RuntimeError and "negative" not in text:
            return _told(kind(f"{name}(): Storage size calculation overflowed with {got}"))
        return _told(kind(f"{name}(): a size is negative or too large, got {got}"))
    if any([note.startswith(RAISED_BY) for note in getattr(error, "__notes__", ())]):
        return None  # the arguments are what the op takes: a fault of the kernel's, which the note names
    got = ", ".join([type(value).__name__ for value in (*args, *kwargs.values())])
    if isinstance(error, (TypeError, AttributeError)):
        return TypeError(
            f"{name}() received an invalid combination of arguments - got ({got}), but expected "
            f"{_shown(signature)}"
        )
    if internal:
        failed = RuntimeError(f"{name}() failed: {kind.__name__}: {text}")
        failed.__cause__ = error
        return failed
    shown = ", ".join([_value(value) for value in (*args, *kwargs.values())])
    return RuntimeError(f"{name}(): the arguments do not fit together: {shown}")


def _tensors(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, TensorBase):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _wide(values: Iterable[Any]) -> bool:
    """Return whether any int, also one in a list, has more than 64 bits."""
    return any(
        [
            _wide(value) if isinstance(value, (list, tuple)) else abs(value) >= 1 << 63
            for value in values
            if isinstance(value, (list, tuple, int))
        ]
    )


def _is_alien(value: Any) -> bool:
    """Return whether a value cannot stand for numbers."""
    if isinstance(value, (list, tuple)):
        return any([_is_alien(item) for item in value])
    return isinstance(value, str) or not any(
        [hasattr(value, name) for name in ("dtype", "__float__", "__index__", "__iter__")]
    )


def misfit(
    signature: inspect.Signature,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    aliens: bool = False,
) -> str | None:
    """Return what is wrong with a call's arguments: their number, their names or their types.

    With `aliens`, only of what can be neither tensors nor numbers.
    """
    given = {key: value for key, value in kwargs.items() if key != "out"}
    wrong = _uncallable(signature, name, args, given)
    if wrong is not None:
        return wrong
    for position, (parameter, value) in enumerate(_pairs(signature, args, given), 1):
        expected = str(parameter.annotation)
        if value is parameter.default or _fits(expected, value):
            continue
        if aliens and not _is_alien(value):
            continue
        where = f" (position {position})" if position <= len(args) else ""
        return (
            f"{name}(): argument '{parameter.name}'{where} must be {_words(expected)}, not "
            f"{_kind(value)}"
        )
    return None


def _uncallable(
    signature: inspect.Signature, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    """Return why no call has these many arguments, or of these names."""
    parameters = signature.parameters.values()
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(args) > len(places) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        plural = "s" if len(places) != 1 else ""
        return (
            f"{name}() takes {len(places)} positional argument{plural}, but {len(args)} were given"
        )
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        taken = {p.name for p in places[: len(args)]}
        for key in kwargs:
            if key not in signature.parameters:
                return f"{name}() got an unexpected keyword argument '{key}'"
            if key in taken:
                return f"{name}() got multiple values for argument '{key}'"
    missing = [
        p.name
        for i, p in enumerate(parameters)
        if p.default is p.empty
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and i >= len(args)
        and p.name not in kwargs
    ]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        names = ", ".join([f"'{each}'" for each in missing])
        return f"{name}() missing {len(missing)} required positional argument{plural}: {names}"
    return None


def _pairs(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[inspect.Parameter, Any]]:
    bound = signature.bind(*args, **kwargs)
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            for item in value:
                yield parameter, item
        elif parameter.kind is not parameter.VAR_KEYWORD:
            yield parameter, value


def _is_int(value: Any) -> bool:
    if isinstance(value, TensorBase):
        return not value._shape and value._key.dtype.category <= INTEGER
    return hasattr(value, "__index__")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) or is_scalar(value) or _is_scalar(value)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, TensorBase) and not value._shape


def _is_real(value: Any) -> bool:
    return _is_number(value) and not isinstance(value, complex)


def _each(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (list, tuple)) and all(map(of, value))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorBase)


def _is_none(value: Any) -> bool:
    return value is None


_INTS = _each(_is_int)
# What the annotations of ops say: how a value is tested, and what users are told. Others fit anything.
_TYPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "Tensor": (_is_tensor, "Tensor"),
    "None": (_is_none, "None"),
    "bool": (lambda value: isinstance(value, bool) or is_scalar(value) or _is_int(value), "bool"),
    "int": (_is_int, "int"),
    "float": (_is_real, "float"),
    "complex": (_is_number, "Number"),
    "Number": (_is_number, "Number"),
    "Real": (_is_number, "Number"),  # what complex numbers are told as they are converted
    "str": (lambda value: isinstance(value, str), "str"),
    "Shape": (_INTS, "tuple of ints"),
    "Sequence[int]": (_INTS, "tuple of ints"),
    "Ints": (lambda value: _is_int(value) or _INTS(value), "int or tuple of ints"),
    "Dims": (lambda value: value is None or _is_int(value) or _INTS(value), "int or tuple of ints"),
    "Sizes": (
        lambda value: value is None or _is_int(value) or _each(lambda v: v is None or _is_int(v))(value),
        "int or tuple of ints",
    ),
    "Sequence[float]": (_each(_is_real), "tuple of floats"),
    "list[float]": (_each(_is_real), "list of floats"),
    "list[Tensor]": (_each(_is_tensor), "list of Tensors"),
    "Sequence[Tensor]": (_each(_is_tensor), "tuple of Tensors"),
    "DType": (lambda value: isinstance(value, (DType, type)), "dtype"),
    "type": (lambda value: isinstance(value, (DType, type)), "dtype"),
    "Device": (lambda value: isinstance(value, (Device, str, int)), "device"),
}  # fmt: skip


def _fits(annotation: str, value: Any) -> bool:
    alternatives = annotation.split(" | ")
    return any([kind not in _TYPES or _TYPES[kind][0](value) for kind in alternatives])


def _words(annotation: str) -> str:
    words = [_TYPES[kind][1] for kind in annotation.split(" | ") if kind != "None"]
    return " or ".join(dict.fromkeys(words))


def _kind(value: Any) -> str:
    """Return the type of a value, and of the first item of a list that is in the way."""
    name = type(value).__name__
    if isinstance(value, (list, tuple)) and value:
        return f"{name} of {' and '.join(dict.fromkeys(type(item).__name__ for item in value))}"
    if isinstance(value, TensorBase):
        return f"{name} of {value._key.dtype.name} and shape {list(value._shape)}"
    return name


def _value(value: Any) -> str:
    return _kind(value) if isinstance(value, TensorBase) else repr(value)


def _shown(signature: inspect.Signature) -> str:
    """Return the parameters as torch shows them: ``(Tensor input, int dim, *, bool keepdim)``."""
    shown: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        kinds = [kind for kind in str(parameter.annotation).split(" | ") if kind in _TYPES]
        words = f"{_words(' | '.join(kinds))} " if kinds else ""
        shown.append(f"{words}{parameter.name}")
    return f"({', '.join(shown)})"
