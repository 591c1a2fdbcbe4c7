"""How sparse tensors print: as torch's do."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.device import CPU
from tensorplug.core.device.dtypes import bool_, default_complex, get_default_dtype, int64
from tensorplug.core.tensor.printing import gradient_note, numbers_of, with_notes

_PREFIX = "tensor("


def sparse_repr(tensor: Any) -> str:
    """Return what ``repr(tensor)`` does."""
    indent = len(_PREFIX)
    parts = []
    names = ("indices",) if tensor.is_sparse else tensor.layout.names
    for name, part in zip((*names, "values"), tensor._parts(), strict=True):
        before = f"{name}=tensor("
        numbers = "..." if part.is_meta else numbers_of(part.detach(), indent + len(before))
        size = f", size={tuple(part.shape)}" if part.is_meta or not part.numel() else ""
        parts.append(f"{before}{numbers}{size})")
    notes = [] if tensor.device is CPU else [f"device='{tensor.device}'"]
    notes += [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}"]
    if tensor.dtype not in (get_default_dtype(), default_complex(), int64, bool_):
        notes.append(f"dtype={tensor.dtype}")
    notes.append(f"layout={tensor.layout}")
    notes += gradient_note(tensor)
    text = _PREFIX + (",\n" + " " * indent).join(parts)
    return with_notes(text, notes, indent, tensor.is_sparse)
