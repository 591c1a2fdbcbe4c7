"""Stores: keys and values that processes share to find each other. No tensors travel by them."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from .errors import DistQueueEmptyError, DistStoreError

__all__ = ["HashStore", "PrefixStore", "Store"]

DEFAULT_TIMEOUT = timedelta(seconds=300)


class Store:
    """Keys and values that processes share: what `TCPStore`, `FileStore` and `HashStore` have in common.

    Keys are strings, values bytes; strings are taken for values, too. A store of one's own defines ``_do``.
    """

    _timeout = DEFAULT_TIMEOUT

    def _do(self, name: str, *arguments: Any) -> Any:
        """Do what the method of that name does."""
        raise NotImplementedError(f"{type(self).__name__} has no {name}")

    @property
    def timeout(self) -> timedelta:
        """How long to wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long to wait for a key."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Give a key a value."""
        self._do("set", key, _encoded(value))

    def get(self, key: str) -> bytes:
        """Return the value of a key; waits until there is one.

        Raises
        ------
        DistStoreError
            If there is none in time.
        """
        found: bytes = self._do("get", key)
        return found

    def add(self, key: str, amount: int) -> int:
        """Add to the number that a key holds, 0 if it has none, and return the sum."""
        total: int = self._do("add", key, int(amount))
        return total

    def append(self, key: str, value: str | bytes) -> None:
        """Append to the value of a key."""
        self._do("append", key, _encoded(value))

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        """Set a key if it has the expected value, or none and that is empty; return what it has then."""
        found: bytes = self._do(
            "compare_set", key, _encoded(expected_value), _encoded(desired_value)
        )
        return found

    def delete_key(self, key: str) -> bool:
        """Remove a key; return whether there was one."""
        found: bool = self._do("delete_key", key)
        return found

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys have values."""
        found: bool = self._do("check", list(keys))
        return found

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys have values.

        Raises
        ------
        DistStoreError
            If they have not in time.
        """
        self._do("wait", list(keys), timeout)

    def num_keys(self) -> int:
        """Return how many keys there are."""
        return len(self.list_keys())

    def list_keys(self) -> list[str]:
        """Return all keys."""
        found: list[str] = self._do("list_keys")
        return found

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of keys; waits until there are."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Give each key its value."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of a queue."""
        self._do("queue_push", key, _encoded(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue; waits for one if `block`.

        Raises
        ------
        DistQueueEmptyError
            If there is none, and `block` is False.
        """
        found: bytes = self._do("queue_pop", key, block)
        return found

    def queue_len(self, key: str) -> int:
        """Return how many values a queue has."""
        found: int = self._do("queue_len", key)
        return found

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until so many processes have come here."""
        number = self.add(f"{key}/arrived", 1)
        done = f"{key}/{(number - 1) // world_size}"
        if number % world_size == 0:
            self.set(done, "1")
        self.wait([done], timeout)

    def has_extended_api(self) -> bool:
        """Return whether there are ``append``, ``multi_get``, ``multi_set`` and queues."""
        return True

    def clone(self) -> Store:
        """Return a store that shares what this one has, for another thread."""
        return self


def _encoded(value: Any) -> bytes:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"a store holds str or bytes, got {type(value).__name__}")
    return value.encode() if isinstance(value, str) else value


class Table:
    """The keys and values themselves, for threads of one process."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: dict[str, deque[bytes]] = {}
        self.changed = threading.Condition()

    def do(self, name: str, arguments: Sequence[Any], timeout: float) -> Any:
        """Do one operation, with nothing else between; ``timeout`` in seconds is for those that wait."""
        with self.changed:
            match name:
                case "get":
                    self._await(arguments, timeout)
                case "wait":
                    keys, own = arguments
                    self._await(keys, timeout if own is None else own)
                    return None
                case "queue_pop" if arguments[1]:
                    queue = self.queues.setdefault(arguments[0], deque())
                    self._until(lambda: bool(queue), [arguments[0]], timeout)
                case _:
                    pass
            found = _OPERATIONS[name](self, *arguments)
            self.changed.notify_all()
            return found

    def _await(self, keys: Sequence[str], timeout: float) -> None:
        self._until(lambda: all([key in self.values for key in keys]), keys, timeout)

    def _until(self, condition: Callable[[], bool], keys: Sequence[str], timeout: float) -> None:
        if not self.changed.wait_for(condition, timeout):
            raise DistStoreError(
                f"wait timeout after {timeout * 1000:.0f}ms, keys: {', '.join(keys)}"
            )

    def set(self, key: str, value: bytes) -> None:
        self.values[key] = value

    def get(self, key: str) -> bytes:
        return self.values[key]

    def add(self, key: str, amount: int) -> int:
        total = int(self.values.get(key, b"0")) + amount
        self.values[key] = str(total).encode()
        return total

    def append(self, key: str, value: bytes) -> None:
        self.values[key] = self.values.get(key, b"") + value

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        known = self.values.get(key)
        if known is None and expected:
            return expected  # as torch has it: nothing is set
        if known is None or known == expected:
            self.values[key] = desired
        return self.values[key]

    def delete_key(self, key: str) -> bool:
        return self.values.pop(key, None) is not None

    def check(self, keys: Sequence[str]) -> bool:
        return all([key in self.values for key in keys])

    def list_keys(self) -> list[str]:
        return list(self.values)

    def queue_push(self, key: str, value: bytes) -> None:
        self.queues.setdefault(key, deque()).append(value)

    def queue_pop(self, key: str, block: bool) -> bytes:
        queue = self.queues.get(key)
        if not queue:
            raise DistQueueEmptyError("queue is empty")
        return queue.popleft()

    def queue_len(self, key: str) -> int:
        return len(self.queues.get(key, ()))


_OPERATIONS: dict[str, Callable[..., Any]] = {
    operation.__name__: operation
    for operation in (
        Table.set, Table.get, Table.add, Table.append, Table.compare_set, Table.delete_key,
        Table.check, Table.list_keys, Table.queue_push, Table.queue_pop, Table.queue_len,
    )
}  # fmt: skip


def in_seconds(arguments: Sequence[Any]) -> list[Any]:
    return [a.total_seconds() if isinstance(a, timedelta) else a for a in arguments]


class HashStore(Store):
    """A store for the threads of one process.

    Examples
    --------
    >>> from tensorplug.distributed import HashStore
    >>> store = HashStore()
    >>> store.set("name", "value")
    >>> store.get("name"), store.add("count", 2)
    (b'value', 2)
    """

    def __init__(self) -> None:
        self._table = Table()

    def _do(self, name: str, *arguments: Any) -> Any:
        return self._table.do(name, in_seconds(arguments), self._timeout.total_seconds())


class PrefixStore(Store):
    """Another store's keys that begin with a prefix, without it.

    Examples
    --------
    >>> from tensorplug.distributed import HashStore, PrefixStore
    >>> store = HashStore()
    >>> PrefixStore("first", store).set("name", "value")
    >>> store.list_keys()
    ['first/name']
    """

    def __init__(self, prefix: str, store: Store) -> None:
        self._prefix = f"{prefix}/"
        self._store = store

    @property
    def underlying_store(self) -> Store:
        """The store that has the keys."""
        return self._store

    @property
    def timeout(self) -> timedelta:
        """How long the other store waits for a key."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long the other store waits for a key."""
        self._store.set_timeout(timeout)

    def _do(self, name: str, *arguments: Any) -> Any:
        if not arguments:
            names = self._store.list_keys()
            return [n.removeprefix(self._prefix) for n in names if n.startswith(self._prefix)]
        first, *rest = arguments
        one = isinstance(first, str)
        keys = self._prefix + first if one else [self._prefix + key for key in first]
        return getattr(self._store, name)(keys, *rest)

    def clone(self) -> PrefixStore:
        """Return one with the same prefix on a clone of the other store."""
        return PrefixStore(self._prefix[:-1], self._store.clone())


def json_line(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def outward(value: Any) -> Any:
    """Return a value in JSON's terms: bytes are a dict of one string."""
    return {"bytes": value.decode("latin-1")} if isinstance(value, bytes) else value


def inward(value: Any) -> Any:
    """Return what :func:`outward` was given."""
    return value["bytes"].encode("latin-1") if isinstance(value, dict) else value
