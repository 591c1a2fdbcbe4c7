"""The package ``onnx``, which has the format's definition: found when it is first needed."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["onnx_package"]


def onnx_package(submodule: str = "") -> Any:
    """Return the package ``onnx``, or a module of it, or say how to install it."""
    try:
        package = importlib.import_module("onnx")
        return importlib.import_module(f"onnx.{submodule}") if submodule else package
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise ImportError(
            "tensorplug.onnx reads and writes models through the package `onnx`, which is not installed: "
            "pip install 'tensorplug[onnx]'",
            name="onnx",
        ) from None
