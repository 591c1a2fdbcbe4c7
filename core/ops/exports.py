"""What the modules of a package declare and export, as they are imported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

from ..dispatch.op_registry import Op


def _modules(package: str) -> Iterator[ModuleType]:
    """Yield a module and those below it, in the order of their import."""
    inside = f"{package}."
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(inside):
            yield module


def exported(package: str) -> list[str]:
    """Return the names in ``__all__`` of a package's modules that have been imported so far."""
    return [name for module in _modules(package) for name in getattr(module, "__all__", ())]


def declared_in(module: ModuleType) -> list[Op]:
    """Return the ops that a module or a package declares, in the order of their definition."""
    found = {
        value.op.name: value.op
        for part in _modules(module.__name__)
        for value in list(vars(part).values())
        if isinstance(getattr(value, "op", None), Op)
        and value.op.call is value
        and getattr(value, "__module__", None) == part.__name__
    }
    return list(found.values())
