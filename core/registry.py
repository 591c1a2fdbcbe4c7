"""The kernels that plugins registered, by op and device type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from . import kinds, operators
from .dtypes import ALL_DTYPES, DType
from .errors import RegistrationError
from .kinds import lock
from .operators import Op


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
        return self.accepts is None or self.accepts(dtype)

    def source(self) -> str:
        """Return ``file:line`` of the function, or what is known of a built-in one."""
        function = inspect.unwrap(self.function)
        function = getattr(function, "func", function)
        code = getattr(function, "__code__", None)
        if code is not None:
            return f"{code.co_filename}:{code.co_firstlineno}"
        module = getattr(function, "__module__", None) or type(function).__module__
        return f"{module}.{getattr(function, '__name__', function)} (compiled)"


_KERNELS: dict[tuple[str, str], list[Kernel]] = {}


def add_kernels(kernels: list[Kernel]) -> None:
    """Add kernels, all or none, and make the tables resolve again.

    Raises
    ------
    RegistrationError
        If two kernels would serve the same op, device and dtype at equal priority.
    """
    from .plugins import plugin_label

    with lock:
        fresh: dict[tuple[str, str], list[Kernel]] = {}
        for kernel in kernels:
            key = (kernel.op, kernel.device)
            present = fresh.setdefault(key, list(_KERNELS.get(key, ())))
            for other in present:
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
            present.append(kernel)
        _KERNELS.update(fresh)
        for name, _ in fresh:
            _mark_overridden(name)
        kinds.reset_tables()


def remove_kernels(plugin: str) -> None:
    """Take back every kernel of a plugin."""
    with lock:
        for key, present in list(_KERNELS.items()):
            kept = [kernel for kernel in present if kernel.plugin != plugin]
            if len(kept) != len(present):
                _KERNELS[key] = kept
                _mark_overridden(key[0])
        kinds.reset_tables()


def _overlap(a: Kernel, b: Kernel) -> list[DType]:
    """Return the dtypes for which neither kernel goes first, as one that names dtypes does."""
    if (a.dtypes is None) is not (b.dtypes is None):
        return []
    return [dtype for dtype in ALL_DTYPES if a.serves(dtype) and b.serves(dtype)]


def _mark_overridden(name: str) -> None:
    if operators.has_op(name):
        refresh_overridden(operators.get_op(name))


def refresh_overridden(op: Op) -> None:
    """Note whether anything may stand in for a composite's body."""
    if op.sort == "composite":
        op.overridden = op.rule is not None or (
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
