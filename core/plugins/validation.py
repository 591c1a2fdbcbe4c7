"""What registration checks before it keeps anything."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .. import operators
from ..dtypes import DType
from ..errors import RegistrationError
from ..layers import Layer
from ..operators import Op
from ..resolution import Kernel
from ..runtime import CAPABILITIES, DeviceRuntime

if TYPE_CHECKING:
    from .manager import PluginRecord


def check_runtime(
    runtime: object, record: PluginRecord, known: Mapping[str, DeviceRuntime]
) -> None:
    """Refuse what is no runtime, a malformed type, or a type that another plugin serves."""
    if not isinstance(runtime, DeviceRuntime):
        raise RegistrationError(
            f"plugin {record.label}: tensorplug_devices must return DeviceRuntime objects, got {runtime!r}"
        )
    type_ = getattr(runtime, "type", None)
    if not isinstance(type_, str) or not type_.isidentifier():
        raise RegistrationError(
            f"plugin {record.label}: {runtime!r} needs an attribute `type` that is an identifier, "
            f"got {type_!r}"
        )
    if not isinstance(getattr(runtime, "array_type", None), type):
        raise RegistrationError(
            f"plugin {record.label}: the runtime of {type_!r} needs a class as `array_type`"
        )
    unknown = set(runtime.capabilities) - set(CAPABILITIES)
    if unknown:
        raise RegistrationError(
            f"plugin {record.label}: the runtime of {type_!r} declares unknown capabilities "
            f"{sorted(unknown)}; known are {sorted(CAPABILITIES)}"
        )
    if type_ in known:
        raise RegistrationError(
            f"plugin {record.label}: device type {type_!r} already has a runtime; only kernels can be "
            "added to it"
        )


def check_op(item: object, record: PluginRecord) -> Op:
    """Return the Op behind what a plugin handed over."""
    op = getattr(item, "op", item)
    if not isinstance(op, Op):
        raise RegistrationError(
            f"plugin {record.label}: tensorplug_ops must return functions declared with primitive() or "
            f"composite(), got {item!r}"
        )
    return op


def check_kernel(kernel: object, record: PluginRecord) -> Kernel:
    """Return the kernel with the plugin's name in it; refuse one that does not fit its op."""
    if not isinstance(kernel, Kernel):
        raise RegistrationError(
            f"plugin {record.label}: tensorplug_kernels must return Kernel objects, got {kernel!r}"
        )
    where = f"plugin {record.label}: kernel for op {kernel.op!r} on {kernel.device!r}"
    try:
        op = operators.get_op(kernel.op)
    except KeyError as error:
        raise RegistrationError(f"{where}: {error.args[0]}") from None
    if not callable(kernel.function):
        raise RegistrationError(f"{where}: the function {kernel.function!r} is not callable")
    for dtype in kernel.dtypes or ():
        if not isinstance(dtype, DType):
            raise RegistrationError(f"{where}: unknown dtype {dtype!r}")
    if kernel.dtypes is not None and kernel.accepts is not None:
        raise RegistrationError(f"{where}: give either dtypes or accepts, not both")
    if not isinstance(kernel.priority, int):
        raise RegistrationError(f"{where}: the priority must be an int, got {kernel.priority!r}")
    _check_signature(kernel, op, where)
    return replace(kernel, plugin=record.name)


def _check_signature(kernel: Kernel, op: Op, where: str) -> None:
    inputs = getattr(kernel.function, "nin", None)  # a NumPy-like universal function
    if inputs is not None:
        if inputs != op.arity:
            raise RegistrationError(
                f"{where}: {kernel.function!r} takes {inputs} arrays, the op has {op.arity} arguments "
                f"({', '.join(op.parameters)})"
            )
        return
    try:
        signature = inspect.signature(kernel.function)
    except (TypeError, ValueError):
        return  # a compiled function that does not tell
    options = {"out": None} if kernel.out else {}
    try:
        signature.bind(*op.parameters, **options)
    except TypeError as error:
        raise RegistrationError(
            f"{where}: its signature {signature} does not fit the call "
            f"({', '.join(op.parameters)}{', out=array' if kernel.out else ''}): {error}"
        ) from None


def check_layer(layer: object, record: PluginRecord, known: Mapping[str, Layer]) -> None:
    """Refuse what is no layer, or a name that is taken."""
    if not isinstance(layer, Layer):
        raise RegistrationError(
            f"plugin {record.label}: tensorplug_layers must return Layer objects, got {layer!r}"
        )
    if layer.name in known:
        raise RegistrationError(
            f"plugin {record.label}: a layer named {layer.name!r} is already registered"
        )
