"""What ``importlib.metadata`` finds under the name "torch"."""

from __future__ import annotations

import importlib
import os
import re
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

#: The version of torch whose documentation tensorplug follows.
VERSION = "2.13.0+tensorplug"

_FILES = {
    "METADATA": (
        f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\nSummary: tensorplug, under torch's name\n"
    ),
    "top_level.txt": "torch\n",
}


class TorchDistribution(Distribution):
    """torch as an installed distribution, so that libraries see that it is there and which version."""

    def read_text(self, filename: str) -> str | None:
        """Return one of the files that describe the distribution."""
        return _FILES.get(filename)

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """Return where a file of the distribution would be."""
        package: Any = importlib.import_module("tensorplug")
        return Path(package.__file__).parent / path


def is_asked_for(name: str | None) -> bool:
    """Return whether a query for distributions, by name or for all, takes this one in."""
    return name is None or re.sub(r"[-_.]+", "-", name).lower() == "torch"
