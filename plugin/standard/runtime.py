"""The runtime of a device made from an array library."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import ml_dtypes
import numpy as np

from tensorplug.core.device.dtypes import ALL_DTYPES, DType, Number, wrap_integer
from tensorplug.core.device.runtime import DeviceRuntime
from tensorplug.core.tensor.shapes import Shape

from .stores import Store, StoredArray, _places, read, row_major, write

# The library's names for our dtypes, where they differ.
_NAMES = {"bool": ("bool", "bool_")}


def native_dtypes(xp: Any) -> dict[DType, Any]:
    """Return the library's dtype object for each of our dtypes that it has.

    The object is the one that the library's arrays carry, which need not be the one in its namespace.
    """
    found = {}
    for dtype in ALL_DTYPES:
        for name in _NAMES.get(dtype.name, (dtype.name,)):
            if hasattr(xp, name):
                try:
                    found[dtype] = xp.zeros((), dtype=getattr(xp, name)).dtype
                except (TypeError, ValueError):  # a name without arrays behind it
                    continue
                break
    # What a library replaces by a narrower one, it does not have.
    kept: list[Any] = []
    for dtype, native in list(found.items()):
        if native in kept:
            del found[dtype]
        kept.append(native)
    return found


def host_dtype(dtype: DType) -> np.dtype[Any]:
    """Return NumPy's dtype for one of ours."""
    return np.dtype(ml_dtypes.bfloat16 if dtype.name == "bfloat16" else dtype.name)


class ArrayApiRuntime(DeviceRuntime):
    """Memory of a library's arrays, behind strides that the library need not have.

    What a library does better than by the standard's functions, a subclass overrides: :meth:`read` and
    :meth:`write` where it has strides, :meth:`synchronize` where work is queued, figures of memory.

    Attributes
    ----------
    xp : module
        The library.
    natives : dict
        The library's dtype for each of ours that the device has.

    Parameters
    ----------
    xp : module
        The library.
    device_type : str
        The device type.
    to_host, from_host : callable
        Carry one of the library's arrays out as a NumPy array, and one in with a given dtype.
    unavailable : callable
        Returns why the library's device cannot be used, or None.
    dtypes : collection of DType, optional
        Those of the library's dtypes that the device has; by default all.
    """

    def __init__(
        self,
        xp: Any,
        device_type: str,
        to_host: Callable[[Any], Any],
        from_host: Callable[[Any, Any], Any],
        unavailable: Callable[[], str | None],
        dtypes: Collection[DType] | None = None,
    ) -> None:
        self.xp = xp
        self.type = device_type
        self.array_type = type(f"{device_type.title()}Array", (StoredArray,), {"__slots__": ()})
        self.natives = {
            dtype: native
            for dtype, native in native_dtypes(xp).items()
            if dtypes is None or dtype in dtypes
        }
        self._ours = {native: dtype for dtype, native in self.natives.items()}
        self.dtypes = tuple(self.natives)
        self.capabilities = frozenset(_capabilities(self.natives))
        self.expected_failures: Mapping[str, str] = {}
        self._out = to_host
        self._in = from_host
        self._unavailable = unavailable

    def unavailable_reason(self) -> str | None:
        """Return why the library's device cannot be used."""
        return self._unavailable()

    def device_name(self, index: int) -> str:
        """Return the library's name and version."""
        return f"{getattr(self.xp, '__name__', self.type)} {getattr(self.xp, '__version__', '')}".strip()

    def quiet(self) -> AbstractContextManager[Any]:
        """Return a context in which a library that computes with NumPy does not warn."""
        return np.errstate(all="ignore")

    # --- the library's arrays ---

    def new(self, array: Any) -> StoredArray:
        """Return one of the library's arrays as the whole of a store of its own."""
        shape = tuple(array.shape)
        dtype = self._ours.get(array.dtype) or self.dtype_of(array)
        made: StoredArray = self.array_type(
            Store(array, dtype), shape, row_major(shape), 0, dtype, True
        )
        return made

    def dtype_of(self, array: Any) -> DType:
        """Return our dtype for that of one of the library's arrays."""
        try:
            return self._ours[array.dtype]
        except KeyError:
            raise TypeError(f"device {self.type!r} has no dtype for {array.dtype!r}") from None

    def read(self, array: StoredArray) -> Any:
        """Return the elements as one of the library's arrays; it must not be written to."""
        if array.dtype is array.store.dtype:
            return read(self.xp, array)
        # Memory seen as another dtype: the standard has no such view, so the host has to do it.
        indices = _places(array.shape, array.strides, array.offset)
        return self._in(self._bits(array)[indices], self.natives[array.dtype])

    def write(self, target: StoredArray, source: Any) -> None:
        """Overwrite the elements with those of one of the library's arrays of the same dtype."""
        if target.dtype is target.store.dtype:
            write(self.xp, target, source)
            return
        flat = self._bits(target)
        flat[_places(target.shape, target.strides, target.offset)] = self._out(source)
        store = target.store
        whole = flat.view(host_dtype(store.dtype)).reshape(tuple(store.array.shape))
        store.array = self._in(whole, self.natives[store.dtype])

    def _bits(self, array: StoredArray) -> np.ndarray[Any, Any]:
        """Return a copy of the store's memory in NumPy, as the array's dtype."""
        held = np.array(self._out(array.store.array), order="C").reshape(-1)
        return held.view(host_dtype(array.dtype))

    # --- what core asks ---

    def dtype(self, array: StoredArray) -> DType:
        """Return the dtype of `array`."""
        return array.dtype

    def strides(self, array: StoredArray) -> Shape:
        """Return the strides of `array` in elements."""
        return array.strides

    def storage_offset(self, array: StoredArray) -> int:
        """Return how many elements of the store lie before `array`."""
        return array.offset

    def data_pointer(self, array: StoredArray) -> int:
        """Return a number that tells stores, and places in them, apart."""
        return id(array.store) + array.offset * array.dtype.itemsize

    def empty(self, shape: Shape, dtype: DType, index: int) -> StoredArray:
        """Return an array of zeros."""
        return self.new(self.xp.zeros(shape, dtype=self.natives[dtype]))

    def scalar(self, value: Number, dtype: DType, index: int) -> StoredArray:
        """Return a 0-d array; integers wrap around as in C."""
        native = host_dtype(dtype)
        with np.errstate(all="ignore"):
            return self.from_host(
                np.asarray(wrap_integer(value, dtype)).astype(native), dtype, index
            )

    def copy_into(self, target: StoredArray, source: StoredArray) -> None:
        """Copy the elements of `source` to those of `target`."""
        self.write(target, self.xp.broadcast_to(self.read(source), target.shape))

    def from_host(self, array: Any, dtype: DType, index: int) -> StoredArray:
        """Carry the contents of a NumPy array in."""
        host = np.array(array, dtype=host_dtype(dtype), order="C", copy=True)
        return self.new(self._in(host, self.natives[dtype]))

    def to_host(self, array: StoredArray) -> Any:
        """Carry the contents out into a NumPy array."""
        host = self._out(self.read(array))
        return np.array(host, dtype=host_dtype(array.dtype), order="C", copy=True)


def _capabilities(natives: Iterable[DType]) -> Iterable[str]:
    names = {dtype.name for dtype in natives}
    yield from ("views", "in_place")
    yield from names & {"float64", "float16", "bfloat16"}
    if {"complex64"} <= names and ("float64" not in names or "complex128" in names):
        yield "complex"
