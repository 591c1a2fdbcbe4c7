"""Testing: comparison, random tensors, and the conformance suite for backends."""

from __future__ import annotations

from .comparison import assert_close
from .making import make_tensor
from .records import ErrorSample, OpRecord, Sample

__all__ = ["ErrorSample", "OpRecord", "Sample", "assert_close", "make_tensor"]
