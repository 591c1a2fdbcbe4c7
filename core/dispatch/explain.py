"""Who runs an op, and why: ``tp.explain``, the log of choices, the text of KernelNotFoundError."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

from ..device.device import META, Device
from ..device.dtypes import DType, as_dtype, get_default_dtype
from ..plugins import discovery, manager, plugin_label
from . import fallback, kernel_registry, keys, op_registry, resolution
from .kernel_registry import Kernel
from .keys import DispatchKey
from .op_registry import Op
from .resolution import Choice
from .state import dispatch_state


def explain(
    op: str | Callable[..., Any] | Op,
    *,
    device: Device | str = "cpu",
    dtype: DType | type | None = None,
) -> Choice:
    """Tell which kernel runs an op on a device and dtype, and why the others do not.

    Parameters
    ----------
    op : str or callable
        Any name that users call, or the function or method itself: ``"mul"``, ``"linalg.svd"``,
        ``tp.mul``, ``tp.Tensor.mul``. A function that another op defines stands for that op.
    device : Device or str
        The device; its plugins are loaded, but its hardware need not be there.
    dtype : DType, optional
        The dtype of the arguments; by default the default dtype.

    Returns
    -------
    Choice
        Prints as text; its attributes ``way``, ``kernel`` and ``losers`` hold the same for
        programs.

    Raises
    ------
    KeyError
        If there is no such op; the message lists names that are near.
    DeviceNotAvailableError
        If no plugin serves the device type.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.dispatch.explain import explain
    >>> choice = explain("mul", dtype=tp.float32)
    >>> choice.way, choice.kernel.plugin
    ('kernel', 'cpu_numpy')
    """
    found = _as_op(op)
    index = Device(device)
    asked = get_default_dtype() if dtype is None else as_dtype(dtype)
    dispatch_state.find_runtime(index.type)
    computed = asked
    if found.pointwise and found.kind == "primitive":
        try:
            computed = resolution.pointwise_keys(found, keys.dispatch_key(META, asked))[0].dtype
        except (RuntimeError, TypeError) as error:  # the op's rule refuses the dtype
            refused = Choice(found.name, index.type, asked, "none")
            refused.refused = str(error)
            return refused
    choice = resolution.choose(found, index.type, computed, resolution.preferred_backends())
    if computed is not asked:
        choice.dtype, choice.computed_in = asked, computed
    return choice


def _as_op(op: Any) -> Op:
    if isinstance(op, str):
        return op_registry.get_op(op)
    found = op if isinstance(op, Op) else getattr(op, "op", None)
    if not isinstance(found, Op):
        raise TypeError(f"explain(): expected an op or the name of one, got {op!r}")
    return found


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


# --- the log ----------------------------------------------------------------------------------

LOGGER = "tensorplug.dispatch"


def log_dispatch(on: bool = True) -> None:
    """Log each choice of a kernel as it is made: once per op, device and dtype.

    The messages go to the logger "tensorplug.dispatch" of :mod:`logging`, at level INFO; where the
    program has set up no handler, they are written to stderr. ``TENSORPLUG_LOG=dispatch`` in the
    environment does the same from the start. A composite that runs as its body, without a kernel or a
    derivative of its own anywhere, is chosen without being asked for.
    """
    dispatch_state.log_choice = _Log() if on else None
    keys.reset_tables()


class _Log:
    """Logs a choice that was not logged before."""

    def __init__(self) -> None:
        import logging

        self.logger = logging.getLogger(LOGGER)
        self.known: set[Any] = set()
        if self.logger.level == logging.NOTSET:
            self.logger.setLevel(logging.INFO)
        if not self.logger.hasHandlers():
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
            self.logger.addHandler(handler)

    def __call__(self, choice: Choice) -> None:
        key = choice.op, choice.device, choice.dtype, choice.way, choice.kernel
        if key not in self.known:  # the tables resolve anew whenever a plugin comes or goes
            self.known.add(key)
            more = f" ({len(choice.losers)} not used)" if choice.losers else ""
            self.logger.info("%s%s", render(choice).partition("\n")[0], more)


if "dispatch" in os.environ.get("TENSORPLUG_LOG", "").split(","):
    dispatch_state.log_choice = _Log()
