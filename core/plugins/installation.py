"""What an installation lacks, and the pip line that brings it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Advice:
    """What a plugin says of itself in ``tensorplug doctor``.

    Attributes
    ----------
    topic : str
        What it is about: a library, the processor.
    state : str
        How that is: "in use", "missing".
    fix : str
        What makes it faster, or "" where nothing is to be done.

    Examples
    --------
    >>> from tensorplug.plugin import Advice
    >>> Advice("BLAS", "missing", "pip install acme-blas").fix
    'pip install acme-blas'
    """

    topic: str
    state: str
    fix: str = ""


def install_command(requirement: str) -> str:
    """Return the pip line for one of the packages that are developed with tensorplug.

    It names the index, or, where tensorplug itself came from a folder or a git address, that place.

    Parameters
    ----------
    requirement : str
        The distribution's name with extras: "tensorplug-cuda-cupy[cuda13]".

    Examples
    --------
    >>> from tensorplug.plugin import install_command
    >>> install_command("acme-kernels[fast]")
    "pip install 'acme-kernels[fast]'"
    """
    name, bracket, extras = requirement.partition("[")
    _, _, label = name.partition("tensorplug-")
    within = f"backends/{label.replace('-', '_')}" if label else "."
    origin = _origin() if name.startswith("tensorplug") else {}
    if "dir_info" in origin:
        from pathlib import Path  # these take their time, and are rarely needed
        from urllib.parse import unquote, urlsplit

        folder = Path(unquote(urlsplit(origin["url"]).path), within)
        if folder.is_dir():
            return f"pip install '{folder}{bracket}{extras}'"
    elif "vcs_info" in origin:
        vcs = origin["vcs_info"]
        address = f"{vcs['vcs']}+{origin['url']}@{vcs['commit_id']}"
        if label:
            address += f"#subdirectory={within}"
        return f"pip install '{requirement} @ {address}'"
    return f"pip install '{requirement}'"


def _origin() -> dict[str, Any]:
    """Return from where tensorplug was installed, empty where from an index; see PEP 610."""
    import json  # these take their time, and are rarely needed
    from importlib import metadata

    try:
        text = metadata.distribution("tensorplug").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return {}
    origin: dict[str, Any] = json.loads(text or "{}")
    return origin
