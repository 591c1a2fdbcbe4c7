"""The exceptions of reading and writing ONNX files."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ONNXError", "UnsupportedOperatorError"]


class ONNXError(ValueError):
    """A file is no valid ONNX model, or parts of it are missing; the message names the place."""


class UnsupportedOperatorError(NotImplementedError):
    """A model has operators that cannot be expressed here: all of them, each with its reason.

    Attributes
    ----------
    operators
        Pairs of an operator's name and the reason.
    """

    def __init__(self, message: str, operators: Sequence[tuple[str, str]]) -> None:
        super().__init__(message)
        self.operators = list(operators)
