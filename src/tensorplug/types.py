"""Names for annotations, as torch has them in ``torch.types``."""
# ruff: noqa: PYI042, PYI047  # the names are torch's, and others read them

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from tensorplug.autograd.graph.edges import GradientEdge as _GradientEdge
from tensorplug.core import Device as _Device, DType as _DType, Tensor as _Tensor
from tensorplug.core.tensor.layout import layout as _layout_class
from tensorplug.core.tensor.shapes import Size as _Size

__all__ = ["Device", "FileLike", "Number"]

#: A Python scalar.
Number: TypeAlias = int | float | bool
#: What says where a tensor lives.
Device: TypeAlias = _Device | str | int | None
#: A path or an open file.
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]

_TensorOrTensors: TypeAlias = _Tensor | Sequence[_Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = (
    _Tensor | Sequence[_Tensor] | _GradientEdge | Sequence[_GradientEdge]
)
_size: TypeAlias = _Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = _Size | Sequence[int]
_dispatchkey: TypeAlias = str
PySymType: TypeAlias = int | float | bool
_device: TypeAlias = _Device
_dtype: TypeAlias = _DType
_layout: TypeAlias = _layout_class
_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_complex = builtins.complex
_qscheme: TypeAlias = Any
