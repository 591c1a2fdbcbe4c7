"""Anomaly mode within a backward pass: which forward call is to blame for an error or a NaN."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tensorplug.core.contexts import thread

from ..graph import saved_tensors
from ..graph.nodes import Node, OutputNode
from .backward_hooks import apply_hooked, as_tensor, key_of

if TYPE_CHECKING:
    from .engine import BackwardPass


def apply_watched(
    run: BackwardPass, node: Node, gradient: Any, hooked: bool
) -> list[tuple[Any, bool]]:
    """Apply a node; of an error, or of a NaN among its gradients, warn with the forward calls behind it."""
    outer = thread.evaluated
    try:
        thread.evaluated = node
        results = apply_hooked(run, node, gradient) if hooked else node.apply(gradient, run.raw)
        _check_nan(run, node, results)
    except Exception:
        _warn(node)
        raise
    finally:
        thread.evaluated = outer
    return results


def _check_nan(run: BackwardPass, node: Node, results: list[tuple[Any, bool]]) -> None:
    """Raise RuntimeError if a gradient that a node returned has NaN."""
    if isinstance(node, OutputNode) or not saved_tensors.check_nan:
        return
    for position, ((value, _), edge) in enumerate(zip(results, node.edges, strict=True)):
        if value is None or edge is None:
            continue
        tensor = as_tensor(run, value, key_of(edge))
        if bool((tensor != tensor).any()):
            raise RuntimeError(
                f"Function '{node.name()}' returned nan values in its {position}th output."
            )


def _warn(node: Node) -> None:
    """Warn of an error in a node, then of each node whose backward recorded the one before."""
    trace = None if node.extra is None else node.extra.forward_trace
    if trace is None:
        text = "No forward pass information available; enable anomaly detection in the forward pass, too"
    else:
        text = f"Traceback of forward call that caused the error:\n{trace}"
    _say(f"Error detected in {node.name()}. {text}")
    induced = node
    while induced.extra is not None and induced.extra.induced_by is not None:
        before, induced = induced, induced.extra.induced_by
        trace = None if induced.extra is None else induced.extra.forward_trace
        _say(
            f"Previous calculation, of {before.name()}, was induced by {induced.name()}. Traceback of "
            f"forward call that induced the previous calculation:\n{trace or '(not available)'}"
        )


def _say(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=2)
