"""Reading objects: memories by key, and a pickle that may name only harmless things."""

from __future__ import annotations

import io
import pickle
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tensorplug.core import creation, host
from tensorplug.core.devices import CPU, Device
from tensorplug.core.dtypes import ALL_DTYPES, DType, uint8
from tensorplug.core.errors import DeviceNotAvailableError
from tensorplug.core.meta import empty_meta
from tensorplug.core.shapes import Size

from .archive import FileFormatError, Reader, opened_for_reading
from .names import STORAGES

MapLocation = Callable[[Any, str], Any] | Device | str | Mapping[str, Any] | None


def load(
    f: Any,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
) -> Any:
    """Return the object that :func:`save` or ``torch.save`` wrote to a file.

    Parameters
    ----------
    f : path or file object
        Where from.
    map_location : Device, str, mapping or callable, optional
        Where tensors go instead of the device that they were saved from: one device for all, a
        mapping from device to device, or ``f(storage, device) -> storage`` as in torch, where None
        leaves the choice to the file.
    pickle_module, mmap
        Accepted for compatibility.
    weights_only : bool, optional
        By default, names in the file other than those of tensors, plain containers and what
        :func:`add_safe_globals` added are refused, so that no code of the file's author runs. False
        lifts that: only for files that you trust as you trust a program.

    Raises
    ------
    FileFormatError
        If the file is damaged or of another format.
    pickle.UnpicklingError
        If it names something that is not allowed.
    DeviceNotAvailableError
        If a tensor was saved from a device that is not there; `map_location` helps.

    Examples
    --------
    >>> import io
    >>> import tensorplug as tp
    >>> file = io.BytesIO()
    >>> tp.save([tp.zeros(2), "text"], file)
    >>> _ = file.seek(0)
    >>> tp.load(file)
    [tensor([0., 0.]), 'text']
    """
    with opened_for_reading(f) as (file, label):
        reader = Reader(file, label)
        unpickler = _Unpickler(reader, map_location, weights_only is not False, label)
        try:
            return unpickler.load()
        except (FileFormatError, DeviceNotAvailableError, pickle.UnpicklingError):
            raise
        except (EOFError, IndexError, KeyError, ValueError, TypeError, AttributeError) as error:
            if weights_only is False or error is unpickler.users_error:
                raise
            raise FileFormatError(
                f"load(): {label} is damaged: its data.pkl makes no sense ({error})"
            ) from error


# --- memories ---------------------------------------------------------------------------------


class _Storage:
    """The bytes of one memory; what a map_location function is called with."""

    def __init__(self, memory: bytearray, swapped: bool, dtype: DType | None) -> None:
        self._memory = memory
        self._swapped = swapped
        self._dtype = dtype
        self._typed: dict[DType, Any] = {}
        self.device = CPU

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return len(self._memory)

    def to(self, device: Any) -> _Storage:
        """Return the storage, to be put on another device."""
        self.device = Device(device)
        return self

    def cpu(self) -> _Storage:
        """Return the storage, to stay on the host."""
        return self.to(CPU)

    def typed(self, dtype: DType | None) -> Any:
        """Return a 1-d tensor over the whole memory."""
        chosen = dtype or self._dtype or uint8
        known = self._typed.get(chosen)
        if known is None:
            if not self._memory:
                known = creation.empty_of((0,), chosen, CPU)
            else:
                known = host.from_bytes(self._memory, chosen, self._swapped)
            self._typed[chosen] = known = _placed(known, self.device)
        return known


def _placed(tensor: Any, device: Device) -> Any:
    if device is CPU:
        return tensor
    try:
        return tensor.to(device)
    except DeviceNotAvailableError as error:
        raise DeviceNotAvailableError(
            f"load(): a tensor was saved from {device}. {error}. To load it onto another device, "
            "pass "
            'map_location="cpu"'
        ) from error


def _locate(storage: _Storage, location: str, wanted: MapLocation) -> None:
    """Note on a storage where its tensors are to be."""
    if wanted is None:
        storage.to(location)
    elif isinstance(wanted, (Device, str)):
        storage.to(wanted)
    elif isinstance(wanted, Mapping):
        storage.to(wanted.get(location, location))
    else:
        chosen = wanted(storage, location)
        if chosen is None:
            storage.to(location)
        elif isinstance(chosen, (Device, str)):
            storage.to(chosen)
        elif chosen is not storage:
            raise TypeError(
                f"load(): map_location must return the storage, a device or None, got {chosen!r}"
            )


# --- what names in a file stand for -----------------------------------------------------------


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


def _rebuild(
    storage: Any,
    offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool = False,
    hooks: Any = None,
    dtype: DType | None = None,
    metadata: Any = None,
) -> Any:
    if not isinstance(storage, _Storage):
        raise ValueError("a tensor without a memory")
    tensor = creation.show_memory(storage.typed(dtype), tuple(size), tuple(stride), offset)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_meta(dtype: DType, size: Any, stride: Any, requires_grad: bool) -> Any:
    tensor = empty_meta(tuple(size), dtype)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_parameter(data: Any, requires_grad: bool, hooks: Any, state: Any = None) -> Any:
    from tensorplug.nn.parameter import Parameter

    return Parameter(data, bool(requires_grad))


def _text_to_bytes(text: str, encoding: str = "latin1") -> bytes:
    # How protocol 2 writes bytes.
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


def _array_of_bytes(*args: Any) -> bytearray:
    if args and isinstance(args[0], int):  # a size, which could be any
        raise pickle.UnpicklingError("a bytearray by size")
    return bytearray(*args)


_KNOWN: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): _Known(_rebuild),
    ("torch._utils", "_rebuild_tensor_v3"): _Known(_rebuild),
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): _Known(_rebuild_meta),
    ("torch._utils", "_rebuild_parameter"): _Known(_rebuild_parameter),
    ("torch._utils", "_rebuild_parameter_with_state"): _Known(_rebuild_parameter),
    ("torch", "Size"): _Known(Size),
    ("torch", "device"): _Known(Device),
    ("torch.serialization", "_get_layout"): _Known(str),
    ("torch.storage", "UntypedStorage"): None,
    ("collections", "OrderedDict"): _Known(OrderedDict),
    ("collections", "Counter"): _Known(Counter),
    ("_codecs", "encode"): _Known(_text_to_bytes),
    ("builtins", "set"): _Known(set),
    ("builtins", "frozenset"): _Known(frozenset),
    ("builtins", "bytes"): _Known(lambda: b""),
    ("builtins", "complex"): _Known(complex),
    ("builtins", "bytearray"): _Known(_array_of_bytes),
    ("builtins", "slice"): _Known(slice),
    **{("torch", dtype.name): dtype for dtype in ALL_DTYPES},
    **{("torch", name): dtype for name, dtype in STORAGES.items()},
}
# Protocol 2 still writes what Python 2 called that module.
_KNOWN.update(
    {
        ("__builtin__", name): thing
        for (module, name), thing in _KNOWN.items()
        if module == "builtins"
    }
)

_added: dict[tuple[str, str], Any] = {}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let :func:`load` read objects of further classes, and call further functions, that you trust.

    Parameters
    ----------
    safe_globals : list of class or function, or of (class or function, "module.name")
        What files may name.
    """
    for item in safe_globals:
        thing, name = item if isinstance(item, tuple) else (item, None)
        full = name or f"{thing.__module__}.{thing.__qualname__}"
        module, _, short = full.rpartition(".")
        _added[module, short] = thing


def get_safe_globals() -> list[Any]:
    """Return what :func:`add_safe_globals` added."""
    return list(_added.values())


def clear_safe_globals() -> None:
    """Take back what :func:`add_safe_globals` added."""
    _added.clear()


class _Unpickler(pickle._Unpickler):
    """Reads the pickle of an archive.

    The unpickler written in Python, because of the compiled one only the look-up of names can be
    changed.
    """

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def __init__(
        self, reader: Reader, map_location: MapLocation, restricted: bool, label: str
    ) -> None:
        super().__init__(io.BytesIO(reader.read("data.pkl")), encoding="utf-8")
        self._reader = reader
        self._map_location = map_location
        self._restricted = restricted
        self._label = label
        self._storages: dict[str, _Storage] = {}
        self.users_error: Exception | None = None

    def find_class(self, module: str, name: str) -> Any:
        """Return what a name in the file stands for."""
        try:
            return _KNOWN[module, name]
        except KeyError:
            pass
        if (module, name) in _added:
            return _added[module, name]
        if not self._restricted:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(
            f"load(): {self._label} names {module}.{name}, which is not on the list of what a file "
            "may "
            "name: reading it could run any code. If you trust the class, pass it to "
            "tp.serialization.add_safe_globals([...]); if you trust the file as you would a "
            "program, pass "
            "weights_only=False"
        )

    def persistent_load(self, pid: Any) -> Any:
        """Return the memory that a reference in the pickle means."""
        if not (isinstance(pid, tuple) and len(pid) == 5 and pid[0] == "storage"):
            raise FileFormatError(f"load(): {self._label} has an unknown reference {pid!r}")
        _, dtype, key, location, count = pid
        known = self._storages.get(key)
        if known is None:
            if "/" in key or not isinstance(location, str):
                raise FileFormatError(f"load(): {self._label} has an unknown reference {pid!r}")
            memory = self._reader.read(f"data/{key}")
            expected = count * (1 if dtype is None else dtype.itemsize)
            if len(memory) < expected:
                raise FileFormatError(
                    f"load(): {self._label} is damaged: memory {key} has {len(memory)} bytes "
                    "instead of "
                    f"{expected}"
                )
            del memory[expected:]
            known = _Storage(memory, self._reader.swapped, dtype)
            try:
                _locate(known, location, self._map_location)
            except Exception as error:
                self.users_error = error
                raise
            self._storages[key] = known
        return known

    # The operations below could be turned against a restricted reader: they set attributes of, or
    # make instances of, whatever is on the stack.

    def _usual(self, code: bytes) -> None:
        usual: Any = pickle._Unpickler.dispatch[code[0]]
        usual(self)

    def _build(self) -> None:
        state = self.stack.pop()  # type: ignore[attr-defined]
        target = self.stack[-1]  # type: ignore[attr-defined]
        if isinstance(target, OrderedDict) and isinstance(state, dict):
            target.__dict__.update(state)
        elif not self._restricted or type(target) in _added.values():
            self.stack.append(state)  # type: ignore[attr-defined]
            self._usual(pickle.BUILD)
        else:
            raise pickle.UnpicklingError(
                f"load(): {self._label} sets the state of a {type(target).__name__}, which is not "
                "allowed"
            )

    def _extension(self) -> None:
        raise pickle.UnpicklingError(f"load(): {self._label} uses extension codes")

    def _new_object(self) -> None:
        if not self._restricted:
            self._usual(pickle.NEWOBJ)
            return
        arguments = self.stack.pop()  # type: ignore[attr-defined]
        cls = self.stack.pop()  # type: ignore[attr-defined]
        if isinstance(cls, _Known):
            self.append(cls(*arguments))  # type: ignore[attr-defined]
        elif cls in _added.values():
            self.append(cls.__new__(cls, *arguments))  # type: ignore[attr-defined]
        else:
            raise pickle.UnpicklingError(f"load(): {self._label} makes an object of {cls!r}")

    dispatch[pickle.BUILD[0]] = _build
    dispatch[pickle.NEWOBJ[0]] = _new_object
    for _code in (pickle.EXT1, pickle.EXT2, pickle.EXT4):
        dispatch[_code[0]] = _extension
