"""Computing on the CPU for another device: the user's fallback policy, and what a plugin chooses itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ..device.device import CPU
from ..device.dtypes import DType
from ..device.runtime import DeviceRuntime
from ..errors import DTypeNotAvailableError, FallbackWarning, warn
from . import keys
from .keys import DispatchKey, lock
from .op_registry import Op

Policy = Literal["error", "warn", "allow"]
_policy: list[Policy] = ["error"]


@dataclass(slots=True)
class FallbackCount:
    """How often an op ran on the CPU for another device, and how many bytes that moved."""

    calls: int = 0
    bytes: int = 0


fallbacks: dict[tuple[str, str], FallbackCount] = {}
_warned: set[tuple[str, str]] = set()


def set_fallback(policy: Policy) -> None:
    """Say what happens to an op that a device has no kernel for.

    Parameters
    ----------
    policy : {"error", "warn", "allow"}
        Raise (the default); run it on the CPU, copy the result back, and warn once per op; or the
        same without a warning. ``tp.fallback_counts()`` tells calls and bytes moved.
    """
    if policy not in ("error", "warn", "allow"):
        raise ValueError(f"set_fallback(): expected 'error', 'warn' or 'allow', got {policy!r}")
    with lock:
        if policy != _policy[0]:
            _warned.clear()
        _policy[0] = policy
        keys.reset_tables()


def fallback_policy() -> Policy:
    """Return what :func:`set_fallback` has set."""
    return _policy[0]


def fallback_counts() -> dict[tuple[str, str], FallbackCount]:
    """Return calls and bytes moved by what computed on the CPU, by (op, device type).

    That is the policy's fallbacks, and the kernels that a device's plugin has for it (``host_kernels``).
    """
    return dict(fallbacks)


def count_fallback(op: Op, device: str, moved: int) -> None:
    """Count one call of an op that ran on the CPU for a device."""
    with lock:
        total = fallbacks.setdefault((op.name, device), FallbackCount())
        total.calls += 1
        total.bytes += moved


def fallback_kernel(op: Op, tensor_key: DispatchKey) -> Callable[..., Any]:
    """Return a kernel that runs the op on the CPU, counts what that moves, and warns as the policy says."""

    def run(*raw: Any) -> Any:
        results, moved = run_on_cpu(
            op, tensor_key.dtype, tensor_key.runtime, tensor_key.device.index or 0, raw
        )
        count_fallback(op, tensor_key.device.type, moved)
        key = op.name, tensor_key.device.type
        with lock:
            told = key in _warned or _policy[0] != "warn"
            if not told:
                _warned.add(key)
        if not told:
            warn(
                f"op {op.name!r} has no kernel on {tensor_key.device.type!r} for {tensor_key.dtype.name}: it "
                f"runs on the CPU, which moved {moved} bytes this time",
                FallbackWarning,
            )
        return results

    return run


def run_on_cpu(
    op: Op, key: DType, runtime: DeviceRuntime, index: int, raw: tuple[Any, ...]
) -> tuple[Any, int]:
    """Compute an op on the CPU from a device's arrays.

    Parameters
    ----------
    op : Op
        The op; one that makes no view.
    key : DType
        The dtype under which the CPU's kernel is looked up.
    runtime, index : DeviceRuntime, int
        The device.
    raw : tuple
        The kernel's arguments.

    Returns
    -------
    tuple
        What the kernel returned, as the device's arrays, and how many bytes were moved.

    Raises
    ------
    DTypeNotAvailableError
        If a result has a dtype that the device does not have.
    """
    host = keys.dispatch_key(CPU, key)
    moved = 0

    def to_cpu(value: Any) -> Any:
        nonlocal moved
        if isinstance(value, runtime.array_type):
            dtype = runtime.dtype(value)
            array = runtime.to_host(value)
            moved += array.nbytes
            return keys.dispatch_key(CPU, dtype).runtime.from_host(array, dtype, 0)
        if isinstance(value, (list, tuple)):
            return type(value)([to_cpu(item) for item in value])
        return value

    def from_cpu(value: Any) -> Any:
        nonlocal moved
        array = host.as_array(value)
        dtype = host.runtime.dtype(array)
        if runtime.dtypes is not None and dtype not in runtime.dtypes:
            raise DTypeNotAvailableError(
                f"{op.name}: its result is {dtype.name}, which device {runtime.type!r} does not have"
            )
        moved += array.nbytes
        return runtime.from_host(host.runtime.to_host(array), dtype, index)

    arguments = [to_cpu(value) for value in raw]
    with host.runtime.quiet():
        results = host.kernels[op.index](*arguments)
    if isinstance(results, (list, tuple)):
        return tuple([from_cpu(result) for result in results]), moved
    return from_cpu(results), moved
