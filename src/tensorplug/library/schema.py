"""Schemas of ops in torch's words: ``"(Tensor x, float? y=None, *, int z) -> Tensor"``."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Union

from tensorplug.core import Tensor
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType

REQUIRED: Any = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a schema.

    Attributes
    ----------
    name, type : str
        Its name, and its type as the schema spells it: ``"Tensor?"``, ``"int[2]"``.
    default_value : object
        What a call that does not give it has; ``inspect.Parameter.empty`` if it must.
    kwarg_only : bool
        Whether it is given by name only.
    alias : str
        What the schema says of its memory: ``"a!"`` for one that is written to.
    """

    name: str
    type: str
    default_value: Any = REQUIRED
    kwarg_only: bool = False
    alias: str = ""

    @property
    def is_write(self) -> bool:
        """Whether a call writes to it."""
        return self.alias.endswith("!")

    def has_default_value(self) -> bool:
        """Return whether a call may leave it out."""
        return self.default_value is not REQUIRED

    def __str__(self) -> str:
        kind = self.type.replace("Tensor", f"Tensor({self.alias})", 1) if self.alias else self.type
        shown = f"{kind} {self.name}".rstrip()
        return f"{shown}={_literal(self.default_value)}" if self.has_default_value() else shown


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).replace("torch.", "")


@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """What an op takes and returns.

    Attributes
    ----------
    name, overload_name : str
        ``"namespace::op"``, and what follows the dot.
    arguments, returns : tuple of Argument
        In the order of a call.
    """

    name: str
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]

    @property
    def is_mutable(self) -> bool:
        """Whether a call writes to an argument."""
        return any(argument.is_write for argument in self.arguments)

    def has_keyword_tensors(self) -> bool:
        """Return whether a call gives tensors by name only; gradients find no way to them."""
        return any(
            argument.kwarg_only and argument.type.startswith("Tensor")
            for argument in self.arguments
        )

    def signature(self) -> str:
        """Return the schema without the name."""
        parts, named = [], False
        for argument in self.arguments:
            if argument.kwarg_only and not named:
                parts.append("*")
                named = True
            parts.append(str(argument))
        returned = ", ".join(map(str, self.returns))
        if len(self.returns) != 1:
            returned = f"({returned})"
        return f"({', '.join(parts)}) -> {returned}"

    def __str__(self) -> str:
        overload = f".{self.overload_name}" if self.overload_name else ""
        return f"{self.name}{overload}{self.signature()}"

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of the arguments of a call, in order.

        Raises
        ------
        RuntimeError
            If the call does not fit.
        """
        name = self.name
        positional = [argument for argument in self.arguments if not argument.kwarg_only]
        if len(args) > len(positional):
            raise RuntimeError(
                f"{name}() expected at most {len(positional)} argument(s) but received {len(args)} "
                f"argument(s). Declaration: {self}"
            )
        values, left = list(args), dict(kwargs)
        for argument in self.arguments[len(args) :]:
            if argument.name in left:
                values.append(left.pop(argument.name))
            elif argument.has_default_value():
                values.append(argument.default_value)
            else:
                raise RuntimeError(
                    f"{name}() is missing value for argument '{argument.name}'. Declaration: {self}"
                )
        if left:
            raise RuntimeError(
                f"Unknown keyword argument '{next(iter(left))}' for operator '{name}'. Schema: {self}"
            )
        for argument, value in zip(self.arguments, values, strict=True):
            if not fits(value, argument.type):
                raise RuntimeError(
                    f"{name}() Expected a value of type '{argument.type.replace('Sym', '')}' for argument "
                    f"'{argument.name}' but instead found type '{type(value).__name__}', {value!r}. "
                    f"Declaration: {self}"
                )
        return tuple(values)

    def check_returned(self, result: Any) -> None:
        """Refuse what a kernel returned if it is not what the schema says.

        Raises
        ------
        RuntimeError
            If it is of another type, or of another number.
        """
        kinds = [returned.type for returned in self.returns]
        if not kinds:
            return
        several = len(kinds) > 1
        if several and not (isinstance(result, (tuple, list)) and len(result) == len(kinds)):
            raise RuntimeError(
                f"{self.name}: the kernel has to return {len(kinds)} values in a tuple, as the schema says, "
                f"got {type(result).__name__}. Declaration: {self}"
            )
        for value, kind in zip(result if several else (result,), kinds, strict=True):
            if value is not None and not fits(value, kind):
                raise RuntimeError(
                    f"{self.name}: Unable to cast {value!r} to {kind}, which the schema says the kernel "
                    f"returns. Declaration: {self}"
                )


#: By type of a schema: what a value has that can stand for one.
_STANDS_FOR = {"int": "__index__", "SymInt": "__index__", "float": "__float__", "bool": "__bool__"}


def fits(value: Any, kind: str) -> bool:
    """Return whether a value is of a type as a schema spells it; of those that no call mistakes, any is.

    Examples
    --------
    >>> (
    ...     fits(1, "float"),
    ...     fits(1.5, "int"),
    ...     fits(None, "str?"),
    ...     fits([1, 2], "int[]"),
    ...     fits(1, "int[2]"),
    ... )
    (True, False, True, True, True)
    """
    if kind == "Tensor":
        return isinstance(value, Tensor)
    if kind == "str":
        return isinstance(value, str)
    if kind in _STANDS_FOR:
        return hasattr(value, _STANDS_FOR[kind])
    if kind.endswith("?"):
        return value is None or fits(value, kind[:-1])
    if kind.endswith("]"):
        element, _, size = kind[:-1].rpartition("[")
        if isinstance(value, (list, tuple)):
            return all([fits(item, element) for item in value])
        return bool(size) and fits(value, element)
    return True


_ARGUMENT = re.compile(
    r"(?P<type>[A-Za-z_]\w*)(?:\((?P<alias>[^)]*)\))?(?P<more>(?:\[\d*\]|\?)*)\s*(?P<name>\w+)?"
    r"(?:\s*=\s*(?P<default>.+))?$"
)
_SCHEMA = re.compile(
    r"\s*(?P<name>[\w:]*)(?:\.(?P<overload>\w+))?\s*\((?P<arguments>.*)\)\s*->\s*(?P<returns>.*?)\s*$",
    re.DOTALL,
)
_KNOWN = frozenset(
    {
        "Tensor", "int", "SymInt", "float", "bool", "str", "Scalar", "ScalarType", "Device", "Layout",
        "MemoryFormat", "Generator", "Dimname", "number", "complex", "Any", "Storage", "Stream",
    }
)  # fmt: skip


def parse(text: str) -> FunctionSchema:
    """Return a schema from its text.

    Raises
    ------
    RuntimeError
        If it is none.

    Examples
    --------
    >>> schema = parse("package::scale(Tensor x, float? by=None, *, int[2] dims) -> Tensor")
    >>> schema.arguments[1]
    Argument(name='by', type='float?', default_value=None, kwarg_only=False, alias='')
    >>> str(schema)
    'package::scale(Tensor x, float? by=None, *, int[2] dims) -> Tensor'
    """
    found = _SCHEMA.match(text)
    if found is None:
        raise RuntimeError(
            f"expected a schema like '(Tensor x, int dim=0) -> Tensor', got {text!r}"
        )
    arguments, named = [], False
    for part in _split(found["arguments"]):
        if part == "*":
            named = True
        else:
            arguments.append(_argument(part, named, text))
    returned = found["returns"]
    inner = returned[1:-1] if returned.startswith("(") and returned.endswith(")") else returned
    returns = tuple([_argument(part, False, text) for part in _split(inner)])
    return FunctionSchema(found["name"], found["overload"] or "", tuple(arguments), returns)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for position, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _argument(text: str, named: bool, schema: str) -> Argument:
    found = _ARGUMENT.match(text)
    if found is None or found["type"] not in _KNOWN:
        raise RuntimeError(f"{text!r} is no argument of a schema: {schema!r}")
    kind = found["type"] + found["more"]
    default = REQUIRED if found["default"] is None else _value(found["default"].strip(), kind)
    return Argument(found["name"] or "", kind, default, named, found["alias"] or "")


def _value(text: str, kind: str) -> Any:
    import ast

    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a dtype or a reduction by its name
    return float(value) if kind.startswith("float") and type(value) is int else value


# --- from a function's annotations ---------------------------------------------------------------

_PLAIN: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", DType: "ScalarType",
    Device: "Device", int | float | bool: "Scalar",
}  # fmt: skip
_IN_LISTS = (Tensor, int, float, bool)


def _spelled(kind: Any) -> str | None:
    """Return a type as a schema spells it."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        rest = [part for part in inside if part is not type(None)]
        if len(rest) == len(inside):
            return "Scalar" if set(rest) == {int, float, bool} else None
        spelled = _spelled(rest[0] if len(rest) == 1 else Union[tuple(rest)])  # noqa: UP007
        return None if spelled is None else f"{spelled}?"
    if origin in (list, Sequence) or (origin is not None and origin is Sequence):
        of = inside[0] if inside else None
        if of in _IN_LISTS:
            return f"{_PLAIN[of]}[]"
        if typing.get_origin(of) in (Union, types.UnionType):
            spelled = _spelled(of)
            return f"{spelled}[]" if spelled == "Tensor?" else None
    return None


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
) -> str:
    """Return the schema of a function with annotations.

    Parameters
    ----------
    prototype_function : callable
        All of its parameters, and what it returns, are annotated.
    mutates_args : iterable of str
        The names of the arguments that a call writes to; ``"unknown"`` for all tensors among them.
    op_name : str, optional
        What the schema begins with.

    Raises
    ------
    ValueError
        If a type is not one of those that ops take.

    Examples
    --------
    >>> import tensorplug as tp
    >>> def scale(x: tp.Tensor, by: float = 2.0) -> tp.Tensor: ...
    >>> infer_schema(scale, mutates_args=())
    '(Tensor x, float by=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated or the "
            f"string 'unknown', got {mutates_args!r}"
        )
    written = mutates_args if mutates_args == "unknown" else set(mutates_args)

    def wrong(what: str) -> ValueError:
        return ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    arguments: list[Argument] = []
    for position, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise wrong("We do not support positional-only args, varargs, or varkwargs.")
        if name not in hints:
            raise wrong(f"Parameter {name} must have a type annotation.")
        kind = _spelled(hints[name])
        if kind is None:
            raise wrong(f"Parameter {name} has unsupported type {hints[name]}.")
        is_tensor = kind.startswith("Tensor")
        writes = (written == "unknown" and is_tensor) or (written != "unknown" and name in written)
        if writes and not is_tensor:
            raise wrong(f"Parameter {name} is in mutable_args but only Tensors may be mutated.")
        default = parameter.default
        if isinstance(default, DType):
            default = repr(default).rpartition(".")[2]
        keyword = parameter.kind is parameter.KEYWORD_ONLY
        arguments.append(Argument(name, kind, default, keyword, f"a{position}!" if writes else ""))
    if written != "unknown":
        unknown = set(written) - set(signature.parameters)
        if unknown:
            shown = ", ".join(map(repr, sorted(unknown)))
            raise wrong(
                f"{{{shown}}} in mutates_args were not found in the custom op's signature. mutates_args "
                "should contain the names of all args that the custom op mutates, or just the string "
                "'unknown'."
            )
    if "return" not in hints:
        raise wrong("No return type annotation was provided. Please add one.")
    schema = FunctionSchema("", "", tuple(arguments), _returned(hints["return"], wrong))
    return (op_name or "") + schema.signature()


def _returned(hint: Any, wrong: Callable[[str], ValueError]) -> tuple[Argument, ...]:
    if hint in (None, type(None)):
        return ()
    kinds = typing.get_args(hint) if typing.get_origin(hint) is tuple else (hint,)
    spelled = [_spelled(kind) for kind in kinds]
    if any(kind is None for kind in spelled):
        raise wrong(f"Return has unsupported type {hint}.")
    return tuple([Argument("", kind or "") for kind in spelled])
