"""What messages call plugins: by name, package and version."""

from __future__ import annotations

#: By the name of each registered plugin.
labels: dict[str, str] = {}


def plugin_label(name: str) -> str:
    """Return a plugin's name with package and version, for messages."""
    return labels.get(name, name)
