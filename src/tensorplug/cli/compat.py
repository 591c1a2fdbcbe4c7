"""``tensorplug compat``: packages that need torch, installed without it."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from .output import complain

#: What tensorplug stands in for, and what only torch's own kernels need.
_STOOD_IN = re.compile(r"(torch|triton|nvidia-.*|pytorch-triton.*|cuda-.*)$")

#: What torch requires, and packages that require torch use without saying so.
_WITH_TORCH = ("filelock", "fsspec", "jinja2")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "compat",
        help="install packages that need torch, without torch",
        description="Packages that import torch, for programs that run by `python -m tensorplug.compat`.",
    )
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    install = actions.add_parser(
        "install",
        help="install packages, and what they need but torch",
        description="Install packages with pip, and what they require, but not torch.",
    )
    install.add_argument(
        "packages", nargs="+", metavar="PACKAGE", help="as pip takes it: timm, 'peft>=0.17'"
    )
    install.add_argument(
        "--pip", action="append", default=[], metavar="OPTION", help="an option of pip: --pip=--pre"
    )
    install.set_defaults(run=_install)


def _install(chosen: argparse.Namespace) -> int:
    """Install in rounds, each without dependencies: what the last round's packages lack."""
    wanted = list(chosen.packages)
    asked: set[str] = set()
    while wanted:
        print("installing", " ".join(wanted), flush=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            *chosen.pip,
            *wanted,
        ]
        if subprocess.run(command, check=False).returncode:
            return complain(f"pip could not install {' '.join(wanted)}")
        importlib.invalidate_caches()
        asked.update(wanted)
        wanted = [text for text in _missing(wanted) if text not in asked]
    return 0


def _missing(packages: Iterable[str]) -> list[str]:
    """Return the requirements of packages that nothing installed satisfies, one for each name."""
    requirement_of = _parser()
    wanted: dict[str, Any] = {}
    for package in packages:
        parent = requirement_of(package)
        for text in importlib.metadata.requires(parent.name) or ():
            one = requirement_of(text)
            environments = [{"extra": extra} for extra in (parent.extras or {""})]
            if one.marker is not None and not any(map(one.marker.evaluate, environments)):
                continue
            name = re.sub(r"[-_.]+", "-", one.name).lower()
            if name == "torch":  # what programs get with it
                missing = [text for text in _WITH_TORCH if not _satisfied(requirement_of(text))]
                wanted |= {text: requirement_of(text) for text in missing}
            if _STOOD_IN.match(name) or (_satisfied(one) and not one.extras):
                continue
            one.marker = None
            if name in wanted:
                one.specifier &= wanted[name].specifier
                one.extras |= wanted[name].extras
            wanted[name] = one
    return [str(one) for one in wanted.values()]


def _satisfied(requirement: Any) -> bool:
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return bool(requirement.specifier.contains(version, prereleases=True))


def _parser() -> Any:
    """Return what parses requirements: `packaging`, or the copy of it in pip."""
    try:
        return importlib.import_module("packaging.requirements").Requirement
    except ModuleNotFoundError:
        return importlib.import_module("pip._vendor.packaging.requirements").Requirement
