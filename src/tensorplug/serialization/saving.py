"""Writing objects: a pickle that refers to memories by key."""

from __future__ import annotations

import codecs
import io
import pickle
import types
from collections import OrderedDict
from typing import Any

from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType
from tensorplug.core.device.generator import Generator
from tensorplug.core.tensor import host_memory, wrappers
from tensorplug.core.tensor.layout import layout, strided
from tensorplug.core.tensor.shapes import Size
from tensorplug.core.tensor.storages import UntypedStorage
from tensorplug.core.tensor.tensor import Tensor
from tensorplug.core.tensor.typed_storages import TypedStorage

from . import legacy, torch_names
from .archive import Writer, opened_for_writing
from .names import (
    BYTES,
    DEVICE,
    GENERATOR,
    LAYOUT,
    REBUILD_BYTES,
    REBUILD_META,
    REBUILD_PARAMETER,
    REBUILD_PARAMETER_WITH_STATE,
    REBUILD_SPARSE,
    REBUILD_TENSOR,
    REBUILD_WITH_ATTRIBUTES,
    REBUILD_WRAPPER,
    SIZE,
    STORAGE_OF,
    TENSOR,
    Global,
)
from .settings import skips_data

_PROTOCOL = 2  # the one that torch's restricted reader takes


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = _PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write an object to a file that :func:`load` and ``torch.load`` read.

    Parameters
    ----------
    obj : object
        Tensors, parameters, state dicts, and nested dicts, lists and plain values of them. Objects
        of other classes are pickled by reference to their class; :func:`load` reads those whose
        classes were passed to :func:`add_safe_globals`.
    f : path or file object
        Where to. A file appears under its path when it is complete, so an interrupted save leaves
        the old one as it was.
    pickle_module
        Accepted for compatibility.
    pickle_protocol : int
        From 2 on; ``torch.load(weights_only=True)`` reads 2 alone.
    _use_new_zipfile_serialization : bool
        False writes the format of torch before 1.6, of which a file object may hold several objects,
        one after another.

    Notes
    -----
    Tensors over the same memory share it again after loading. The memory is written whole, even if
    a tensor shows a small part of it: save ``tensor.clone()`` then.

    Examples
    --------
    >>> import io
    >>> import tensorplug as tp
    >>> file = io.BytesIO()
    >>> tp.save({"w": tp.tensor([1.0, 2.0])}, file)
    >>> _ = file.seek(0)
    >>> tp.load(file)
    {'w': tensor([1., 2.])}
    """
    if skips_data() and not _use_new_zipfile_serialization:
        raise RuntimeError(
            "save(): Cannot use skip_data with _use_new_zipfile_serialization=False, the format of torch "
            "before 1.6"
        )
    with opened_for_writing(f) as file:
        buffer = io.BytesIO()
        protocol = max(pickle_protocol, _PROTOCOL)
        pickler = _Pickler(buffer, protocol, not _use_new_zipfile_serialization)
        pickler.dump(obj)
        if not _use_new_zipfile_serialization:
            legacy.write(file, buffer.getbuffer(), pickler.counted(), protocol)
            return
        with Writer(file) as writer:
            writer.write("data.pkl", buffer.getbuffer())
            for key, memory in enumerate(pickler.memories):
                writer.write(f"data/{key}", memory)


class _Storage:
    """A reference to a memory, for the pickle."""

    __slots__ = ("identity",)

    def __init__(self, *identity: Any) -> None:
        self.identity = identity


class _Pickler(pickle._Pickler):
    """Pickles tensors under torch's names; collects their memories.

    The pickler written in Python, because the compiled one writes no name whose module is not
    there.
    """

    def __init__(self, file: Any, protocol: int, is_legacy: bool = False) -> None:
        super().__init__(file, protocol)
        self.memories: list[Any] = []
        self._counts: list[int] = []
        # The old format says of each memory also of which larger one it is a part: of none.
        self._whole: tuple[None, ...] = (None,) if is_legacy else ()
        self._keys: dict[tuple[int, str], str] = {}
        self._owners: list[Any] = []  # kept alive, for their ids are keys
        self._types: dict[Any, DType] = {}
        self._copies: dict[Any, Any] = {}  # of memories of devices

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, (TypedStorage, UntypedStorage)):
            untyped = obj.untyped()
            elements = untyped._elements
            dtype = obj.dtype if isinstance(obj, TypedStorage) else None
            if dtype is not None:
                if elements.dtype is not dtype:
                    elements = untyped._tensor(dtype)
                self._check_type(elements)
            owner, memory, _, _ = host_memory.memory_of(elements, self._copies)
            return self._storage(owner, memory, dtype, str(obj.device)).identity
        return obj.identity if type(obj) is _Storage else None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, (DType, Global)) or _is_named(obj):
            return "a name"
        if isinstance(obj, Device):
            return DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, layout):
            return LAYOUT, (f"torch.{obj.name}",)
        if isinstance(obj, Size):
            return SIZE, (tuple(obj),)
        if type(obj) is bytes and not obj:  # protocol 2 would name the type, which torch refuses
            return codecs.encode, ("", "latin1")
        if isinstance(obj, Generator):
            return GENERATOR, (obj.device,), (obj.initial_seed(), None, obj.get_state())
        if isinstance(obj, OrderedDict) and type(obj).__module__.startswith("tensorplug."):
            # A module's state dict, with its metadata as an attribute, is a plain one to torch.
            state = {key: value for key, value in vars(obj).items() if value is not None}
            return OrderedDict, (), state or None, None, iter(obj.items())
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        known = Global("torch", obj.name) if isinstance(obj, DType) else obj
        if not isinstance(known, Global):
            names = torch_names.name_of(obj)
            known = obj if names is None else Global(*names)
        if not isinstance(known, Global):
            super().save_global(obj, name)  # type: ignore[misc]
            return
        self.write(pickle.GLOBAL + f"{known.module}\n{known.name}\n".encode())  # type: ignore[attr-defined]
        self.memoize(obj)  # type: ignore[attr-defined]

    def _reduce_tensor(self, tensor: Any) -> Any:
        hooks: OrderedDict[Any, Any] = OrderedDict()
        state = tensor.__getstate__()
        if type(state) is dict:
            state = dict(state)
        if isinstance(tensor, _parameter_class()):
            parts = (tensor.detach(), tensor.requires_grad, hooks)
            if state:
                return REBUILD_PARAMETER_WITH_STATE, (*parts, state)
            return REBUILD_PARAMETER, parts
        make, arguments = self._rebuilding(tensor, hooks)
        kind = type(tensor)
        own = not kind.__module__.startswith("tensorplug.")
        if state or own:
            known = kind if own else TENSOR
            return REBUILD_WITH_ATTRIBUTES, (make, known, arguments, state)
        return make, arguments

    def _rebuilding(self, tensor: Any, hooks: Any) -> Any:
        """Return the function, by name, that makes a tensor again, and its arguments."""
        if tensor.layout is not strided:
            return REBUILD_SPARSE, (tensor.layout, tensor.detach()._saved())
        described = wrappers.description(tensor)
        if described is not None:
            return REBUILD_WRAPPER, described
        shape = tuple(tensor.shape)
        if tensor.is_meta:
            return REBUILD_META, (tensor.dtype, shape, tensor.stride(), tensor.requires_grad)
        self._check_type(tensor)
        owner, memory, offset, strides = host_memory.memory_of(tensor, self._copies)
        storage = self._storage(owner, memory, tensor.dtype, str(tensor.device))
        shown = (storage, offset, shape, strides, tensor.requires_grad, hooks)
        if tensor.dtype in STORAGE_OF:
            return REBUILD_TENSOR, shown
        return REBUILD_BYTES, (*shown, tensor.dtype, {})

    def _check_type(self, elements: Any) -> None:
        """Refuse memory that is shown as numbers of two kinds: read again, it would be two."""
        if not elements.numel():
            return
        place, owner = host_memory.place_of(elements)
        self._owners.append(owner)
        known = self._types.setdefault(place, elements.dtype)
        if known is not elements.dtype:
            raise RuntimeError(
                "save(): Cannot save multiple tensors or storages that view the same data as different "
                f"types, {known.name} and {elements.dtype.name}; save one of them, and view it again when "
                "it is read"
            )

    def _storage(self, owner: Any, memory: Any, dtype: DType | None, location: str) -> _Storage:
        identity = (id(owner), location)
        key = self._keys.get(identity)
        if key is None:
            key = self._keys[identity] = str(len(self.memories))
            self.memories.append(memory)
            self._owners.append(owner)
        size = len(memory)
        name = None if dtype is None else STORAGE_OF.get(dtype)
        if name is None or dtype is None:
            named, count = BYTES, size
        else:
            named, count = Global("torch", name), size // dtype.itemsize
        if int(key) == len(self._counts):
            self._counts.append(count)
        return _Storage("storage", named, key, location, count, *self._whole)

    def counted(self) -> list[tuple[Any, int]]:
        """Return the memories, each with the number of its elements."""
        return list(zip(self.memories, self._counts, strict=True))


def _is_named(obj: Any) -> bool:
    return isinstance(obj, types.FunctionType) and torch_names.name_of(obj) is not None


def _parameter_class() -> Any:
    from tensorplug.nn.parameter import Parameter  # on first use: saves import time

    return Parameter
