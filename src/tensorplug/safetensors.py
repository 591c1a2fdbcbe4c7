"""Tensors in safetensors files, under the names of the package ``safetensors.torch``."""

from __future__ import annotations

from tensorplug.serialization.archive import FileFormatError as SafetensorError
from tensorplug.serialization.safetensors import (
    load as load,
    load_file as load_file,
    load_model as load_model,
    safe_open as safe_open,
    save as save,
    save_file as save_file,
    save_model as save_model,
)

__all__ = [
    "SafetensorError",
    "load",
    "load_file",
    "load_model",
    "safe_open",
    "save",
    "save_file",
    "save_model",
]
