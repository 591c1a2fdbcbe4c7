"""The plugin registry: plugins register here, whole or not at all.

Order within one plugin: device runtimes, ops, kernels, derivatives, layers, so that each may refer to
what came before. If any part is refused, the parts registered so far are taken back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pluggy

from .. import kinds, operators, resolution
from ..errors import PluginError, RegistrationError
from ..meta import RUNTIME as META_RUNTIME
from ..operators import Op
from ..resolution import Kernel
from ..runtime import DeviceRuntime
from . import hookspecs

if TYPE_CHECKING:
    from ..layers import Layer


@dataclass(slots=True)
class PluginRecord:
    """A registered plugin and all that came with it.

    Attributes
    ----------
    name : str
        The plugin's own name, such as ``"cpu_numpy"``.
    package, version : str
        The distribution it came from; empty for one registered in process.
    """

    name: str
    plugin: object
    package: str = ""
    version: str = ""
    entry_point: str = ""
    devices: list[DeviceRuntime] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    derivatives: list[Any] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The name with package and version, for messages."""
        return f"{self.name} ({self.package} {self.version})" if self.package else self.name


_lock = threading.RLock()
_manager = pluggy.PluginManager(hookspecs.PROJECT)
_manager.add_hookspecs(hookspecs)
_records: dict[str, PluginRecord] = {}
_runtimes: dict[str, DeviceRuntime] = {"meta": META_RUNTIME}
_layers: dict[str, Layer] = {}

# Set by autograd: check and store derivatives, take them back.
add_derivatives: Callable[[Iterable[Any], str], None] | None = None
remove_derivatives: Callable[[Iterable[Any]], None] | None = None


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
    chosen = name or getattr(plugin, "name", None) or getattr(plugin, "__name__", None)
    if not isinstance(chosen, str):
        raise RegistrationError(
            f"plugin {plugin!r} has no name; set its attribute `name`, or pass name= to register()"
        )
    return register_record(PluginRecord(chosen, plugin))


def register_record(record: PluginRecord) -> PluginRecord:
    """Register the plugin of a record, all of it or nothing."""
    with _lock:
        known = _records.get(record.name)
        if known is not None:
            raise RegistrationError(
                f"plugin {record.label}: the name {record.name!r} is already taken by {known.label}"
            )
        try:
            _manager.register(record.plugin, record.name)
            _manager.check_pending()
        except (ValueError, pluggy.PluginValidationError) as error:
            if _manager.has_plugin(record.name):
                _manager.unregister(name=record.name)
            raise RegistrationError(f"plugin {record.label}: {error}") from error
        _records[record.name] = record
        try:
            _register_parts(record)
        except BaseException:
            _withdraw(record)
            raise
    return record


def _register_parts(record: PluginRecord) -> None:
    from . import validation

    for runtime in _collect(record, "tensorplug_devices"):
        validation.check_runtime(runtime, record, _runtimes)
        _runtimes[runtime.type] = runtime
        record.devices.append(runtime)
    for item in _collect(record, "tensorplug_ops"):
        op = validation.check_op(item, record)
        operators.register_op(op, record.name)
        record.ops.append(op)
    kernels = [validation.check_kernel(k, record) for k in _collect(record, "tensorplug_kernels")]
    if kernels:
        resolution.add_kernels(kernels)
        record.kernels = kernels
    derivatives = _collect(record, "tensorplug_derivatives")
    if derivatives:
        if add_derivatives is None:
            raise RegistrationError(
                f"plugin {record.label}: registers derivatives, but tensorplug.autograd is not loaded"
            )
        add_derivatives(derivatives, record.name)
        record.derivatives = derivatives
    for layer in _collect(record, "tensorplug_layers"):
        validation.check_layer(layer, record, _layers)
        _layers[layer.name] = layer
        record.layers.append(layer)
    if record.ops or record.devices:
        kinds.reset_tables()


def _collect(record: PluginRecord, hook: str) -> list[Any]:
    """Call one hook of one plugin through pluggy; return what it returned as a list."""
    others = [plugin for name, plugin in _manager.list_name_plugin() if name != record.name]
    caller = _manager.subset_hook_caller(hook, others)
    try:
        results = caller()
    except RegistrationError:
        raise
    except Exception as error:
        raise RegistrationError(
            f"plugin {record.label}: its hook {hook} raised {type(error).__name__}: {error}"
        ) from error
    collected: list[Any] = []
    for result in results:
        if isinstance(result, (str, bytes)) or not isinstance(result, Iterable):
            raise RegistrationError(
                f"plugin {record.label}: its hook {hook} must return an iterable, got {result!r}"
            )
        collected.extend(result)
    return collected


def unregister(name: str) -> None:
    """Take a plugin and everything it registered out again; tables follow.

    Raises
    ------
    PluginError
        If no plugin of that name is registered.
    """
    with _lock:
        record = _records.get(name)
        if record is None:
            raise PluginError(
                f"no plugin {name!r} is registered; registered are {', '.join(_records) or 'none'}"
            )
        _withdraw(record)


def _withdraw(record: PluginRecord) -> None:
    for layer in record.layers:
        _layers.pop(layer.name, None)
    if record.derivatives and remove_derivatives is not None:
        remove_derivatives(record.derivatives)
    if record.kernels:
        resolution.remove_kernels(record.name)
    for op in record.ops:
        operators.unregister_op(op)
    for runtime in record.devices:
        _runtimes.pop(runtime.type, None)
        kinds.forget_device(runtime.type)
    _records.pop(record.name, None)
    if _manager.has_plugin(record.name):
        _manager.unregister(name=record.name)
    kinds.reset_tables()


def registered() -> list[PluginRecord]:
    """Return the records of all registered plugins, in the order of registration."""
    return list(_records.values())


def record_of(name: str) -> PluginRecord | None:
    """Return the record of a registered plugin."""
    return _records.get(name)


def plugin_label(name: str) -> str:
    """Return a plugin's name with package and version, for messages."""
    record = _records.get(name)
    return name if record is None else record.label


def runtimes() -> dict[str, DeviceRuntime]:
    """Return the runtimes of the device types whose plugins are loaded."""
    return dict(_runtimes)


def layers() -> dict[str, Layer]:
    """Return the registered layers by name."""
    return dict(_layers)
