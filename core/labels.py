"""What messages call plugins: by name, package and version."""

from __future__ import annotations

from typing import Protocol


class Labelled(Protocol):
    """What has a label, as the record of a plugin does."""

    @property
    def label(self) -> str:
        """The name with package and version."""
        ...


#: How the note begins that says whose kernel raised an error.
RAISED_BY = "raised by "

#: The registered plugins, by name.
labelled: dict[str, Labelled] = {}


def plugin_label(name: str) -> str:
    """Return a plugin's name with package and version, for messages."""
    record = labelled.get(name)
    return name if record is None else record.label
