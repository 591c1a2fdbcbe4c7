"""Operators that cannot be run here, each with the reason."""

from __future__ import annotations

__all__ = ["REASONS"]

_STRINGS = "computes with strings, which have no tensors here: prepare them before the model"

#: By domain and name.
REASONS = {
    **dict.fromkeys(
        [
            ("", name)
            for name in (
                "RegexFullMatch",
                "StringConcat",
                "StringNormalizer",
                "StringSplit",
                "TfIdfVectorizer",
            )
        ],
        _STRINGS,
    ),
    ("", "ImageDecoder"): "decodes image files: do that before the model, for example with Pillow",
    **dict.fromkeys(
        [
            ("ai.onnx.preview.training", name)
            for name in ("Adagrad", "Adam", "Gradient", "Momentum")
        ],
        "a training step inside of a graph: train the module with tp.optim instead",
    ),
}
