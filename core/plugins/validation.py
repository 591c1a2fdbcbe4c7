"""What registration checks before it keeps anything. A refusal names the plugin and the remedy."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..device.dtypes import DType
from ..device.runtime import CAPABILITIES, DeviceRuntime, RuntimeExtension
from ..dispatch import op_registry
from ..dispatch.kernel_registry import DeferredKernels, Kernel
from ..dispatch.layers import Layer
from ..dispatch.op_registry import Op
from ..errors import RegistrationError
from .entry_points import installed
from .fusers import Fuser
from .process_groups import ProcessGroupBackend

if TYPE_CHECKING:
    from .manager import PluginRecord

# Core tells arrays from plain values by their class; these are how it writes plain values.
_PLAIN = (bool, int, float, complex, str, bytes, tuple, list, dict, type(None))


#: Everything starts on this device, so no other package may bring its runtime by being found first.
_OWNERS = {"cpu": "tensorplug"}


def check_runtime(
    runtime: object,
    record: PluginRecord,
    known: Mapping[str, DeviceRuntime],
    records: list[PluginRecord],
) -> DeviceRuntime:
    """Refuse what is no runtime, an incomplete one, a malformed type, or a type that is taken."""
    if not isinstance(runtime, DeviceRuntime):
        raise RegistrationError(
            f"plugin {record.label}: tensorplug_devices must return DeviceRuntime objects, got "
            f"{runtime!r}"
        )
    type_ = getattr(runtime, "type", None)
    if not isinstance(type_, str) or not type_.isidentifier():
        raise RegistrationError(
            f"plugin {record.label}: {runtime!r} needs an attribute `type` that is an identifier, "
            f"got {type_!r}"
        )
    where = f"plugin {record.label}: the runtime of {type_!r}"
    array_type = getattr(runtime, "array_type", None)
    if not isinstance(array_type, type):
        raise RegistrationError(f"{where} needs a class as `array_type`, got {array_type!r}")
    if issubclass(array_type, _PLAIN):
        raise RegistrationError(
            f"{where} has {array_type.__name__} as `array_type`; it needs a class of its own, "
            "neither a number nor a built-in container"
        )
    _check_capabilities(runtime, where)
    _check_expected_failures(runtime, where)
    dtypes: Any = runtime.dtypes
    if dtypes is not None and not (
        hasattr(dtypes, "__iter__") and all(isinstance(dtype, DType) for dtype in dtypes)
    ):
        raise RegistrationError(f"{where} needs a set of dtypes as `dtypes`, got {dtypes!r}")
    needed = set(runtime.required)
    if "views" in runtime.capabilities:
        needed |= {"strides", "storage_offset"}
    missing = [
        name
        for name in sorted(needed)
        if getattr(type(runtime), name, None) is getattr(DeviceRuntime, name)
    ]
    if missing:
        raise RegistrationError(f"{where} does not implement {', '.join(missing)}")
    if type_ in known or _OWNERS.get(type_, record.package) != record.package:
        raise RegistrationError(
            f"plugin {record.label}: device type {type_!r} already has a runtime"
            f"{_owner_of(type_, records)}; only kernels can be added to it, or give yours another name"
        )
    return runtime


def _owner_of(type_: str, records: list[PluginRecord]) -> str:
    """Return whose the runtime of a device type is, as a phrase."""
    for record in records:
        if any(runtime.type == type_ for runtime in record.devices):
            return f", of plugin {record.label}"
    return f", of {_OWNERS[type_]}" if type_ in _OWNERS else ""


def check_served(runtime: DeviceRuntime, record: PluginRecord) -> None:
    """Refuse the runtime of a device type that no entry point of its package names.

    Nothing would find it, and it could stand in the way of the package that is found.
    """
    if not record.entry_point or runtime.type == record.entry_point.partition(".")[0]:
        return
    served = {found.device for found in installed() if found.package == record.package}
    if runtime.type not in served:
        raise RegistrationError(
            f"plugin {record.label}: it brings a runtime for {runtime.type!r}, but the entry points "
            f"of {record.package} name {', '.join(sorted(served))}; add one named "
            f"'{runtime.type}.<label>' to its pyproject.toml"
        )


def _check_capabilities(runtime: DeviceRuntime, where: str) -> None:
    declared: Any = runtime.capabilities
    if isinstance(declared, str) or not hasattr(declared, "__iter__"):
        raise RegistrationError(f"{where} needs a set of names as `capabilities`, got {declared!r}")
    unknown = set(declared) - set(CAPABILITIES)
    if unknown:
        raise RegistrationError(
            f"{where} declares unknown capabilities {sorted(unknown)}; known are "
            f"{sorted(CAPABILITIES)}"
        )


def _check_expected_failures(runtime: DeviceRuntime, where: str) -> None:
    listed: Any = runtime.expected_failures
    if not isinstance(listed, Mapping):
        raise RegistrationError(
            f"{where} needs a mapping of cases to reasons as `expected_failures`, got {listed!r}"
        )
    for case, reason in listed.items():
        if not isinstance(case, str) or not isinstance(reason, str) or not reason.strip():
            raise RegistrationError(
                f"{where} expects {case!r} to fail, and the reason is {reason!r}; write a string "
                "that tells why"
            )


def check_op(item: object, record: PluginRecord) -> Op:
    """Return the Op behind what a plugin handed over."""
    op = getattr(item, "op", item)
    if not isinstance(op, Op):
        raise RegistrationError(
            f"plugin {record.label}: tensorplug_ops must return functions declared with "
            f"primitive() or composite(), got {item!r}"
        )
    if "." not in op.name and not (op_registry.has_op(op.name) or _is_first_party(record)):
        package = record.package.removeprefix("tensorplug-").replace("-", "_") or record.name
        raise RegistrationError(
            f"plugin {record.label}: op {op.name!r} has no package in front of its name, so it could meet "
            f'another\'s; declare it with name="{package}.{op.name}"'
        )
    return op


def _is_first_party(record: PluginRecord) -> bool:
    """Return whether a plugin is of tensorplug's own distribution."""
    plugin = record.plugin
    module = getattr(plugin, "__name__", None) or type(plugin).__module__
    return record.package == "tensorplug" or module.partition(".")[0] == "tensorplug"


def check_kernel(kernel: object, record: PluginRecord) -> Kernel:
    """Return the kernel with the plugin's name in it; refuse one that does not fit its op.

    Where the op is not registered, its signature is checked when it is.
    """
    if not isinstance(kernel, Kernel):
        raise RegistrationError(
            f"plugin {record.label}: tensorplug_kernels must return Kernel objects, got {kernel!r}"
        )
    where = _of_kernel(kernel, record)
    name: Any = kernel.op
    device: Any = kernel.device
    if not isinstance(name, str):
        raise RegistrationError(f"{where}: the op must be named by a string")
    if not isinstance(device, str) or not device.isidentifier():
        raise RegistrationError(
            f'{where}: the device must be a type such as "cpu", without an index'
        )
    if kernel.device == "meta":
        raise RegistrationError(f"{where}: the meta device runs declarations and takes no kernels")
    if not callable(kernel.function):
        raise RegistrationError(f"{where}: the function {kernel.function!r} is not callable")
    if kernel.accepts is not None and not callable(kernel.accepts):
        raise RegistrationError(f"{where}: accepts {kernel.accepts!r} is not callable")
    _check_priority(kernel.priority, where)
    dtypes = _check_dtypes(kernel, where)
    op = op_registry.find_op(name)
    if op is not None:
        check_fits(kernel, op, record)
        name = op.name
    return replace(kernel, op=name, plugin=record.name, dtypes=dtypes)


def _check_priority(priority: object, where: str) -> None:
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise RegistrationError(f"{where}: the priority must be an int, got {priority!r}")


def _check_dtypes(kernel: Kernel, where: str) -> frozenset[DType] | None:
    given: Any = kernel.dtypes
    if given is None:
        return None
    if kernel.accepts is not None:
        raise RegistrationError(f"{where}: give either dtypes or accepts, not both")
    if isinstance(given, (str, DType)) or not hasattr(given, "__iter__"):
        raise RegistrationError(f"{where}: dtypes must be a set of dtypes, got {given!r}")
    for dtype in given:
        if not isinstance(dtype, DType):
            raise RegistrationError(
                f"{where}: unknown dtype {dtype!r}; dtypes are objects such as "
                'tensorplug.plugin.dtype_named("float32")'
            )
    if not given:
        raise RegistrationError(f"{where}: dtypes is empty; None stands for any dtype")
    return frozenset(given)


def check_deferred(deferred: DeferredKernels, record: PluginRecord) -> DeferredKernels:
    """Refuse deferred kernels that name no plugin, or that nothing builds."""
    extension: Any = deferred.extension
    if not isinstance(extension, str) or not extension or not callable(deferred.build):
        raise RegistrationError(
            f"plugin {record.label}: DeferredKernels needs the name of a plugin and a function, got "
            f"{deferred!r}"
        )
    return deferred


def _of_kernel(kernel: Kernel, record: PluginRecord) -> str:
    return f"plugin {record.label}: kernel for op {kernel.op!r} on {kernel.device!r}"


def check_fits(kernel: Kernel, op: Op, record: PluginRecord) -> None:
    """Refuse a kernel that cannot be called with its op's arguments."""
    where = _of_kernel(kernel, record)
    inputs = getattr(kernel.function, "nin", None)  # a NumPy-like universal function
    if inputs is not None:
        if inputs != op.arity:
            raise RegistrationError(
                f"{where}: {kernel.function!r} takes {inputs} arrays, the op has {op.arity} "
                f"arguments ({', '.join(op.parameters)})"
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


def check_layer(layer: object, record: PluginRecord, known: Mapping[str, Layer]) -> Layer:
    """Refuse what is no layer, or a name that is taken."""
    if not isinstance(layer, Layer):
        raise RegistrationError(
            f"plugin {record.label}: tensorplug_layers must return Layer objects, got {layer!r}"
        )
    if layer.name in known:
        raise RegistrationError(
            f"plugin {record.label}: a layer named {layer.name!r} is already registered"
        )
    return layer


def check_runtime_extension(extension: object, record: PluginRecord) -> RuntimeExtension:
    """Refuse what is no extension of a runtime, or does not tell of which device."""
    if not isinstance(extension, RuntimeExtension):
        raise RegistrationError(
            f"plugin {record.label}: tensorplug_runtime_extensions must return RuntimeExtension "
            f"objects, got {extension!r}"
        )
    type_: Any = getattr(extension, "type", None)
    if not isinstance(type_, str) or not type_.isidentifier():
        raise RegistrationError(
            f"plugin {record.label}: {extension!r} needs the device type as attribute `type`, got "
            f"{type_!r}"
        )
    return extension


def check_process_groups(
    given: list[object], record: PluginRecord, records: list[PluginRecord]
) -> list[ProcessGroupBackend]:
    """Refuse what is no backend of process groups, is incomplete, or ties with another's."""
    taken = [(backend, other) for other in records for backend in other.process_groups]
    checked: list[ProcessGroupBackend] = []
    for backend in given:
        if not isinstance(backend, ProcessGroupBackend):
            raise RegistrationError(
                f"plugin {record.label}: tensorplug_process_groups must return ProcessGroupBackend "
                f"objects, got {backend!r}"
            )
        name: Any = getattr(backend, "name", None)
        if not isinstance(name, str) or not name.isidentifier() or name != name.lower():
            raise RegistrationError(
                f"plugin {record.label}: {backend!r} needs an attribute `name` that is an identifier "
                f"in small letters, got {name!r}"
            )
        types: Any = getattr(backend, "device_types", None)
        if not isinstance(types, frozenset) or not types:
            raise RegistrationError(
                f"plugin {record.label}: the process groups of {name!r} need a frozenset of device "
                f"types as `device_types`, got {types!r}"
            )
        _check_priority(backend.priority, f"plugin {record.label}: process groups {name!r}")
        for other, owner in taken:
            if (other.name, other.priority) == (
                name,
                backend.priority,
            ) and other.device_types & types:
                raise RegistrationError(
                    f"plugin {record.label}: process groups {name!r} have priority {backend.priority}, "
                    f"and so have those of plugin {owner.label}; give one of them another priority"
                )
        taken.append((backend, record))
        checked.append(backend)
    return checked


def check_fusers(
    given: list[object], record: PluginRecord, records: list[PluginRecord]
) -> list[Fuser]:
    """Refuse what is no fuser, is incomplete, or ties with another one."""
    taken = [(fuser, other) for other in records for fuser in other.fusers]
    checked: list[Fuser] = []
    for fuser in given:
        if not isinstance(fuser, Fuser):
            raise RegistrationError(
                f"plugin {record.label}: tensorplug_fusers must return Fuser objects, got {fuser!r}"
            )
        for attribute in ("name", "device_type"):
            value: Any = getattr(fuser, attribute, None)
            if not isinstance(value, str) or not value.isidentifier():
                raise RegistrationError(
                    f"plugin {record.label}: {fuser!r} needs an attribute `{attribute}` that is an "
                    f"identifier, got {value!r}"
                )
        _check_priority(fuser.priority, f"plugin {record.label}: fuser {fuser.name!r}")
        for other, owner in taken:
            if (other.device_type, other.priority) == (fuser.device_type, fuser.priority):
                raise RegistrationError(
                    f"plugin {record.label}: the fuser {fuser.name!r} has priority {fuser.priority} on "
                    f"{fuser.device_type!r}, and so has {other.name!r} of plugin {owner.label}; give one of "
                    "them another priority"
                )
        taken.append((fuser, record))
        checked.append(fuser)
    return checked
