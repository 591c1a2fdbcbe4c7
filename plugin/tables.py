"""A convenient way to write down many kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from tensorplug.core.device.dtypes import DType
from tensorplug.core.dispatch.kernel_registry import Kernel

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
        note: str = "",
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
                note=note,
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

    def settled(self) -> list[Kernel]:
        """Return the kernels at the table's own priority, each dtype left to its best one.

        A plugin that builds on shared kernels and does some of them better hands this over, so that its
        own choices do not stand above another plugin's.

        Examples
        --------
        >>> table = KernelTable("cpu")
        >>> table.add("neg", lambda input: -input)
        >>> table.add("neg", lambda input: 0 - input, priority=1)
        >>> [kernel.priority for kernel in table.settled()]
        [0]
        """
        best: list[Kernel] = []
        for kernel in sorted(self.kernels, key=lambda kernel: -kernel.priority):
            above = [k for k in best if k.op == kernel.op]
            dtypes = kernel.dtypes
            if any(
                k.dtypes is None
                and k.accepts is None
                and (dtypes is None or k.priority > kernel.priority)
                for k in above
            ):
                continue
            if dtypes is not None:
                dtypes = dtypes.difference(*[k.dtypes or () for k in above])
                if not dtypes:
                    continue
            best.append(replace(kernel, dtypes=dtypes))
        return [replace(kernel, priority=self.priority) for kernel in best]

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)
