"""The command ``tensorplug``: what is installed, what it can do, and packages of one's own."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

import tensorplug
from tensorplug.core.errors import PluginWarning
from tensorplug.core.plugins import API_VERSION

from . import bench, compat, conformance, coverage, devices, doctor, explain, scaffold
from .output import complain

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        0; 1 if what was asked for is missing or broken; argparse itself leaves with 2.

    Examples
    --------
    >>> main(["explain", "mul", "--json"])  # doctest: +ELLIPSIS
    {
     "op": "mul",
    ...
    0
    """
    parser = argparse.ArgumentParser(prog="tensorplug", description=__doc__)
    version = f"%(prog)s {tensorplug.__version__}, plugin API v{API_VERSION}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (doctor, devices, explain, coverage, scaffold, conformance, bench, compat):
        module.add_to(commands)
    chosen = parser.parse_args(arguments)
    try:
        with warnings.catch_warnings():
            # What is wrong with a plugin is part of what the commands print.
            warnings.simplefilter("ignore", PluginWarning)
            return chosen.run(chosen)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        return 0
    except OSError as error:  # a file or folder that cannot be read or written
        return complain(f"{error.strerror}: {error.filename}" if error.filename else str(error))
