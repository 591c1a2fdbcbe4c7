"""A module per device type, made from its runtime: ``tp.<type>.is_available()`` and the rest.

The table of well-known types is the only place above the plugin line where a device type other than
"cpu" and "meta" has a name. It makes ``tp.cuda.is_available()`` a quiet False without the plugin,
and lets the error of ``to("cuda")`` say what to install.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorplug.core import plugins
from tensorplug.core.contexts import OwnContext, Steps
from tensorplug.core.device.device import Device
from tensorplug.core.device.generator import Generator, generator_of
from tensorplug.core.device.runtime import DeviceRuntime
from tensorplug.core.errors import DeviceNotAvailableError
from tensorplug.core.plugins import discovery, entry_points
from tensorplug.core.plugins.installation import install_command
from tensorplug.core.tensor import device_members, legacy

from . import _device_members

#: The well-known device types; for some it is known what installs their plugin.
WELL_KNOWN = ("cuda", "mps", "xpu")

discovery.install_hints["cuda"] = lambda: (
    f"{install_command('tensorplug-cuda-cupy[cuda13]')} (or [cuda12], as your driver is)"
)

discovery.install_hints["mps"] = lambda: install_command("tensorplug-mps-mlx")

discovery.array_protocols["__cuda_array_interface__"] = "cuda"

#: The package of compiled kernels for the CPU.
FAST_BACKEND = "tensorplug-cpu-cython"
for _type in WELL_KNOWN:
    device_members.add(_type)


def is_device_type(name: str) -> bool:
    """Return whether `name` is a well-known device type, or one that an installed plugin serves."""
    return (
        name in WELL_KNOWN
        or name in plugins.runtimes()
        or any(found.device == name for found in plugins.installed())
    ) and name not in entry_points.NO_DEVICES


def _index(device: Any, runtime: DeviceRuntime) -> int:
    """Return the index that a device, index, string or None means."""
    if device is None:
        return runtime.current_device()
    if isinstance(device, int):
        return runtime.current_device() if device < 0 else device
    chosen = Device(device)
    if chosen.type != runtime.type:
        raise ValueError(f"expected a {runtime.type} device, got {chosen}")
    return runtime.current_device() if chosen.index is None else chosen.index


class _Properties:
    """Facts about a device, as attributes."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.__dict__.update(facts)

    def __repr__(self) -> str:
        return f"DeviceProperties({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


class _CurrentDevice(OwnContext):
    """Makes another device of a type the current one within a ``with`` block."""

    def __init__(self, module: DeviceModule, device: Any) -> None:
        self._module = module
        self._device = device

    def _steps(self) -> tuple[Steps, Steps]:
        runtime = self._module._runtime()
        index = _index(self._device, runtime)
        guard = runtime.device_guard(index)
        if guard is None:
            before = runtime.current_device()
            return (partial(runtime.set_device, index),), (partial(runtime.set_device, before),)
        return (guard.__enter__,), (partial(guard.__exit__, None, None, None),)


class _AmpModule(types.ModuleType):
    """``tensorplug.<type>.amp``, filled when it is first used."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            from tensorplug.amp.device_namespace import names_for  # on first use: saves import time

            device_type = self.__name__.split(".")[1]
            vars(self).update(names_for(device_type))
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        from tensorplug.amp.device_namespace import names_for  # on first use: saves import time

        return sorted({*vars(self), *names_for(self.__name__.split(".")[1])})


class DeviceModule(types.ModuleType):
    """The functions of one device type.

    Whatever else a plugin's runtime has in ``namespace`` is found here, too.
    """

    amp: _AmpModule

    def __init__(self, device_type: str) -> None:
        super().__init__(f"tensorplug.{device_type}", f"Functions of device type {device_type!r}.")
        self._type = device_type
        self._stand_ins: dict[str, type] = {}

    @classmethod
    def of(cls, device_type: str) -> DeviceModule:
        """Return the module of a type, importable as ``tensorplug.<type>`` from then on."""
        known = sys.modules.get(f"tensorplug.{device_type}")
        if not isinstance(known, DeviceModule):
            known = sys.modules[f"tensorplug.{device_type}"] = cls(device_type)
            name = f"tensorplug.{device_type}.amp"
            known.amp = sys.modules[name] = _AmpModule(name)
        return known

    def _runtime(self) -> DeviceRuntime:
        """Return the runtime; raise if no device can be used."""
        runtime = discovery.find_runtime(self._type)
        reason = runtime.unavailable_reason()
        if reason is not None:
            raise DeviceNotAvailableError(f"device {self._type} cannot be used: {reason}")
        return runtime

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = legacy.legacy_types(self._type).get(name)
        if found is not None:
            return found
        if discovery.known_runtime(self._type) is not None:
            for part in plugins.runtime_parts(self._type):
                if name in part.namespace:
                    return part.namespace[name]
        found = None if name.startswith("_") else _device_members.find_member(self, name)
        if found is None:
            raise AttributeError(f"module 'tensorplug.{self._type}' has no attribute {name!r}")
        if isinstance(found, type):
            return self._stand_ins.setdefault(name, found)  # the same class each time
        return found

    def __dir__(self) -> list[str]:
        """Return what an editor completes; of a plugin that is not loaded only what all devices have."""
        names = {*vars(self), *dir(type(self)), *legacy.legacy_types(self._type)}
        names |= _device_members.member_names()
        if self.is_initialized():
            for part in plugins.runtime_parts(self._type):
                names.update(part.namespace)
        return sorted(names)

    # --- presence ---

    def is_available(self) -> bool:
        """Return whether a device can be used; False without a plugin for it."""
        try:
            return bool(self._runtime().device_count())
        except DeviceNotAvailableError:
            return False

    def device_count(self) -> int:
        """Return the number of devices; 0 without a plugin for them."""
        try:
            return self._runtime().device_count()
        except DeviceNotAvailableError:
            return 0

    def is_installed(self) -> bool:
        """Return whether a plugin for the devices is installed or registered."""
        return self._type in plugins.runtimes() or any(
            found.device == self._type for found in plugins.installed()
        )

    def init(self) -> None:
        """Load the plugin now."""
        self._runtime()

    def is_initialized(self) -> bool:
        """Return whether the plugin is loaded."""
        return self._type in plugins.runtimes()

    def current_device(self) -> int:
        """Return the index of the current device."""
        return self._runtime().current_device()

    def set_device(self, device: Any) -> None:
        """Make a device the current one of this thread."""
        runtime = self._runtime()
        runtime.set_device(_index(device, runtime))

    def device(self, device: Any) -> _CurrentDevice:
        """Return a context within which a device is the current one."""
        return _CurrentDevice(self, device)

    def get_device_name(self, device: Any = None) -> str:
        """Return the name of a device."""
        runtime = self._runtime()
        return runtime.device_name(_index(device, runtime))

    def get_device_properties(self, device: Any = None) -> _Properties:
        """Return facts about a device, as attributes."""
        runtime = self._runtime()
        return _Properties(runtime.properties(_index(device, runtime)))

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """Return the version (major, minor) of the hardware's instruction set."""
        facts = vars(self.get_device_properties(device))
        return facts.get("major", 0), facts.get("minor", 0)

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Return whether the devices compute in bfloat16."""
        return self.is_available() and "bfloat16" in self._runtime().capabilities

    def is_tf32_supported(self) -> bool:
        """Return whether the devices multiply in TensorFloat-32."""
        return self.is_available() and self.get_device_capability() >= (8, 0)

    # --- random numbers ---

    def _generators(self) -> list[Generator]:
        count = self.device_count()
        return [generator_of(Device(self._type, index)) for index in range(count)]

    def manual_seed(self, seed: int) -> None:
        """Start the random numbers of the current device at `seed`; nothing to do where none is."""
        if self.is_available():
            generator_of(Device(self._type)).manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Start the random numbers of each device at `seed`."""
        for generator in self._generators():
            generator.manual_seed(seed)

    def seed(self) -> None:
        """Start the random numbers of the current device at a seed from the operating system."""
        if self.is_available():
            generator_of(Device(self._type)).seed()

    def seed_all(self) -> None:
        """Start the random numbers of each device at a seed from the operating system."""
        for generator in self._generators():
            generator.seed()

    def initial_seed(self) -> int:
        """Return the seed of the current device."""
        self._runtime()
        return generator_of(Device(self._type)).initial_seed()

    def get_rng_state(self, device: Any = None) -> Any:
        """Return the state of a device's random numbers as a tensor of bytes."""
        return generator_of(Device(self._type, _index(device, self._runtime()))).get_state()

    def get_rng_state_all(self) -> list[Any]:
        """Return the states of all devices' random numbers."""
        return [generator.get_state() for generator in self._generators()]

    def set_rng_state(self, new_state: Any, device: Any = None) -> None:
        """Make a device's random numbers go on from a state."""
        generator_of(Device(self._type, _index(device, self._runtime()))).set_state(new_state)

    def set_rng_state_all(self, new_states: Sequence[Any]) -> None:
        """Make all devices' random numbers go on from states."""
        for generator, state in zip(self._generators(), new_states, strict=True):
            generator.set_state(state)

    # --- time and memory ---

    def synchronize(self, device: Any = None) -> None:
        """Wait until everything queued on a device is done."""
        runtime = self._runtime()
        runtime.synchronize(_index(device, runtime))

    def memory_stats(self, device: Any = None) -> dict[str, int]:
        """Return memory figures in bytes; none where no device is."""
        if not self.is_available():
            return {}
        runtime = self._runtime()
        index = _index(device, runtime)
        stats: dict[str, int] = {}
        for part in plugins.runtime_parts(self._type):
            stats.update(part.memory_stats(index))
        return stats

    def memory_allocated(self, device: Any = None) -> int:
        """Return the bytes that tensors take now."""
        return self.memory_stats(device).get("allocated", 0)

    def max_memory_allocated(self, device: Any = None) -> int:
        """Return the most bytes that tensors took at a time."""
        return self.memory_stats(device).get("peak_allocated", 0)

    def memory_reserved(self, device: Any = None) -> int:
        """Return the bytes that the allocator holds."""
        return self.memory_stats(device).get("reserved", 0)

    def max_memory_reserved(self, device: Any = None) -> int:
        """Return the most bytes that the allocator held at a time."""
        return self.memory_stats(device).get("peak_reserved", 0)

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """Make the peak figures start again from the present."""
        runtime = self._runtime()
        index = _index(device, runtime)
        for part in plugins.runtime_parts(self._type):
            part.reset_peak_memory_stats(index)

    def empty_cache(self) -> None:
        """Give cached memory back; nothing to do where no device is."""
        if self.is_available():
            self._runtime()
            for part in plugins.runtime_parts(self._type):
                part.empty_cache()


for _type in ("cpu", *WELL_KNOWN):  # so that they can be imported from, installed or not
    DeviceModule.of(_type)


if TYPE_CHECKING:  # the facade has these by their names
    cuda: DeviceModule
    mps: DeviceModule
    xpu: DeviceModule
