"""Which kernel serves an op, in the order of :mod:`.resolution`, and the same as text."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..contexts import thread
from ..device.device import CPU
from ..device.dtypes import DType
from ..labels import plugin_label
from ..plugins import discovery, manager
from . import fallback, kernel_registry, op_registry
from .kernel_registry import Kernel, kernels_for
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


def choose(
    op: Op, device: str, dtype: DType, preferred: tuple[str, ...] = (), without: str = ""
) -> Choice:
    """Return how an op is served on a device type for a dtype; below the kernels of plugin `without`."""
    choice = Choice(op.name, device, dtype, "none")
    if device == "meta":
        choice.way = "meta"
        return choice
    candidates: list[Kernel] = []
    for kernel in kernels_for(op.name, device):
        if kernel.serves(dtype):
            candidates.append(kernel)
        else:
            choice.losers.append((kernel, f"does not take {dtype.name}"))

    def rank(kernel: Kernel) -> tuple[int, bool, int]:
        wanted = (
            len(preferred) - preferred.index(kernel.plugin) if kernel.plugin in preferred else 0
        )
        return wanted, kernel.dtypes is not None, kernel.priority

    candidates.sort(key=rank, reverse=True)
    own = [n for n, kernel in enumerate(candidates) if kernel.plugin == without]
    if without and own:  # those above may ask for theirs below, too, which must end
        candidates = [kernel for kernel in candidates[own[0] :] if kernel.plugin != without]
    if candidates:
        winner = candidates[0]
        choice.way, choice.kernel = "kernel", winner
        for kernel in candidates[1:]:
            if rank(kernel)[0] != rank(winner)[0]:
                reason = f"{winner.plugin} is preferred here"
            elif rank(kernel)[1] != rank(winner)[1]:
                reason = f"takes any dtype, {winner.plugin} names {dtype.name}"
            else:
                reason = f"priority {kernel.priority} is below {winner.priority}"
            choice.losers.append((kernel, reason))
    elif op.kind == "composite":
        choice.way = "decomposition"
    elif fallback.fallback_policy() != "error" and device != CPU.type and not op.view:
        choice.way = "fallback"
    return choice


def describe_kernel(op: Op, key: DispatchKey) -> str:
    """Return a phrase that names the kernel in use and its plugin."""
    choice = choose(op, key.device.type, key.dtype, thread.preferred)
    if choice.kernel is None:
        return f"the {choice.way} for {key.device.type}"
    return f"the kernel of {plugin_label(choice.kernel.plugin)} ({choice.kernel.source()})"


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
    here = kernels_for(op, device)
    lines += [f"  on {device!r} for {_dtypes(k)}: {plugin_label(k.plugin)}" for k in here]
    elsewhere = [k for k in kernel_registry.all_kernels() if k.op == op and k.device != device]
    lines += [f"  on {k.device!r}: {plugin_label(k.plugin)}" for k in elsewhere if k.serves(dtype)]
    text = ["Registered near it:", *lines] if lines else ["No plugin that is loaded has one."]
    return "\n".join([*text, *_advice(op, device, dtype)])


def _advice(op: str, device: str, dtype: DType) -> list[str]:
    """Return the ways out, the best first."""
    here = kernels_for(op, device)
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
