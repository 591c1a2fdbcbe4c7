"""The entry points of installed packages, which are read without importing anything.

The group tells the API version (``tensorplug.v1``), the name the device type and a label (``cpu.numpy``);
extension plugins, which add ops for every device, have names that begin with ``extension.``, those that bring
process groups ``distributed.``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..dispatch.keys import lock
from . import hookspecs

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EXTENSION = "extension"
DISTRIBUTED = "distributed"

#: What the first part of a name can be that is no device type.
NO_DEVICES = frozenset({EXTENSION, DISTRIBUTED})


@dataclass
class Found:
    """An installed plugin, as its entry point describes it; nothing of it is imported."""

    entry_point: EntryPoint
    api_version: str
    _known: tuple[str, str] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The entry point's name, ``<device type>.<label>``."""
        return self.entry_point.name

    @property
    def device(self) -> str:
        """The device type it serves, or one of ``NO_DEVICES``."""
        return self.entry_point.name.partition(".")[0]

    @property
    def package(self) -> str:
        """The distribution's name."""
        return self._distribution()[0]

    @property
    def version(self) -> str:
        """The distribution's version."""
        return self._distribution()[1]

    def _distribution(self) -> tuple[str, str]:
        # Kept, as each time the metadata is parsed; cached_property of Python 3.11 would hold a lock.
        if self._known is None:
            dist = self.entry_point.dist
            self._known = ("", "") if dist is None else (dist.name, dist.version)
        return self._known

    @property
    def label(self) -> str:
        """The name with package and version, for messages."""
        return f"{self.name} ({self.package} {self.version})"

    @property
    def is_current(self) -> bool:
        """Whether it speaks this version of the plugin API."""
        return self.api_version == str(hookspecs.API_VERSION)


_found: list[Found] | None = None


def installed(refresh: bool = False) -> list[Found]:
    """Return every installed plugin of any API version; imports none of them."""
    global _found
    with lock:
        if _found is None or refresh:
            from importlib.metadata import entry_points

            points = entry_points()
            found = [
                Found(point, group.removeprefix(hookspecs.GROUP_PREFIX))
                for group in sorted(points.groups)
                if group.startswith(hookspecs.GROUP_PREFIX)
                for point in points.select(group=group)
                if "." in point.name  # else see misnamed()
            ]
            # One distribution can be seen twice: installed, and as a source tree on sys.path. The
            # packages' names are not asked for: they are in files that would have to be parsed.
            unique = {(f.entry_point.group, f.name, f.entry_point.value): f for f in found}
            _found = list(unique.values())
        return list(_found)


def misnamed() -> list[tuple[Found, str, str]]:
    """Return entry points that are nobody's because of their group or name, with reason and fix."""
    from importlib.metadata import entry_points

    wrong = []
    points = entry_points()
    for group in sorted(points.groups):
        versioned = group.startswith(hookspecs.GROUP_PREFIX)
        for point in points.select(group=group):
            found = Found(point, group.removeprefix(hookspecs.GROUP_PREFIX) if versioned else "")
            if group == hookspecs.PROJECT:
                wrong.append(
                    (
                        found,
                        f"its entry point is in the group {group!r}, which nothing reads",
                        f"its author puts it into the group {hookspecs.GROUP!r}",
                    )
                )
            elif versioned and "." not in point.name:
                wrong.append(
                    (
                        found,
                        f"its entry point is named {point.name!r}",
                        "its author names it '<device type>.<label>', or 'extension.<label>'",
                    )
                )
    return wrong
