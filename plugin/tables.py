"""A convenient way to write down many kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from tensorplug.core.dtypes import DType
from tensorplug.core.resolution import Kernel

F = TypeVar("F", bound=Callable[..., Any])


class KernelTable:
    """A list of kernels of one device type, filled by calls or by a decorator.

    Parameters
    ----------
    device : str
        The device type.
    priority : int
        The priority of each kernel that names none.

    Examples
    --------
    >>> table = KernelTable("cpu", priority=10)
    >>> @table.kernel()
    ... def neg(input):
    ...     return -input
    >>> [kernel.op for kernel in table]
    ['neg']
    """

    def __init__(self, device: str, priority: int = 0) -> None:
        self.device = device
        self.priority = priority
        self.kernels: list[Kernel] = []

    def add(
        self,
        op: str,
        function: Callable[..., Any],
        *,
        dtypes: Iterable[DType] | None = None,
        out: bool = False,
        priority: int | None = None,
        accepts: Callable[[DType], bool] | None = None,
    ) -> None:
        """Add one kernel; the arguments are those of :class:`Kernel`."""
        self.kernels.append(
            Kernel(
                op,
                self.device,
                function,
                None if dtypes is None else frozenset(dtypes),
                self.priority if priority is None else priority,
                out,
                accepts,
            )
        )

    def kernel(
        self, op: str | None = None, *, dtypes: Iterable[DType] | None = None, **options: Any
    ) -> Callable[[F], F]:
        """Add the decorated function, under its own name unless `op` gives another."""

        def decorate(function: F) -> F:
            self.add(op or function.__name__, function, dtypes=dtypes, **options)
            return function

        return decorate

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)
