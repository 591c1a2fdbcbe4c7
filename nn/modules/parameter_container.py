"""Containers of parameters: ParameterList and ParameterDict."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NoReturn, Self

from tensorplug.core import Tensor

from ..module import Module
from ..parameter import Parameter
from .container import pairs, position


def _as_member(value: Any) -> Any:
    """Return a tensor as a parameter; anything else as it is."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    sort = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(map(str, value.shape))
    index = "" if value.device.type == "cpu" else f" ({value.device})"
    return f"{sort} containing: [{value.dtype} of size {size}{index}]"


class _Members(Module):
    """What both containers share: a printed form, and no ``forward``."""

    def _named_values(self) -> Iterable[tuple[str, Any]]:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Return a line for each member."""
        lines = [f"  ({name}): {_described(value)}" for name, value in self._named_values()]
        return "\n".join(lines)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{self._get_name()} should not be called.")


class ParameterList(_Members):
    """A list of parameters; tensors become parameters, other values are kept as they are.

    Parameters
    ----------
    values : iterable, optional
        The members.

    Examples
    --------
    >>> import tensorplug as tp
    >>> ParameterList([tp.zeros(2), tp.zeros(3)])
    ParameterList(
        (0): Parameter containing: [tensorplug.float32 of size 2]
        (1): Parameter containing: [tensorplug.float32 of size 3]
    )
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _named_values(self) -> Iterable[tuple[str, Any]]:
        return [(str(i), value) for i, value in enumerate(self)]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(position(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(position(index, len(self))), _as_member(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def append(self, value: Any) -> Self:
        """Add a member at the end; return the list."""
        setattr(self, str(self._size), _as_member(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add members at the end; return the list.

        Raises
        ------
        TypeError
            If `values` is a single tensor or cannot be iterated.
        """
        given: Any = values
        if isinstance(given, Tensor) or not isinstance(given, Iterable):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self


class ParameterDict(_Members):
    """A dictionary of parameters; tensors become parameters, other values are kept as they are.

    Parameters
    ----------
    parameters : mapping of str to Tensor, or iterable of pairs, optional
        The members.

    Examples
    --------
    >>> import tensorplug as tp
    >>> members = ParameterDict({"left": tp.zeros(2)})
    >>> members["right"] = tp.zeros(3)
    >>> list(members)
    ['left', 'right']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _named_values(self) -> Iterable[tuple[str, Any]]:
        return self.items()

    def _name(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type "
                f"is '{type(key).__name__}')"
            )
        # A key may well be the name of a method; attributes of that name must not be overwritten.
        return f"_member_{key}" if hasattr(type(self), key) else key

    def __getitem__(self, key: str) -> Any:
        name = self._name(key)
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, name)

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._name(key)
        self._keys[key] = None
        setattr(self, name, _as_member(value))

    def __delitem__(self, key: str) -> None:
        name = self._name(key)
        if key not in self._keys:
            raise KeyError(key)
        del self._keys[key]
        delattr(self, name)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        result = other.copy()
        result.update(self)
        return result

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Return a dictionary with the same members."""
        return ParameterDict(list(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return a member, set to `default` first if it is not there."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all members."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove a member and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last member and return it with its name."""
        if not self._keys:
            raise KeyError("popitem(): the dictionary is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a member, or `default` if it is not there."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a dictionary with `default` under every one of `keys`."""
        return ParameterDict([(key, default) for key in keys])

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return pairs of name and member."""
        return [(key, self[key]) for key in self._keys]

    def values(self) -> Iterable[Any]:
        """Return the members."""
        return [self[key] for key in self._keys]

    def update(self, parameters: Mapping[str, Any] | ParameterDict | Iterable[Any]) -> None:
        """Add members, of a plain dict in the order of their names; those of known names are replaced."""
        given = list(pairs(parameters, "ParametersDict"))
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            given.sort(key=itemgetter(0))
        for key, value in given:
            self[key] = value
