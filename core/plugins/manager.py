"""The plugin registry: plugins register here, whole or not at all.

Order within one plugin: device runtimes, ops, kernels, derivatives, tangents, vmap rules, layers,
autocast policies, so that each may refer to what came before. If any part is refused, the parts
registered so far are taken back. A device can be found once everything of its plugin is in place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pluggy

from ..device.meta import RUNTIME as META_RUNTIME
from ..device.runtime import DeviceRuntime, RuntimeExtension
from ..dispatch import autocast_policies, kernel_registry, keys, op_registry
from ..dispatch.autocast_policies import AutocastPolicy
from ..dispatch.kernel_registry import DeferredKernels, Kernel
from ..dispatch.keys import lock
from ..dispatch.op_registry import Op
from ..dispatch.state import dispatch_state
from ..errors import PluginError, RegistrationError
from ..labels import labelled
from . import fusers, hookspecs, validation, waiting
from .fusers import Fuser
from .op_rules import OpItem, OpRules
from .process_groups import ProcessGroupBackend
from .waiting import Waiting

if TYPE_CHECKING:
    from ..dispatch.layers import Layer
    from .installation import Advice


@dataclass(slots=True)
class PluginRecord:
    """A registered plugin and all that came with it.

    Attributes
    ----------
    name : str
        The plugin's own name, such as ``"cpu_numpy"``.
    plugin : object
        The object with the hooks.
    package, version : str
        The distribution it came from; empty for one registered in process.
    entry_point : str
        The name of its entry point; empty for one registered in process.
    seconds : float
        How long it took to import and register; 0 for one registered in process.
    devices, ops, kernels, derivatives, tangents, vmap_rules, layers, extensions, autocast : list
        What its hooks returned.
    process_groups : list of ProcessGroupBackend
        What it brings for processes to exchange arrays by.
    fusers : list of Fuser
        What it brings to run parts of compiled programs.
    deferred : list of DeferredKernels
        Kernels that are built when another plugin is registered.
    """

    name: str
    plugin: object
    package: str = ""
    version: str = ""
    entry_point: str = ""
    seconds: float = 0.0
    devices: list[DeviceRuntime] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    deferred: list[DeferredKernels] = field(default_factory=list)
    derivatives: list[OpItem] = field(default_factory=list)
    tangents: list[OpItem] = field(default_factory=list)
    vmap_rules: list[OpItem] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)
    extensions: list[RuntimeExtension] = field(default_factory=list)
    autocast: list[AutocastPolicy] = field(default_factory=list)
    process_groups: list[ProcessGroupBackend] = field(default_factory=list)
    fusers: list[Fuser] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The name with package and version, for messages."""
        return f"{self.name} ({self.package} {self.version})" if self.package else self.name


_manager = pluggy.PluginManager(hookspecs.PROJECT)
_manager.add_hookspecs(hookspecs)
_records: dict[str, PluginRecord] = {}
_runtimes: dict[str, DeviceRuntime] = {"meta": META_RUNTIME}
_layers: dict[str, Layer] = {}
_extensions: list[RuntimeExtension] = []

#: The device types that were there once, and the plugin that took each away with it.
removed_devices: dict[str, str] = {}

#: Where autograd keeps the derivatives, tangents and vmap rules that plugins register.
op_rules: dict[str, OpRules[Any, Any]] = {}


def name_of(plugin: object, default: str = "") -> str:
    """Return the name under which a plugin registers.

    Raises
    ------
    RegistrationError
        If it has none.
    """
    chosen = getattr(plugin, "name", None) or getattr(plugin, "__name__", None) or default
    if not isinstance(chosen, str) or not chosen:
        raise RegistrationError(
            f"plugin {plugin!r} has no name; set its attribute `name` to a string, or pass name= "
            "to register()"
        )
    return chosen


# Called with each device type that a plugin has brought, or extended.
device_listeners: list[Callable[[str], None]] = []


def register(plugin: object, name: str | None = None) -> PluginRecord:
    """Register a plugin object in this process.

    Parameters
    ----------
    plugin : object
        A module or instance with hook implementations.
    name : str, optional
        Its name; by default ``plugin.name``.

    Returns
    -------
    PluginRecord
        What was registered.

    Raises
    ------
    RegistrationError
        If the name is taken, or anything in the plugin does not fit; nothing of it is kept.
    """
    record = register_record(PluginRecord(name or name_of(plugin), plugin))
    if any(
        not kernel.op.partition(".")[1] for kernel in kernel_registry.waiting_kernels(record.name)
    ):
        dispatch_state.find_extensions()
    return record


def register_record(record: PluginRecord) -> PluginRecord:
    """Register the plugin of a record, all of it or nothing."""
    with lock:
        known = _records.get(record.name)
        if known is not None:
            raise RegistrationError(
                f"plugin {record.label}: the name {record.name!r} is already taken by {known.label}"
            )
        _attach(record)
        _records[record.name] = record
        labelled[record.name] = record
        try:
            _register_parts(record)
        except RegistrationError:
            _withdraw(record)
            raise
        except Exception as error:
            _withdraw(record)
            raise RegistrationError(
                f"plugin {record.label}: registration failed with {type(error).__name__}: {error}"
            ) from error
        except BaseException:
            _withdraw(record)
            raise
        problems = waiting.activate(record, _records)
        if problems or record.ops or record.fusers:
            keys.reset_tables()
    waiting.warn_of_quarantined(problems)
    return record


def _attach(record: PluginRecord) -> None:
    """Hand the plugin to pluggy, which checks the names of its hooks."""
    plugin = record.plugin
    if inspect.isclass(plugin):
        raise RegistrationError(
            f"plugin {record.label}: {plugin.__name__} is a class; register an instance, "
            f"{plugin.__name__}()"
        )
    try:
        _manager.register(plugin, record.name)
        _manager.check_pending()
    except (ValueError, TypeError, pluggy.PluginValidationError) as error:
        _detach(record)
        raise RegistrationError(f"plugin {record.label}: {error}") from error
    if not _manager.get_hookcallers(plugin):
        _detach(record)
        raise RegistrationError(
            f"plugin {record.label}: {plugin!r} has no hooks; mark its functions tensorplug_… with "
            "@tensorplug.plugin.hookimpl"
        )


def _detach(record: PluginRecord) -> None:
    if _manager.get_plugin(record.name) is record.plugin:
        _manager.unregister(name=record.name)


def _register_parts(record: PluginRecord) -> None:
    runtimes: dict[str, DeviceRuntime] = {}
    for item in _collect(record, "tensorplug_devices"):
        runtime = validation.check_runtime(item, record, {**_runtimes, **runtimes}, registered())
        validation.check_served(runtime, record)
        runtimes[runtime.type] = runtime
    for item in _collect(record, "tensorplug_ops"):
        op = validation.check_op(item, record)
        op_registry.register_op(op, record.name)
        record.ops.append(op)
        kernel_registry.refresh_overridden(op)
    waiting.register_kernels(record, _collect(record, "tensorplug_kernels"), _records)
    for key in ("derivatives", "tangents", "vmap_rules"):
        given = _collect(record, f"tensorplug_{key}")
        if given:
            if key not in op_rules:
                raise RegistrationError(
                    f"plugin {record.label}: registers {key}, but tensorplug.autograd is not loaded"
                )
            setattr(record, key, op_rules[key].add(given, record.name))
    for item in _collect(record, "tensorplug_layers"):
        layer = validation.check_layer(item, record, _layers)
        _layers[layer.name] = layer
        record.layers.append(layer)
    record.autocast = autocast_policies.add(_collect(record, "tensorplug_autocast"), record.name)
    record.extensions = [
        validation.check_runtime_extension(item, record)
        for item in _collect(record, "tensorplug_runtime_extensions")
    ]
    record.process_groups = validation.check_process_groups(
        _collect(record, "tensorplug_process_groups"), record, registered()
    )
    record.fusers = validation.check_fusers(
        _collect(record, "tensorplug_fusers"), record, registered()
    )
    record.devices = list(runtimes.values())
    _runtimes.update(runtimes)
    _extensions.extend(record.extensions)
    for type_ in runtimes:
        removed_devices.pop(type_, None)
    for type_ in [*runtimes, *[e.type for e in record.extensions if e.type in _runtimes]]:
        for listener in device_listeners:
            listener(type_)
    if record.ops or record.devices:
        keys.reset_tables()


def _collect(record: PluginRecord, hook: str) -> list[Any]:
    """Call one hook of one plugin through pluggy; return what it returned as a list."""
    others = [plugin for name, plugin in _manager.list_name_plugin() if name != record.name]
    caller = _manager.subset_hook_caller(hook, others)
    collected: list[Any] = []
    try:
        for result in caller():
            if isinstance(result, (str, bytes)) or not isinstance(result, Iterable):
                raise RegistrationError(
                    f"plugin {record.label}: its hook {hook} must return an iterable, got "
                    f"{result!r}"
                )
            collected.extend(result)
    except RegistrationError:
        raise
    except Exception as error:
        raise RegistrationError(
            f"plugin {record.label}: its hook {hook} raised {type(error).__name__}: {error}"
        ) from error
    return collected


def unregister(name: str) -> None:
    """Take a plugin and everything it registered out again; tables follow.

    Tensors that live on a device of the plugin can tell shape and dtype from then on, and nothing
    else.

    Raises
    ------
    PluginError
        If no plugin of that name is registered.
    """
    with lock:
        record = _records.get(name)
        if record is None:
            raise PluginError(
                f"no plugin {name!r} is registered; registered are {', '.join(_records) or 'none'}"
            )
        _withdraw(record)


def _withdraw(record: PluginRecord) -> None:
    autocast_policies.remove(record.autocast)
    fusers.forget(record.fusers)
    for layer in record.layers:
        _layers.pop(layer.name, None)
    for rules in op_rules.values():
        rules.remove(record.name)
    if record.kernels:
        kernel_registry.remove_kernels(record.name)
    waiting.forget(record)
    for op in record.ops:
        op_registry.unregister_op(op)
        kernel_registry.deactivate_kernels(op.name)
    for extension in record.extensions:
        if extension in _extensions:  # not yet where registration failed
            _extensions.remove(extension)
    for runtime in record.devices:
        _runtimes.pop(runtime.type, None)
        removed_devices[runtime.type] = record.label
        keys.forget_device(runtime.type, record.label)
    _records.pop(record.name, None)
    labelled.pop(record.name, None)
    _detach(record)
    keys.reset_tables()


def registered() -> list[PluginRecord]:
    """Return the records of all registered plugins, in the order of registration."""
    return list(_records.values())


def waiting_kernels() -> list[Waiting]:
    """Return the kernels that wait for an op, or an extension, that is not registered; loads nothing."""
    return list(waiting.waiting(_records))


def advice() -> list[tuple[str, Advice]]:
    """Return what the plugins' hooks ``tensorplug_advice`` return, each with the plugin's name."""
    return [
        (record.name, item)
        for record in registered()
        for item in _collect(record, "tensorplug_advice")
    ]


def op_records() -> list[Any]:
    """Return what the plugins' hooks ``tensorplug_records`` return, for the conformance suite."""
    return [item for record in registered() for item in _collect(record, "tensorplug_records")]


def record_of(name: str) -> PluginRecord | None:
    """Return the record of a registered plugin."""
    return _records.get(name)


def runtimes() -> dict[str, DeviceRuntime]:
    """Return the runtimes of the device types whose plugins are loaded."""
    return dict(_runtimes)


def runtime_parts(device: str) -> list[DeviceRuntime | RuntimeExtension]:
    """Return the runtime of a device type that is loaded, and what other plugins add to it."""
    return [_runtimes[device], *[e for e in _extensions if e.type == device]]


def process_group_backends() -> list[ProcessGroupBackend]:
    """Return the backends of process groups whose plugins are loaded, the highest priority first."""
    found = [backend for record in registered() for backend in record.process_groups]
    return sorted(found, key=lambda backend: -backend.priority)


def fusers_of(device_type: str) -> list[tuple[Fuser, PluginRecord]]:
    """Return the fusers of a device type that are in use, with their plugins, the highest priority first."""
    found = [
        (fuser, record)
        for record in registered()
        for fuser in record.fusers
        if fuser.device_type == device_type and not fusers.is_quarantined(fuser)
    ]
    return sorted(found, key=lambda pair: -pair[0].priority)


def layers() -> dict[str, Layer]:
    """Return the registered layers by name."""
    return dict(_layers)
