"""What the facade finds on first use: sub-packages, a module per device type, ops of extensions."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tensorplug.core import creation, operators, plugins

from ._devices import DeviceModule, is_device_type

#: Sub-packages and modules that are imported when they are first used.
LAZY = frozenset(
    {
        "amp",
        "backends",
        "data",
        "distributed",
        "distributions",
        "fft",
        "func",
        "linalg",
        "nn",
        "onnx",
        "optim",
        "plugin",
        "random",
        "serialization",
        "special",
        "testing",
        "utils",
    }
)

#: Functions that are imported, with their module, when they are first used.
LAZY_FUNCTIONS = {"load": "serialization", "save": "serialization"}

tensor_types = creation.legacy_types("cpu")


class OpNamespace:
    """Ops by their registered name: ``tp.ops.add``, ``tp.ops.package.name`` for an extension's.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.add(tp.tensor([1]), 2)
    tensor([3])
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = self._prefix + name
        if operators.has_op(full):
            return operators.get_op(full).call
        if not self._prefix:
            plugins.load_device("extension")
        if any(op.name.startswith(f"{full}.") for op in operators.all_ops()):
            return OpNamespace(f"{full}.")
        try:
            return operators.get_op(full).call
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __dir__(self) -> list[str]:
        start = len(self._prefix)
        names = [op.name[start:] for op in operators.all_ops() if op.name.startswith(self._prefix)]
        return sorted({name.partition(".")[0] for name in names})


def find_attribute(name: str) -> Any:
    """Return what ``tp.<name>`` is, where that is found on first use."""
    package = sys.modules["tensorplug"]
    value: Any
    if name in LAZY:
        try:
            value = importlib.import_module(f"tensorplug.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"tensorplug.{name}":
                raise
            raise AttributeError(f"module 'tensorplug' has no attribute {name!r}") from None
        return value
    if name in LAZY_FUNCTIONS:
        value = getattr(importlib.import_module(f"tensorplug.{LAZY_FUNCTIONS[name]}"), name)
        setattr(package, name, value)
        return value
    if name.startswith("_"):
        raise AttributeError(f"module 'tensorplug' has no attribute {name!r}")
    if name in tensor_types:
        return tensor_types[name]
    if is_device_type(name):
        value = DeviceModule.of(name)
        setattr(package, name, value)
        return value
    raise AttributeError(f"module 'tensorplug' has no attribute {name!r}")


def list_attributes() -> list[str]:
    """Return the names that ``dir(tp)`` shows."""
    package = sys.modules["tensorplug"]
    return sorted({*vars(package), *LAZY, *LAZY_FUNCTIONS, *plugins.runtimes()} - {"annotations"})
