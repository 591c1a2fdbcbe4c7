"""Names of torch's top level that tensorplug does not have: why, and what to do instead."""

from __future__ import annotations

_COMPILER = (
    "tp.compile captures and runs graphs of ops; leave other calls and decorators of the compiler out "
    "(python -m tensorplug.compat runs programs with them unchanged)"
)
_EXPORT = "tp.export saves programs without their code; a state dict needs the code beside it"
_QUANTIZED = (
    "there are no quantized kernels; keep numbers in floating point, bfloat16 halves the memory"
)
_VENDOR = "kernels come with plugins and have no names of their own; call the op, tp.explain says what runs"
_SYMBOLIC = "sizes are plain ints here; use Python's own functions on them"

# Of torch 1.9: calls of them raise there.
_REMOVED = {
    "eig": "eig",
    "lstsq": "lstsq",
    "matrix_rank": "matrix_rank",
    "solve": "solve",
    "symeig": "eigh",
}

_REASONS = {
    **dict.fromkeys(("compiler", "jit", "cond", "while_loop"), _COMPILER),
    "package": _EXPORT,
    **dict.fromkeys(
        ("ao", "quantization", "dequantize", "int_repr", "empty_quantized", "qscheme"), _QUANTIZED
    ),
    **dict.fromkeys(
        ("is_vulkan_available", "vulkan"), "there is no such device type; a plugin may bring one"
    ),
    "classes": "there are no classes in libraries compiled against torch; write them in Python",
    "nested": "there are no nested tensors; nn.utils.rnn.pad_sequence and pack_sequence hold sequences",
    "set_default_tensor_type": "use set_default_dtype and set_default_device",
    **{old: f"torch removed it as well; use linalg.{new}" for old, new in _REMOVED.items()},
}
_PREFIXES = {
    **dict.fromkeys(("quantize", "q_", "qint", "quint", "fake_quant", "fbgemm_"), _QUANTIZED),
    **dict.fromkeys(("cudnn_", "mkldnn_", "miopen_", "_cudnn", "_mkldnn"), _VENDOR),
    **dict.fromkeys(("sym_", "Sym"), _SYMBOLIC),
    "Script": _COMPILER,
}


def reason(name: str) -> str:
    """Return what an error says of a missing name beside that it is missing."""
    found = _REASONS.get(name) or next(
        (why for prefix, why in _PREFIXES.items() if name.startswith(prefix)), ""
    )
    return f": {found}" if found else ""
