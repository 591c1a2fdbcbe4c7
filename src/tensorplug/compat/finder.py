"""Modules under torch's names that show tensorplug's, and what makes imports find them."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

from .additions import ADDITIONS

#: Where the counterpart of a module has another name than `torch` replaced by `tensorplug`.
RENAMED = {
    "torch.nn.modules.module": "tensorplug.nn.module",
    **{
        f"torch.nn.modules.{family}": "tensorplug.nn.modules"
        for family in ("channelshuffle", "fold", "instancenorm", "pixelshuffle", "upsampling")
    },
    "torch.utils.data": "tensorplug.data",
    "torch.utils.data._utils": "tensorplug.data",
    "torch.utils.data._utils.collate": "tensorplug.data.collate",
    "torch.utils.data.dataloader": "tensorplug.data.loader",
    "torch.utils.data.dataset": "tensorplug.data.datasets",
    "torch.utils.data.distributed": "tensorplug.data.distributed_sampler",
    "torch.utils.data.sampler": "tensorplug.data.samplers",
}

#: Packages whose names both libraries sort into files, each in its own way.
_FLAT = ("torch.nn.modules.", "torch.nn.utils.")

#: Packages that are compiled against torch itself, so that they cannot be served.
_COMPILED = frozenset({"torchaudio", "torchtext", "torchvision"})


_MISSING: Any = object()


class Alias(types.ModuleType):
    """A module under torch's name; its attributes are those of a module, or object, of tensorplug."""

    def __init__(self, name: str, target: Any) -> None:
        super().__init__(name, f"{name}, as tensorplug has it.")
        own = {"_target": target, "__path__": [], "__file__": getattr(target, "__file__", None)}
        self.__dict__.update(own)
        for added, value in ADDITIONS.get(name, {}).items():
            if added == "__version__" or not hasattr(target, added):
                self.__dict__[added] = value

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [public for public in dir(self._target) if not public.startswith("_")]
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        if full in RENAMED:
            return alias_of(full)
        value = getattr(self._target, name, _MISSING)
        if value is _MISSING and self.__name__.startswith(_FLAT):
            # The package has what another of its files defines here.
            value = getattr(
                importlib.import_module(self.__name__.rpartition(".")[0]), name, _MISSING
            )
        if value is _MISSING and full in ADDITIONS:
            return alias_of(full)
        if value is _MISSING:
            raise AttributeError(_missing(full))
        if isinstance(value, types.ModuleType):
            return alias_of(full)
        if isinstance(value, (type, types.FunctionType)):
            self.__dict__[name] = value  # found at once from now on
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # Imports set a package's modules and their specs; what a program sets is a setting.
        if name.startswith("__") or isinstance(value, Alias):
            super().__setattr__(name, value)
        else:
            setattr(self._target, name, value)
            self.__dict__.pop(name, None)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._target), *ADDITIONS.get(self.__name__, {})})


def _missing(name: str) -> str:
    return f"tensorplug has no counterpart of {name}"


def is_ours(module: Any) -> bool:
    """Return whether a module is one of these."""
    return type(module) is Alias


def alias_of(name: str) -> Any:
    """Return the module of one of torch's names, whether or not imports find it.

    Raises
    ------
    ModuleNotFoundError
        If there is no counterpart.
    """
    known = sys.modules.get(name)
    if known is not None and is_ours(known):
        return known
    target = _target(name)
    if target is _MISSING:
        # Without `name=`, so that `from torch.x import y` shows this message, too.
        raise ModuleNotFoundError(_missing(name))
    alias = Alias(name, target)
    if any([isinstance(finder, Finder) for finder in sys.meta_path]):
        sys.modules[name] = alias
    return alias


def _target(name: str) -> Any:
    found = _counterpart(name)
    return types.ModuleType(name) if found is _MISSING and name in ADDITIONS else found


def _counterpart(name: str) -> Any:
    if name == "torch":
        return importlib.import_module("tensorplug")
    own = RENAMED.get(name, f"tensorplug.{name.removeprefix('torch.')}")
    if name.endswith(".amp"):  # torch has one for each device type, too
        own = "tensorplug.amp"
    try:
        return importlib.import_module(own)
    except ModuleNotFoundError as error:
        if not own.startswith(error.name or "-"):
            raise  # the module is there, but imports what is not
    # Such as `torch.backends.cudnn`, an object; functions and classes are no modules.
    parent, _, last = own.rpartition(".")
    try:
        value = getattr(importlib.import_module(parent), last, _MISSING)
    except ModuleNotFoundError:
        return _MISSING
    return _MISSING if isinstance(value, (type, types.FunctionType)) else value


class Finder(MetaPathFinder, Loader):
    """Finds torch's modules among tensorplug's."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of torch; None for others."""
        root = fullname.partition(".")[0]
        if root in _COMPILED:
            raise ModuleNotFoundError(
                f"{root} is compiled against torch itself, so it cannot run on tensorplug; take the "
                "data sets, transforms or models that the program needs from elsewhere"
            )
        if root != "torch":
            return None
        alias_of(fullname)
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return the module."""
        return alias_of(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the module shows another."""
