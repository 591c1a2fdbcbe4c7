"""Derivatives of ops that copy or convert."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.copying import cast, copy, to_device
from tensorplug.core.ops.creation.creation_like import zeros_like

from ..engine.derivatives import derivative
from ..forward.tangents import linear, tangent
from ..vmap.vmap_rules import shared_rule
from .arithmetic import zero


def _cast_back(g: Any, input_dtype: Any) -> Any:
    return cast(g, input_dtype)


DERIVATIVES = [
    derivative("cast", input=_cast_back),
    derivative("clone", input=lambda g: g),
    derivative("clone_strided", input=lambda g: g),
    derivative("copy", input=zero, src=lambda g: g),
    derivative("to_device", input=lambda g, input_device: to_device(g, input_device)),
]


TANGENTS = [
    tangent("copy", input=lambda t: zeros_like(t), src=lambda t, input: copy(input, t)),
    linear("cast", "input"),
    linear("clone", "input"),
    linear("clone_strided", "input"),
    linear("to_device", "input"),
]


VMAP_RULES = [
    shared_rule("as_is", "cast", "clone"),
    shared_rule("copy", "copy"),
    shared_rule("laid_out", "clone_strided"),
    shared_rule("whole_as_is", "to_device"),
]
