"""What the namespace tells about itself."""

from __future__ import annotations

import sys
from typing import Any

from tensorplug.core import plugins
from tensorplug.core.device import dtypes as ours
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType
from tensorplug.core.dispatch.keys import canonical_device, default_device
from tensorplug.core.errors import DeviceNotAvailableError
from tensorplug.core.plugins.entry_points import EXTENSION

from .data_types import KINDS, Placement

__all__ = ["Info", "__array_namespace_info__", "of_version"]

#: Versions of the standard of which the namespace has every function.
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

_WITHOUT_DATA = "meta"


class Info:
    """Devices, dtypes and capabilities, as the standard asks for them.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> info = xp.__array_namespace_info__()
    >>> info.default_dtypes()["real floating"]
    tensorplug.float32
    >>> sorted(info.dtypes(kind="real floating"))
    ['float32', 'float64']
    """

    def capabilities(self) -> dict[str, Any]:
        """Return what the namespace can do; the limit of dimensions is the one of the default device."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return the device on which arrays are made where none is named."""
        return default_device()

    def default_dtypes(self, *, device: Placement = None) -> dict[str, DType]:
        """Return the dtypes that Python numbers become, and the one of positions."""
        return {
            "real floating": ours.get_default_dtype(),
            "complex floating": ours.default_complex(),
            "integral": ours.int64,
            "indexing": ours.int64,
        }

    def dtypes(
        self, *, device: Placement = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """Return the standard's dtypes of a kind, or of several, or all, by name."""
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        for name in kinds:
            if name not in KINDS:
                raise ValueError(f"unknown kind {name!r}; known are {', '.join(KINDS)}")
        return {dtype.name: dtype for name in kinds for dtype in KINDS[name]}

    def devices(self) -> list[Device]:
        """Return the devices that can be used, of all installed plugins."""
        types = {found.device for found in plugins.installed()} | set(plugins.runtimes())
        found = []
        for name in sorted(types - {EXTENSION, _WITHOUT_DATA}):
            try:
                first = canonical_device(Device(name))
            except DeviceNotAvailableError:
                continue
            count = plugins.runtimes()[name].device_count()
            found += [first] if first.index is None else [Device(name, i) for i in range(count)]
        return found


def __array_namespace_info__() -> Info:  # noqa: N807  the standard's name
    """Return an object that tells devices, dtypes and capabilities."""
    return Info()


def of_version(api_version: str | None) -> Any:
    """Return the namespace, if it follows a version of the standard.

    Raises
    ------
    ValueError
        If it does not.
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"version {api_version!r} of the array API standard is not supported; supported are "
            f"{', '.join(VERSIONS)}"
        )
    return sys.modules[__name__.rpartition(".")[0]]
