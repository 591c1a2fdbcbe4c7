"""Kernels that compute on the CPU, for what a device's own library does not have.

Unlike the fallback policy, which is the user's choice for any op, this is the author's choice for some:
``tp.explain`` and the coverage matrix show these kernels as the backend's, and ``tp.fallback_counts()``
counts their calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorplug.core.device.dtypes import DType, int64
from tensorplug.core.device.runtime import DeviceRuntime
from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.fallback import count_fallback, run_on_cpu
from tensorplug.core.dispatch.op_registry import Op

from .tables import KernelTable


def host_kernels(
    runtime: DeviceRuntime, ops: Iterable[str] | None = None, priority: int = 0
) -> KernelTable:
    """Return kernels that copy their arguments to the host, compute there, and copy the result back.

    Parameters
    ----------
    runtime : DeviceRuntime
        The device's; its ``to_host`` and ``from_host`` move the arrays.
    ops : iterable of str, optional
        The ops; by default every primitive that makes no view. A view cannot be computed elsewhere,
        since it shares memory.
    priority : int
        The kernels' priority. They name no dtypes, so a kernel that does is taken before them.

    Raises
    ------
    ValueError
        If one of the ops makes views.
    """
    chosen = [op_registry.get_op(name) for name in ops] if ops is not None else _primitives()
    table = KernelTable(runtime.type, priority)
    for op in chosen:
        if op.view:
            raise ValueError(f"host_kernels(): {op.name} makes a view, which shares memory")
        table.add(op.name, _host_kernel(op, runtime), note="computes on the CPU")
    return table


def _primitives() -> list[Op]:
    return [op for op in op_registry.all_ops() if op.kind == "primitive" and not op.view]


def _host_kernel(op: Op, runtime: DeviceRuntime) -> Callable[..., Any]:
    def kernel(*raw: Any) -> Any:
        index = runtime.current_device()
        results, moved = run_on_cpu(op, _key(raw, runtime), runtime, index, raw)
        count_fallback(op, runtime.type, moved)
        return results

    kernel.__name__ = op.name.replace(".", "_")
    return kernel


def _key(raw: Iterable[Any], runtime: DeviceRuntime) -> DType:
    """Return the dtype under which the CPU's kernel is looked up: the first that is told."""
    for value in raw:
        if isinstance(value, runtime.array_type):
            return runtime.dtype(value)
        if isinstance(value, DType):
            return value
        if isinstance(value, (list, tuple)) and value:
            for item in value:
                if isinstance(item, runtime.array_type):
                    return runtime.dtype(item)
    return int64
