"""What the first lines of a bug report say, as ``torch.utils.collect_env``.

    python -m tensorplug.utils.collect_env

``tensorplug doctor`` loads all plugins as well, and tells what is wrong.
"""

from __future__ import annotations

import sys

from tensorplug.__config__ import show

__all__ = ["get_pretty_env_info", "main"]


def get_pretty_env_info() -> str:
    """Return versions, the installed plugins and how many threads kernels use, as text.

    Examples
    --------
    >>> "Python" in get_pretty_env_info()
    True
    """
    return show()


def main() -> None:
    """Write :func:`get_pretty_env_info` to the standard output."""
    sys.stdout.write(f"{get_pretty_env_info()}\n")


if __name__ == "__main__":
    main()
