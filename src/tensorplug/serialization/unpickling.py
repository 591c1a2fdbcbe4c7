"""Unpickling without running code of the file's author.

A restricted pickle may name only what is listed here. What it can do with these is checked, too:
a pickle is a program, and one that repeats, hashes or prints what it has built could otherwise
take memory and time without bounds.
"""

from __future__ import annotations

import io
import pickle
import reprlib
import types
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from tensorplug.core import Tensor
from tensorplug.core.contexts import OwnContext, Steps
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import ALL_DTYPES, STORED, DType
from tensorplug.core.ops.creation.creation import empty_strided
from tensorplug.core.tensor import creation, wrappers
from tensorplug.core.tensor.copies import own_slots
from tensorplug.core.tensor.layout import strided
from tensorplug.core.tensor.shapes import Size

from . import known_values, torch_names
from .known_values import KnownValues
from .names import STORAGES
from .scanning import NOTHING, Scanner, advice, modern
from .storages import LoadedStorage

MOST_DIMENSIONS = 64  # NumPy's limit
_MISSING: Any = object()
_MOST_KEY_PARTS = 1000


class Refused(pickle.UnpicklingError):
    """A file asks for what it may not have; the file is not damaged."""


class _Known:
    """Something harmless that a file may name, wrapped so that no file can change it."""

    __slots__ = ("make",)
    make: Callable[..., Any]

    def __init__(self, make: Callable[..., Any]) -> None:
        object.__setattr__(self, "make", make)

    def __setattr__(self, name: str, value: object) -> None:
        raise pickle.UnpicklingError("a file tries to change a function")

    def __call__(self, *args: Any) -> Any:
        return self.make(*args)


# --- tensors ----------------------------------------------------------------------------------


def _layout(size: Any, stride: Any, offset: Any = 0) -> tuple[Any, Any, int]:
    """Return sizes, strides and offset if they are lists of ints of 64 bits."""
    if not (isinstance(size, (tuple, list)) and isinstance(stride, (tuple, list))):
        raise ValueError("a tensor without sizes")
    if len(size) > MOST_DIMENSIONS:
        raise ValueError(f"a tensor of {len(size)} dimensions")
    for number in (*size, *stride, offset):
        if type(number) is not int or not -(1 << 63) <= number < 1 << 63:
            raise ValueError(f"a size, stride or offset {reprlib.repr(number)}")
    return tuple(size), tuple(stride), offset


def _rebuild(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any = False,
    hooks: Any = None,
    metadata: Any = None,
) -> Any:
    return _rebuild_bytes(storage, offset, size, stride, requires_grad, hooks, None, metadata)


def _rebuild_bytes(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Any:
    if not (isinstance(storage, LoadedStorage) and isinstance(dtype, DType | None)):
        raise ValueError("a tensor without a memory or dtype")
    size, stride, offset = _layout(size, stride, offset)
    tensor = creation.show_memory(storage.source.typed(dtype), size, stride, offset)
    if isinstance(metadata, dict):  # torch saves these views by their flags
        if metadata.get("conj") is True:
            tensor = tensor.conj()
        if metadata.get("neg") is True:
            tensor = -tensor
    return tensor.requires_grad_() if requires_grad is True else tensor


def _rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Any:
    if not isinstance(dtype, DType):
        raise ValueError("a tensor without a dtype")
    size, stride, _ = _layout(size, stride)
    if min(size, default=0) < 0:
        raise ValueError("a tensor of negative size")
    tensor = empty_strided(size, stride, dtype=dtype, device="meta")
    return tensor.requires_grad_() if requires_grad is True else tensor


def _rebuild_wrapper(
    cls: Any,
    dtype: Any,
    size: Any,
    stride: Any,
    offset: Any,
    layout: Any,
    device: Any,
    requires_grad: Any,
) -> Any:
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise ValueError("a tensor of an unknown class")
    if not (isinstance(dtype, DType) and isinstance(device, Device)):
        raise ValueError("a tensor without a dtype and a device")
    size, stride, offset = _layout(size, stride, offset)
    return wrappers.rebuild(cls, dtype, size, stride, offset, layout, device, requires_grad is True)


def _rebuild_parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Any:
    from tensorplug.nn.parameter import Parameter  # on first use: saves import time

    if not isinstance(data, Tensor):
        raise ValueError("a parameter without a tensor")
    made = Parameter(data, requires_grad is True)
    return made if state is None else _with_attributes(made, state)


def _rebuild_with_attributes(make: Any, cls: Any, arguments: Any, state: Any) -> Any:
    known = cls is _TENSOR or (isinstance(cls, type) and issubclass(cls, Tensor))
    if not (isinstance(make, _Known) and known and isinstance(arguments, tuple)):
        raise ValueError("a tensor of an unknown class")
    tensor = make(*arguments)
    if not isinstance(tensor, Tensor):
        raise ValueError("attributes of what is no tensor")
    made = cls is _TENSOR or type(tensor) is cls
    return _with_attributes(tensor if made else tensor.as_subclass(cls), state)


def _with_attributes(tensor: Any, state: Any) -> Any:
    """Give a tensor its state: attributes as far as its class has none of these names, and its own slots.

    A class without memory of its own, which the caller trusts, may call what it wraps as it likes.
    """
    if type(tensor).__setstate__ is not Tensor.__setstate__:
        tensor.__setstate__(state)
        return tensor
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    attributes, slots = [{} if part is None else part for part in parts]
    if not (isinstance(attributes, dict) and isinstance(slots, dict)):
        raise ValueError("attributes that are no dict")
    wraps = wrappers.description(tensor) is not None
    for name, value in attributes.items():
        if isinstance(name, str) and (
            not hasattr(type(tensor), name) or (wraps and name[:2] != "__")
        ):
            tensor.__dict__[name] = value
    for name in own_slots(type(tensor)):
        if name in slots:
            setattr(tensor, name, slots[name])
    return tensor


# --- plain values -----------------------------------------------------------------------------


def _check_key(key: Any) -> None:
    """Raise if hashing would go too deep or too far: tuples can be nested at no cost."""
    waiting, parts = [key], 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, (tuple, frozenset)):
            inner = item
        elif type(type(item).__hash__) is types.FunctionType:  # of all that the object holds
            inner = tuple(getattr(item, "__dict__", {}).values())
        else:
            continue
        parts += len(inner)
        if parts > _MOST_KEY_PARTS:
            raise pickle.UnpicklingError(f"a key of more than {_MOST_KEY_PARTS} parts")
        waiting.extend(inner)


def _container(make: Any) -> _Known:
    """Return a type that is made of the items of another plain container."""

    def made(items: Any = ()) -> Any:
        if not isinstance(items, (tuple, list, set, frozenset, dict)):
            raise TypeError(f"a {make.__name__} of a {type(items).__name__}")
        for item in items:
            _check_key(item)
        return make(items)

    return _Known(made)


def _ordered(items: Any = ()) -> Any:
    result: OrderedDict[Any, Any] = OrderedDict()
    pairs = items.items() if isinstance(items, dict) else items
    if not isinstance(items, (dict, tuple, list)):
        raise TypeError(f"an OrderedDict of a {type(items).__name__}")
    for pair in pairs:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise TypeError("an OrderedDict of what are no pairs")
        _check_key(pair[0])
        result[pair[0]] = pair[1]
    return result


def _of(make: Any, *types: Any) -> _Known:
    """Return a type that is made of arguments of these types."""

    def made(*args: Any) -> Any:
        for arg in args:
            if not isinstance(arg, types):
                raise TypeError(f"a {make.__name__} of a {type(arg).__name__}")
        return make(*args)

    return _Known(made)


def _text_to_bytes(text: Any, encoding: Any = "latin1") -> bytes:
    # How protocol 2 writes bytes.
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("bytes that are not written as latin1")
    return text.encode("latin1")


def _array_of_bytes(data: Any = b"", encoding: Any = "latin1") -> bytearray:
    if isinstance(data, bytes):
        return bytearray(data)
    return bytearray(_text_to_bytes(data, encoding))  # not of a size, which could be any


def _layout_named(name: Any) -> Any:
    if name == "torch.strided":
        return strided
    from tensorplug.sparse.layouts import layout_named  # on first use: saves import time

    return layout_named(str(name).removeprefix("torch."))


def _rebuild_sparse(layout: Any, parts: Any) -> Any:
    from tensorplug.sparse.conversions import of_parts  # on first use: saves import time

    if not isinstance(parts, tuple):
        raise ValueError("a sparse tensor without parts")
    return of_parts(layout, parts)


#: A tensor's class, as a file may name it: to be compared only.
_TENSOR = _Known(lambda *_: None)

_BUILTINS: dict[str, Any] = {
    "set": _container(set),
    "frozenset": _container(frozenset),
    "bytes": _Known(lambda: b""),
    "bytearray": _Known(_array_of_bytes),
    "complex": _of(complex, int, float),
    "slice": _of(slice, int, type(None)),
}

_KNOWN: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor"): _Known(_rebuild),
    ("torch._utils", "_rebuild_tensor_v2"): _Known(_rebuild),
    ("torch._utils", "_rebuild_tensor_v3"): _Known(_rebuild_bytes),
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): _Known(_rebuild_meta),
    ("torch._utils", "_rebuild_sparse_tensor"): _Known(_rebuild_sparse),
    ("torch._utils", "_rebuild_wrapper_subclass"): _Known(_rebuild_wrapper),
    ("torch._utils", "_rebuild_parameter"): _Known(_rebuild_parameter),
    ("torch._utils", "_rebuild_parameter_with_state"): _Known(_rebuild_parameter),
    ("torch._tensor", "_rebuild_from_type_v2"): _Known(_rebuild_with_attributes),
    ("torch", "Tensor"): _TENSOR,
    ("torch", "Size"): _container(Size),
    ("torch", "device"): _of(Device, str, int),
    ("torch.serialization", "_get_layout"): _Known(_layout_named),
    ("torch.storage", "UntypedStorage"): None,
    ("collections", "OrderedDict"): _Known(_ordered),
    ("collections", "Counter"): _container(Counter),
    ("_codecs", "encode"): _Known(_text_to_bytes),
    # Protocol 2 still writes what Python 2 called that module.
    **{(m, name): known for m in ("builtins", "__builtin__") for name, known in _BUILTINS.items()},
    **{("torch", dtype.name): dtype for dtype in (*ALL_DTYPES, *STORED)},
    **{("torch", name): dtype for name, dtype in STORAGES.items()},
}

_added: dict[tuple[str, str], Any] = {}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let :func:`load` read objects of further classes, and call further functions, that you trust.

    Parameters
    ----------
    safe_globals : list of class or callable, or of (class or callable, "module.name")
        What files may name.
    """
    _added.update(_by_name(safe_globals))


def _by_name(safe_globals: list[Any]) -> dict[tuple[str, str], Any]:
    found: dict[tuple[str, str], Any] = {}
    for item in safe_globals:
        thing, name = item if isinstance(item, tuple) else (item, None)
        if name is None:
            found[thing.__module__, thing.__qualname__] = thing
            torchs = torch_names.name_of(thing)
            if torchs is not None:  # as files name it
                found[torchs] = thing
        else:
            module, _, short = name.rpartition(".")
            found[module, short] = thing
    return found


def get_safe_globals() -> list[Any]:
    """Return what :func:`add_safe_globals` added."""
    return list({id(thing): thing for thing in _added.values()}.values())


def clear_safe_globals() -> None:
    """Take back what :func:`add_safe_globals` added."""
    _added.clear()


class safe_globals(OwnContext):
    """Do as :func:`add_safe_globals` within a ``with`` block.

    Parameters
    ----------
    safe_globals : list
        What files may name there.

    Examples
    --------
    >>> import fractions
    >>> import tensorplug as tp
    >>> with tp.serialization.safe_globals([fractions.Fraction]):
    ...     tp.serialization.get_safe_globals()
    [<class 'fractions.Fraction'>]
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self._safe_globals = safe_globals

    def _steps(self) -> tuple[Steps, Steps]:
        before = partial(_added.update, dict(_added))
        return (partial(_added.update, _by_name(self._safe_globals)),), (_added.clear, before)


# --- the machine ------------------------------------------------------------------------------


def _checked(code: bytes, kind: type | tuple[type, ...], key_step: int | None = None) -> Any:
    """Return an operation that puts items into what must be of a kind.

    Each `key_step`-th item is a key, which will be hashed: in a dict every other one.
    """
    several = code in (pickle.SETITEMS, pickle.APPENDS, pickle.ADDITEMS)

    def operation(self: Any) -> None:
        if several:
            target, items = self.metastack[-1][-1], self.stack
        else:
            count = 2 if code == pickle.SETITEM else 1
            target, items = self.stack[-count - 1], self.stack[-count:]
        if not isinstance(target, kind) and not self._may_hold(type(target)):
            raise self._refused(f"puts items into a {type(target).__name__}")
        if key_step is not None:
            for key in items[::key_step]:
                _check_key(key)
        self._usual(code)

    return operation


class Unpickler(pickle._Unpickler):
    """Reads a pickle that may name only what is known to be harmless, or was added.

    The operations that change, make or size things are limited to what a pickler writes: others
    could set attributes of, write into, or ask for memory with whatever is on the stack. It is the
    unpickler written in Python, because of the compiled one only the look-up of names can be
    changed.

    Parameters
    ----------
    data : bytes-like or binary file
        The pickle; of a file what follows it stays unread.
    label : str
        What messages call the file.
    find_storage : callable
        Called with what a reference to a memory says; returns it.
    """

    stack: list[Any]  # set by pickle
    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def __init__(
        self,
        data: Any,
        label: str,
        find_storage: Callable[[Any], Any],
        values: KnownValues | None = None,
        reading: dict[str, Any] | None = None,
    ) -> None:
        file = data if hasattr(data, "read") else io.BytesIO(data)
        given: dict[str, Any] = {"encoding": "utf-8", **(reading or {})}
        super().__init__(file, **given)
        self._label = label
        self._find_storage = find_storage
        self._values = values
        self._made: set[type] = set()  # of what functions returned that were added

    def find_class(self, module: str, name: str) -> Any:
        """Return what a name in the file stands for."""
        known = _KNOWN.get((module, name), _MISSING)
        if known is not _MISSING and (self._values is None or module.startswith("torch")):
            return known
        if (module, name) in _added:
            return _added[module, name]
        if self._values is not None:
            value = self._values.find(*modern(module, name), None if known is _MISSING else known)
            if value is not None:
                return value
        if known is not _MISSING:
            return known
        raise self._refused(
            f"names {module}.{name}, which is not on the list of what a file may name: reading it "
            "could run any code"
        )

    def persistent_load(self, pid: Any) -> Any:
        """Return the memory that a reference in the pickle means."""
        return self._find_storage(pid)

    def _refused(self, what: str) -> pickle.UnpicklingError:
        return Refused(f"load(): {self._label} {what}")

    def _trusts(self, cls: Any) -> bool:
        return any([cls is thing for thing in _added.values()])

    def _may_hold(self, cls: type) -> bool:
        """Return whether objects of a class may be filled with items and attributes."""
        if cls in self._made or (self._values is not None and known_values.may_hold(cls)):
            return True
        added = [thing for thing in _added.values() if isinstance(thing, type)]
        return issubclass(cls, tuple(added))  # a dtype's class derives from the one that was added

    def _instantiate(self, cls: Any, arguments: Any) -> None:
        if not (isinstance(cls, _Known) or self._trusts(cls)):
            raise self._refused(f"makes an object of {reprlib.repr(cls)}")
        self.append(cls(*arguments))  # type: ignore[attr-defined]

    def _usual(self, code: bytes) -> None:
        usual: Any = pickle._Unpickler.dispatch[code[0]]
        usual(self)

    def _build(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        setter = None if self._values is None else self._values.setter(target)
        if type(target) is OrderedDict and isinstance(state, dict):
            target.__dict__.update(state)
        elif setter is not None:
            setter(target, state)
        elif self._may_hold(type(target)):
            self.stack.append(state)
            self._usual(pickle.BUILD)
        else:
            raise self._refused(
                f"sets the state of a {type(target).__name__}, which is not allowed"
            )

    def _new_object(self) -> None:
        self._make({})

    def _new_object_by_keywords(self) -> None:
        self._make(self.stack.pop())

    def _make(self, keywords: Any) -> None:
        arguments = self.stack.pop()
        cls = self.stack.pop()
        if self._trusts(cls):
            self.append(cls.__new__(cls, *arguments, **keywords))  # type: ignore[attr-defined]
            return
        maker = None if self._values is None else self._values.maker(cls)
        if isinstance(cls, _Known):
            maker = cls
        if isinstance(arguments, tuple) and not keywords and maker is not None:
            self.append(maker(*arguments))  # type: ignore[attr-defined]
        elif self._values is not None and known_values.may_make(cls):
            for argument in arguments:
                _check_key(argument)
            self.append(known_values.make(cls, arguments, keywords))  # type: ignore[attr-defined]
        else:
            raise self._refused(f"makes an object of {reprlib.repr(cls)}")

    def _call(self) -> None:
        arguments, function = self.stack[-1], self.stack[-2]
        if isinstance(arguments, tuple):
            maker = None if self._values is None else self._values.maker(function)
            if maker is not None:
                for argument in arguments:
                    _check_key(argument)
                self.stack[-2] = maker
            if maker or isinstance(function, _Known) or self._trusts(function):
                self._usual(pickle.REDUCE)
                if self._trusts(function):
                    self._made.add(type(self.stack[-1]))
                return
        raise self._refused(f"calls a {type(function).__name__}, which is not allowed")

    def _dict(self) -> None:
        for key in self.stack[::2]:
            _check_key(key)
        self._usual(pickle.DICT)

    def _frozenset(self) -> None:
        for key in self.stack:
            _check_key(key)
        self._usual(pickle.FROZENSET)

    def _bytearray(self) -> None:
        size = int.from_bytes(self.read(8), "little")  # type: ignore[attr-defined]
        data = self.read(size)  # type: ignore[attr-defined]
        if len(data) < size:
            raise EOFError("a bytearray ends early")
        self.append(bytearray(data))  # type: ignore[attr-defined]

    def _extension(self) -> None:
        raise self._refused("uses extension codes")

    dispatch[pickle.BUILD[0]] = _build
    dispatch[pickle.NEWOBJ[0]] = _new_object
    dispatch[pickle.NEWOBJ_EX[0]] = _new_object_by_keywords
    dispatch[pickle.REDUCE[0]] = _call
    dispatch[pickle.APPEND[0]] = _checked(pickle.APPEND, (list, deque))
    dispatch[pickle.APPENDS[0]] = _checked(pickle.APPENDS, (list, deque))
    dispatch[pickle.SETITEM[0]] = _checked(pickle.SETITEM, dict, 2)
    dispatch[pickle.SETITEMS[0]] = _checked(pickle.SETITEMS, dict, 2)
    dispatch[pickle.ADDITEMS[0]] = _checked(pickle.ADDITEMS, set, 1)
    dispatch[pickle.DICT[0]] = _dict
    dispatch[pickle.FROZENSET[0]] = _frozenset
    dispatch[pickle.BYTEARRAY8[0]] = _bytearray
    for _code in (pickle.EXT1, pickle.EXT2, pickle.EXT4):
        dispatch[_code[0]] = _extension


def _unknown(names: Any, values: KnownValues | None) -> list[tuple[str, str]]:
    """Return the names that a file may not have."""
    return [
        name
        for name in names
        if name not in _KNOWN
        and name not in _added
        and (values is None or values.find(*modern(*name)) is None)
    ]


def names_of_storages(module: str, name: str) -> Any:
    """Return what a reference to a memory may name: the dtype of its elements, or None."""
    known = _KNOWN.get((module, name), NOTHING)
    return known if isinstance(known, DType | None) else NOTHING


def explained(error: Refused, data: Any, source: str, values: KnownValues | None) -> Refused:
    """Return an error that says as well by which call the file can be read."""
    scanner = Scanner(data)
    try:
        scanner.load()
    except Exception:
        return error  # the file is damaged, too
    names = _unknown(scanner.names, values)
    others = None if values is not None else _unknown(names, KnownValues())
    listed = ", ".join([".".join(name) for name in names])
    return Refused(
        f"{error}. {f'It names {listed}. ' if len(names) > 1 else ''}If you trust whoever wrote it, "
        f"any of these lines reads it (docs/files.md says what each allows):\n"
        f"    {advice(names, others, source)}"
    )


def unsafe_names(data: Any) -> list[str]:
    """Return what a pickle names and :func:`load` would refuse."""
    scanner = Scanner(data)
    scanner.load()
    return sorted([".".join(name) for name in _unknown(scanner.names, None)])


def unrestricted(
    pickle_module: Any, data: Any, find_storage: Callable[[Any], Any], reading: dict[str, Any]
) -> Any:
    """Return what a pickle makes as Python's unpickler reads it: it may run anything.

    Parameters
    ----------
    pickle_module : module
        Whose ``Unpickler`` reads it: ``pickle``, or another that has one.
    data : bytes-like
        The pickle.
    find_storage : callable
        Called with what a reference to a memory says; returns it.
    reading : dict
        Arguments of the ``Unpickler``.
    """

    class Reader(pickle_module.Unpickler):  # type: ignore[misc]
        def find_class(self, module: str, name: str) -> Any:
            if module.partition(".")[0] == "torch":
                if (module, name) in _KNOWN:
                    return _KNOWN[module, name]
                if (module, name) == ("torch._C", "_VariableFunctionsClass"):
                    return _Functions
                ours = torch_names.find(module, name)
                if ours is not None:
                    return ours
            return super().find_class(module, name)

        def persistent_load(self, pid: Any) -> Any:
            return find_storage(pid)

    return Reader(io.BytesIO(data), **{"encoding": "utf-8"} | reading).load()


class _FunctionsType(type):
    def __getattr__(cls, name: str) -> Any:
        found = torch_names.find("torch", name)
        if found is None:
            raise AttributeError(f"tensorplug has no counterpart of torch.{name}")
        return found


class _Functions(metaclass=_FunctionsType):
    """Stands for the class whose attributes torch's functions are in pickles."""
