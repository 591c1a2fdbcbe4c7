"""``tensorplug explain OP``: which kernel runs an op, and why the others do not."""

from __future__ import annotations

import argparse
from typing import Any

import tensorplug
from tensorplug.core.device import device, dtypes
from tensorplug.core.dispatch.choice import Choice
from tensorplug.core.dispatch.kernel_registry import Kernel
from tensorplug.core.errors import DeviceNotAvailableError
from tensorplug.core.plugins import record_of

from .output import complain, print_json


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "explain",
        help="which kernel runs an op, and why the others do not",
        description="Tell who runs an op for a device and dtype: package, version, priority and "
        "source line; then every kernel that does not, and why.",
    )
    command.add_argument("op", metavar="OP", help="the op's name, such as mul or linalg_solve")
    command.add_argument("--device", default="cpu", help="the device; cpu unless given")
    command.add_argument("--dtype", default=None, help="the arguments' dtype; float32 unless given")
    command.add_argument("--json", action="store_true", help="print the choice as JSON")
    command.set_defaults(run=_explain)


def _explain(chosen: argparse.Namespace) -> int:
    try:
        dtype = None if chosen.dtype is None else dtypes.dtype_named(chosen.dtype)
        index = device.Device(chosen.device)
        choice = tensorplug.explain(chosen.op, device=index, dtype=dtype)
    except KeyError as error:
        return complain(str(error.args[0]))
    except (DeviceNotAvailableError, RuntimeError, TypeError, ValueError) as error:
        return complain(str(error))
    if chosen.json:
        print_json(_as_values(choice))
    else:
        print(choice)
    return 0 if choice.way != "none" else 1


def _as_values(choice: Choice) -> dict[str, Any]:
    computed = choice.computed_in
    return {
        "op": choice.op,
        "device": choice.device,
        "dtype": choice.dtype.name,
        "computed_in": None if computed is None else computed.name,
        "way": choice.way,
        "refused": choice.refused,
        "kernel": None if choice.kernel is None else _kernel(choice.kernel),
        "losers": [{**_kernel(kernel), "reason": reason} for kernel, reason in choice.losers],
    }


def _kernel(kernel: Kernel) -> dict[str, Any]:
    record = record_of(kernel.plugin)
    return {
        "plugin": kernel.plugin,
        "package": "" if record is None else record.package,
        "version": "" if record is None else record.version,
        "priority": kernel.priority,
        "note": kernel.note,
        "source": kernel.source(),
    }
