"""Switches that programs set on libraries below torch: ``tp.backends.<name>.<switch>``.

Any name gives a place where switches can be set and read, so that such programs run; a plugin may
read them. ``is_available()`` tells the truth about device types.
"""

from __future__ import annotations

import platform
from collections import defaultdict
from functools import partial
from typing import Any

from tensorplug.core.contexts import Block, Steps

from ._devices import DeviceModule, is_device_type
from ._settings import get_float32_matmul_precision, set_float32_matmul_precision

#: Switches that only one of the libraries has, and how they stand.
_OWN_SWITCHES: dict[str, dict[str, Any]] = {
    "opt_einsum": {"strategy": "auto"},
    "quantized": {"engine": "none", "supported_engines": ["none"]},
}


class _Switches:
    """The switches of a library's products."""

    allow_tf32: Any = False
    allow_fp16_reduced_precision_reduction = False
    allow_bf16_reduced_precision_reduction = False


class _Products(_Switches):
    """Those of a device type: the switch and ``set_float32_matmul_precision`` are one setting."""

    @property
    def allow_tf32(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether products of float32 may be computed in TensorFloat-32."""
        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        set_float32_matmul_precision("high" if allowed else "highest")


class Backend:
    """The switches of one library or device type; they are off until set.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.backends.cudnn.benchmark = True
    >>> tp.backends.cudnn.benchmark
    True
    >>> tp.backends.nosuch.is_available()
    False
    """

    def __init__(self, name: str) -> None:
        self._name = name
        # Which implementations of attention are allowed; all are until told otherwise.
        self._sdp: defaultdict[str, bool] = defaultdict(lambda: True)
        vars(self).update(_OWN_SWITCHES.get(name, {}))
        self.enabled = True
        self.benchmark = False
        self.deterministic = False
        self.allow_tf32 = False
        self.matmul = _Products() if is_device_type(name) else _Switches()

    def is_available(self) -> bool:
        """Return whether a device of this type can be used."""
        return is_device_type(self._name) and DeviceModule.of(self._name).is_available()

    def is_built(self) -> bool:
        """Return whether a plugin for this device type is installed."""
        return is_device_type(self._name) and DeviceModule.of(self._name).is_installed()

    def is_macos_or_newer(self, major: int, minor: int) -> bool:
        """Return whether the system is macOS, of this version or a newer one."""
        version = platform.mac_ver()[0]
        return bool(version) and tuple(map(int, version.split(".")[:2])) >= (major, minor)

    def version(self) -> None:
        """Return None: no version is known."""

    def flags(self, **switches: Any) -> Block:
        """Set switches within a ``with`` block."""

        def steps() -> tuple[Steps, Steps]:
            before = {name: getattr(self, name) for name in switches}
            table = vars(self)
            return (partial(table.update, switches),), (partial(table.update, before),)

        return Block(steps)

    # --- implementations of attention ---

    def sdp_kernel(self, **switches: bool) -> Block:
        """Note which implementations of attention are allowed (``enable_math=False``).

        Plugins choose by priority.
        """

        def steps() -> tuple[Steps, Steps]:
            before = self._sdp
            inside = before.copy()
            inside.update({name.removeprefix("enable_"): bool(on) for name, on in switches.items()})
            return (partial(setattr, self, "_sdp", inside),), (
                partial(setattr, self, "_sdp", before),
            )

        return Block(steps)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name.startswith("enable_") and name.endswith("_sdp"):
            kind = name.removeprefix("enable_").removesuffix("_sdp")
            return partial(self._sdp.__setitem__, kind)
        if name.endswith("_sdp_enabled"):
            return partial(self._sdp.__getitem__, name.removesuffix("_sdp_enabled"))
        raise AttributeError(f"tensorplug.backends.{self._name} has no attribute {name!r}")

    def get_cpu_capability(self) -> str:
        """Return the architecture of the processor."""
        return platform.machine() or "unknown"

    def __repr__(self) -> str:
        return f"<switches of {self._name}>"


def flags_frozen() -> bool:
    """Return whether switches may be set by :meth:`Backend.flags` alone; they never are here.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.backends.flags_frozen()
    False
    """
    return False


def __getattr__(name: str) -> Backend:
    if name.startswith(("_", "pytest")):  # pytest asks every module for its plugins
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = Backend(name)
    return made
