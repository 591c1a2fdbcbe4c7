"""Which backend runs which op for which dtype: the coverage matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ..device.device import META
from ..device.dtypes import ALL_DTYPES, DType
from ..plugins import registered
from . import kernel_registry, keys, op_registry, resolution
from .op import Op, OpKind

Way = Literal["kernel", "composite", "missing"]


@dataclass(frozen=True, slots=True)
class Entry:
    """How a backend serves an op for a dtype.

    Attributes
    ----------
    op, family : str
        The op and the module that declares it.
    kind : {"primitive", "composite"}
        Whether a backend must supply a kernel, or may.
    dtype : str
        The dtype of the arguments.
    backend, device : str
        The plugin and the device type.
    way : {"kernel", "composite", "missing"}
        Whether the plugin has a kernel of its own, the op runs as its decomposition, or neither.
        What one backend of a device type lacks another may have.
    """

    op: str
    family: str
    kind: OpKind
    dtype: str
    backend: str
    device: str
    way: Way


def family_of(op: Op) -> str:
    """Return the family of an op: what its module is called below ``ops``, "nn" before nn's."""
    name: str = op.function.__module__
    package, _, module = name.rpartition(".")
    _, found, below = name.partition(".ops.")
    family = below.partition(".")[0] if found else module
    return f"nn.{family}" if package.startswith("tensorplug.nn") else family


def backends() -> dict[tuple[str, str], str]:
    """Return the distribution of each (plugin, device type) that has kernels, by name; loads none."""
    found = {
        (record.name, kernel.device): record.package
        for record in registered()
        for kernel in record.kernels
    }
    return dict(sorted(found.items()))


def coverage(
    chosen: Iterable[tuple[str, str]] | None = None,
    taken: Mapping[str, Iterable[DType]] | None = None,
) -> Iterator[Entry]:
    """Yield how each op is served, for each dtype that it takes, by each backend.

    Parameters
    ----------
    chosen : iterable of (str, str), optional
        Plugins with their device types, as :func:`backends` returns them; by default all.
    taken : mapping of str to dtypes, optional
        By op, the dtypes that it takes. Of ops that are not in it, those that a pointwise primitive
        refuses are left out.
    """
    indices = list(backends() if chosen is None else chosen)
    for op in op_registry.all_ops():
        dtypes = list((taken or {}).get(op.name, ALL_DTYPES))
        computed = {dtype: _computed_in(op, dtype) for dtype in dtypes}
        for plugin, device in indices:
            own = [k for k in kernel_registry.kernels_for(op.name, device) if k.plugin == plugin]
            for dtype in dtypes:
                found = computed[dtype]
                if found is None:
                    continue
                way: Way = "composite" if op.kind == "composite" else "missing"
                if any(kernel.serves(found) for kernel in own):
                    way = "kernel"
                yield Entry(op.name, family_of(op), op.kind, dtype.name, plugin, device, way)


def _computed_in(op: Op, dtype: DType) -> DType | None:
    """Return what a pointwise primitive converts a dtype to; None if it refuses it."""
    if not op.pointwise:
        return dtype
    try:
        return resolution.pointwise_keys(op, keys.dispatch_key(META, dtype))[0].dtype
    except (RuntimeError, TypeError):
        return None
