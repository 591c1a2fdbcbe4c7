"""The dictionaries of ``torch.utils.weak``."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any, Self


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary whose keys are objects themselves, not what they equal, as long as they live.

    Examples
    --------
    >>> import tensorplug as tp
    >>> of_tensors, x = WeakIdKeyDictionary(), tp.ones(2)
    >>> of_tensors[x] = "x"
    >>> x in of_tensors, tp.ones(2) in of_tensors
    (True, False)
    >>> del x
    >>> len(of_tensors)
    0
    """

    def __init__(self, dict: Any = None) -> None:  # torch's name
        self._items: dict[int, tuple[Any, Any]] = {}
        self.update(dict or {})

    def __setitem__(self, key: Any, value: Any) -> None:
        number, items = id(key), self._items
        self._items[number] = weakref.ref(key, lambda _: items.pop(number, None)), value

    def __getitem__(self, key: Any) -> Any:
        return self._found(key)[1]

    def __delitem__(self, key: Any) -> None:
        self._found(key)
        del self._items[id(key)]

    def _found(self, key: Any) -> tuple[Any, Any]:
        try:
            return self._items[id(key)]
        except KeyError:
            weakref.ref(key)  # raises TypeError of what could be no key
            raise KeyError(key) from None

    def __contains__(self, key: object) -> bool:
        return id(key) in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter([key for key, _ in self._living()])

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def _living(self) -> list[tuple[Any, Any]]:
        """Return keys and values, taken at once: other threads may drop keys meanwhile."""
        pairs = [(ref(), value) for ref, value in list(self._items.values())]
        return [(key, value) for key, value in pairs if key is not None]

    def keyrefs(self) -> list[Any]:
        """Return the weak references to the keys, some of which may be dead by the time of a look."""
        return [ref for ref, _ in list(self._items.values())]

    def copy(self) -> Self:
        """Return a dictionary of the same keys and values."""
        return self._of(self._living())

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._of([(key, deepcopy(value, memo)) for key, value in self._living()])

    def __or__(self, other: Any) -> Self:
        if not isinstance(other, Mapping):
            return NotImplemented
        return self._of([*self._living(), *other.items()])

    def __ror__(self, other: Any) -> Self:
        if not isinstance(other, Mapping):
            return NotImplemented
        return self._of([*other.items(), *self._living()])

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def _of(self, pairs: list[tuple[Any, Any]]) -> Self:
        made = type(self)()
        for key, value in pairs:
            made[key] = value
        return made
