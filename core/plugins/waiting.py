"""Kernels that wait for their op: put to use when it registers, or set aside if they do not fit it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..dispatch import kernel_registry, op_registry
from ..dispatch.kernel_registry import DeferredKernels, Kernel
from ..dispatch.op_registry import Op
from ..errors import PluginWarning, RegistrationError, warn
from . import validation

if TYPE_CHECKING:
    from .manager import PluginRecord


@dataclass(frozen=True, slots=True)
class Waiting:
    """A kernel that waits for its op, or deferred kernels that wait for an extension.

    Attributes
    ----------
    plugin : str
        The plugin that brings the kernel, with package and version.
    op, device : str
        The op and the device type; empty for deferred kernels.
    extension : str
        The plugin that deferred kernels wait for; empty for a kernel.
    """

    plugin: str
    op: str = ""
    device: str = ""
    extension: str = ""

    @property
    def near(self) -> list[str]:
        """The registered ops whose names are near."""
        import difflib

        names = [op.name for op in op_registry.all_ops()]
        return difflib.get_close_matches(self.op, names, 4) if self.op else []

    @property
    def misspelt(self) -> bool:
        """Whether no package that is not installed can bring the op.

        A name without a dot is tensorplug's own; with a dot it begins with the package's, and then no op
        of that package is there either. It tells something once all extensions are loaded.
        """
        package, dot, _ = self.op.rpartition(".")
        return bool(self.op) and (
            not dot or any(op.name.startswith(f"{package}.") for op in op_registry.all_ops())
        )

    def __str__(self) -> str:
        if self.extension:
            return f"plugin {self.plugin}: kernels wait for the plugin {self.extension!r}"
        near = f"; did you mean {', '.join(self.near)}?" if self.near else ""
        return (
            f"plugin {self.plugin}: a kernel on {self.device!r} waits for an op {self.op!r}, which no "
            f"plugin registers{near}"
        )


@dataclass(frozen=True, slots=True)
class QuarantinedKernel:
    """A kernel that waited, and did not fit its op when that was registered.

    Attributes
    ----------
    plugin : str
        The plugin that brought it, by name.
    op : str
        The op; for deferred kernels that could not be built, the extension.
    error : Exception
        What is wrong.
    """

    plugin: str
    op: str
    error: Exception


_quarantine: list[QuarantinedKernel] = []
# What a warning was given of.
_told: set[Waiting] = set()


def register_kernels(
    record: PluginRecord, items: Iterable[object], records: Mapping[str, PluginRecord]
) -> None:
    """Check and add what a plugin's hook returned, all or nothing."""
    present: list[object] = []
    for item in items:
        if not isinstance(item, DeferredKernels):
            present.append(item)
            continue
        deferred = validation.check_deferred(item, record)
        if deferred.extension in records and deferred.extension != record.name:
            present.extend(deferred.build())
        else:
            record.deferred.append(deferred)
    _add(record, present)


def _add(record: PluginRecord, items: Iterable[object]) -> None:
    kernels = [validation.check_kernel(item, record) for item in items]
    if kernels:
        kernel_registry.add_kernels(kernels)
        record.kernels.extend(kernels)


def activate(record: PluginRecord, records: Mapping[str, PluginRecord]) -> list[QuarantinedKernel]:
    """Put the kernels to use that waited for a plugin or its ops; return those that do not fit."""
    problems: list[QuarantinedKernel] = []

    def fits(kernel: Kernel, op: Op) -> bool:
        try:
            validation.check_fits(kernel, op, records[kernel.plugin])
            kernel_registry.check_priority(
                kernel, kernel_registry.kernels_for(op.name, kernel.device)
            )
        except RegistrationError as error:
            problems.append(QuarantinedKernel(kernel.plugin, op.name, error))
            return False
        return True

    if record.ops:
        kernel_registry.activate_kernels(fits)
    for other in records.values():
        for deferred in [d for d in other.deferred if d.extension == record.name]:
            other.deferred.remove(deferred)
            try:
                _add(other, deferred.build())
            except Exception as error:
                problems.append(QuarantinedKernel(other.name, record.name, error))
    _quarantine.extend(problems)
    return problems


def forget(record: PluginRecord) -> None:
    """Drop the entries of a plugin that goes away."""
    brought = {op.name for op in record.ops} | {record.name}
    _quarantine[:] = [
        entry for entry in _quarantine if entry.plugin != record.name and entry.op not in brought
    ]
    _told.difference_update([entry for entry in _told if entry.plugin == record.label])


def waiting(records: Mapping[str, PluginRecord]) -> Iterator[Waiting]:
    """Yield what waits at present."""
    for kernel in kernel_registry.waiting_kernels():
        yield Waiting(records[kernel.plugin].label, kernel.op, kernel.device)
    for record in records.values():
        for deferred in record.deferred:
            yield Waiting(record.label, extension=deferred.extension)


def quarantined_kernels() -> list[QuarantinedKernel]:
    """Return the kernels that did not fit their op when it was registered."""
    return list(_quarantine)


def warn_of_quarantined(problems: Iterable[QuarantinedKernel]) -> None:
    """Warn of kernels that were set aside."""
    for entry in problems:
        warn(
            f"a kernel is not used: {entry.error}; tp.plugins.quarantined_kernels() lists it",
            PluginWarning,
        )


def warn_of_misspelt(records: Mapping[str, PluginRecord]) -> None:
    """Warn once of each kernel that waits in vain; for when all extensions are loaded."""
    for entry in list(waiting(records)):
        if entry.misspelt and entry not in _told:
            _told.add(entry)
            warn(str(entry), PluginWarning)
