"""Containers of modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain, groupby
from typing import Any, Self, cast, overload

from ..module import Module, framed, indent


def position(index: Any, length: int) -> int:
    """Return an index counted from the front; raise IndexError if it is out of range."""
    position: int = index.__index__() if hasattr(index, "__index__") else _not_an_index(index)
    if not -length <= position < length:
        raise IndexError(f"index {position} is out of range")
    return position % length


def _not_an_index(index: Any) -> int:
    raise TypeError(f"'{type(index).__name__}' object cannot be interpreted as an integer")


class _Numbered(Module):
    """Modules under the names ``"0"``, ``"1"`` and so on."""

    def _renumber(self, modules: Iterable[Module | None]) -> None:
        self._modules.clear()
        self._modules.update((str(i), module) for i, module in enumerate(modules))

    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @overload
    def __getitem__(self, index: int) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._sliced(index)
        return self._modules[str(position(index, len(self)))]

    def _sliced(self, index: slice) -> Self:
        raise NotImplementedError

    def __setitem__(self, index: int, module: Module) -> None:
        self.add_module(str(position(index, len(self))), module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self._modules.values())
        if isinstance(index, slice):
            del modules[index]
        else:
            del modules[position(index, len(modules))]
        self._renumber(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __contains__(self, module: object) -> bool:
        return any(module is member for member in self._modules.values())

    def append(self, module: Module) -> Self:
        """Add a module at the end; return the container."""
        self.add_module(str(len(self)), module)
        return self

    def _insert(self, index: int, module: Module) -> None:
        if not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)

    def pop(self, key: int | slice) -> Any:
        """Remove a module, or a slice of them, and return it."""
        removed = self[key]
        del self[key]
        return removed


class Sequential(_Numbered):
    """Modules that run one after the other, each on what the one before returned.

    Parameters
    ----------
    *args : Module, or one dict of str to Module
        The modules; those of a dict keep their names.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Sequential(tp.nn.Linear(2, 3), tp.nn.Identity())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): Identity()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def _name_at(self, index: Any) -> str:
        return list(self._modules)[position(index, len(self))]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._sliced(index)
        return self._modules[self._name_at(index)]

    def _sliced(self, index: slice) -> Self:
        return type(self)(dict(list(self._modules.items())[index]))

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        if isinstance(index, slice):
            for name in names[index]:
                delattr(self, name)
        else:
            delattr(self, self._name_at(index))
        self._renumber(list(self._modules.values()))  # those with names too, as in torch

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *_sequential(other, "add"))

    def __iadd__(self, other: Any) -> Self:
        for module in list(_sequential(other, "add")):
            self.append(module)
        return self

    def __mul__(self, other: Any) -> Sequential:
        return Sequential(*(list(self) * _times(self, other)))

    __rmul__ = __mul__

    def __imul__(self, other: Any) -> Self:
        modules = list(self)
        for _ in range(_times(self, other) - 1):
            for module in modules:
                self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the one at `index`; return the container.

        Raises
        ------
        IndexError
            If `index` is out of range.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        length = len(self)
        if not -length <= index <= length:
            raise IndexError(f"Index out of range: {index}")
        self._insert(index + length if index < 0 else index, module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add modules at the end; return the container."""
        for module in list(sequential):
            self.append(module)
        return self

    def forward(self, input: Any) -> Any:
        """Return the last module's output."""
        for module in self._modules.values():
            input = cast(Module, module)(input)
        return input


def _sequential(other: Any, operator: str) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"{operator} operator supports only objects of Sequential class, but {type(other)} is "
            "given."
        )
    return other


def _times(container: Sequential, other: Any) -> int:
    if not isinstance(other, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(container)} and {type(other)}")
    if other <= 0:
        raise ValueError(f"Non-positive multiplication factor {other} for {type(container)}")
    return other


class ModuleList(_Numbered):
    """A list of modules, whose parameters are part of the module that holds it.

    Parameters
    ----------
    modules : iterable of Module, optional
        The modules.

    Examples
    --------
    >>> import tensorplug as tp
    >>> ModuleList([tp.nn.Linear(2, 2) for _ in range(3)])
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _sliced(self, index: slice) -> Self:
        return type(self)(list(self._modules.values())[index])  # type: ignore[arg-type]

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Put a module before the one at `index`."""
        self._insert(index, module)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end; return the list.

        Raises
        ------
        TypeError
            If `modules` cannot be iterated, or holds something else.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        below = []
        numbered = enumerate(repr(module) for module in self)
        for text, run in groupby(numbered, key=lambda item: item[1]):
            numbers = [number for number, _ in run]
            if len(numbers) == 1:
                below.append(f"({numbers[0]}): {indent(text, 2)}")
            else:
                below.append(f"({numbers[0]}-{numbers[-1]}): {len(numbers)} x {indent(text, 2)}")
        return framed(self._get_name(), [], below)


class ModuleDict(Module):
    """A dictionary of modules, whose parameters are part of the module that holds it.

    Parameters
    ----------
    modules : mapping of str to Module, or iterable of pairs, optional
        The modules.

    Examples
    --------
    >>> import tensorplug as tp
    >>> ModuleDict({"encode": tp.nn.Linear(4, 2)})["encode"]
    Linear(in_features=4, out_features=2, bias=True)
    """

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove a module and return it."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Any]:
        """Return pairs of name and module."""
        return self._modules.items()

    def values(self) -> ValuesView[Any]:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules; those of known names are replaced."""
        for key, module in pairs(modules, "ModuleDict"):
            self[key] = module


def pairs(entries: Any, name: str) -> list[tuple[str, Any]]:
    """Return a mapping's items, or checked pairs.

    Raises
    ------
    TypeError
        If `entries` or one of its elements cannot be iterated.
    ValueError
        If an element is no pair.
    """
    if not isinstance(entries, Iterable):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got "
            f"{type(entries).__name__}"
        )
    if isinstance(entries, Mapping) or (hasattr(entries, "keys") and hasattr(entries, "items")):
        mapping: Any = entries
        return list(mapping.items())
    checked = []
    for i, entry in enumerate(entries):
        if not isinstance(entry, Iterable):
            raise TypeError(
                f"{name} update sequence element #{i} should be Iterable; is {type(entry).__name__}"
            )
        pair = list(entry)
        if len(pair) != 2:
            raise ValueError(
                f"{name} update sequence element #{i} has length {len(pair)}; 2 is required"
            )
        checked.append((pair[0], pair[1]))
    return checked
