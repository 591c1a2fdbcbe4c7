"""NumPy's arrays, scalars, dtypes and generators in pickles, checked before NumPy is handed them.

NumPy trusts what it unpickles; these functions take what NumPy writes and nothing else. A dtype with
fields, or an array of objects, is read as well as the plain ones.
"""

from __future__ import annotations

import importlib
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

_ORDERS = ("<", ">", "|", "=")
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


def _refuse(what: str) -> Any:
    raise pickle.UnpicklingError(f"{what} that NumPy does not write")


def _dtype(name: Any, align: Any = False, copy: Any = True) -> Any:
    if not (isinstance(name, str) and len(name) < 32):
        _refuse("a dtype")
    return np.dtype(name, align=bool(align), copy=True)


def _set_dtype(target: Any, state: Any) -> None:
    """Give a dtype its byte order and fields, checked, as its ``__setstate__`` takes them."""
    match state:
        case (int(), str(order), None, None, None, int(), int(), int(), *rest) if order in _ORDERS:
            if target.kind == "O":
                return
            match rest:
                case []:
                    pass
                case [(None | {}, (bytes(), *counts))] if target.kind in "mM" and all(
                    [type(n) is int and n > 0 for n in counts]
                ):
                    pass
                case _:
                    _refuse("the unit of a dtype")
            for size in state[5:7]:
                if size not in (-1, 1, target.itemsize, target.alignment):
                    _refuse("the size of a dtype")
        case (int(), str(order), None, tuple(names), dict(fields), int(size), int(), int(flags)):
            # flags: that there are no pointers, which the bytes would be taken for
            known = target.kind == "V" and order in _ORDERS and flags in range(256)
            if not known or flags & 7 or set(names) != set(fields):
                _refuse("the fields of a dtype")
            for field in fields.values():
                match field:
                    case (np.dtype() as part, int(start)) if (
                        0 <= start <= start + part.itemsize <= size == target.itemsize
                        and not part.hasobject
                    ):
                        pass
                    case _:
                        _refuse("a field of a dtype")
        case _:
            _refuse("the state of a dtype")
    target.__setstate__(state)


def _shape(value: Any) -> tuple[int, ...]:
    if not (isinstance(value, tuple) and len(value) <= 64):
        _refuse("a shape")
    if not all([type(size) is int and 0 <= size < 1 << 62 for size in value]):
        _refuse("a shape")
    return value


def _empty_array(cls: Any, shape: Any, code: Any) -> Any:
    if cls is not np.ndarray or shape != (0,):
        _refuse("an array")
    return np.empty((0,), np.int8)


def _set_array(target: Any, state: Any) -> None:
    match state:
        case (int(), shape, np.dtype() as dtype, bool() | int(), contents):
            count = math.prod(_shape(shape))
            if isinstance(contents, str):  # of Python 2
                contents = contents.encode("latin1")
            if isinstance(contents, list):
                fits = dtype.kind == "O" and len(contents) == count
            else:
                fits = isinstance(contents, (bytes, bytearray)) and not dtype.hasobject
                fits = fits and len(contents) == count * dtype.itemsize
            if not fits:
                _refuse("the contents of an array")
            target.__setstate__((1, shape, dtype, bool(state[3]), contents))
        case _:
            _refuse("the state of an array")


def _from_buffer(contents: Any, dtype: Any, shape: Any, order: Any, axis: Any = None) -> Any:
    if not (isinstance(contents, (bytes, bytearray)) and isinstance(dtype, np.dtype)):
        _refuse("the contents of an array")
    fits = len(contents) == math.prod(_shape(shape)) * dtype.itemsize
    if order == "K" and isinstance(axis, (tuple, list)):
        fits = fits and sorted(axis) == list(range(len(shape)))
    elif order not in ("C", "F"):
        fits = False
    if not fits or dtype.hasobject:
        _refuse("the contents of an array")
    # Not over the bytes themselves, which others may show.
    array = np.frombuffer(bytearray(contents), dtype)
    if order == "K":
        return array.reshape(shape).transpose(axis)
    return array.reshape(shape, order=order)


def _scalar(dtype: Any, contents: Any = b"") -> Any:
    if not isinstance(dtype, np.dtype) or dtype.hasobject:
        _refuse("a scalar")
    if isinstance(contents, str):
        contents = contents.encode("latin1")
    if not (isinstance(contents, bytes) and len(contents) == dtype.itemsize):
        _refuse("a scalar")
    return np.frombuffer(contents, dtype)[0] if contents else np.zeros((), dtype)[()]


def _masked(cls: Any, base: Any, shape: Any, dtype: Any) -> Any:
    if cls is not np.ma.MaskedArray or base is not np.ndarray or shape != (0,):
        _refuse("a masked array")
    return np.ma.MaskedArray(np.empty(0), np.empty(0, bool))


def _set_masked(target: Any, state: Any) -> None:
    match state:
        case (int(), shape, np.dtype() as dtype, bool() | int() as fortran, data, mask, fill):
            shown, hidden = np.empty(0), np.empty(0)
            _set_array(shown, (1, shape, dtype, fortran, data))
            _set_array(hidden, (1, shape, np.dtype(bool), fortran, mask))
            if fill is not None and not isinstance(fill, (np.generic, np.ndarray)):
                _refuse("a fill value")
            target.__setstate__((1, shape, dtype, bool(fortran), data, mask, fill))
        case _:
            _refuse("the state of a masked array")


def _bit_generator(which: Any = "MT19937") -> Any:
    name = getattr(which, "__name__", which)
    if name not in _GENERATORS:
        _refuse("a bit generator")
    return getattr(np.random, name)()


def _of_bit_generator(kind: str) -> Callable[..., Any]:
    def make(bit_generator: Any = "MT19937", constructor: Any = None) -> Any:
        if not isinstance(bit_generator, np.random.BitGenerator):
            bit_generator = _bit_generator(bit_generator)
        return getattr(np.random, kind)(bit_generator)

    return make


def _numbers(value: Any) -> bool:
    """Return whether a state is numbers and arrays of numbers all through."""
    if isinstance(value, dict):
        return all([isinstance(k, str) and _numbers(v) for k, v in value.items()])
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iuf" and value.size < 10_000
    return isinstance(value, (int, float, str, np.integer, np.floating))


def _set_generator(target: Any, state: Any) -> None:
    # (state, seed sequence) since NumPy 1.24; of a Generator None, its bit generator has one
    seeds = None
    if isinstance(state, tuple) and len(state) == 2:
        state, seeds = state
    if state is None:
        return
    numbers = state.get("state") if isinstance(state, dict) else None
    position = numbers.get("pos", 0) if isinstance(numbers, dict) else -1
    buffered = state.get("buffer_pos", 0) if isinstance(state, dict) else -1
    if not (
        _numbers(state)
        and isinstance(position, (int, np.integer)) and 0 <= position <= 624
        and isinstance(buffered, (int, np.integer)) and 0 <= buffered <= 4
        and isinstance(seeds, np.random.SeedSequence | None)
    ):  # fmt: skip
        _refuse("the state of a generator")
    if seeds is not None:
        target.__setstate__((state, seeds))
    else:
        target.__setstate__(state)


def _seeds(cls: Any, checksum: Any, state: Any = None) -> Any:
    if cls is not np.random.SeedSequence or not isinstance(checksum, int) or state is not None:
        _refuse("a seed sequence")
    return np.random.SeedSequence(0)


def _set_seeds(target: Any, state: Any) -> None:
    match state:
        case (entropy, int(), np.ndarray() as pool, int(size), tuple() as key, *rest):
            given = pool.dtype == np.uint32 and pool.shape == (size,) and not rest
            whole = entropy if isinstance(entropy, (list, tuple)) else [entropy]
            if not (given and all([isinstance(n, (int, type(None))) for n in (*whole, *key)])):
                _refuse("a seed sequence")
            target.__setstate__(state)
        case _:
            _refuse("a seed sequence")


_MAKERS: dict[tuple[str, str], Callable[..., Any] | None] = {
    ("numpy", "ndarray"): None,
    ("numpy.ma", "MaskedArray"): None,
    ("numpy.ma.core", "MaskedArray"): None,
    ("numpy.ma.core", "_mareconstruct"): _masked,
    ("numpy", "dtype"): _dtype,
    **{
        (f"numpy.{core}.{file}", name): make
        for core in ("core", "_core")
        for file, name, make in (
            ("multiarray", "_reconstruct", _empty_array),
            ("multiarray", "scalar", _scalar),
            ("numeric", "_frombuffer", _from_buffer),
        )
    },
    ("numpy.random._pickle", "__randomstate_ctor"): _of_bit_generator("RandomState"),
    ("numpy.random._pickle", "__generator_ctor"): _of_bit_generator("Generator"),
    ("numpy.random._pickle", "__bit_generator_ctor"): _bit_generator,
    ("numpy.random.bit_generator", "SeedSequence"): None,
    ("numpy.random.bit_generator", "__pyx_unpickle_SeedSequence"): _seeds,
    **{(f"numpy.random._{name.lower()}", name): None for name in _GENERATORS},
}

SETTERS: dict[type, Callable[[Any, Any], None]] = {
    np.ma.MaskedArray: _set_masked,
    np.ndarray: _set_array,
    np.dtype: _set_dtype,
    np.random.RandomState: _set_generator,
    np.random.Generator: _set_generator,
    np.random.BitGenerator: _set_generator,
    np.random.SeedSequence: _set_seeds,
}


def find(module: str, name: str) -> tuple[Any, Callable[..., Any] | None] | None:
    """Return what a name of NumPy's is, and what makes such a thing; None if it is not known.

    Examples
    --------
    >>> find("numpy", "ndarray")
    (<class 'numpy.ndarray'>, None)
    >>> find("numpy", "load") is None
    True
    """
    if (module, name) in _MAKERS:
        make = _MAKERS[module, name]
        if make is not None and name != "dtype":
            return make, make
        return getattr(importlib.import_module(module), name), make
    if module in ("numpy", "numpy.dtypes"):  # scalar types and classes of dtypes, as values
        value = getattr(np, name, None) or getattr(np.dtypes, name, None)
        if isinstance(value, type) and issubclass(value, (np.generic, np.dtype)):
            return value, None
    return None
