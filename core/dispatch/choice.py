"""How an op is served, as text: the winner, the losers, what is near and what would help."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..device.dtypes import DType
from ..plugins import discovery, manager, plugin_label
from . import fallback, kernel_registry, op_registry
from .kernel_registry import Kernel
from .keys import DispatchKey
from .op_registry import Op

Way = Literal["kernel", "decomposition", "fallback", "meta", "none"]


@dataclass(slots=True)
class Choice:
    """How one (op, device, dtype) is served, with every loser and the reason.

    ``tp.explain`` prints it; the coverage matrix and the profiler read it.

    Attributes
    ----------
    way : {"kernel", "decomposition", "fallback", "meta", "none"}
        Which step of the resolution served it.
    kernel : Kernel or None
        The winner, where it is a kernel.
    losers : list of (Kernel, str)
        The other kernels for the op on the device, each with the reason why it is not used.
    computed_in : DType or None
        What the arguments are converted to first, where that is not `dtype`;
        :func:`.explain.explain` sets it.
    refused : str
        Why the op itself does not take the dtype.
    """

    op: str
    device: str
    dtype: DType
    way: Way
    kernel: Kernel | None = None
    losers: list[tuple[Kernel, str]] = field(default_factory=list)
    computed_in: DType | None = None
    refused: str = ""

    def __str__(self) -> str:
        return render(self)

    __repr__ = __str__


# --- text -------------------------------------------------------------------------------------


def render(choice: Choice) -> str:
    """Return a choice as text: the winner, then every loser and the reason."""
    head = f"{choice.op} on {choice.device}, {choice.dtype.name}"
    if choice.computed_in is not None:
        head += f" (computed in {choice.computed_in.name})"
    lines = [f"{head}: {_outcome(choice)}"]
    delegates = op_registry.get_op(choice.op).delegates
    if delegates:
        lines.append(f"other ops serve some forms: {delegates}")
    if choice.losers:
        lines.append("not used:")
        lines += [f"  {_describe(kernel)}: {reason}" for kernel, reason in choice.losers]
    if choice.way == "none" and not choice.refused:
        lines.append(near(choice.op, choice.device, choice.computed_in or choice.dtype))
    return "\n".join(lines)


def _outcome(choice: Choice) -> str:
    if choice.kernel is not None:
        return f"kernel of {_describe(choice.kernel)}"
    if choice.refused:
        return f"the op does not take this dtype: {choice.refused}"
    op = op_registry.get_op(choice.op)
    if choice.way == "decomposition":
        return f"its decomposition into other ops, {_source(op.function)}"
    if choice.way == "meta":
        return f"the declared rule alone, without data, {_source(op.function)}"
    if choice.way == "fallback":
        count = fallback.fallbacks.get((choice.op, choice.device))
        so_far = f"; so far {count.calls} calls, {count.bytes} bytes" if count else ""
        return f"no kernel; fallback on the CPU, moving the data there and back{so_far}"
    return "nothing runs it"


def _describe(kernel: Kernel) -> str:
    note = f", {kernel.note}" if kernel.note else ""
    return f"{plugin_label(kernel.plugin)}, priority {kernel.priority}{note}, {kernel.source()}"


def _source(function: Callable[..., Any]) -> str:
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def _dtypes(kernel: Kernel) -> str:
    if kernel.dtypes is None:
        return "the dtypes it accepts" if kernel.accepts is not None else "any dtype"
    return ", ".join(sorted(dtype.name for dtype in kernel.dtypes))


# --- what is near -----------------------------------------------------------------------------


def nearest(op: Op, key: DispatchKey) -> str:
    """Return what is registered near a kernel that is missing, and what would help."""
    return near(op.name, key.device.type, key.dtype)


def near(op: str, device: str, dtype: DType) -> str:
    """Return what is registered near (op, device, dtype), by whom, and what would help."""
    lines = []
    here = kernel_registry.kernels_for(op, device)
    lines += [f"  on {device!r} for {_dtypes(k)}: {plugin_label(k.plugin)}" for k in here]
    elsewhere = [k for k in kernel_registry.all_kernels() if k.op == op and k.device != device]
    lines += [f"  on {k.device!r}: {plugin_label(k.plugin)}" for k in elsewhere if k.serves(dtype)]
    text = ["Registered near it:", *lines] if lines else ["No plugin that is loaded has one."]
    return "\n".join([*text, *_advice(op, device, dtype)])


def _advice(op: str, device: str, dtype: DType) -> list[str]:
    """Return the ways out, the best first."""
    here = kernel_registry.kernels_for(op, device)
    ways = []
    if here:
        ways.append(f"convert to a dtype named above, if {dtype.name} is not needed")
    ways += [
        f"repair {broken.found.label}, which is not used: {broken.reason}"
        for broken in discovery.quarantined()
        if broken.found.device == device
    ]
    package = next((r.package for r in manager.registered() if _serves(r, device)), "")
    if package:
        ways.append(f"`pip install --upgrade {package}`, if a later version has the kernel")
    hint = discovery.install_hint(device)
    if hint:
        ways.append(f"`{hint}`, which adds the kernels known for {device!r}")
    view = op_registry.has_op(op) and op_registry.get_op(op).view
    if device != "cpu" and fallback.fallback_policy() == "error" and not view:
        ways.append(
            'move the tensors with .to("cpu"), or allow that for every such op with '
            'tp.set_fallback("warn")'
        )
    if view:
        ways.append("a view cannot fall back to the CPU, since a copy would not share the memory")
    ways.append("register a kernel for it: docs/backends tells how")
    return ["What helps:", *[f"  - {way}" for way in ways]]


def _serves(record: Any, device: str) -> bool:
    return any(runtime.type == device for runtime in record.devices)
