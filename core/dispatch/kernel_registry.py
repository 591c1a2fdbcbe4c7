"""The kernels that plugins registered, by op and device type.

A kernel for an op that is not registered waits until it is: plugins load in any order, and a backend
brings kernels for the ops of extensions that need not be loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..device.dtypes import ALL_DTYPES, STORED, DType
from ..errors import RegistrationError
from ..labels import plugin_label
from . import keys, op_registry
from .keys import lock
from .op_registry import Op


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: a function over raw arrays that computes one op on one device type.

    Attributes
    ----------
    op : str
        The op's name.
    device : str
        The device type.
    function : callable
        Called with the op's arguments by position; returns an array, or a tuple for several
        outputs.
    dtypes : frozenset of DType, optional
        The dtypes it serves; None for any that `accepts` lets pass.
    priority : int
        Among kernels for the same dtype the highest wins; equals are refused at registration.
    out : bool
        Whether ``function(..., out=array)`` writes into an array of the result's shape and dtype.
    accepts : callable, optional
        ``accepts(dtype) -> bool``, for a kernel without `dtypes`.
    plugin : str
        The plugin it came from; filled in at registration.
    note : str
        What ``tp.explain`` should say of it, such as "computes on the CPU".
    """

    op: str
    device: str
    function: Callable[..., Any]
    dtypes: frozenset[DType] | None = None
    priority: int = 0
    out: bool = False
    accepts: Callable[[DType], bool] | None = None
    plugin: str = ""
    note: str = ""

    def serves(self, dtype: DType) -> bool:
        """Return whether the kernel takes this dtype."""
        if self.dtypes is not None:
            return dtype in self.dtypes
        return dtype not in STORED and (self.accepts is None or self.accepts(dtype))

    def source(self) -> str:
        """Return ``file:line`` of the function, or what is known of a built-in one."""
        function = inspect.unwrap(self.function)
        function = getattr(function, "func", function)
        code = getattr(function, "__code__", None)
        if code is not None:
            return f"{code.co_filename}:{code.co_firstlineno}"
        module = getattr(function, "__module__", None) or type(function).__module__
        return f"{module}.{getattr(function, '__name__', function)} (compiled)"


@dataclass(frozen=True, slots=True)
class DeferredKernels:
    """Kernels for the ops of an extension, built once the extension's plugin is registered.

    Attributes
    ----------
    extension : str
        The plugin that brings the ops, such as ``"nn"``.
    build : callable
        Returns the kernels; what only they need is best imported within it.
    """

    extension: str
    build: Callable[[], Iterable[Kernel]]


_KERNELS: dict[tuple[str, str], list[Kernel]] = {}
# Those for ops that are not registered now.
_WAITING: dict[tuple[str, str], list[Kernel]] = {}


def add_kernels(kernels: list[Kernel]) -> None:
    """Add kernels, all or none, and make the tables resolve again.

    Those for ops that are not registered wait for them.

    Raises
    ------
    RegistrationError
        If two kernels would serve the same op, device and dtype at equal priority.
    """
    with lock:
        fresh: dict[tuple[str, str], list[Kernel]] = {}
        for kernel in kernels:
            key = (kernel.op, kernel.device)
            there = _KERNELS if op_registry.has_op(kernel.op) else _WAITING
            present = fresh.setdefault(key, list(there.get(key, ())))
            check_priority(kernel, present)
            present.append(kernel)
        for key, present in fresh.items():
            (_KERNELS if op_registry.has_op(key[0]) else _WAITING)[key] = present
            _mark_overridden(key[0])
        keys.reset_tables()


def check_priority(kernel: Kernel, others: Iterable[Kernel]) -> None:
    """Refuse a kernel that takes a dtype which another of the same op and device takes at its priority."""
    for other in others:
        if kernel.priority == other.priority and _overlap(kernel, other):
            whose = (
                "another of its own"
                if other.plugin == kernel.plugin
                else f"the one of plugin {plugin_label(other.plugin)}"
            )
            raise RegistrationError(
                f"plugin {plugin_label(kernel.plugin)}: kernel for op {kernel.op!r} on "
                f"{kernel.device!r} ({kernel.source()}) has the same priority "
                f"({kernel.priority}) as {whose} ({other.source()}), and both take "
                f"{_overlap(kernel, other)[0].name}; give one of them another priority"
            )


def remove_kernels(plugin: str) -> None:
    """Take back every kernel of a plugin."""
    with lock:
        for table in (_KERNELS, _WAITING):
            for key, present in list(table.items()):
                kept = [kernel for kernel in present if kernel.plugin != plugin]
                if len(kept) != len(present):
                    table[key] = kept
                    if not kept:
                        del table[key]
                    _mark_overridden(key[0])
        keys.reset_tables()


def activate_kernels(check: Callable[[Kernel, Op], bool]) -> None:
    """Put the kernels that waited for an op that is registered now to use, but those that do not fit it."""
    with lock:
        for name, device in list(_WAITING):
            op = op_registry.find_op(name)
            if op is None:
                continue
            for kernel in _WAITING.pop((name, device)):
                if check(kernel, op):
                    _KERNELS.setdefault((op.name, device), []).append(replace(kernel, op=op.name))
            _mark_overridden(op.name)


def deactivate_kernels(op: str) -> None:
    """Let the kernels of an op that goes away wait for it."""
    with lock:
        for key in [key for key in _KERNELS if key[0] == op]:
            _WAITING.setdefault(key, []).extend(_KERNELS.pop(key))


def waiting_kernels(plugin: str = "") -> list[Kernel]:
    """Return the kernels, by default of all plugins, that wait for their op."""
    found = [kernel for kernels in _WAITING.values() for kernel in kernels]
    return [kernel for kernel in found if plugin in ("", kernel.plugin)]


def _overlap(a: Kernel, b: Kernel) -> list[DType]:
    """Return the dtypes for which neither kernel goes first, as one that names dtypes does."""
    if (a.dtypes is None) is not (b.dtypes is None):
        return []
    return [dtype for dtype in ALL_DTYPES if a.serves(dtype) and b.serves(dtype)]


def _mark_overridden(name: str) -> None:
    if op_registry.has_op(name):
        refresh_overridden(op_registry.get_op(name))


def refresh_overridden(op: Op) -> None:
    """Set whether a composite has a kernel or a derivative of its own."""
    if op.kind == "composite":
        op.overridden = op.derivative is not None or (
            not op.view
            and any(kernels for (name, _), kernels in _KERNELS.items() if name == op.name)
        )


def kernels_for(op: str, device: str) -> list[Kernel]:
    """Return the kernels registered for an op on a device type."""
    return list(_KERNELS.get((op, device), ()))


def all_kernels() -> Iterator[Kernel]:
    """Yield every registered kernel."""
    for kernels in list(_KERNELS.values()):
        yield from kernels
